"""The admin API: its routes, put together over what it works with. It runs on a port of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from aiohttp import web

from quietus.acts import Acts
from quietus.admin import acting, health, openapi, reading
from quietus.admin.census import Census
from quietus.admin.guard import REFUSALS_A_MINUTE, Budget, Handler, guard
from quietus.admin.office import OFFICE, Office
from quietus.admin.tokens import Tokens
from quietus.core.erasure import Erasure
from quietus.core.verdict import Verdict
from quietus.erasures import Erasures
from quietus.metrics import Metrics
from quietus.settings import AdminSettings, address
from quietus.views import Declared

BODY_MAX: Final = 64 * 1024
_ID: Final = r"{id:[A-Za-z0-9_-]{1,64}}"

ROUTES: Final[tuple[tuple[str, str, Handler], ...]] = (
    ("GET", "/v1/erasures", reading.list_erasures),
    ("GET", f"/v1/erasures/{_ID}", reading.show_erasure),
    ("GET", f"/v1/erasures/{_ID}/events", reading.list_events),
    ("POST", f"/v1/erasures/{_ID}:{{act:verify|retry|release|escalate}}", acting.act),
    ("POST", "/v1/subjects:readmit", acting.readmit),
    ("POST", "/v1/signals", acting.signal),
    ("GET", "/v1/unmapped", reading.unmapped),
    ("GET", "/v1/audit", reading.audit),
    ("GET", "/healthz", health.healthz),
    ("GET", "/readyz", health.readyz),
    ("GET", "/metrics", health.metrics),
    ("GET", "/version", health.version),
    ("GET", "/openapi.json", openapi.document),
)


def build(
    *,
    erasures: Erasures,
    wake: Callable[[str], object],
    verdict: Callable[[Erasure], Verdict],
    declared: Callable[[], Iterable[Declared]],
    unmapped: Callable[[], list[dict[str, Any]]],
    backlog: Callable[[], int],
    metrics: Metrics,
    tokens: Tokens,
    settings: AdminSettings,
) -> web.Application:
    """The application. `declared` are the profile's surfaces, `unmapped` the gateway's shapes of requests."""
    app = web.Application(middlewares=[guard], client_max_size=BODY_MAX)
    app[OFFICE] = Office(
        erasures=erasures,
        acts=Acts(erasures, wake),
        metrics=metrics,
        tokens=tokens,
        census=Census(erasures, verdict),
        clock=erasures.clock,
        verdict=verdict,
        declared=declared,
        unmapped=unmapped,
        backlog=backlog,
        hosts=frozenset({"localhost", address(settings.listen)[0].lower(), *map(str.lower, settings.hosts)}),
        version=running_version(),
        refusals=Budget(REFUSALS_A_MINUTE),
    )
    for method, path, handler in ROUTES:
        app.router.add_route(method, path, handler)
    return app


def running_version() -> str:
    """The version that is installed."""
    try:
        return version("quietus")
    except PackageNotFoundError:
        return "0+checkout"
