"""What to do next for an erasure, from the stored state and the monotonic clock alone.

Level-triggered: a crash loses nothing, because nothing but the ledger says what is due. Intervals
are measured on the monotonic clock (`Progress`), which a restart begins again: after a restart a
full settling interval passes before a round counts, whatever the wall clock says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quietus.core.erasure import Erasure
from quietus.core.states import State


class Work(StrEnum):
    """What is due."""

    FORWARD = "forward"
    """The forget never left, or nobody knows whether it did: fence, snapshot, send (again)."""
    PROBE = "probe"
    SETTLE = "settle"
    PATROL = "patrol"
    END_WATCH = "end_watch"
    NOTHING = "nothing"


@dataclass(slots=True)
class Progress:
    """Where an erasure stands on this process's monotonic clock. Seconds."""

    interval_from: float
    """Since when nothing has disturbed it: a leak, a remedy, a late write, a reconnect."""
    bound_at: float
    next_at: float
    acked_at: float | None = None
    """When the store acknowledged: only what was asked after that is evidence of a leak."""
    rounds: int = 0
    """Rounds since the last disturbance: paces the early ones."""
    failures: int = 0
    """Attempts that came to nothing, in a row: paces the retries."""


@dataclass(frozen=True, slots=True)
class Due:
    """What to do, when (monotonic seconds), and whether a round begun then counts."""

    work: Work
    at: float
    counted: bool = False
    overdue: bool = False


def due(erasure: Erasure, progress: Progress, now: float) -> Due:
    """What is due at `now`."""
    state = erasure.state
    overdue = erasure.unsettled and not erasure.overdue and now >= progress.bound_at
    if state in (State.REFUSED, State.RELEASED) or erasure.watch_ended or erasure.by_hand:
        return Due(Work.NOTHING, float("inf"))
    if state is State.SETTLED:
        return Due(Work.PATROL, progress.next_at)
    if erasure.held:
        return Due(Work.NOTHING, float("inf"), overdue=overdue)
    if erasure.dossier.suppressed and erasure.snapshotted:
        return Due(Work.NOTHING, float("inf"), overdue=overdue)
    if state is State.REQUESTED or not erasure.answered:
        return Due(Work.FORWARD, progress.next_at, overdue=overdue)
    passed = erasure.compacted or now >= progress.interval_from + erasure.terms.settling_interval
    if may_settle(erasure) and passed:
        return Due(Work.SETTLE, now, overdue=overdue)
    return Due(Work.PROBE, progress.next_at, counted=passed, overdue=overdue)


def may_settle(erasure: Erasure) -> bool:
    """Whether the stored rounds are enough for CLEAN: N in a row on one undisturbed version."""
    if erasure.held or erasure.undrained or not erasure.unsettled:
        return False
    if erasure.state is State.REQUESTED or not erasure.answered:
        return False
    if erasure.store_epoch is not None and (erasure.read_epoch or 0) < erasure.store_epoch:
        return erasure.compacted and _rounds_enough(erasure)
    return _rounds_enough(erasure)


def _rounds_enough(erasure: Erasure) -> bool:
    return (
        erasure.clean_streak >= erasure.terms.clean_rounds
        and erasure.streak_base == erasure.base_version
    )


def pace(erasure: Erasure, progress: Progress, now: float, jitter: float) -> float:
    """When the next round should begin: early ones close together, then further apart.

    `jitter` is in [0, 1). Rounds that may count follow each other at the terms' spacing; earlier
    ones double from 0.25 s up to a fifteenth of the interval, at most a minute; failures back off.
    """
    terms = erasure.terms
    if erasure.state is State.SETTLED:
        return now + terms.patrol_every * (0.9 + 0.2 * jitter)
    opens = progress.interval_from + terms.settling_interval
    if progress.failures:
        wait = min(0.25 * 2.0 ** min(progress.failures, 10), 60.0)
        return now + wait * (0.75 + 0.5 * jitter)
    if now >= opens or erasure.compacted:
        return now + terms.spacing * (0.9 + 0.2 * jitter)
    cap = min(max(terms.settling_interval / 15, 0.25), 60.0)
    wait = min(0.25 * 2.0 ** min(progress.rounds, 12), cap) * (0.75 + 0.5 * jitter)
    return min(now + wait, max(opens, now + 0.05))
