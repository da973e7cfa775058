"""Routes that want no token: how it is, and the metrics."""

from __future__ import annotations

from aiohttp import web

from quietus.admin.office import OFFICE
from quietus.assembly import Parts
from quietus.erasures import Erasures
from quietus.metrics import Metrics

TEXT = "text/plain; version=0.0.4; charset=utf-8"


async def healthz(_request: web.Request) -> web.StreamResponse:
    """The process answers."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """Whether calls are decided and forgets can go on.

    Not before the ledger is read, nor while the gate is shut for everything, nor on a full disk.
    """
    return _standing(request.app[OFFICE].erasures)


def _standing(erasures: Erasures) -> web.Response:
    cause = erasures.closed_cause if erasures.loaded else erasures.closed_cause or "loading"
    if cause is not None:
        return web.json_response({"status": "closed", "cause": cause}, status=503)
    if erasures.ledger.full:
        return web.json_response({"status": "full", "cause": "ledger_full"}, status=503)
    return web.json_response({"status": "ready", "epoch": erasures.gate.epoch})


async def metrics(request: web.Request) -> web.StreamResponse:
    """Prometheus's text format."""
    office = request.app[OFFICE]
    return web.Response(body=office.metrics.render(), headers={"Content-Type": TEXT})


async def version(request: web.Request) -> web.StreamResponse:
    """What runs."""
    return web.json_response({"version": request.app[OFFICE].version, "api": "quietus/v1"})


def build_probes(parts: Parts) -> web.Application:
    """The listener for the kubelet: three probes with separate meanings, and nothing else.

    `/startupz` is 200 once the ledger is loaded, `/healthz` while the process answers (never because of the
    store or the ledger), `/readyz` while calls are decided.
    """
    app = web.Application()
    app[OFFICE_PARTS] = parts
    app.router.add_get("/startupz", _startupz)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", _readyz)
    return app


def build_metrics(families: Metrics) -> web.Application:
    """The listener for Prometheus: `/metrics`, and nothing else."""

    async def page(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=families.render(), headers={"Content-Type": TEXT})

    app = web.Application()
    app.router.add_get("/metrics", page)
    return app


OFFICE_PARTS = web.AppKey("parts", Parts)


async def _startupz(request: web.Request) -> web.StreamResponse:
    loaded = request.app[OFFICE_PARTS].erasures.loaded
    return web.json_response({"status": "started" if loaded else "loading"}, status=200 if loaded else 503)


async def _readyz(request: web.Request) -> web.StreamResponse:
    return _standing(request.app[OFFICE_PARTS].erasures)
