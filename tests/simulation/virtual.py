"""Virtual time and an event loop that knows no other: no sockets, no selector, no waiting.

`tests.virtual_clock` lets the loop go round fifty times for each waking; here the loop itself moves the time
on when nothing is left to run, so that a waking costs one heap operation. A loop stands for one process. A
kill drops the loop with everything in it, between any two steps: no `finally` of it runs in its time.
What is outside of the process (the network, the store) is kept by `Time` and goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

START = 1_794_268_800.0
"""10 November 2026, 00:00 UTC."""

Act = Callable[[], None]


class Killed(Exception):
    """The process is dead from here on."""


class Time:
    """A `ports.Clock` for every process of one simulation, and the events of the world around them."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self._wall = START
        self._heap: list[tuple[float, int, Any]] = []
        self._count = 0

    def now(self) -> float:
        return self._wall + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    def jump(self, seconds: float) -> None:
        """Sets the wall clock; monotonic time does not notice."""
        self._wall += seconds

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.Future(loop=asyncio.get_running_loop())
        self._push(seconds, woken)
        await woken

    def after(self, seconds: float, act: Act) -> None:
        """Lets something happen in the world, whatever becomes of the process meanwhile."""
        self._push(max(seconds, 0.0), act)

    def _push(self, seconds: float, what: Any) -> None:
        self._count += 1
        heapq.heappush(self._heap, (self.elapsed + seconds, self._count, what))

    def step(self, until: float) -> bool:
        """Moves on to what comes next and lets it happen; False when nothing comes by then."""
        while self._heap and self._heap[0][0] <= until:
            due, _, what = heapq.heappop(self._heap)
            if isinstance(what, asyncio.Future):
                if what.done() or what.get_loop().is_closed():
                    continue
                self.elapsed = due
                what.set_result(None)
                return True
            self.elapsed = due
            what()
            return True
        self.elapsed = max(self.elapsed, until)
        return False


class Loop(asyncio.AbstractEventLoop):
    """One process. `kill_at` is the step before which it dies."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self._ready: deque[tuple[Callable[..., Any], tuple[Any, ...], contextvars.Context]] = deque()
        self._dead = False
        self._context = contextvars.copy_context()
        self.steps = 0
        self.kill_at: int | None = None
        self.surprises: list[str] = []
        """What went wrong in tasks that nobody looks after."""

    # --- what asyncio asks of a loop -------------------------------------------------------------

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Any = None) -> Any:
        if not self._dead:
            self._ready.append((callback, args, context if context is not None else self._context))

    call_soon_threadsafe = call_soon

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name)

    def time(self) -> float:
        return self._time.elapsed

    get_debug = staticmethod(bool)
    """False; asked at every future and task that is made."""

    def is_closed(self) -> bool:
        return self._dead

    def is_running(self) -> bool:
        return not self._dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._dead:
            self.surprises.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- running ---------------------------------------------------------------------------------

    def run(self, until: float, over: Callable[[], bool] = lambda: False) -> None:
        """Runs until that second, or until it is `over`. Raises Killed."""
        before = events._get_running_loop()
        events._set_running_loop(self)
        ready = self._ready
        try:
            while True:
                while ready:
                    if self.kill_at is not None and self.steps >= self.kill_at:
                        raise Killed
                    self.steps += 1
                    callback, args, context = ready.popleft()
                    context.run(callback, *args)
                if over() or not (self._time.step(until) or ready):
                    return
        finally:
            events._set_running_loop(before)

    def complete(self, work: Coroutine[Any, Any, Any], limit: float = 3600.0) -> Any:
        """Runs one coroutine to its end."""
        task = self.create_task(work)
        self.run(self._time.elapsed + limit, task.done)
        return task.result()

    def kill(self) -> None:
        """Kill -9: nothing of it does another step.

        Its coroutines are closed, as the interpreter would do sooner or later; what their `finally` clauses
        still do, they do to a process that is gone.
        """
        self._dead = True
        self._ready.clear()
        for task in sorted(asyncio.all_tasks(self), key=age):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with suppress(RuntimeError):
                task.get_coro().close()  # type: ignore[union-attr]

    def cancel(self) -> None:
        """Cancels everything at once and lets it fall where it stands; then it is gone."""
        for task in sorted(asyncio.all_tasks(self), key=age):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task.cancel()
        self.kill_at = None
        self.run(self._time.elapsed, lambda: not self._ready)
        self.kill()


def age(task: asyncio.Task[Any]) -> int:
    """Sorts tasks by when they were made; sets of them have no order that comes again."""
    return int(task.get_name().rpartition("-")[2])
