"""Routes that want no token: how it is, and the metrics."""

from __future__ import annotations

from aiohttp import web

from quietus.admin.office import OFFICE

TEXT = "text/plain; version=0.0.4; charset=utf-8"


async def healthz(_request: web.Request) -> web.StreamResponse:
    """The process answers."""
    return web.json_response({"status": "ok"})


async def readyz(request: web.Request) -> web.StreamResponse:
    """Whether calls are decided: not before the ledger is read, nor while the gate is shut for everything."""
    erasures = request.app[OFFICE].erasures
    cause = erasures.closed_cause if erasures.loaded else erasures.closed_cause or "loading"
    if cause is not None:
        return web.json_response({"status": "closed", "cause": cause}, status=503)
    return web.json_response({"status": "ready", "epoch": erasures.gate.epoch})


async def metrics(request: web.Request) -> web.StreamResponse:
    """Prometheus's text format."""
    office = request.app[OFFICE]
    return web.Response(body=office.metrics.render(), headers={"Content-Type": TEXT})


async def version(request: web.Request) -> web.StreamResponse:
    """What runs."""
    return web.json_response({"version": request.app[OFFICE].version, "api": "quietus/v1"})
