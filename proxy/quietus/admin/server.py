"""The admin API: its routes, put together over what it works with. It runs on a port of its own.

The same port takes the API's gRPC side (`rpc`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from aiohttp import web

from quietus.acts import Acts
from quietus.adapters.api_server import ApiServer
from quietus.admin import health
from quietus.admin.figures import Figures, OwnFigures
from quietus.admin.guard import REFUSALS_A_MINUTE, Budget, guard
from quietus.admin.office import OFFICE, Office
from quietus.admin.openapi import described
from quietus.admin.paces import Paces
from quietus.admin.reviews import Reviews
from quietus.admin.route import served
from quietus.admin.routes import ROUTES
from quietus.admin.rpc_server import RpcServer
from quietus.admin.tokens import Tokens, load_tokens
from quietus.assembly import Parts
from quietus.demands import Demands
from quietus.metrics import Metrics
from quietus.settings import AdminSettings, Settings, address
from quietus.views import Declared

BODY_MAX: Final = 64 * 1024


def build(
    parts: Parts, figures: Figures, tokens: Tokens, settings: AdminSettings, reviews: Reviews | None = None
) -> web.Application:
    """The application over the parts of one sidecar."""

    def declared() -> list[Declared]:
        return [Declared(s.name, s.kind, s.note) for s in parts.active.profile.surfaces]

    app = web.Application(middlewares=[guard], client_max_size=BODY_MAX)
    app[OFFICE] = Office(
        erasures=parts.erasures,
        acts=Acts(parts.erasures, parts.timetable.wake),
        demands=Demands(
            parts.erasures, parts.forgets, lambda: parts.active.profile, parts.timetable.wake
        ),
        ordering=parts.ordering,
        active=parts.active,
        started_at=parts.erasures.clock.now(),
        figures=figures,
        tokens=tokens,
        clock=parts.erasures.clock,
        verdict=parts.verdict,
        estimate=parts.timetable.estimate,
        declared=declared,
        counting_since=lambda: parts.gateway.decided.since,
        client_calls=parts.forgets.client_calls,
        hosts=frozenset({"localhost", address(settings.listen)[0].lower(), *map(str.lower, settings.hosts)}),
        version=running_version(),
        refusals=Budget(REFUSALS_A_MINUTE),
        paces=Paces(),
        described=lambda: described(ROUTES),
        reviews=reviews,
    )
    for route in ROUTES:
        app.router.add_route(route.method, route.pattern, served(route))
    return app


def running_version() -> str:
    """The version that is installed."""
    try:
        return version("quietus")
    except PackageNotFoundError:
        return "0+checkout"


class AdminServer:
    """The admin API on its own port. Its tokens are read, or made, when it is built."""

    def __init__(
        self,
        parts: Parts,
        metrics: Metrics,
        settings: Settings,
        api_server: Callable[[], str] = str,
        figures: Figures | None = None,
    ) -> None:
        """`figures` are those of all processes, where this is not the only one.

        `api_server` tells the address of the cluster's API server, where the settings do not. Raises
        TokenRefused, OSError.
        """
        self._settings = settings.admin
        tokens, self.token = load_tokens(settings)
        figures = figures or OwnFigures(parts, metrics)
        self._reviews = _reviews(parts, metrics, settings, api_server)
        self._app = build(parts, figures, tokens, settings.admin, self._reviews)
        self._runner = web.AppRunner(self._app, access_log=None, handle_signals=False)
        self._rpc = RpcServer(parts.erasures, figures)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._probes_at = settings.health.listen
        probes = health.build_probes(parts.erasures, figures)
        self._probes = web.AppRunner(probes, access_log=None, handle_signals=False)
        self._metrics_at = settings.metrics.listen
        self._metrics = web.AppRunner(health.build_metrics(figures), access_log=None, handle_signals=False)

    async def start(self) -> None:
        """Listens. Raises OSError when the address is taken."""
        host, port = address(self._settings.listen)
        await self._runner.setup()
        await self._rpc.start(self._runner)
        make = self._runner.server
        assert make is not None
        # One port for both: what does not begin like gRPC is HTTP.
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: self._rpc.sharing.around(make), host, port)
        self._port = int(self._server.sockets[0].getsockname()[1])
        if self._metrics_at is not None:
            await self._metrics.setup()
            await web.TCPSite(self._metrics, *address(self._metrics_at)).start()

    async def start_probes(self) -> None:
        """Listens for the kubelet, before the ledger is loaded. Raises OSError."""
        if self._probes_at is not None:
            await self._probes.setup()
            await web.TCPSite(self._probes, *address(self._probes_at)).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, _ = address(self._settings.listen)
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    async def stop(self) -> None:
        """Stops listening and closes what is open."""
        if self._server is not None:
            self._server.close()
        await self._rpc.stop()
        await self._runner.cleanup()
        if self._reviews is not None:
            await self._reviews.close()
        await self._metrics.cleanup()
        await self._probes.cleanup()


def _reviews(
    parts: Parts, metrics: Metrics, settings: Settings, api_server: Callable[[], str]
) -> Reviews | None:
    wanted = settings.admin.reviews
    if wanted is None:
        return None
    api = ApiServer(wanted.server or api_server(), wanted.account, wanted.timeout)
    namespace, clock = wanted.resource_namespace(), parts.erasures.clock
    return Reviews(api, wanted, namespace, settings.store.name, clock, metrics)
