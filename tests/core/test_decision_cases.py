"""Decisions at their edges: overrides, ties, quarantines, and the problem that each refusal is worded as."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.decision import Decision, Question, decide, overridden, stricter
from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.gate import Gate, Relation
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import EFFECTS, Effect, Facts, Mode, Policy, Vector
from quietus.core.scope import Scope
from quietus.core.states import State
from tests.core.making import World, event, requested, scope

ALICE = scope(tenant="acme", subject="alice")
RECALL, READ, WRITE, FORGET = Operation.RECALL, Operation.READ, Operation.WRITE, Operation.FORGET


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    named = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    every = {"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": named, **more}
    return Policy.model_validate(every)


def ask(gate: Gate, made: Policy, operation: Operation, reach: Scope = ALICE, **more: Any) -> Decision:
    call = Call(operation, route=more.pop("route", "r"))
    return decide(Question(call, reach, **more), gate, made)


def erasure(state: State = State.SETTLING) -> Erasure:
    return World().erase(ALICE, state, name="alice")


# Overrides


@pytest.mark.parametrize("operation", Operation)
@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("touched", [False, True])
def test_override_lets_recalls_through_that_an_erasure_restricts_and_nothing_else(
    operation: Operation, effect: Effect, mode: Mode, touched: bool
) -> None:
    touching = (erasure(),) if touched else ()
    before = Decision(effect, "rule", mode, "erasure-not-settled", touching)
    after = overridden(before, operation)
    restricted = effect in EFFECTS[RECALL][2:]
    if operation in (READ, RECALL) and restricted and touched and mode is Mode.ENFORCE:
        expected = (Effect.ANNOTATE, "override", "", True, touching)
        assert (after.effect, after.rule, after.problem, after.overridden, after.erasures) == expected
    else:
        assert after is before


# What a decision says of itself


@pytest.mark.parametrize(
    ("effect", "problem", "refuses", "holds", "ended"),
    [
        (Effect.ALLOW, "", False, False, Effect.ALLOW),
        (Effect.SCREEN, "", False, False, Effect.SCREEN),
        (Effect.BLOCK, "p", True, False, Effect.BLOCK),
        (Effect.REJECT, "p", True, False, Effect.REJECT),
        (Effect.REFUSE, "p", True, False, Effect.REFUSE),
        (Effect.WAIT, "p", True, True, Effect.BLOCK),
        (Effect.DELAY, "p", True, True, Effect.REJECT),
        (Effect.WAIT, "", False, False, Effect.WAIT),
        (Effect.DELAY, "", False, False, Effect.DELAY),
    ],
)
def test_what_refuses_and_what_only_holds(
    effect: Effect, problem: str, refuses: bool, holds: bool, ended: Effect
) -> None:
    decision = Decision(effect, "rule", problem=problem)
    assert (decision.refuses, decision.holds, decision.ended.effect) == (refuses, holds, ended)
    assert decision.overlaps is False


# Several erasures


def test_of_two_that_are_alike_the_first_speaks_and_both_are_told() -> None:
    one, two = erasure(), World().erase(scope(tenant="acme"), name="other")
    a = Decision(Effect.SCREEN, "a", erasures=(one,))
    b = Decision(Effect.SCREEN, "b", erasures=(one, two))
    assert stricter(a, a, RECALL) is a
    assert stricter(b, a, RECALL) is b
    merged = stricter(a, b, RECALL)
    assert (merged.rule, merged.erasures) == ("a", (one, two))


def test_of_rules_that_are_as_strict_a_recall_is_told_that_of_the_erasure_and_a_write_the_first() -> None:
    rule = {"when": {"operation": ["recall", "write"], "erasure": "none"}, "effect": "annotate"}
    any_erasure = {"when": {"operation": ["recall", "write"]}, "effect": "annotate"}
    made = policy(rule, any_erasure, {"effect": "allow"})
    world = World()
    world.erase(scope(path="a"), State.SETTLING)
    reach = scope(subject="bob", path="a")
    assert (ask(world.gate, made, RECALL, reach).rule, ask(world.gate, made, WRITE, reach).rule) == (
        "rule-1", "rule-0",
    )  # fmt: skip


@pytest.mark.parametrize("first", [ALICE, scope(tenant="acme")])
def test_erasure_that_gave_the_answer_stands_first_and_wider_ones_last(first: Scope) -> None:
    world = World()
    inside = world.erase(ALICE, State.LEAKING, name="inside")
    narrow = world.erase(scope(tenant="acme", subject="alice", path="x"), State.VIOLATION, name="narrow")
    made = policy({"when": {"state": "violation"}, "effect": "block"}, {"effect": "screen"})
    found = ask(world.gate, made, RECALL)
    assert (found.erasures, found.problem) == ((narrow, inside), "consistency-violation")
    assert found.relation is Relation.WIDER
    other = policy({"when": {"state": "settling"}, "effect": "block"}, {"effect": "screen"})
    assert ask(world.gate, other, RECALL).erasures == (inside, narrow)
    assert first.tenant == ALICE.tenant


def test_answers_far_from_any_erasure_are_remembered_and_writes_are_not() -> None:
    made, gate = policy({"effect": "allow"}), Gate()
    for _ in range(3):
        ask(gate, made, RECALL, route="search")
        ask(gate, made, WRITE, route="add")
    assert len(made.memory.decisions) == 1
    gate.apply(requested(1, ALICE))
    ask(gate, made, READ)
    assert len(made.memory.decisions) == 1


# Writes

REFUSED = policy(
    {"when": {"operation": "write", "write": ["quarantined_path", "race"]}, "effect": "reject"},
    {"when": {"operation": "write", "subject": "tombstoned"}, "effect": "reject"},
    {"when": {"operation": "write", "erasure": "wider"}, "effect": "annotate"},
    {"effect": "allow"},
)


@pytest.mark.parametrize(
    ("predicate", "path", "refused"),
    [
        (scope(path="a/b"), "a/b/c", True),
        (scope(path="a/b"), "a", False),
        (scope(path="a/b", subject="alice"), "a/b/c", False),
        (scope(path="a/b", key="k"), "a/b/c", False),
        (scope(path="a/b", purpose="ads"), "a/b", True),
        (scope(tenant="acme"), "a/b", False),
        (scope(path="a/b"), None, False),
    ],
)
def test_quarantine_is_of_a_path_that_was_erased_as_a_whole(
    predicate: Scope, path: str | None, refused: bool
) -> None:
    world = World()
    world.erase(predicate)
    reach = scope(subject="bob", **({} if path is None else {"path": path}))
    found = ask(world.gate, REFUSED, WRITE, reach)
    assert (Vector.QUARANTINED_PATH in found.vectors, found.effect is Effect.REJECT) == (refused, refused)
    assert Vector.QUARANTINED_PATH not in ask(world.gate, REFUSED, RECALL, reach).vectors


def test_erasure_that_a_write_names_counts_beside_its_scope_and_only_in_writes() -> None:
    world = World()
    alice = world.erase(ALICE, State.SETTLED)
    bob = scope(tenant="acme", subject="bob")
    assert ask(world.gate, REFUSED, WRITE, bob, named=(alice,)).effect is Effect.ANNOTATE
    assert ask(world.gate, REFUSED, RECALL, bob, named=(alice,)).effect is Effect.ALLOW
    assert ask(world.gate, REFUSED, WRITE, bob).effect is Effect.ALLOW


def test_who_was_let_in_again_is_screened_inside_their_scope_only_once_it_was_settled() -> None:
    made = policy({"when": {"erasure": "inside"}, "effect": "block"}, {"effect": "screen"})
    for state, effect in ((State.RELAPSED, Effect.SCREEN), (State.SETTLING, Effect.BLOCK)):
        world = World()
        world.erase(ALICE, state, readmitted=True)
        assert ask(world.gate, made, RECALL).effect is effect
    again = policy({"when": {"subject": "readmitted"}, "effect": "block"}, {"effect": "allow"})
    world = World()
    world.erase(ALICE, State.RELAPSED, readmitted=True)
    assert ask(world.gate, again, RECALL).effect is Effect.BLOCK
    assert ask(world.gate, again, WRITE).effect is Effect.ALLOW


# The wording of refusals


def quarantined() -> Gate:
    gate = Gate()
    asked = requested(1, ALICE, "q", label="quarantine")
    gate.apply(event(1, EventType.QUARANTINED, "q", gate=True, **asked.facts))
    return gate


def one(effect: str, operation: str, **when: Any) -> Policy:
    return policy({"when": {"operation": operation, **when}, "effect": effect}, {"effect": "allow"})


def gate_of(state: State) -> Gate:
    world = World()
    world.erase(ALICE, state)
    return world.gate


NEAR, FAR = gate_of(State.SETTLING), Gate()


@pytest.mark.parametrize(
    ("gate", "made", "more", "problem"),
    [
        (NEAR, one("block", "recall"), {}, "erasure-not-settled"),
        (NEAR, one("wait", "recall"), {}, "erasure-not-settled"),
        (FAR, one("block", "recall"), {}, "unmapped-route"),
        (FAR, one("wait", "recall"), {}, ""),
        (FAR, one("block", "recall"), {"route": UNMAPPED}, "unmapped-route"),
        (NEAR, one("block", "recall", erasure="inside"), {"route": UNMAPPED}, "erasure-not-settled"),
        (gate_of(State.VIOLATION), one("block", "recall"), {}, "consistency-violation"),
        (quarantined(), one("block", "recall"), {}, "record-quarantined"),
        (NEAR, one("screen", "recall"), {}, ""),
        (FAR, one("block", "recall"), {"failure": "ledger"}, "ledger-unavailable"),
        (NEAR, one("block", "recall"), {"failure": "internal"}, "internal"),
        (FAR, one("wait", "recall"), {"failure": "internal"}, "internal"),
    ],
)
def test_refused_recalls(gate: Gate, made: Policy, more: dict[str, Any], problem: str) -> None:
    assert ask(gate, made, RECALL, **more).problem == problem


@pytest.mark.parametrize(
    ("gate", "effect", "vectors", "problem"),
    [
        (NEAR, "reject", (), "erased-subject"),
        (NEAR, "delay", (), "erased-subject"),
        (FAR, "delay", (), ""),
        (FAR, "delay", (Vector.DEDUP_MERGE,), "scope-laundering"),
        (FAR, "reject", (Vector.DEDUP_MERGE,), "scope-laundering"),
        (FAR, "reject", (Vector.RACE,), "erased-subject"),
        (FAR, "reject", (Vector.RACE, Vector.RESTATED_CONTENT), "scope-laundering"),
    ],
)
def test_refused_writes(gate: Gate, effect: str, vectors: tuple[Vector, ...], problem: str) -> None:
    made = one(effect, "write")
    assert ask(gate, made, WRITE, vectors=frozenset(vectors)).problem == problem


def test_write_into_what_people_shut_is_told_so() -> None:
    assert ask(quarantined(), one("reject", "write", erasure="inside"), WRITE).problem == "record-quarantined"


def test_refused_forgets() -> None:
    assert ask(NEAR, one("refuse", "forget"), FORGET).problem in ("legal-hold", "unmapped-route")
    assert ask(NEAR, one("refuse", "forget", erasure="inside"), FORGET).problem == "legal-hold"
    assert ask(FAR, one("refuse", "forget"), FORGET).problem == "unmapped-route"
    assert ask(NEAR, one("wait", "forget"), FORGET).problem == ""


def test_policys_own_mode_outweighs_that_of_a_rule() -> None:
    rules = ({"effect": "screen", "mode": "enforce"},)
    assert ask(NEAR, policy(*rules), RECALL).mode is Mode.ENFORCE
    assert ask(NEAR, policy(*rules, mode="observe"), RECALL).mode is Mode.OBSERVE
    assert ask(NEAR, policy({"effect": "screen", "mode": "observe"}), RECALL).mode is Mode.OBSERVE
    assert ask(NEAR, policy({"effect": "screen"}), RECALL).mode is Mode.ENFORCE


def test_names_of_a_call_are_held_against_a_policy_and_digests_are_not() -> None:
    made = policy({"when": {"tenant": "acme"}, "effect": "screen"}, {"effect": "allow"})
    named = Question(Call(RECALL, "r", Scope(tenant=frozenset({"acme"}))), ALICE)
    assert decide(named, FAR, made).effect is Effect.SCREEN
    for tenant in (frozenset({b"acme"}), frozenset({"other"})):
        other = Question(Call(RECALL, "r", Scope(tenant=tenant)), ALICE)
        assert decide(other, FAR, made).effect is Effect.ALLOW
    assert Facts(RECALL).tenant == frozenset()
