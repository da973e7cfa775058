"""What is due, from the stored state and a clock that is only ever handed in."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietus.core.due import Progress, Work, due, may_settle, pace
from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.states import State
from tests.core.making import TERMS, WAYS, Story, surface

E = EventType
INTERVAL = TERMS.settling_interval
BOUND = TERMS.effectuation_bound


def started(at: float = 0.0) -> Progress:
    """The progress of a process that met the erasure at `at`."""
    return Progress(interval_from=at, bound_at=at + BOUND, next_at=at)


def acknowledged() -> Story:
    story = Story()
    story.acknowledged()
    return story


def in_state(state: State) -> Erasure:
    story = Story()
    for kind in WAYS[state]:
        story.then(kind)
    return story.erasure


def ready() -> Erasure:
    """Enough clean rounds in a row."""
    story = acknowledged()
    for _ in range(TERMS.clean_rounds):
        story.round()
    return story.erasure


# No timer settles


@pytest.mark.requirement("R7")
@pytest.mark.parametrize("state", [s for s in State if s not in (State.SETTLED, State.REFUSED)])
def test_clock_that_only_goes_on_never_settles(state: State) -> None:
    erasure, progress = in_state(state), started()
    for now in [0.0, 40.0, 892.0, INTERVAL, BOUND, 10 * BOUND, 1e9]:
        assert due(erasure, progress, now).work not in (Work.SETTLE, Work.PATROL)
    assert erasure.state is state


@pytest.mark.requirement("R7", "R32")
@given(st.floats(0, 1e9), st.integers(0, 2), st.booleans())
def test_too_few_rounds_never_settle_however_late(now: float, rounds: int, overdue: bool) -> None:
    story = acknowledged()
    if overdue:
        story.then(E.OVERDUE)
    for _ in range(rounds):
        story.round()
    assert due(story.erasure, started(), now).work is Work.PROBE


@pytest.mark.requirement("R32")
def test_interval_and_rounds_are_both_needed() -> None:
    erasure = ready()
    assert due(erasure, started(), INTERVAL - 0.001).work is Work.PROBE
    assert due(erasure, started(), INTERVAL).work is Work.SETTLE


def test_at_892_seconds_of_a_900_second_cycle_no_round_counts() -> None:
    erasure = acknowledged().erasure
    assert not due(erasure, started(), 892.0).counted
    assert due(erasure, started(), 900.0).counted


@pytest.mark.requirement("R209")
@given(st.floats(0, 1e7))
def test_interval_is_measured_by_this_process_and_not_by_the_wall(uptime: float) -> None:
    """After a restart, or a jump of the wall clock, the interval begins again in full."""
    erasure = ready()
    restarted = started(uptime)
    for jumped in (0.0, 1e6, 1e12):
        moved = replace(erasure, requested_at=jumped, acknowledged_at=jumped, bound_at=jumped)
        assert due(moved, restarted, uptime).work is Work.PROBE
        assert not due(moved, restarted, uptime + INTERVAL / 2).counted
        assert due(moved, restarted, uptime + INTERVAL + 1).work is Work.SETTLE
        assert not due(moved, restarted, uptime + BOUND / 2).overdue


# What keeps an erasure from settling


def test_undrained_write_delays_settling_and_its_end_begins_the_rounds_again() -> None:
    story = acknowledged()
    story.then(E.WRITE_OPENED, write="w", until=9000.0)
    for _ in range(5):
        story.round()
    assert not may_settle(story.erasure)
    assert due(story.erasure, started(), 2 * INTERVAL).work is Work.PROBE
    story.then(E.WRITE_CLOSED, write="w")
    assert not may_settle(story.erasure)
    for _ in range(3):
        story.round()
    assert may_settle(story.erasure)


def test_hold_pauses_everything_and_leaves_the_gate_shut() -> None:
    held = replace(ready(), held=True)
    assert not may_settle(held)
    assert due(held, started(), 2 * INTERVAL).work is Work.NOTHING
    assert held.unsettled


@pytest.mark.parametrize("state", [State.SETTLED, State.REFUSED, State.RELEASED, State.REQUESTED])
def test_only_an_unsettled_and_acknowledged_erasure_may_settle(state: State) -> None:
    erasure = replace(in_state(state), clean_streak=9)
    assert not may_settle(replace(erasure, streak_base=erasure.base_version))


def test_unanswered_forward_is_sent_again_and_never_settles() -> None:
    story = acknowledged()
    story.then(E.FORWARDED)
    for _ in range(3):
        story.round()
    assert not may_settle(story.erasure)
    assert due(story.erasure, started(), 2 * INTERVAL).work is Work.FORWARD


@pytest.mark.parametrize(
    ("state", "work"),
    [
        (State.REQUESTED, Work.FORWARD),
        (State.SETTLING, Work.PROBE),
        (State.LEAKING, Work.PROBE),
        (State.VIOLATION, Work.PROBE),
        (State.SETTLED, Work.PATROL),
        (State.RELAPSED, Work.PROBE),
        (State.REFUSED, Work.NOTHING),
        (State.RELEASED, Work.NOTHING),
    ],
)
def test_work_of_each_state(state: State, work: Work) -> None:
    assert due(in_state(state), started(), 1.0).work is work


def test_nothing_is_due_once_the_watch_has_ended() -> None:
    story = acknowledged()
    story.then(E.CLEAN)
    assert due(story.then(E.WATCH_ENDED), started(), 1e9).work is Work.NOTHING


# The bound


@pytest.mark.requirement("R145", "R149", "R155")
def test_passed_bound_is_overdue_and_neither_a_violation_nor_the_end() -> None:
    story = acknowledged()
    assert not due(story.erasure, started(), BOUND - 1).overdue
    what = due(story.erasure, started(), BOUND)
    assert (what.overdue, what.work) == (True, Work.PROBE)
    erasure = story.then(E.OVERDUE)
    assert (erasure.state, erasure.unsettled, erasure.overdue) == (State.SETTLING, True, True)
    assert not due(erasure, started(), BOUND + 1).overdue, "said once"
    assert story.then(E.LEAKED_LATE, surfaces=["search"]).state is State.VIOLATION


@pytest.mark.parametrize("state", [State.SETTLED, State.REFUSED, State.RELEASED])
def test_what_is_not_unsettled_is_never_overdue(state: State) -> None:
    assert not due(in_state(state), started(), 10 * BOUND).overdue


@pytest.mark.requirement("R155")
def test_clean_probes_lift_the_quarantine_after_the_bound_too() -> None:
    story = acknowledged()
    story.then(E.OVERDUE)
    for _ in range(3):
        story.round(surfaces=[surface()])
    assert due(story.erasure, started(), 2 * BOUND).work is Work.SETTLE
    erasure = story.then(E.CLEAN)
    assert (erasure.state, erasure.overdue) == (State.SETTLED, False)


# Pace


@pytest.mark.requirement("R154")
@given(
    rounds=st.integers(0, 10_000),
    failures=st.integers(0, 10_000),
    now=st.floats(0, 1e6),
    jitter=st.floats(0, 0.999),
    interval=st.floats(0, 1e5),
)
def test_next_round_is_never_at_once_and_never_far(
    rounds: int, failures: int, now: float, jitter: float, interval: float
) -> None:
    erasure = acknowledged().erasure
    erasure = replace(erasure, terms=replace(TERMS, settling_interval=interval))
    progress = Progress(0.0, BOUND, 0.0, rounds=rounds, failures=failures)
    wait = pace(erasure, progress, now, jitter) - now
    assert 0.04 <= wait <= 75.0


def test_early_rounds_lie_close_together_and_then_apart() -> None:
    erasure = acknowledged().erasure
    waits = [pace(erasure, replace(started(), rounds=n), 0.0, 0.5) for n in range(12)]
    assert waits[0] == 0.25
    assert waits == sorted(waits)
    assert waits[-1] == 60.0


def test_round_is_due_when_the_interval_ends_and_then_at_the_terms_spacing() -> None:
    erasure = acknowledged().erasure
    assert pace(erasure, replace(started(), rounds=20), INTERVAL - 1, 0.9) == INTERVAL
    assert pace(erasure, started(), INTERVAL, 0.5) == INTERVAL + TERMS.spacing


def test_jitter_spreads_and_failures_back_off() -> None:
    erasure = acknowledged().erasure
    early, late = (pace(erasure, replace(started(), failures=3), 0.0, j) for j in (0.0, 0.99))
    assert early < late
    waits = [pace(erasure, replace(started(), failures=n), INTERVAL, 0.5) - INTERVAL for n in range(1, 12)]
    assert waits == sorted(waits)
    assert waits[-1] == 60.0


def test_patrol_is_slow() -> None:
    settled = in_state(State.SETTLED)
    waits = [pace(settled, started(), 0.0, jitter) for jitter in (0.0, 0.5, 0.999)]
    assert all(0.9 * 3600 <= wait <= 1.1 * 3600 for wait in waits)
