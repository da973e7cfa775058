"""What is due of a scope that people shut, and of an erasure whose store cannot forget."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.due import Progress, Work, due, may_settle, pace
from quietus.core.erasure import Erasure, advance
from quietus.core.events import EventType
from quietus.core.states import State
from tests.core.making import TERMS, Story, event, requested, scope

E = EventType
NEVER = float("inf")


def started(at: float = 0.0) -> Progress:
    return Progress(interval_from=at, bound_at=at + TERMS.effectuation_bound, next_at=at)


def born(kind: EventType = E.REQUESTED, **facts: Any) -> Erasure:
    asked = requested(1, scope(subject="alice"), **facts)
    return advance(None, event(1, kind, gate=True, **asked.facts))


@pytest.mark.parametrize("now", [0.0, 1e9])
def test_scope_that_people_shut_has_no_work_until_they_open_it(now: float) -> None:
    quarantine = born(E.QUARANTINED, label="quarantine")
    assert (quarantine.by_hand, quarantine.unsettled) == (True, True)
    found = due(quarantine, started(), now)
    assert (found.work, found.at, found.overdue) == (Work.NOTHING, NEVER, False)
    lifted = advance(quarantine, event(2, E.QUARANTINE_LIFTED))
    assert (lifted.state, lifted.tombstoned) == (State.REFUSED, False)


def test_quarantine_is_lifted_by_hand_only_where_hands_shut_it() -> None:
    assert not born().by_hand
    assert advance(born(), event(2, E.QUARANTINE_LIFTED)).state is State.REQUESTED


@pytest.mark.parametrize("overdue", [False, True])
def test_store_that_cannot_forget_is_asked_for_a_snapshot_and_then_for_nothing(overdue: bool) -> None:
    now = TERMS.effectuation_bound if overdue else 0.0
    suppressed = born(suppressed=True)
    assert due(suppressed, started(), now).work is Work.FORWARD
    noted = advance(suppressed, event(2, E.SNAPSHOTTED, witnesses=1))
    found = due(noted, started(), now)
    assert (found.work, found.at, found.overdue) == (Work.NOTHING, NEVER, overdue)
    plain = advance(born(), event(2, E.SNAPSHOTTED, witnesses=1))
    assert due(plain, started(), now).work is Work.FORWARD


def test_what_ends_has_no_next_moment() -> None:
    for kinds in ((E.ACCEPTED, E.RELEASED), (E.REFUSED,), (E.ACCEPTED, E.CLEAN, E.WATCH_ENDED)):
        story = Story()
        for kind in kinds:
            story.then(kind)
        found = due(story.erasure, started(), 1e9)
        assert (found.work, found.at, found.counted, found.overdue) == (Work.NOTHING, NEVER, False, False)


@pytest.mark.parametrize(("store", "read", "settles"), [(None, 0, True), (5, 5, True), (5, 4, False)])
def test_epoch_of_the_store_must_be_reached_by_reads(store: int | None, read: int, settles: bool) -> None:
    story = Story()
    story.acknowledged(**({} if store is None else {"epoch": store}))
    for _ in range(TERMS.clean_rounds):
        story.round(read_epoch=read)
    assert may_settle(story.erasure) is settles
    assert story.erasure.read_epoch == read


def test_signal_stands_for_the_epoch_and_for_the_interval() -> None:
    story = Story()
    story.acknowledged(epoch=5)
    story.then(E.SIGNALLED, epoch=5)
    for number in range(TERMS.clean_rounds):
        assert may_settle(story.erasure) is False, number
        story.round(read_epoch=1)
    assert may_settle(story.erasure) is True
    assert due(story.erasure, started(), 0.0).work is Work.SETTLE
    assert due(story.erasure, started(), 7.0).at == 7.0


@pytest.mark.parametrize("kind", [E.HELD, E.WRITE_OPENED, E.UNCLEAR, E.LEAKED])
def test_what_disturbs_takes_the_rounds_away(kind: EventType) -> None:
    story = Story()
    story.acknowledged()
    for _ in range(TERMS.clean_rounds):
        story.round()
    assert may_settle(story.erasure) is True
    story.then(kind, **({"write": "w", "until": 5.0} if kind is E.WRITE_OPENED else {}))
    assert may_settle(story.erasure) is False


# The next round: jitter is handed in, so that every wait is a number


@pytest.mark.parametrize(
    ("rounds", "now", "jitter", "expected"),
    [
        (0, 0.0, 0.5, 0.25),
        (0, 0.0, 0.0, 0.1875),
        (1, 10.0, 0.5, 10.5),
        (2, 0.0, 0.5, 1.0),
        (7, 0.0, 0.5, 32.0),
        (8, 0.0, 0.5, 60.0),
        (13, 0.0, 0.5, 60.0),
        (9, 870.0, 0.5, 900.0),
        (9, 899.98, 0.5, 900.03),
        (0, 900.0, 0.5, 900.0 + TERMS.spacing),
        (0, 900.0, 0.0, 900.0 + TERMS.spacing * 0.9),
    ],
)
def test_rounds_begin_close_together_and_then_apart(
    rounds: int, now: float, jitter: float, expected: float
) -> None:
    story = Story()
    story.acknowledged()
    progress = started()
    progress.rounds = rounds
    assert pace(story.erasure, progress, now, jitter) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("failures", "jitter", "wait"),
    [(1, 0.5, 0.5), (2, 0.5, 1.0), (7, 0.5, 32.0), (8, 0.5, 60.0), (50, 0.5, 60.0), (1, 0.0, 0.375)],
)
def test_failures_wait_twice_as_long_each_time(failures: int, jitter: float, wait: float) -> None:
    progress = started()
    progress.failures = failures
    assert pace(born(), progress, 100.0, jitter) == pytest.approx(100.0 + wait)


def test_short_interval_is_probed_at_least_every_quarter_second_and_a_signal_ends_the_wait() -> None:
    short = requested(1, scope(subject="alice"), terms=TERMS.__class__(1.0, 60.0, 3))
    progress = started()
    progress.rounds = 9
    assert pace(advance(None, short), progress, 0.0, 0.5) == pytest.approx(0.25)
    story = Story()
    story.acknowledged()
    story.then(E.SIGNALLED)
    assert pace(story.erasure, started(), 3.0, 0.5) == pytest.approx(3.0 + TERMS.spacing)
    settled = story.then(E.CLEAN)
    assert pace(settled, started(), 3.0, 0.5) == pytest.approx(3.0 + TERMS.patrol_every)
    assert pace(settled, started(), 3.0, 0.0) == pytest.approx(3.0 + TERMS.patrol_every * 0.9)
