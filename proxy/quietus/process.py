"""One process of a sidecar: the parts, the client towards the store, and what keeps them going.

A sidecar is such a process with the admin API and listeners (`app`), or, with several workers, one with the
admin API and several with listeners (`worker`).
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Coroutine
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from quietus.admin.server import running_version
from quietus.assembly import Active, Parts, Surroundings, assemble
from quietus.certificates import Certificates
from quietus.config import Settings, traces_protocol
from quietus.decided_kept import DecidedKept
from quietus.gauges import keep_publishing, publish
from quietus.keys import Keyring
from quietus.ledger.counts_file import CountsFile
from quietus.metrics import Metrics
from quietus.opening import bounds_of, lineage_file
from quietus.policies import load_policy
from quietus.ports import Clock, Ledger, LineageFault
from quietus.profiles.loader import load_profile
from quietus.reloading import Reloader
from quietus.tracing.opening import open_traces
from quietus.trials import found_trial
from quietus.views import status_view
from quietus.wires import Listeners, StoreClient, told_by


def new_id() -> str:
    """A fresh erasure id: unguessable, since whoever holds it may ask for its status."""
    return f"er_{secrets.token_hex(12)}"


class Process:
    """Built from settings, started, stopped."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        keyring: Keyring,
        clock: Clock,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.keyring = keyring
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
        self.traces = traces = open_traces(
            traces_protocol(), settings.store.name, running_version(), self.log
        )
        client = self.client if traces is None else traces.storing(self.client, self.client)
        self.parts: Parts = assemble(Surroundings(
            self.active,
            ledger,
            keyring,
            clock,
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
            self.parts.exemptions, self.metrics, clock,
        )  # fmt: skip
        self.certificates = Certificates(settings, self.metrics, self.log, clock)
        self._tasks: list[asyncio.Task[Any]] = []

    def listeners(self, *, reuse_port: bool = False) -> Listeners:
        """Where agents connect to this process; `reuse_port`: to others at the same address, too."""
        door, talks, traces = self.parts.gateway, self.parts.conversations, self.traces
        return Listeners(
            self.settings, self.parts, self._principal,
            door if traces is None else traces.door(door), talks if traces is None else traces.talks(talks),
            reuse_port=reuse_port,
        )  # fmt: skip

    def _principal(self, credential: str) -> str:
        return self.keyring.pseudonym("principal", credential).hex()[:16]

    async def begin(self, *, first: bool, place: str = "") -> None:
        """Loads the ledger, and begins to probe. Raises LedgerError.

        `first`: nobody else of this sidecar has begun, and the lineage may be what a crash has left. `place`
        tells the processes of a sidecar apart that keep counts of their own beside the ledger.
        """
        await self.parts.erasures.load()
        await self._lineage(self.parts.lineage.load(serving=first))
        self.parts.timetable.start()
        self.parts.exemptions.now()
        await publish(self.parts, self.metrics)
        await self.parts.sharing.start()
        for work in (
            self.parts.reconciler.run(),
            self.parts.ordering.run(),
            self.parts.sharing.run(),
            self.parts.lineage.keep(self.clock),
            keep_publishing(self.parts, self.metrics, self.log),
            self.reloader.run(),
            self.certificates.run(),
        ):
            self.keep(work)
        if (path := self.settings.ledger.path) is not None:
            counts = CountsFile(path.with_suffix(f".decisions{place}"))
            decided, shapes = self.parts.gateway.decided, self.parts.shapes
            kept = DecidedKept(decided, shapes, self.parts.erasures, self.log, counts)
            await kept.load()
            self.keep(kept.run())

    async def _lineage(self, work: Coroutine[Any, Any, None]) -> None:
        # What derived from what is evidence for verdicts; no gate depends on it, and none waits for it.
        try:
            await work
        except LineageFault as fault:
            self.parts.lineage.fault = str(fault)
            self.log.error("lineage_unavailable", cause=type(fault).__name__)

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Does some work until the end."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        # What stops working must be seen: the gate stays as it is, and nothing would move it on any more.
        if not task.cancelled() and (error := task.exception()) is not None:
            self.log.error("background_work_ended", exc_info=error)

    async def rest(self) -> None:
        """Ends what was kept going; calls are no longer taken by now."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def end(self) -> None:
        """Lets go of the store, the ledger and the rest."""
        await self.client.close()
        await self.parts.sharing.stop()
        await self._lineage(self.parts.lineage.close())
        await self.parts.erasures.ledger.close()
        if self.traces is not None:
            await asyncio.to_thread(self.traces.close)
