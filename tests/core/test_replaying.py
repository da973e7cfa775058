"""Calls kept without content, asked again of a policy, and as they are written down."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quietus.core.decision import Question, decide
from quietus.core.gate import Relation
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import Effect, Facts, Mode, Policy, Vector
from quietus.core.replaying import Faced, Said, asked, faced, names, read, told
from quietus.core.scope import ANY, UNKNOWN, Scope
from quietus.core.states import State
from tests.core.making import World, scope

ALICE = scope(tenant="acme", subject="alice")
FACED = Faced(
    Operation.WRITE, "add", frozenset({"acme", "beta"}), "svc", frozenset({"ads"}), "ledger",
    (
        (Relation.NONE, None, None, frozenset()),
        (Relation.INSIDE, State.SETTLING, "tombstoned", frozenset({Vector.RACE, Vector.DEDUP_MERGE})),
    ),
)  # fmt: skip


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    named = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    every = {"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": named, **more}
    return Policy.model_validate(every)


def test_a_call_is_read_as_it_was_written() -> None:
    written = json.loads(json.dumps(told(FACED)))
    assert read(written) == FACED
    assert written == {
        "operation": "write", "route": "add", "tenant": ["acme", "beta"], "principal": "svc",
        "purpose": ["ads"], "failure": "ledger",
        "cases": [
            {"erasure": "none", "state": None, "subject": None, "write": []},
            {"erasure": "inside", "state": "settling", "subject": "tombstoned",
             "write": sorted([Vector.RACE.value, Vector.DEDUP_MERGE.value])},
        ],
    }  # fmt: skip


def test_every_case_of_a_call_is_held_against_a_policy() -> None:
    first, second = FACED.facts()
    base = Facts(
        Operation.WRITE, route="add", tenant=FACED.tenant, principal="svc", purpose=FACED.purpose,
        failure="ledger",
    )  # fmt: skip
    assert first == base
    assert (second.erasure, second.state, second.subject) == (Relation.INSIDE, State.SETTLING, "tombstoned")
    assert second.write == {Vector.RACE, Vector.DEDUP_MERGE}


@pytest.mark.parametrize(
    ("effect", "mode", "shown", "refuses"),
    [
        (Effect.ALLOW, Mode.ENFORCE, "passes", False),
        (Effect.FORWARD, Mode.ENFORCE, "passes", False),
        (Effect.SCREEN, Mode.ENFORCE, "screen", False),
        (Effect.BLOCK, Mode.ENFORCE, "block", True),
        (Effect.REJECT, Mode.ENFORCE, "reject", True),
        (Effect.REFUSE, Mode.ENFORCE, "refuse", True),
        (Effect.BLOCK, Mode.OBSERVE, "passes", True),
        (Effect.SCREEN, Mode.OBSERVE, "passes", False),
    ],
)
def test_what_a_client_sees_of_what_a_policy_says(
    effect: Effect, mode: Mode, shown: str, refuses: bool
) -> None:
    said = Said("rule", effect, mode)
    assert (said.shown, said.refuses) == (shown, refuses)


def test_a_call_without_a_case_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="without a case"):
        asked(Faced(Operation.RECALL, "r"), policy({"effect": "allow"}))


MADE = (
    policy({"effect": "allow"}),
    policy({"when": {"erasure": "inside"}, "effect": "block"}, {"effect": "screen"}),
    policy({"when": {"erasure": "inside"}, "effect": "block"}, {"effect": "screen"}, mode="observe"),
    policy(
        {"when": {"state": "leaking"}, "effect": "block", "mode": "observe"},
        {"when": {"erasure": "wider"}, "effect": "annotate"}, {"effect": "allow"},
    ),
    policy({"when": {"principal": "svc", "purpose": "ads"}, "effect": "block"}, {"effect": "allow"}),
    policy({"when": {"failure": "ledger"}, "effect": "block"}, {"effect": "allow"}),
    policy({"when": {"route": "search", "tenant": "acme"}, "effect": "screen"}, {"effect": "allow"}),
)  # fmt: skip


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("failure", [None, "ledger"])
@pytest.mark.parametrize("reach", [ALICE, scope(tenant="acme"), scope(tenant="other")])
def test_a_policy_says_of_a_kept_call_what_it_says_of_the_call(
    made: Policy, failure: str | None, reach: Scope
) -> None:
    world = World()
    world.erase(ALICE, State.LEAKING)
    raw = Scope(tenant=frozenset({"acme"}), purpose=frozenset({"ads"}))
    question = Question(Call(Operation.RECALL, "search", raw), reach, "svc", failure=failure)
    decision = decide(question, world.gate, made)
    said = asked(read(told(faced(question, world.gate))), made)
    assert (said.rule, said.effect, said.mode) == (decision.rule, decision.effect, decision.mode)


@pytest.mark.parametrize(
    ("operation", "route", "rule"),
    [(Operation.WRITE, "add", 0), (Operation.RECALL, "search", 1), (Operation.READ, "get", 1),
     (Operation.RECALL, UNMAPPED, 0)],
)  # fmt: skip
def test_of_two_rules_that_are_as_strict_the_one_is_told_that_a_decision_names(
    operation: Operation, route: str, rule: int
) -> None:
    alone = {"when": {"operation": operation.value, "erasure": "none"}, "effect": "annotate"}
    made = policy(alone, {"when": {"operation": operation.value}, "effect": "annotate"}, {"effect": "allow"})
    world = World()
    for path in ("a", "a/b"):
        world.erase(scope(path=path), State.LEAKING if path == "a" else State.SETTLING)
    question = Question(Call(operation, route), scope(subject="bob", path="a"))
    said = asked(faced(question, world.gate), made)
    assert len(faced(question, world.gate).cases) == 3
    assert decide(question, world.gate, made).rule == said.rule == f"rule-{rule}"


def test_of_two_erasures_that_are_as_strict_the_first_is_told_as_in_a_decision() -> None:
    states = ("leaking", "settling")
    rules = [{"when": {"operation": "recall", "state": state}, "effect": "annotate"} for state in states]
    made = policy(*rules, {"effect": "annotate"})
    world = World()
    for path, state in (("a", State.LEAKING), ("a/b", State.SETTLING)):
        world.erase(scope(path=path), state)
    question = Question(Call(Operation.RECALL, "search"), scope(subject="bob", path="a"))
    said = asked(faced(question, world.gate), made)
    assert decide(question, world.gate, made).rule == said.rule != "rule-2"


def test_names_are_what_is_not_digested() -> None:
    assert names(frozenset({"acme", b"digest"})) == {"acme"}
    assert names(ANY) == names(UNKNOWN) == frozenset()


def test_of_two_erasures_that_lie_alike_one_case_is_kept() -> None:
    world = World()
    for name in ("one", "two"):
        world.erase(ALICE, name=name)
    question = Question(Call(Operation.RECALL, "search"), ALICE)
    assert len(faced(question, world.gate).cases) == 2
