"""A clock that only a test moves."""

from __future__ import annotations

import asyncio
import heapq

START = 1_794_268_800.0
"""10 November 2026, 00:00 UTC: the date of the first founding document."""

TURNS = 50
"""How often the event loop goes round between two wakings, so that what was woken gets somewhere."""


class VirtualClock:
    """A `ports.Clock` whose time stands still until `advance` moves it.

    Sleepers wake in the order in which their time comes, those of one instant in the order in which
    they lay down; each sees its own time, and what it does next happens before the next one wakes.
    """

    def __init__(self, start: float = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._wall = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self._start + self._wall + self._elapsed

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._count += 1
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._count, woken))
        await woken

    @property
    def sleepers(self) -> int:
        """How many wait."""
        return sum(not woken.done() for _, _, woken in self._sleepers)

    @property
    def next_waking(self) -> float | None:
        """The monotonic time at which the next sleeper wakes."""
        return min((due for due, _, woken in self._sleepers if not woken.done()), default=None)

    async def advance(self, seconds: float) -> None:
        """Moves time on, waking in order everyone whose time comes, and who lies down meanwhile."""
        goal = self._elapsed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= goal:
            due, _, woken = heapq.heappop(self._sleepers)
            if woken.done():
                continue
            self._elapsed = max(self._elapsed, due)
            woken.set_result(None)
            await self.settle()
        self._elapsed = goal

    def move(self, seconds: float) -> None:
        """Moves time on where nobody sleeps: for tests without an event loop."""
        assert not self.sleepers, "someone sleeps; use advance()"
        self._elapsed += seconds

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back; monotonic time does not notice."""
        self._wall += seconds

    async def settle(self) -> None:
        """Lets everything run that can run now."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
