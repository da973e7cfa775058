"""The sidecar as a process: the only place that names concrete classes and opens sockets."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import resource
import secrets
import signal
import time
from collections.abc import Coroutine
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from quietus.adapters import webhook
from quietus.admin.server import AdminServer, running_version
from quietus.assembly import Active, Bounds, Parts, Surroundings, assemble
from quietus.bypass import BypassProbe
from quietus.certificates import Certificates
from quietus.config import Settings, cluster_address, traces_protocol
from quietus.forgets import ForgetLimits
from quietus.forgetting import DeskLimits
from quietus.gateway import GatewayLimits
from quietus.gauges import keep_publishing, publish
from quietus.keys import Keyring
from quietus.ledger.lineage_file import LineageFile
from quietus.ledger.memory import MemoryLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger_server import open_shared
from quietus.metrics import Metrics
from quietus.policies import load_policy
from quietus.ports import Clock, Ledger, LedgerRefused, LineageFault
from quietus.prober import ProbeLimits
from quietus.profiles.loader import load_profile
from quietus.reloading import Reloader
from quietus.snapshotter import SnapshotLimits
from quietus.tracing.opening import open_traces
from quietus.trials import found_trial
from quietus.views import status_view
from quietus.wires import Listeners, StoreClient, told_by
from quietus.wires import store_client as store_client


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


def new_id() -> str:
    """A fresh erasure id: unguessable, since whoever holds it may ask for its status."""
    return f"er_{secrets.token_hex(12)}"


def open_ledger(settings: Settings) -> tuple[Ledger, Keyring]:
    """The ledger that the settings name, not opened yet, and the keys that go with it."""
    path = settings.ledger.path
    keys = settings.keys_path
    if settings.ledger.shared:
        return open_shared(settings.ledger, keys)
    if path is None:
        keyring = Keyring.fresh() if keys is None else Keyring.load_or_make(keys, ledger_is_new=True)
        return MemoryLedger(), keyring
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = not path.exists() or path.stat().st_size == 0
    if keys is None:
        raise LedgerRefused("a ledger on disk needs a keys file: set keys.file")
    keys.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    keyring = Keyring.load_or_make(keys, ledger_is_new=new)
    return (
        SqliteLedger(
            path, head_file=settings.ledger.head_file, reserve_bytes=settings.ledger.reserve_bytes
        ),
        keyring,
    )


def lineage_file(settings: Settings) -> LineageFile | None:
    """The file of the lineage, not opened yet; None where nothing is to be kept."""
    path = settings.ledger.path
    return None if path is None else LineageFile(path.with_suffix(".lineage.db"))


def bounds_of(settings: Settings) -> Bounds:
    """The bounds that the settings name."""
    limits, timeouts = settings.limits, settings.timeouts
    response = limits.response_bytes_max
    return Bounds(
        gateway=GatewayLimits(response, timeouts.wait),
        desk=DeskLimits(timeouts.wait, response),
        forgets=ForgetLimits(timeouts.barrier, response),
        probes=ProbeLimits(limits.probes_in_flight_max, limits.probe_rate_per_second, response),
        snapshots=SnapshotLimits(limits.snapshot_records_max, limits.snapshot_seconds_max),
        replicas=settings.store.replicas,
        lease=settings.ledger.lease,
        lineage_records=limits.lineage_records_max,
    )


class Sidecar:
    """One sidecar: built from settings, started, stopped."""

    def __init__(
        self, settings: Settings, *, clock: Clock | None = None, registry: CollectorRegistry | None = None
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.registry = registry or CollectorRegistry()
        self.metrics = Metrics(self.registry, settings.store.name, running_version())
        self.log = structlog.get_logger()
        self.client = StoreClient(settings.store, settings.timeouts, settings.limits.response_bytes_max)
        self.active = Active(
            load_profile(
                settings.store.profile,
                settings.store.wires,
                told_by(settings.store.grpc, settings.timeouts),
            ),
            load_policy(settings.policy),
            found_trial(settings.store.trial),
        )
        ledger, self.keyring = open_ledger(settings)
        self.traces = traces = open_traces(
            traces_protocol(), settings.store.name, running_version(), self.log
        )
        client = self.client if traces is None else traces.storing(self.client, self.client)
        self.parts: Parts = assemble(Surroundings(
            self.active,
            ledger,
            self.keyring,
            self.clock,
            client,
            settings.store.name,
            self.metrics if traces is None else traces.measuring(self.metrics),
            self.log,
            new_id,
            random.Random(secrets.randbits(64)),
            lambda erasure, verdict: status_view(erasure, verdict=verdict),
            bounds_of(settings),
            lineage=lineage_file(settings),
            streams=client,
        ))
        self.reloader = Reloader(
            self.active, settings.store.profile, settings.policy, self.log, settings.store.trial,
            self.parts.exemptions, self.metrics, self.clock,
        )  # fmt: skip
        door, talks = self.parts.gateway, self.parts.conversations
        self.listeners = Listeners(
            settings, self.parts, self._principal,
            door if traces is None else traces.door(door), talks if traces is None else traces.talks(talks),
        )  # fmt: skip
        self.certificates = Certificates(settings, self.metrics, self.log, self.clock)
        self.admin = AdminServer(self.parts, self.metrics, settings, cluster_address)
        self._tasks: list[asyncio.Task[Any]] = []

    def _principal(self, credential: str) -> str:
        return self.keyring.pseudonym("principal", credential).hex()[:16]

    async def start(self) -> None:
        """Opens the ledger, loads it, and listens. Raises LedgerRefused, ListenerRefused, OSError."""
        await self.admin.start_probes()
        await self.parts.erasures.load()
        await self._load_lineage()
        self.parts.timetable.start()
        self.parts.exemptions.now()
        await publish(self.parts, self.metrics)
        await self.parts.sharing.start()
        self._begin(self.parts.reconciler.run())
        self._begin(self.parts.ordering.run())
        self._begin(self.parts.sharing.run())
        self._begin(self.parts.lineage.keep(self.clock))
        self._begin(keep_publishing(self.parts, self.metrics, self.log))
        self._begin(self.reloader.run())
        self._begin(self.certificates.run())
        if self.settings.bypass.every is not None:
            self._begin(BypassProbe(self.parts.prober, self.parts.owners, self.parts.erasures,
                                    self.parts.sharing, self.metrics, self.log, self.settings.bypass).run())
        if (hook := self.settings.webhook) is not None:
            self._begin(webhook.tell(
                hook.url, webhook.secret_bytes(hook.secret.read()), self.settings.webhook_position,
                self.parts.erasures, self.metrics, self.log,
            ))  # fmt: skip
        await self.admin.start()
        await self.listeners.start()
        self.log.info("serving", state="ready")

    async def _load_lineage(self) -> None:
        # What derived from what is evidence for verdicts; no gate depends on it, and none waits for it.
        try:
            await self.parts.lineage.load()
        except LineageFault as fault:
            self.parts.lineage.fault = str(fault)
            self.log.error("lineage_unavailable", cause=type(fault).__name__)

    async def _close_lineage(self) -> None:
        try:
            await self.parts.lineage.close()
        except LineageFault as fault:
            self.log.error("lineage_unavailable", cause=type(fault).__name__)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        # What stops working must be seen: the gate stays as it is, and nothing would move it on any more.
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("background_work_ended", exc_info=error)

    @property
    def data_url(self) -> str:
        """Where agents connect over HTTP; empty where they cannot."""
        return self.listeners.http_url

    @property
    def grpc_address(self) -> str:
        """HOST:PORT where agents connect over gRPC; empty where they cannot."""
        return self.listeners.grpc_address

    @property
    def admin_url(self) -> str:
        """Where the admin API is."""
        return self.admin.url

    async def stop(self) -> None:
        """Takes no more calls, lets those under way finish within the drain time, and lets go."""
        await self.listeners.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.admin.stop()
        await self.client.close()
        await self.parts.sharing.stop()
        await self._close_lineage()
        await self.parts.erasures.ledger.close()
        if self.traces is not None:
            await asyncio.to_thread(self.traces.close)


async def serve(settings: Settings) -> None:
    """Runs a sidecar until SIGTERM or SIGINT."""
    harden()
    sidecar = Sidecar(settings)
    # What is loaded stays: looking through it for garbage, again and again, is the larger part of a start
    # with a large ledger, and would hold up calls later.
    gc.disable()
    try:
        await sidecar.start()
    finally:
        gc.enable()
    gc.freeze()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
    await sidecar.stop()


def harden() -> None:
    """No core dumps, and files that only the owner reads."""
    os.umask(0o077)
    # aiohttp tells tracebacks to the standard log; they may quote what a client sent.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("aiohttp").propagate = False
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(settings: Settings) -> None:
    """Runs `serve` on the fastest event loop that is installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(settings))
    else:
        uvloop.run(serve(settings))


