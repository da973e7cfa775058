"""The sidecar as a process: the only place that names concrete classes and opens sockets."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import time
from collections.abc import Coroutine
from typing import Any

from prometheus_client import CollectorRegistry

from quietus.adapters import webhook
from quietus.admin.server import AdminServer
from quietus.bypass import BypassProbe
from quietus.config import Settings, cluster_address
from quietus.opening import open_ledger
from quietus.ports import Clock
from quietus.process import Process
from quietus.supervisor import Supervisor
from quietus.wires import Listeners
from quietus.wires import store_client as store_client
from quietus.workers.hub import Hub
from quietus.workers.hub_ledger import HubLedger


class SystemClock:
    """The machine's clocks; the monotonic one counts through suspend where the system has such a one."""

    def now(self) -> float:
        """Unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since boot, suspend included."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)


class Sidecar(Process):
    """One sidecar: built from settings, started, stopped. With several workers, their supervisor."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        ledger, keyring = open_ledger(settings)
        several = settings.workers > 1
        hub = Hub(ledger) if several and not settings.ledger.shared else None
        super().__init__(
            settings, ledger if hub is None else HubLedger(hub), keyring, clock or SystemClock(), registry
        )
        self._supervisor = Supervisor(settings, hub, self.parts, self.metrics, self.log) if several else None
        self._takers: Listeners | Supervisor = self._supervisor or self.listeners()
        figures = self._supervisor.figures if self._supervisor is not None else None
        self.admin = AdminServer(self.parts, self.metrics, settings, cluster_address, figures)

    async def start(self) -> None:
        """Opens the ledger, loads it, and listens. Raises LedgerRefused, ListenerRefused, OSError."""
        await self.admin.start_probes()
        if self._supervisor is not None:
            await self._supervisor.alone()
        await self.begin(first=True)
        if self.settings.bypass.every is not None:
            self.keep(BypassProbe(self.parts.prober, self.parts.owners, self.parts.erasures,
                                  self.parts.sharing, self.metrics, self.log, self.settings.bypass).run())
        if (hook := self.settings.webhook) is not None:
            self.keep(webhook.tell(
                hook.url, webhook.secret_bytes(hook.secret.read()), self.settings.webhook_position,
                self.parts.erasures, self.metrics, self.log,
            ))  # fmt: skip
        await self.admin.start()
        await self._takers.start()
        self.log.info("serving", state="ready")

    @property
    def data_url(self) -> str:
        """Where agents connect over HTTP; empty where they cannot."""
        return self._takers.http_url

    @property
    def grpc_address(self) -> str:
        """HOST:PORT where agents connect over gRPC; empty where they cannot."""
        return self._takers.grpc_address

    @property
    def admin_url(self) -> str:
        """Where the admin API is."""
        return self.admin.url

    async def stop(self) -> None:
        """Takes no more calls, lets those under way finish within the drain time, and lets go."""
        await self._takers.close()
        await self.rest()
        await self.admin.stop()
        await self.end()


async def serve(settings: Settings) -> None:
    """Runs a sidecar until SIGTERM or SIGINT."""
    harden()
    sidecar = Sidecar(settings)
    await unhurried(sidecar.start())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    await sidecar.stop()


async def unhurried(start: Coroutine[Any, Any, None]) -> None:
    """Starts without the garbage collector.

    What is loaded stays: looking through it, again and again, is the larger part of a start with a large
    ledger, and would hold up calls later.
    """
    gc.disable()
    try:
        await start
    finally:
        gc.enable()
    gc.freeze()


def harden() -> None:
    """No core dumps, and files that only the owner reads."""
    os.umask(0o077)
    # aiohttp tells tracebacks to the standard log; they may quote what a client sent.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("aiohttp").propagate = False
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(settings: Settings) -> None:
    """Runs `serve` until it ends."""
    on_fastest_loop(serve(settings))


def on_fastest_loop(work: Coroutine[Any, Any, None]) -> None:
    """Runs something on the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


