"""Where each erasure stands on this process's monotonic clock, and when it is due next.

Nothing here is stored: a restart begins the intervals again, and no wall clock can shorten one.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Iterable
from typing import Final

from quietus.core.due import Progress
from quietus.core.erasure import Erasure
from quietus.core.events import Event, EventType
from quietus.core.states import State
from quietus.erasures import Erasures

DISTURBANCES: Final = frozenset(
    {
        EventType.ACCEPTED,
        EventType.LEAKED,
        EventType.LEAKED_LATE,
        EventType.REMEDIED,
        EventType.WRITE_OPENED,
        EventType.WRITE_CLOSED,
        EventType.FORWARDED,
        EventType.RETRIED,
        EventType.HOLD_LIFTED,
    }
)
"""Events after which the settling interval begins again."""


class Timetable:
    """Notices every change of an erasure and keeps the queue of what is due."""

    def __init__(self, erasures: Erasures, entropy: random.Random) -> None:
        self._erasures = erasures
        self._entropy = entropy
        self._clock = erasures.clock
        self.standing: dict[str, Progress] = {}
        self.queue: list[tuple[float, str]] = []
        self.woken = asyncio.Event()
        self.leaks: dict[str, float] = {}
        """Leaks that clients' answers have shown and that are not in the ledger yet."""
        self.restarts: set[str] = set()
        """Erasures whose rounds begin again although no event of theirs says so yet."""
        self.ended: deque[str] = deque()
        """Erasures that nothing is done for any more but to clean up behind them."""
        self.writes: dict[tuple[str, str], float] = {}
        """The monotonic second at which a write of unknown outcome is over, by erasure and write."""
        self.lost = False
        """The store did not answer the last time."""
        erasures.listen(self._noticed)

    @property
    def backlog(self) -> int:
        """Erasures whose turn has come and that have to wait."""
        now = self._clock.monotonic()
        return sum(1 for at, _ in self.queue if at <= now)

    def progress(self, erasure: str) -> Progress | None:
        """Where an erasure stands on this process's clock."""
        return self.standing.get(erasure)

    def retry_after(self, erasure: Erasure) -> float:
        """Seconds after which asking again may be worth while: an estimate, at most an hour."""
        return min(max(1.0, self.estimate(erasure) or 0.0), 3600.0)

    def estimate(self, erasure: Erasure) -> float | None:
        """About how many seconds until it may be settled, if nothing leaks; None where nobody can say."""
        progress = self.standing.get(erasure.id)
        if progress is None:
            return None
        opens = progress.interval_from + erasure.terms.settling_interval
        rest = erasure.terms.clean_rounds * erasure.terms.spacing
        return max(0.0, opens + rest - self._clock.monotonic())

    def wake(self, erasure: str) -> None:
        """Makes an erasure due now."""
        progress = self.standing.get(erasure)
        if progress is not None:
            progress.next_at = self._clock.monotonic()
            self.push(erasure, progress.next_at)

    def disturb(self) -> None:
        """The store was reconnected to or restarted: intervals begin again, patrols are due."""
        now = self._clock.monotonic()
        for name, progress in self.standing.items():
            progress.interval_from = now
            progress.next_at = now + self._entropy.random()
            self._restart(self._erasures.gate.erasures[name])
            self.push(name, progress.next_at)

    def _restart(self, erasure: Erasure) -> None:
        if erasure.unsettled and erasure.clean_streak:
            self.restarts.add(erasure.id)

    def start(self) -> None:
        """Takes up everything that the ledger holds: intervals begin again, bounds go on."""
        now, wall = self._clock.monotonic(), self._clock.now()
        for erasure in self._erasures.all():
            if _over(erasure):
                self.ended.append(erasure.id)
                continue
            self._restart(erasure)
            left = min(max(erasure.bound_at - wall, 0.0), erasure.terms.effectuation_bound)
            spread = self._entropy.random() * min(erasure.terms.patrol_every, 60.0)
            settled = erasure.state is State.SETTLED
            acked = now if erasure.acknowledged_at is not None else None
            progress = Progress(now, now + left, now + (spread if settled else 0.0), acked)
            self.standing[erasure.id] = progress
            self.push(erasure.id, progress.next_at)
            for name in erasure.undrained:
                self.writes[erasure.id, name] = now + erasure.terms.effectuation_bound

    def write_over(self, erasure: str, write: str) -> bool:
        """Whether a write of unknown outcome can land no more. No wall clock has a say in it."""
        return self._clock.monotonic() >= self.writes.get((erasure, write), 0.0)

    def _writes(self, erasure: Erasure, event: Event) -> None:
        for name, until in erasure.undrained.items():
            if (erasure.id, name) not in self.writes:
                self.writes[erasure.id, name] = self._clock.monotonic() + max(until - event.at, 0.0)
        if event.type is EventType.WRITE_CLOSED:
            self.writes.pop((erasure.id, event.facts["write"]), None)

    def _noticed(self, erasure: Erasure, event: Event) -> None:
        if erasure.by_hand:
            return  # nothing is due: it stays until people lift it
        now = self._clock.monotonic()
        self._writes(erasure, event)
        progress = self.standing.get(erasure.id)
        if progress is None and _over(erasure):
            return
        if progress is None:
            bound = now + erasure.terms.effectuation_bound
            progress = self.standing[erasure.id] = Progress(now, bound, now + 1.0)
            self.push(erasure.id, progress.next_at)
            return
        if event.type in DISTURBANCES:
            progress.interval_from = now
            if event.type not in (EventType.LEAKED, EventType.LEAKED_LATE):
                progress.rounds = 0  # a store that goes on leaking is not asked ever faster
        if event.type is EventType.ACCEPTED:
            progress.failures = 0
            progress.next_at = now
            progress.acked_at = now if progress.acked_at is None else progress.acked_at
        if event.type is EventType.RETRIED or (
            erasure.state is State.RELAPSED and event.type in (EventType.LEAKED, EventType.LEAKED_LATE)
        ):
            progress.bound_at = now + max(0.0, erasure.bound_at - event.at)
        if event.type is EventType.CLEAN:
            progress.next_at = now + erasure.terms.patrol_every
        if _over(erasure):
            self.standing.pop(erasure.id, None)
            for name in erasure.undrained:
                self.writes.pop((erasure.id, name), None)
            self.ended.append(erasure.id)
            self.woken.set()
            return
        self.push(erasure.id, progress.next_at)

    def leaked(self, erasures: Iterable[Erasure], started: float) -> None:
        """Erased items met in a client's answer: evidence, if its upstream call came after the ack."""
        for erasure in erasures:
            progress = self.standing.get(erasure.id)
            if progress is None or progress.acked_at is None or started <= progress.acked_at:
                continue
            if erasure.id in self.leaks:
                continue
            self.leaks[erasure.id] = started
            self.wake(erasure.id)

    def push(self, erasure: str, at: float) -> None:
        """Enters an erasure as due at a monotonic second."""
        heapq.heappush(self.queue, (at, erasure))
        self.woken.set()


def _over(erasure: Erasure) -> bool:
    return erasure.state in (State.REFUSED, State.RELEASED) or erasure.watch_ended
