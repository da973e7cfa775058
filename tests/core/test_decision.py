"""Decisions: with a rule, a reason, and the strictest of several erasures."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.decision import Decision, Question, decide, stricter
from quietus.core.gate import Gate, Relation
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import EFFECTS, Effect, Mode, Policy, Vector
from quietus.core.scope import UNKNOWN, Scope
from quietus.core.states import State
from tests.core.making import POLICIES, World, scope

DEFAULT = POLICIES["default"]
ALICE = scope(tenant="acme", subject="alice")
RECALL, READ, WRITE, FORGET = Operation.RECALL, Operation.READ, Operation.WRITE, Operation.FORGET


def ask(
    gate: Gate, operation: Operation, reach: Scope, policy: Policy = DEFAULT, route: str = "r", **more: Any
) -> Decision:
    return decide(Question(Call(operation, route=route), reach, **more), gate, policy)


def with_alice(state: State = State.SETTLING, predicate: Scope = ALICE, **more: Any) -> World:
    world = World()
    world.erase(predicate, state, name="alice", **more)
    return world


def test_strictest_of_several_erasures_wins() -> None:
    world = World()
    world.erase(scope(tenant="acme", subject="alice", path="chat/1"))
    reach = scope(tenant="acme", subject="alice")
    assert ask(world.gate, RECALL, reach).effect is Effect.SCREEN
    world.erase(scope(tenant="acme"), State.SETTLED)
    assert ask(world.gate, RECALL, reach).effect is Effect.SCREEN
    inside = world.erase(ALICE, State.VIOLATION)
    decision = ask(world.gate, RECALL, reach)
    assert (decision.effect, decision.problem) == (Effect.BLOCK, "consistency-violation")
    assert decision.erasures[0] == inside
    assert len(decision.erasures) == 2


def test_what_is_only_observed_never_outweighs_what_is_enforced() -> None:
    rules = [
        {"name": "watched", "when": {"state": "violation"}, "effect": "block", "mode": "observe"},
        {"name": "screened", "when": {"erasure": "inside"}, "effect": "screen"},
        {"name": "otherwise", "effect": "allow"},
    ]
    document = {"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": rules}
    policy = Policy.model_validate(document)
    world = with_alice(State.VIOLATION)
    decision = ask(world.gate, RECALL, ALICE, policy)
    assert (decision.rule, decision.mode) == ("otherwise", Mode.ENFORCE)
    world.erase(ALICE, State.SETTLING)
    assert ask(world.gate, RECALL, ALICE, policy).rule == "screened"


@pytest.mark.parametrize("operation", list(Operation))
def test_observe_mode_enforces_nothing(operation: Operation) -> None:
    for state in State:
        world = with_alice(state)
        for reach in (ALICE, scope(tenant="acme"), Scope(subject=UNKNOWN)):
            assert ask(world.gate, operation, reach, POLICIES["observe"]).mode is Mode.OBSERVE


# Recalls


@pytest.mark.requirement("R40")
@pytest.mark.parametrize("operation", [RECALL, READ])
@pytest.mark.parametrize("state", State)
def test_recall_inside_is_blocked_exactly_while_unsettled(operation: Operation, state: State) -> None:
    decision = ask(with_alice(state).gate, operation, ALICE)
    unsettled = state not in (State.SETTLED, State.REFUSED, State.RELEASED)
    assert decision.refuses is decision.overlaps is unsettled
    if unsettled:
        assert decision.rule == "recall-in-erased-scope"
        assert decision.problem == (
            "consistency-violation" if state is State.VIOLATION else "erasure-not-settled"
        )
    else:
        assert (decision.rule, decision.effect, decision.problem) == ("otherwise", Effect.ALLOW, "")


@pytest.mark.requirement("R17", "R156")
@pytest.mark.parametrize(("name", "effect"), [("default", Effect.SCREEN), ("strict", Effect.BLOCK)])
@pytest.mark.parametrize("reach", [Scope(), scope(tenant="acme"), scope(tenant="acme", path="chat")])
def test_wider_recall_is_screened_or_blocked_and_never_silent(
    name: str, effect: Effect, reach: Scope
) -> None:
    world = with_alice(predicate=scope(tenant="acme", subject="alice", path="chat/session:42"))
    decision = ask(world.gate, RECALL, reach, POLICIES[name])
    assert (decision.effect, decision.relation) == (effect, Relation.WIDER)
    assert decision.overlaps


@pytest.mark.requirement("R146")
def test_unrelated_calls_are_not_touched() -> None:
    gate = with_alice().gate
    for reach in (scope(tenant="acme", subject="bob"), scope(tenant="other", subject="alice")):
        for operation in (RECALL, READ, WRITE):
            decision = ask(gate, operation, reach)
            assert (decision.effect, decision.overlaps) == (Effect.ALLOW, False)


@pytest.mark.requirement("R9", "R10", "R11")
def test_purpose_kept_is_answered_while_the_purpose_erased_is_not() -> None:
    gate = with_alice(predicate=scope(subject="alice", purpose="ads")).gate
    assert ask(gate, RECALL, scope(subject="alice", purpose="ads", key="k")).refuses
    assert ask(gate, RECALL, scope(subject="alice", purpose="billing", key="k")).effect is Effect.ALLOW
    assert ask(gate, RECALL, scope(subject="alice", key="k")).effect is Effect.SCREEN
    whole = with_alice(predicate=scope(subject="alice")).gate
    for purpose in ("ads", "billing"):
        assert ask(whole, RECALL, scope(subject="alice", purpose=purpose)).refuses


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("state", [State.SETTLING, State.SETTLED])
@pytest.mark.parametrize("predicate", [scope(key="k1"), scope(subject="alice", key="k1")])
def test_forget_by_key_never_makes_its_subject_erased(predicate: Scope, state: State) -> None:
    gate = with_alice(state, predicate).gate
    alice = scope(subject="alice")
    assert ask(gate, RECALL, scope(subject="alice", key="k2")).effect is Effect.ALLOW
    assert not ask(gate, RECALL, alice).refuses
    assert ask(gate, WRITE, alice).effect is Effect.ALLOW
    assert ask(gate, WRITE, scope(subject="alice", key="k2")).effect is Effect.ALLOW


def test_route_that_nobody_described_is_screened_or_refused() -> None:
    unmapped = Scope(subject=UNKNOWN, path=UNKNOWN)
    assert ask(with_alice().gate, RECALL, unmapped, route=UNMAPPED).effect is Effect.SCREEN
    strict = ask(Gate(), RECALL, unmapped, POLICIES["strict"], route=UNMAPPED)
    assert (strict.effect, strict.problem) == (Effect.BLOCK, "unmapped-route")


def test_subject_let_in_again_is_screened_after_a_relapse() -> None:
    gate = with_alice(State.RELAPSED, readmitted=True).gate
    assert ask(gate, RECALL, ALICE).effect is Effect.SCREEN
    assert ask(with_alice(State.RELAPSED).gate, RECALL, ALICE).refuses


# Writes


@pytest.mark.requirement("R187")
@pytest.mark.parametrize("state", [s for s in State if s is not State.REFUSED])
def test_write_by_an_erased_subject_is_rejected_until_they_are_let_in_again(state: State) -> None:
    world = with_alice(state)
    decision = ask(world.gate, WRITE, ALICE)
    assert (decision.effect, decision.problem) == (Effect.REJECT, "erased-subject")
    world = with_alice(State.SETTLED, readmitted=True)
    assert ask(world.gate, WRITE, ALICE).effect is Effect.ALLOW
    world.erase(ALICE, State.SETTLED)
    assert ask(world.gate, WRITE, ALICE).refuses, "a new erasure does not know of the old re-admission"


@pytest.mark.requirement("R128", "R141", "R153")
@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("org/session:42", True),
        ("org/session:42/summaries", True),
        ("org/session:420", False),
        ("org/session:43", False),
        ("org", False),
        ("elsewhere", False),
    ],
)
def test_write_into_a_quarantined_path_or_below_it_is_rejected(path: str, refused: bool) -> None:
    gate = with_alice(predicate=scope(path="org/session:42")).gate
    decision = ask(gate, WRITE, scope(subject="bob", path=path))
    assert decision.refuses is refused
    if refused:
        assert (decision.rule, decision.problem) == ("write-into-quarantined-path", "scope-laundering")
    settled = with_alice(State.SETTLED, scope(path="org/session:42")).gate
    assert not ask(settled, WRITE, scope(subject="bob", path=path)).refuses


def test_one_path_of_several_in_quarantine_is_enough() -> None:
    gate = with_alice(predicate=scope(path="org/session:42")).gate
    assert ask(gate, WRITE, scope(path=("elsewhere", "org/session:42/x"))).refuses


@pytest.mark.parametrize("name", ["subject", "path"])
def test_write_that_does_not_say_where_it_goes_is_rejected_while_unsettled(name: str) -> None:
    unread = Scope(**{name: UNKNOWN})  # type: ignore[arg-type]
    assert ask(with_alice().gate, WRITE, unread).refuses
    assert not ask(with_alice(State.SETTLED).gate, WRITE, unread).refuses


@pytest.mark.parametrize("vector", Vector)
def test_write_that_brings_the_erased_back_is_rejected(vector: Vector) -> None:
    world = with_alice()
    bob = scope(tenant="acme", subject="bob")
    named = (world.gate.erasures["alice"],)
    decision = ask(world.gate, WRITE, bob, vectors=frozenset({vector}), named=named)
    assert decision.refuses
    assert decision.problem == ("erased-subject" if vector is Vector.RACE else "scope-laundering")
    assert vector in decision.vectors


def test_write_to_a_record_whose_owner_was_erased_is_rejected() -> None:
    world = with_alice(State.SETTLED)
    owned = (world.gate.erasures["alice"],)
    assert ask(world.gate, WRITE, scope(tenant="acme", key="k"), owned=owned).problem == "erased-subject"


# Failures, forgets, the rest


@pytest.mark.parametrize("name", ["default", "strict"])
@pytest.mark.parametrize(("failure", "problem"), [("ledger", "ledger-unavailable"), ("internal", "internal")])
@pytest.mark.parametrize("operation", [RECALL, READ, WRITE, FORGET])
def test_on_our_own_failure_nothing_passes(
    operation: Operation, failure: str, problem: str, name: str
) -> None:
    decision = ask(Gate(), operation, Scope(), POLICIES[name], failure=failure)
    assert (decision.refuses, decision.problem) == (True, problem)


def test_forgets_are_forwarded_and_what_holds_no_memories_passes() -> None:
    gate = with_alice().gate
    assert ask(gate, FORGET, ALICE).effect is Effect.FORWARD
    assert ask(gate, FORGET, ALICE, POLICIES["strict"]).effect is Effect.WAIT
    for policy in POLICIES.values():
        decision = ask(gate, Operation.IGNORE, ALICE, policy)
        assert (decision.effect, decision.overlaps) == (Effect.ALLOW, False)


@pytest.mark.parametrize("operation", [RECALL, WRITE, FORGET])
def test_stricter_keeps_the_strict_one_and_every_erasure(operation: Operation) -> None:
    world = World()
    one, two = world.erase(ALICE), world.erase(scope(subject="bob"))
    effects = EFFECTS[operation]
    mild = Decision(effects[0], "mild", erasures=(one, two))
    harsh = Decision(effects[-1], "harsh", erasures=(two,))
    for merged in (stricter(mild, harsh, operation), stricter(harsh, mild, operation)):
        assert (merged.rule, merged.effect) == ("harsh", effects[-1])
        assert [e.id for e in merged.erasures] == [two.id, one.id]
    watched = Decision(effects[-1], "watched", Mode.OBSERVE)
    assert stricter(watched, mild, operation).rule == "mild"


@pytest.mark.requirement("R167")
@pytest.mark.parametrize(
    ("operation", "effect", "ends", "problem"),
    [
        (RECALL, "wait", Effect.BLOCK, "erasure-not-settled"),
        (WRITE, "delay", Effect.REJECT, "erased-subject"),
    ],
)
def test_who_is_let_wait_is_refused_until_it_is_settled(
    operation: Operation, effect: str, ends: Effect, problem: str
) -> None:
    policy = _waiting(operation, effect)
    for state in (State.SETTLING, State.LEAKING):
        held = ask(with_alice(state).gate, operation, ALICE, policy)
        assert held.refuses and held.holds and held.effect.value == effect
        assert (held.ended.effect, held.ended.problem, held.ended.rule) == (ends, problem, held.rule)
    nobody = ask(World().gate, operation, ALICE, policy)
    assert not nobody.refuses and not nobody.holds and nobody.ended is nobody, "there is nothing to wait for"
    shut = ask(World().gate, operation, ALICE, policy, failure="ledger")
    assert shut.refuses and shut.problem == "ledger-unavailable"


def test_a_forget_that_waits_is_not_held_back() -> None:
    waiting = ask(with_alice().gate, FORGET, ALICE, _waiting(FORGET, "wait"))
    assert (waiting.effect, waiting.problem) == (Effect.WAIT, "")
    assert not waiting.refuses and not waiting.holds and waiting.ended is waiting


def _waiting(operation: Operation, effect: str) -> Policy:
    rules = [
        {"name": "waits", "when": {"operation": operation.value}, "effect": effect},
        {"name": "otherwise", "effect": "allow"},
    ]
    document = {"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": rules}
    return Policy.model_validate(document)
