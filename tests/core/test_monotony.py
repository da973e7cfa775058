"""Monotony: one more erasure is never more permissive, whatever the policy, the call and the erasures."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.decision import Decision, Question, decide
from quietus.core.events import EventType
from quietus.core.gate import Gate
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import EFFECTS, Mode, Policy, Vector, strictness
from quietus.core.problems import PROBLEMS
from quietus.core.scope import Scope
from quietus.core.states import State
from tests.core.making import POLICIES, World
from tests.core.test_gate import asked, born, later, lives


def ask(
    gate: Gate, operation: Operation, reach: Scope, policy: Policy, *, route: str, **more: Any
) -> Decision:
    return decide(Question(Call(operation, route=route), reach, **more), gate, policy)


def rank(decision: Decision, operation: Operation) -> int:
    return strictness(operation, decision.effect) - (100 if decision.mode is Mode.OBSERVE else 0)


vectors = st.frozensets(st.sampled_from(list(Vector)), max_size=2)
failures = st.sampled_from([None, "ledger", "internal"])
routes = st.sampled_from(["r", UNMAPPED])


@settings(max_examples=150, deadline=None)
@given(
    births=st.lists(born, min_size=1, max_size=8),
    events=later,
    more=born,
    reach=asked,
    found=vectors,
    failure=failures,
    route=routes,
)
def test_one_more_erasure_is_never_more_permissive(
    births: list[tuple[Scope, State, bool]],
    events: list[tuple[int, EventType]],
    more: tuple[Scope, State, bool],
    reach: Scope,
    found: frozenset[Vector],
    failure: str | None,
    route: str,
) -> None:
    fewer = lives(Gate(), births, events)
    gate = lives(Gate(), births, events)
    world = World(gate)
    world.number = 10_000
    world.erase(more[0], more[1], readmitted=more[2], name="one more")
    for policy in POLICIES.values():
        for operation in Operation:
            given_ = {"route": route, "vectors": found, "failure": failure}
            before, after = (ask(g, operation, reach, policy, **given_) for g in (fewer, gate))
            assert rank(after, operation) >= rank(before, operation)
            assert after.overlaps or not before.overlaps


@settings(max_examples=200, deadline=None)
@given(births=st.lists(born, max_size=4), reach=asked, found=vectors, failure=failures, route=routes)
def test_every_refusal_is_worded_as_a_known_problem(
    births: list[tuple[Scope, State, bool]],
    reach: Scope,
    found: frozenset[Vector],
    failure: str | None,
    route: str,
) -> None:
    gate = lives(Gate(), births, [])
    for policy in POLICIES.values():
        for operation in Operation:
            decision = ask(gate, operation, reach, policy, route=route, vectors=found, failure=failure)
            assert decision.rule in {rule.name for rule in policy.rules}
            assert decision.effect in EFFECTS[operation] or strictness(operation, decision.effect) == 0
            if decision.refuses:
                assert decision.problem in PROBLEMS
