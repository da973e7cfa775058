"""An erasure as the fold of its events."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietus.core.due import may_settle
from quietus.core.erasure import Erasure, PolicyPhase, ReadPhase, advance
from quietus.core.events import EventType
from quietus.core.gate import INTENTS
from quietus.core.states import State, WrongState
from quietus.core.terms import Terms
from tests.core.making import WAYS, Story, event, requested, scope, surface

E = EventType

# What each event carries at least; those with nothing are not named.
FACTS: dict[EventType, dict[str, Any]] = {
    E.ROUND: {"outcome": "clean", "counted": True, "surfaces": [surface()]},
    E.WRITE_OPENED: {"write": "w1", "until": 5000.0},
    E.WRITE_CLOSED: {"write": "w1"},
    E.SIGNALLED: {"epoch": 9},
    E.LEAKED: {"surfaces": ["search"]},
}
READ_SIDE = {E.CLEAN, E.LEAKED, E.LEAKED_LATE, E.ROUND}
POLICY_FIELDS = ("policy_phase", "acknowledged_at", "claim", "tokens", "store_epoch")


def in_state(state: State) -> Story:
    story = Story()
    for kind in WAYS[state]:
        story.then(kind)
    assert story.erasure.state is state
    return story


def test_an_erasure_begins_with_its_request() -> None:
    predicate = scope(subject="alice", purpose=("ads", "sales"))
    erasure = advance(None, requested(7, predicate, at=100.0, basis="gdpr_art17", label="subject"))
    assert (erasure.state, erasure.epoch, erasure.version) == (State.REQUESTED, 7, 7)
    assert (erasure.predicate, erasure.dossier.basis, erasure.label) == (predicate, "gdpr_art17", "subject")
    assert erasure.bound_at == 100.0 + erasure.terms.effectuation_bound
    assert erasure.policy_phase is PolicyPhase.NONE
    assert erasure.read_phase is ReadPhase.UNSETTLED


@pytest.mark.parametrize("kind", [kind for kind in E if kind not in INTENTS])
def test_nothing_comes_before_the_request(kind: EventType) -> None:
    with pytest.raises(ValueError, match="before the erasure was requested"):
        advance(None, event(3, kind))


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("kind", E)
def test_every_event_is_taken_in_every_state(state: State, kind: EventType) -> None:
    story = in_state(state)
    before = story.erasure
    if kind is E.RETRIED and state in (State.SETTLED, State.REFUSED, State.RELEASED):
        with pytest.raises(WrongState):
            story.then(kind)
        return
    after = story.then(kind, **FACTS.get(kind, {}))
    assert after.version == story.number
    moved = after.base_version != before.base_version
    assert moved == (kind not in (E.ROUND, E.OVERDUE, E.ESCALATED))
    if kind not in [*E][:8]:
        assert after.state is before.state


# Two facts, kept apart


@pytest.mark.requirement("R4", "R6")
@given(st.lists(st.sampled_from([k for k in E if k not in (E.REQUESTED, E.RETRIED)]), max_size=20))
def test_neither_phase_is_ever_derived_from_the_other(kinds: list[EventType]) -> None:
    story = Story()
    for kind in kinds:
        before = story.erasure
        after = story.then(kind, **FACTS.get(kind, {}))
        if kind in READ_SIDE:
            assert all(getattr(before, name) == getattr(after, name) for name in POLICY_FIELDS)
        if kind is E.ACCEPTED:
            assert after.policy_phase is PolicyPhase.COMMITTED
            assert after.read_phase is before.read_phase
            assert after.surfaces == before.surfaces
        if before.read_phase is ReadPhase.UNSETTLED is not after.read_phase:
            assert kind is E.CLEAN
        assert (after.policy_phase is PolicyPhase.COMMITTED) == (E.ACCEPTED in kinds[: story.number - 1])


@pytest.mark.requirement("R22", "R29")
def test_acknowledged_and_leaking_is_neither_failed_nor_clean() -> None:
    story = Story()
    assert not story.erasure.may_assert_erasure
    story.acknowledged()
    erasure = story.then(E.LEAKED, surfaces=["search"])
    assert erasure.state is State.LEAKING
    assert (erasure.policy_phase, erasure.read_phase) == (PolicyPhase.COMMITTED, ReadPhase.UNSETTLED)
    assert erasure.may_assert_erasure
    assert not erasure.may_assert_non_recallability


@pytest.mark.requirement("R74")
def test_no_erasure_is_asserted_while_the_primary_surface_leaks() -> None:
    story = Story()
    story.acknowledged()
    story.round("leaking", surfaces=[surface(outcome="LEAKING")])
    assert not story.erasure.may_assert_erasure
    story.round("leaking", surfaces=[surface(), surface("search", "index", "LEAKING")])
    assert story.erasure.may_assert_erasure


def test_a_refusal_before_any_acknowledgement_commits_nothing() -> None:
    erasure = in_state(State.REFUSED).erasure
    assert erasure.policy_phase is PolicyPhase.NONE
    assert not erasure.unsettled
    assert not erasure.tombstoned


def test_after_an_unclear_answer_the_gate_stays_shut_and_the_outcome_unknown() -> None:
    story = Story()
    story.then(E.FORWARDED)
    erasure = story.then(E.UNCLEAR)
    assert (erasure.state, erasure.unclear, erasure.answered) == (State.REQUESTED, True, False)
    assert erasure.unsettled
    erasure = story.then(E.ACCEPTED)
    assert (erasure.state, erasure.unclear, erasure.answered) == (State.SETTLING, False, True)


def test_the_first_acknowledgement_is_the_claim_and_tokens_are_kept() -> None:
    story = Story()
    story.then(E.ACCEPTED, at=1010.0, claim={"status": "erased", "count": 412}, token="d1")
    erasure = story.then(E.ACCEPTED, at=1500.0, claim={"status": "erased", "count": 0}, token="d2")
    assert erasure.acknowledged_at == 1010.0
    assert erasure.claim == {"status": "erased", "count": 412}
    assert erasure.tokens == ("d1", "d2")


# The bound


@pytest.mark.parametrize("kind", [k for k in E if k not in (E.REQUESTED, E.RETRIED, E.LEAKED)])
@pytest.mark.parametrize("state", [State.REQUESTED, State.SETTLING, State.LEAKING, State.VIOLATION])
def test_no_event_but_an_operators_retry_moves_the_bound(state: State, kind: EventType) -> None:
    story = in_state(state)
    bound = story.erasure.bound_at
    assert story.then(kind, at=5000.0, **FACTS.get(kind, {})).bound_at == bound


def test_relapse_and_retry_begin_a_new_bound() -> None:
    story = in_state(State.SETTLED)
    erasure = story.then(E.LEAKED, at=9000.0)
    assert (erasure.bound_at, erasure.settled_at) == (9000.0 + erasure.terms.effectuation_bound, None)
    assert story.then(E.LEAKED, at=9500.0).bound_at == erasure.bound_at
    story.then(E.OVERDUE)
    erasure = story.then(E.RETRIED, at=9900.0)
    assert erasure.bound_at == 9900.0 + erasure.terms.effectuation_bound
    assert (erasure.state, erasure.overdue) == (State.SETTLING, False)


# Rounds in a row, on one undisturbed version

RESTARTS = [E.LEAKED, E.LEAKED_LATE, E.REMEDIED, E.RESTARTED, E.RETRIED, E.HELD, E.HOLD_LIFTED, E.FORWARDED,
            E.WRITE_OPENED, E.WRITE_CLOSED]  # fmt: skip


def clean_rounds(story: Story, count: int) -> Erasure:
    for _ in range(count):
        story.round()
    return story.erasure


def test_rounds_count_up_on_one_base_version() -> None:
    story = Story()
    story.acknowledged()
    base = story.erasure.base_version
    assert not may_settle(clean_rounds(story, 2))
    erasure = clean_rounds(story, 1)
    assert (erasure.clean_streak, erasure.streak_base, erasure.base_version) == (3, base, base)
    assert may_settle(erasure)


@pytest.mark.parametrize("kind", RESTARTS)
def test_a_disturbance_begins_the_rounds_again(kind: EventType) -> None:
    story = Story()
    story.acknowledged()
    clean_rounds(story, 2)
    erasure = story.then(kind, **FACTS.get(kind, {}))
    assert (erasure.clean_streak, erasure.compacted) == (0, False)
    assert not may_settle(clean_rounds(story, 1))


@pytest.mark.parametrize("kind", [k for k in E if k not in (E.REQUESTED, E.ROUND, E.OVERDUE, E.ESCALATED)])
def test_settling_is_compared_with_the_version_that_the_first_round_saw(kind: EventType) -> None:
    story = Story()
    story.acknowledged()
    assert may_settle(clean_rounds(story, 3))
    assert not may_settle(story.then(kind, **FACTS.get(kind, {})))
    assert story.round().clean_streak <= 1


@pytest.mark.parametrize("kind", [E.OVERDUE, E.ESCALATED])
def test_what_only_tells_people_disturbs_nothing(kind: EventType) -> None:
    story = Story()
    story.acknowledged()
    clean_rounds(story, 3)
    assert may_settle(story.then(kind))


@pytest.mark.parametrize(
    ("outcome", "counted"), [("leaking", True), ("inconclusive", True), ("clean", False)]
)
def test_a_round_that_is_not_clean_or_not_counted_breaks_the_row(outcome: str, counted: bool) -> None:
    story = Story()
    story.acknowledged()
    clean_rounds(story, 2)
    assert story.round(outcome, counted).clean_streak == 0
    assert story.round().clean_streak == 1


@pytest.mark.requirement("R42")
def test_each_event_makes_a_new_version_and_leaves_the_old_one_as_it_was() -> None:
    story = Story()
    first = story.erasure
    copy = {item.name: getattr(first, item.name) for item in fields(first)}
    second = story.acknowledged()
    assert second is not first
    assert second.version > first.version
    assert {item.name: getattr(first, item.name) for item in fields(first)} == copy
    with pytest.raises(FrozenInstanceError):
        first.policy_phase = PolicyPhase.COMMITTED  # type: ignore[misc]


# Leaks


def test_exposure_is_from_the_acknowledgement_to_the_last_leak() -> None:
    story = Story()
    assert story.erasure.exposure_seconds is None
    story.then(E.ACCEPTED, at=1000.04)
    story.then(E.LEAKED, at=1100.0, surfaces=["search"])
    erasure = story.then(E.LEAKED, at=1892.04, surfaces=["cache"])
    assert (erasure.first_leak_at, erasure.last_leak_at) == (1100.0, 1892.04)
    assert erasure.exposure_seconds == pytest.approx(892.0)
    assert erasure.leaked_surfaces == {"search", "cache"}
    erasure = story.then(E.LEAKED, at=1900.0, seen_at=1500.0)
    assert erasure.last_leak_at == 1892.04, "noted later, met earlier"


@pytest.mark.requirement("R145")
@pytest.mark.parametrize("state", [State.SETTLING, State.LEAKING, State.RELAPSED])
def test_a_leak_after_the_bound_is_a_violation_and_the_gate_stays_shut(state: State) -> None:
    erasure = in_state(state).then(E.LEAKED_LATE)
    assert erasure.state is State.VIOLATION
    assert erasure.unsettled


@pytest.mark.parametrize("state", [State.REFUSED, State.RELEASED])
def test_late_evidence_is_kept_as_a_fact(state: State) -> None:
    erasure = in_state(state).then(E.LEAKED, at=7000.0)
    assert (erasure.state, erasure.last_leak_at) == (state, 7000.0)


# Other facts beside the state


def test_facts_change_without_moving_the_state() -> None:
    story = in_state(State.SETTLING)
    assert story.then(E.READMITTED, at=2000.0, allows_old=True).readmitted_at == 2000.0
    assert story.erasure.readmission_allows_old
    assert story.then(E.HELD).held
    assert not story.then(E.HOLD_LIFTED).held
    assert story.then(E.OVERDUE).overdue
    assert story.then(E.WRITE_OPENED, write="w", until=3000.0).undrained == {"w": 3000.0}
    assert story.then(E.WRITE_CLOSED, write="w").undrained == {}
    assert story.then(E.REMEDIED, count=3).remedies == 3
    assert story.erasure.state is State.SETTLING
    erasure = story.then(E.CLEAN, at=4000.0)
    assert (erasure.settled_at, erasure.overdue) == (4000.0, False)
    assert story.then(E.CLEAN, at=4100.0).settled_at == 4000.0


def test_a_reload_never_makes_the_terms_shorter() -> None:
    short, long = Terms(10.0, 30.0, 1, 60.0, 5.0, False), Terms(900.0, 1800.0, 3, 86400.0, 3600.0, True)
    for merged in (short.stricter(long), long.stricter(short)):
        assert merged == Terms(900.0, 1800.0, 3, 86400.0, 5.0, True)
    assert [Terms(s).spacing for s in (0.0, 90.0, 900.0)] == [0.25, 3.0, 10.0]
