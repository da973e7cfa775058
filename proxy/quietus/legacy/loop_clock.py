"""A real clock for a store that nobody gave one: the time of the running event loop."""

from __future__ import annotations

import asyncio
from typing import Final

EPOCH: Final = 1_794_268_800.0
"""What `now` counts from: a label for rows, not the date of today."""


class LoopClock:
    """A `ports.Clock` over the event loop. Its `now` is good for order, not for dates."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()

    def now(self) -> float:
        """Seconds since the clock was made, after a fixed date."""
        return EPOCH + self.monotonic()

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._loop.time() - self._start

    async def sleep(self, seconds: float) -> None:
        """Waits in real time."""
        woken = self._loop.create_future()
        timer = self._loop.call_later(max(seconds, 0.0), _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)
