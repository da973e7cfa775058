"""The workers of this process: begun, watched, begun anew when one is lost, and let go together.

A worker is a fresh interpreter at the other end of a socket that nobody else can reach. It is told the
settings, says when it serves, and ends when the line breaks: no worker outlives its supervisor. One that is
lost comes back empty: it listens only once it has loaded the ledger and has its lease.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from quietus.ports import Clock, LedgerError
from quietus.workers.hub import Hub
from quietus.workers.hub_ledger import HubLedger
from quietus.workers.line import Answering, Line, LineBroken
from quietus.workers.remote import Served

AGAIN_MAX: Final = 10.0
"""Seconds between two beginnings of a worker that does not stay, at most."""
STEADY: Final = 60.0
"""Seconds after which a worker counts as one that stays."""
ANSWERS_WITHIN: Final = 2.0
"""Seconds for a worker to tell its figures; one that is slower is told of as it was."""


class WorkerFailed(LedgerError):
    """A worker could not begin to serve; the message is what it said."""


class Voice(Protocol):
    """Where a crew tells what happens. Satisfied by structlog."""

    def info(self, event: str, **facts: Any) -> Any:
        """Something that was to be expected."""

    def error(self, event: str, **facts: Any) -> Any:
        """Something that was not."""


@dataclass(slots=True, eq=False)
class Worker:
    """One of them."""

    place: int
    served: Served | None = None
    line: Line = field(default_factory=Line)
    process: subprocess.Popen[bytes] | None = None
    serves: bool = False
    failure: str = ""
    known: dict[str, Any] = field(default_factory=dict)
    """Its figures as they were told last."""


class Crew:
    """All of them."""

    def __init__(
        self,
        count: int,
        hub: Hub | None,
        settings: dict[str, Any],
        clock: Clock,
        log: Voice,
        lost: Callable[[dict[str, Any]], None],
    ) -> None:
        """`hub` is the ledger that they are given; None where each has a server's for itself.

        `lost` is told of a worker that ended by itself, with the figures that it told last.
        """
        self._hub = hub
        self._settings = settings
        self._clock = clock
        self._log = log
        self._lost = lost
        self.workers = [self._new(place) for place in range(count)]
        self._changed = asyncio.Event()
        self._watching: list[asyncio.Task[None]] = []
        self._ending = False

    @property
    def serving(self) -> int:
        """How many of them serve."""
        return sum(worker.serves for worker in self.workers)

    def _new(self, place: int) -> Worker:
        worker = Worker(place)
        if self._hub is not None:
            worker.served = Served(HubLedger(self._hub, partial(self._hung, worker)))
        return worker

    def _hung(self, worker: Worker) -> None:
        """It has not beaten for a whole lease: whoever connects to it would wait for ever."""
        if worker.process is not None:
            self._log.error("worker_hung", pid=worker.process.pid)
            worker.process.kill()

    # --- beginning -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begins all of them, and waits until they serve. Raises WorkerFailed."""
        for place in range(len(self.workers)):
            self._watching.append(asyncio.ensure_future(self._keep(place)))
        while self.serving < len(self.workers):
            if failure := next((each.failure for each in self.workers if each.failure), ""):
                await self.stop(0.0)
                raise WorkerFailed(failure)
            await self._changed.wait()
            self._changed.clear()

    async def _keep(self, place: int) -> None:
        """Begins one, and another one after it, for as long as the crew is there."""
        pause = 0.0
        first = True
        while not self._ending:
            begun = self._clock.monotonic()
            worker = self.workers[place]
            try:
                code = await self._live(worker)
            except OSError as error:  # no process, or no descriptor, is to be had just now
                code, worker.failure = -1, f"a worker could not be begun: {error.strerror}"
            served, worker.serves = worker.serves, False
            if not served and first:
                worker.failure = worker.failure or f"a worker ended with {code} before it served"
            self._changed.set()
            if self._ending or (first and not served):
                return
            first = False
            self._log.error("worker_lost", count=code)
            self._lost(worker.known)
            worker.known = {}
            steady = self._clock.monotonic() - begun >= STEADY
            pause = 0.0 if steady else min(AGAIN_MAX, pause * 2 or 0.1)
            await self._clock.sleep(pause)
            self.workers[place] = self._new(place)

    async def _live(self, worker: Worker) -> int:
        """One worker from its beginning to its end; how it ended."""
        near, far = socket.socketpair()
        served = worker.served
        own: dict[str, Answering] = {
            "settings": partial(self._told, worker),
            "serves": partial(self._begun, worker),
            "failed": partial(self._failed, worker),
        }
        worker.line.answers = own | (served.answers() if served is not None else {})
        with far:
            worker.process = _spawned(far)
        await worker.line.begin(near)
        telling = asyncio.ensure_future(served.tell(worker.line)) if served is not None else None
        try:
            await worker.line.broken.wait()
            return await asyncio.to_thread(worker.process.wait)
        finally:
            if telling is not None:
                telling.cancel()
            await worker.line.end()
            if served is not None:
                with suppress(LedgerError):
                    await served.view.close()

    async def _told(self, worker: Worker) -> tuple[int, dict[str, Any]]:
        return worker.place, self._settings

    async def _begun(self, worker: Worker) -> None:
        worker.serves = True
        self._changed.set()
        assert worker.process is not None
        self._log.info("worker_serves", pid=worker.process.pid)

    async def _failed(self, worker: Worker, text: str) -> None:
        worker.failure = text

    # --- while they serve ------------------------------------------------------------------------

    async def figures(self) -> list[dict[str, Any]]:
        """What each has counted: asked now, or as it was where one does not answer in time."""
        await asyncio.gather(*(self._figures(worker) for worker in self.workers))
        return [worker.known for worker in self.workers if worker.known]

    async def _figures(self, worker: Worker) -> None:
        if worker.serves:
            with suppress(LineBroken, TimeoutError):
                async with asyncio.timeout(ANSWERS_WITHIN):
                    worker.known = await worker.line.ask("figures")

    # --- the end ---------------------------------------------------------------------------------

    async def stop(self, seconds: float) -> None:
        """Has all finish what is under way within so many seconds, and sees to it that they are gone."""
        self._ending = True
        for worker in self.workers:
            worker.line.tell("stop")
        if self._watching:
            await asyncio.wait(self._watching, timeout=seconds)
        for worker in self.workers:
            if worker.process is not None and worker.process.poll() is None:
                worker.process.kill()
        await asyncio.gather(*self._watching, return_exceptions=True)


def _spawned(far: socket.socket) -> subprocess.Popen[bytes]:
    # Not by the loop's own way: that one forks, and the threads of gRPC do not like it.
    end = far.fileno()
    return subprocess.Popen([sys.executable, "-m", "quietus.worker", str(end)], pass_fds=[end])
