"""Machines that share one virtual time: each with a clock of its own, and a process that may stand still.

A machine's wall clock is off and may jump; its monotonic one began when it was started and runs a little fast
or slow, through a freeze too. A frozen process takes no step; what comes for it meanwhile lies there when it
goes on, and its timers are over.
"""

from __future__ import annotations

import asyncio
import zlib
from asyncio import events
from collections.abc import Callable
from typing import Any, Final, TypeVar

from quietus.ports import LedgerError, LedgerUnavailable
from tests.simulation.virtual import Killed, Loop, Time

T = TypeVar("T")
PATIENCE: Final = 3.0
"""Seconds after which a replica gives a call at the ledger's server up."""
TURN: Final = 40
"""Steps after which the other machines have theirs."""


class MachineClock:
    """A `ports.Clock` of one machine, which every process on it sees."""

    def __init__(self, time: Time, rate: float, boot: float, wall: float) -> None:
        """`rate`: its seconds in each true one; `boot`: what its monotonic clock shows at the start."""
        self._time = time
        self._rate = rate
        self._boot = boot
        self._wall = wall

    def now(self) -> float:
        return self._time.now() + self._wall

    def monotonic(self) -> float:
        return self._boot + self._time.elapsed * self._rate

    def jump(self, seconds: float) -> None:
        """Sets the wall clock; monotonic time does not notice."""
        self._wall += seconds

    async def sleep(self, seconds: float) -> None:
        await self._time.sleep(seconds / self._rate)


class Machine(Loop):
    """One process. `stop_at` is the step before which it stands still for `stop_for` true seconds."""

    def __init__(self, time: Time) -> None:
        super().__init__(time)
        self.stop_at: int | None = None
        self.stop_for = 0.0
        self.stops = 0
        """How often it stood still."""
        self._still_until = 0.0

    @property
    def still(self) -> bool:
        """Whether it stands still."""
        return self._time.elapsed < self._still_until

    def go(self) -> bool:
        """Takes a turn; False when nothing is to be done. Raises Killed."""
        ready = self._ready
        if self.still:
            return False
        if self.kill_at is not None and self.steps >= self.kill_at:
            raise Killed
        if not ready:
            return False
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            for _ in range(TURN):
                if not ready:
                    break
                if self.kill_at is not None and self.steps >= self.kill_at:
                    raise Killed
                if self.stop_at is not None and self.steps >= self.stop_at:
                    self._stop()
                    break
                self.steps += 1
                callback, args, context = ready.popleft()
                context.run(callback, *args)
        finally:
            events._set_running_loop(before)
        return True

    def _stop(self) -> None:
        self.stop_at = None
        self.stops += 1
        self._still_until = self._time.elapsed + self.stop_for
        self._time.after(self.stop_for, lambda: None)


class Cable:
    """What lies between a replica's machine and the ledger's server: a `served.Wire`, slow and at times cut.

    A step that has reached the server is taken, whether its answer comes back or not, and whatever has become
    of who asked for it.
    """

    def __init__(self, time: Time, name: str, delay: float) -> None:
        """`name` and the place of a call decide how long it takes; `delay` is the most, in seconds."""
        self._time = time
        self._name = name
        self._count = 0
        self.delay = delay
        self.cut_until = 0.0
        self.failed = 0
        """Calls of which nobody knows whether they were heard."""

    def _takes(self) -> float:
        self._count += 1
        share = zlib.crc32(f"{self._name}/{self._count}".encode()) / 2**32
        return 0.0005 + self.delay * share * share

    @property
    def _down(self) -> bool:
        return self._time.elapsed < self.cut_until

    async def ask(self, step: Callable[[], T]) -> T:
        """Has the server take a step. Raises LedgerUnavailable when no answer came in time."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        began, there, back = self._time.elapsed, self._takes(), self._takes()

        def lost() -> None:
            self.failed += 1
            rest = max(began + PATIENCE - self._time.elapsed, 0.0)
            error = LedgerUnavailable("the ledger's server cannot be reached")
            self._time.after(rest, lambda: _give(answer, error))

        def arrived() -> None:
            if self._down:
                lost()
                return
            try:
                outcome: Any = step()
            except LedgerError as error:
                outcome = error
            self._time.after(back, lambda: lost() if self._down else _give(answer, outcome))

        self._time.after(there, arrived)
        return await answer

    def tell(self, hint: Callable[[], None]) -> None:
        """Brings a hint, unless it is cut. One in eight gets lost all the same."""
        takes = self._takes()
        if self._count % 8 and not self._down:
            self._time.after(takes, hint)


def _give(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done() or answer.get_loop().is_closed():
        return
    if isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
