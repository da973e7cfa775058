"""The store's epochs, and its word that a compaction is over: both directions of each inequality."""

from __future__ import annotations

import pytest

from quietus.core.due import Progress, Work, due, may_settle
from quietus.core.events import EventType
from quietus.core.states import State
from tests.core.making import Story

E = EventType


def acknowledged(epoch: int | None) -> Story:
    story = Story()
    story.acknowledged(**({} if epoch is None else {"epoch": epoch}))
    return story


def settled(story: Story) -> Story:
    story.then(E.CLEAN)
    assert story.erasure.state is State.SETTLED
    return story


@pytest.mark.requirement("R30")
@pytest.mark.parametrize(
    ("erasure_epoch", "read_epoch", "reached"),
    [(5, 4, False), (5, 5, True), (5, 6, True), (5, None, False), (1, 0, False), (None, None, True)],
)
def test_read_epoch_must_have_reached_the_erasures(
    erasure_epoch: int | None, read_epoch: int | None, reached: bool
) -> None:
    story = acknowledged(erasure_epoch)
    for _ in range(3):
        story.round(**({} if read_epoch is None else {"read_epoch": read_epoch}))
    assert may_settle(story.erasure) is reached
    assert settled(story).erasure.may_assert_non_recallability is reached


@pytest.mark.requirement("R30")
def test_reached_epoch_without_clean_rounds_is_not_enough() -> None:
    story = acknowledged(5)
    story.round("inconclusive", read_epoch=9)
    assert not may_settle(story.erasure)
    assert not story.erasure.may_assert_non_recallability
    story.round(read_epoch=9)
    assert not may_settle(story.erasure)


@pytest.mark.requirement("R44")
def test_read_epoch_is_refreshed_by_every_round_in_either_direction() -> None:
    story = acknowledged(5)
    seen = [story.round(read_epoch=epoch).read_epoch for epoch in (3, 4, 7, 2)]
    assert seen == [3, 4, 7, 2]
    assert story.round().read_epoch == 2
    assert not may_settle(story.erasure), "an epoch that fell back is not reached any more"


def test_epoch_that_falls_back_after_settling_takes_the_claim_back() -> None:
    story = acknowledged(5)
    for _ in range(3):
        story.round(read_epoch=6)
    settled(story)
    assert story.erasure.may_assert_non_recallability
    erasure = story.then(E.LEAKED_LATE, cause="epoch_regression")
    assert erasure.state is State.RELAPSED
    assert not erasure.may_assert_non_recallability
    assert acknowledged(5).then(E.LEAKED_LATE, cause="epoch_regression").state is State.VIOLATION


@pytest.mark.requirement("R45")
def test_acknowledgement_without_an_epoch_leaves_the_sidecars_own() -> None:
    erasure = acknowledged(None).erasure
    assert erasure.store_epoch is None
    assert erasure.epoch == 1


# compaction_complete


@pytest.mark.parametrize(("signalled", "taken"), [(4, False), (5, True), (6, True), (None, True)])
def test_signal_of_an_older_epoch_is_ignored(signalled: int | None, taken: bool) -> None:
    story = acknowledged(5)
    story.then(E.SIGNALLED, **({} if signalled is None else {"epoch": signalled}))
    assert story.erasure.compacted is taken
    for _ in range(3):
        story.round()
    assert may_settle(story.erasure) is taken


def test_signal_replaces_the_interval_and_never_the_rounds() -> None:
    story = acknowledged(5)
    story.then(E.SIGNALLED, epoch=5)
    progress = Progress(interval_from=0.0, bound_at=1800.0, next_at=0.0)
    first = due(story.erasure, progress, now=1.0)
    assert (first.work, first.counted) == (Work.PROBE, True)
    for _ in range(3):
        assert due(story.erasure, progress, now=1.0).work is Work.PROBE
        story.round()
    assert due(story.erasure, progress, now=1.0).work is Work.SETTLE


def test_signal_again_changes_nothing() -> None:
    story = acknowledged(5)
    once, twice = (story.then(E.SIGNALLED, epoch=7) for _ in range(2))
    assert (once.compacted, once.state, once.clean_streak) == (twice.compacted, twice.state, 0)


def test_signal_from_before_the_acknowledgement_says_nothing() -> None:
    story = Story()
    story.then(E.FORWARDED)
    story.then(E.SIGNALLED, epoch=5)
    assert not story.then(E.ACCEPTED, epoch=9).compacted
    story.then(E.SIGNALLED, epoch=9)
    assert story.then(E.ACCEPTED, epoch=9).compacted, "the same acknowledgement once more"
    assert not story.then(E.ACCEPTED, epoch=10).compacted


@pytest.mark.parametrize("kind", [E.LEAKED, E.REMEDIED, E.RESTARTED, E.FORWARDED])
def test_signal_ends_with_what_came_after_it(kind: EventType) -> None:
    story = acknowledged(5)
    story.then(E.SIGNALLED, epoch=5)
    assert not story.then(kind).compacted


@pytest.mark.requirement("R30")
def test_a_completion_signal_stands_for_an_epoch_that_was_not_reached() -> None:
    story = acknowledged(5)
    story.then(E.SIGNALLED, epoch=5)
    for _ in range(3):
        story.round(read_epoch=4)
    assert settled(story).erasure.may_assert_non_recallability
