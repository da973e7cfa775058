"""The supervisor of several workers: it has the ledger and the admin API, and they have the port.

It does everything that a sidecar does but take agents' calls. Satisfies what `app` asks of listeners.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from quietus.adapters.http import ListenerRefused
from quietus.assembly import Parts
from quietus.crew_figures import CrewFigures
from quietus.ledger.files import workers_live
from quietus.metrics import Metrics
from quietus.ports import LedgerRefused
from quietus.recording import Log
from quietus.settings import Settings, address
from quietus.workers.crew import Crew
from quietus.workers.hub import Hub

LOOK_AGAIN: Final = 0.2
"""Seconds between two looks whether workers of an earlier supervisor are gone."""
GRACE: Final = 5.0
"""Seconds beyond the drain time that a worker has to end."""


class Supervisor:
    """Holds the ports, begins the workers, and answers for all of them."""

    def __init__(
        self, settings: Settings, hub: Hub | None, parts: Parts, metrics: Metrics, log: Log
    ) -> None:
        self._settings = settings
        self._hub = hub
        self._log = log
        self._clock = parts.erasures.clock
        self.figures = CrewFigures(parts, metrics, written_down=settings.ledger.path is not None)
        self._crew: Crew | None = None
        self._held: list[socket.socket] = []
        self.http_url = ""
        """Where agents that speak HTTP connect; empty where none can."""
        self.grpc_address = ""
        """HOST:PORT for agents that speak gRPC; empty where none can."""

    async def start(self) -> None:
        """Begins the workers, and waits until all serve. Raises ListenerRefused, LedgerError."""
        document = self._settings.model_dump(mode="json", exclude_none=True)
        store = document["store"]
        taken: dict[str, str] = {}
        for wire in ("http", "grpc"):
            if wire in store:
                wanted = store[wire]["listen"]
                # One port for both wires is one that is asked for twice.
                taken[wanted] = store[wire]["listen"] = taken.get(wanted) or self._hold(wanted, wire)
        self._crew = Crew(
            self._settings.workers, self._hub, document, self._clock, self._log, self.figures.lose
        )
        self.figures.crew = self._crew
        await self._crew.start()
        self.http_url = f"http://{store['http']['listen']}" if "http" in store else ""
        self.grpc_address = store["grpc"]["listen"] if "grpc" in store else ""

    async def alone(self) -> None:
        """Waits for workers of one that was killed: each ends when it sees that, unless it is frozen.

        Before anything is forwarded: nobody here would wait for what such a one still answers. Raises
        LedgerRefused.
        """
        path = self._settings.ledger.path
        until = self._clock.monotonic() + self._settings.ledger.lease
        while path is not None and workers_live(path):
            if self._clock.monotonic() >= until:
                raise LedgerRefused(
                    f"workers of an earlier run still hold the ledger {path}: end them before Quietus starts"
                )
            await self._clock.sleep(LOOK_AGAIN)

    def _hold(self, listen: str, wire: str) -> str:
        """Takes a port for the workers to share; where it is then."""
        host, port = address(listen)
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as trial:  # nobody else may share it
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(where)
            held = socket.socket(family, kind, protocol)
            self._held.append(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind(where)
        except OSError as error:
            raise ListenerRefused(
                f"cannot listen on {listen} ({error.strerror}): choose another address under "
                f"store.{wire}.listen"
            ) from None
        return f"{listen.rpartition(':')[0]}:{held.getsockname()[1]}"

    async def close(self) -> None:
        """Lets the workers finish what is under way within the drain time."""
        if self._crew is not None:
            await self._crew.stop(self._settings.timeouts.drain + GRACE)
        with contextlib.ExitStack() as stack:
            for held in self._held:
                stack.enter_context(held)
        self._held.clear()
