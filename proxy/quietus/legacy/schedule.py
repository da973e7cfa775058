"""Background work of the legacy store: jobs that fall due on its clock and run when it looks."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf
from typing import Final

JOBS_MAX: Final = 100_000


class Schedule:
    """Jobs in the order in which they fall due; equal times keep the order of their setting.

    A job that sets another counts from its own due time, not from the moment at which the store
    came to run it: what a store does does not depend on how often it is looked at.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str, Callable[[], None]]] = []
        self._live: dict[str, int] = {}
        self._count = 0
        self._running: float | None = None

    def set(
        self, name: str, now: float, delay: float, job: Callable[[], None], *, again: bool = False
    ) -> None:
        """Sets `job` to run `delay` after `now` (never, if infinite).

        A job of that name which still waits stays as it is; with `again` it is put off instead.
        """
        if delay == inf or (name in self._live and not again):
            return
        if len(self._live) >= JOBS_MAX:
            raise MemoryError("the legacy store has too much background work; let it tick")
        self._count += 1
        self._live[name] = self._count
        start = now if self._running is None else self._running
        heapq.heappush(self._heap, (start + delay, self._count, name, job))

    def run(self, now: float) -> int:
        """Runs what is due by `now`, oldest first; says how many jobs ran."""
        ran = 0
        while self._heap and self._heap[0][0] <= now:
            due, number, name, job = heapq.heappop(self._heap)
            if self._live.get(name) != number:
                continue
            del self._live[name]
            self._running = due
            try:
                job()
            finally:
                self._running = None
            ran += 1
        return ran

    def time(self, now: float) -> float:
        """The due time of the job that runs, or else `now`."""
        return now if self._running is None else self._running

    def next_due(self) -> float | None:
        """When the next job falls due, or None."""
        while self._heap and self._live.get(self._heap[0][2]) != self._heap[0][1]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def waits(self, name: str) -> bool:
        """Whether a job of that name is set."""
        return name in self._live

    def clear(self) -> None:
        """Drops every job: a restart."""
        self._heap.clear()
        self._live.clear()
