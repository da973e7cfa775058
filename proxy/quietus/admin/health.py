"""Routes that want no token: how it is, and the metrics."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from aiohttp import web
from typing_extensions import TypedDict

from quietus.admin.figures import Figures
from quietus.admin.office import OFFICE
from quietus.admin.route import Answer, Exposition, Route, Unready, served
from quietus.erasures import Erasures
from quietus.shown import shown


@shown
class Healthy(TypedDict):
    """The process answers."""

    status: Literal["ok"]


@shown
class Ready(TypedDict):
    """Calls are decided."""

    status: Literal["ready"]
    epoch: int
    """The gate epoch."""


@shown
class NotReady(TypedDict):
    """Calls are not decided, or forgets cannot go on."""

    status: Literal["closed", "full"]
    cause: str


@shown
class Started(TypedDict):
    """Whether the ledger is loaded."""

    status: Literal["started", "loading"]


@shown
class VersionView(TypedDict):
    """What runs."""

    version: str
    api: Literal["quietus/v1"]


async def healthz(_request: web.Request) -> Healthy:
    """The process answers."""
    return {"status": "ok"}


async def readyz(request: web.Request) -> Answer[Ready] | Unready[NotReady]:
    """Whether calls are decided and forgets can go on.

    Not before the ledger is read, nor while the gate is shut for everything, nor on a full disk.
    """
    office = request.app[OFFICE]
    return _standing(office.erasures, office.figures)


def why_unready(erasures: Erasures, figures: Figures) -> str | None:
    """Why no call is decided: a cause of `quietus_gate_closed`, or `workers`; None while they are."""
    cause = erasures.closed_cause if erasures.loaded else erasures.closed_cause or "loading"
    return cause or figures.unready


def _standing(erasures: Erasures, figures: Figures) -> Answer[Ready] | Unready[NotReady]:
    cause = why_unready(erasures, figures)
    shut: NotReady
    if cause is not None:
        shut = {"status": "closed", "cause": cause}
        return Unready(shut)
    if erasures.ledger.full:
        shut = {"status": "full", "cause": "ledger_full"}
        return Unready(shut)
    return Answer({"status": "ready", "epoch": erasures.gate.epoch})


async def metrics(request: web.Request) -> Exposition:
    """Prometheus's text format."""
    return Exposition((await request.app[OFFICE].figures.metrics()).decode())


async def version(request: web.Request) -> VersionView:
    """What runs."""
    return {"version": request.app[OFFICE].version, "api": "quietus/v1"}


async def document(request: web.Request) -> dict[str, Any]:
    """This document."""
    # Half a second of work, once: calls to the store go on meanwhile.
    return await asyncio.to_thread(request.app[OFFICE].described)


def build_probes(erasures: Erasures, figures: Figures) -> web.Application:
    """The listener for the kubelet: three probes with separate meanings, and nothing else.

    `/startupz` is 200 once the ledger is loaded, `/healthz` while the process answers (never because of the
    store or the ledger), `/readyz` while calls are decided.
    """
    app = web.Application()
    app[ERASURES], app[FIGURES] = erasures, figures
    for path, handler in (("/startupz", _startupz), ("/healthz", healthz), ("/readyz", _readyz)):
        app.router.add_get(path, served(Route("GET", path, handler)))
    return app


def build_metrics(figures: Figures) -> web.Application:
    """The listener for Prometheus: `/metrics`, and nothing else."""

    async def page(_request: web.Request) -> Exposition:
        return Exposition((await figures.metrics()).decode())

    app = web.Application()
    app.router.add_get("/metrics", served(Route("GET", "/metrics", page)))
    return app


ERASURES = web.AppKey("erasures", Erasures)
FIGURES: web.AppKey[Figures] = web.AppKey("figures")


async def _startupz(request: web.Request) -> Answer[Started] | Unready[Started]:
    if request.app[ERASURES].loaded:
        return Answer({"status": "started"})
    return Unready({"status": "loading"})


async def _readyz(request: web.Request) -> Answer[Ready] | Unready[NotReady]:
    return _standing(request.app[ERASURES], request.app[FIGURES])
