"""The time limit of whatever a connection is waiting for at the moment.

A connection passes through several phases a request, each with its own limit. Making and cancelling a
timer for each costs more than the rest of the bookkeeping, so there is one timer that is left to run
out: when it does, it looks where the limit stands now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf


class Deadline:
    """At most one limit at a time; `expire` is called when it passes. Moving it is an assignment."""

    __slots__ = ("_at", "_expire", "_handle", "_loop", "_wakes")

    def __init__(self, loop: asyncio.AbstractEventLoop, expire: Callable[[], None]) -> None:
        self._loop = loop
        self._expire = expire
        self._at = inf
        self._wakes = inf
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """From now, so many seconds; whatever limit stood before is gone."""
        self._at = at = self._loop.time() + seconds
        if at < self._wakes:
            if self._handle is not None:
                self._handle.cancel()
            self._sleep_until(at)

    def clear(self) -> None:
        """No limit for now."""
        self._at = inf

    def close(self) -> None:
        """No limit any more."""
        self._at = inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _sleep_until(self, at: float) -> None:
        self._wakes = at
        self._handle = self._loop.call_at(at, self._wake)

    def _wake(self) -> None:
        self._handle = None
        self._wakes = inf
        if self._loop.time() >= self._at:
            self._at = inf
            self._expire()
        elif self._at != inf:
            self._sleep_until(self._at)
