"""The webhook as a server: `/inject` over HTTPS, and probes and metrics on a port of their own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from quietus.inject.renewal import Log, Renewal, Source, cancelled
from quietus.inject.review import OUTCOMES, ReviewMalformed, review
from quietus.inject.wishes import InjectorSettings
from quietus.ports import Clock

BODY_MAX: Final = 4 << 20
"""Bytes of a review. A pod is below 1.5 MiB, or etcd would not keep it; a review may hold it twice."""
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Places:
    """Where it listens: host and port of each."""

    webhook: tuple[str, int]
    probes: tuple[str, int]


class InjectorServer:
    """One injector. It keeps nothing: any number of them may run."""

    def __init__(
        self, settings: InjectorSettings, source: Source, places: Places, clock: Clock, log: Log
    ) -> None:
        self._settings = settings
        self._places = places
        self._log = log
        self.registry = CollectorRegistry()
        self._count = Counter(
            "quietus_injections_total", "Pods that were asked about, by what was done.", ["outcome"],
            registry=self.registry,
        )  # fmt: skip
        for outcome in OUTCOMES:
            self._count.labels(outcome)
        ends = Gauge(
            "quietus_injector_certificate_expiry_timestamp_seconds",
            "When the certificate of the webhook expires.", registry=self.registry,
        )  # fmt: skip
        self.renewal = Renewal(source, clock, log, ends.set)
        self._ready = False
        self._webhook = web.AppRunner(self._routes(), access_log=None, handle_signals=False)
        self._probes = web.AppRunner(self._probing(), access_log=None, handle_signals=False)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listens. Raises CertificateRefused, ClusterRefused, OSError."""
        await self._probes.setup()
        await web.TCPSite(self._probes, *self._places.probes).start()
        context = await self.renewal.begin()
        await self._webhook.setup()
        await web.TCPSite(self._webhook, *self._places.webhook, ssl_context=context).start()
        self._task = asyncio.ensure_future(self.renewal.run())
        self._ready = True
        self._log.info("injector_serving", state="ready")

    @property
    def port(self) -> int:
        """Where the webhook listens."""
        return int(self._webhook.addresses[0][1])

    @property
    def probes_port(self) -> int:
        """Where probes and metrics are."""
        return int(self._probes.addresses[0][1])

    async def stop(self) -> None:
        """Answers what is under way and stops."""
        self._ready = False
        if self._task is not None:
            await cancelled(self._task)
        await self._webhook.cleanup()
        await self._probes.cleanup()

    def _routes(self) -> web.Application:
        app = web.Application(client_max_size=BODY_MAX)
        app.router.add_post("/inject", self._inject)
        app.router.add_get("/healthz", self._healthz)
        return app

    def _probing(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/startupz", self._readyz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _inject(self, request: web.Request) -> web.StreamResponse:
        try:
            found = review(await request.read(), self._settings)
        except ReviewMalformed as error:
            self._count.labels("malformed").inc()
            return web.Response(status=400, text=f"{error}\n")
        except web.HTTPRequestEntityTooLarge:
            self._count.labels("malformed").inc()
            return web.Response(status=413, text=f"a review has at most {BODY_MAX} bytes\n")
        self._count.labels(found.outcome).inc()
        return web.Response(body=found.body, content_type="application/json")

    async def _healthz(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok"})

    async def _readyz(self, _request: web.Request) -> web.StreamResponse:
        return web.json_response({"ready": self._ready}, status=200 if self._ready else 503)

    async def _metrics(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(body=generate_latest(self.registry), headers={"Content-Type": TEXT})
