"""A receiver of traces over OTLP, by HTTP: keeps the spans that come, and their bytes."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT = 30.0


@dataclass
class Span:
    """One span as it came."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    state: str
    error: bool
    attributes: dict[str, Any]
    resource: dict[str, Any]


@dataclass
class Receiver:
    """What has come."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    raw: bytes = b""
    status: int = 200
    came: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, holds: Callable[[list[Span]], bool]) -> list[Span]:
        """Waits until what has come is enough."""
        async with asyncio.timeout(WAIT):
            while not holds(self.spans):
                self.came.clear()
                await self.came.wait()
        return self.spans

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip" and body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        self.raw += body
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = {each.key: _value(each.value) for each in group.resource.attributes}
            for scope in group.scope_spans:
                self.spans += [_span(each, resource) for each in scope.spans]
        self.came.set()
        return web.Response(status=self.status, content_type="application/x-protobuf")


def _span(given: Any, resource: dict[str, Any]) -> Span:
    return Span(
        given.name,
        ("", "internal", "server", "client", "producer", "consumer")[given.kind],
        given.trace_id.hex(),
        given.span_id.hex(),
        given.parent_span_id.hex(),
        given.trace_state,
        given.status.code == 2,
        {each.key: _value(each.value) for each in given.attributes},
        resource,
    )


def _value(given: Any) -> Any:
    return getattr(given, given.WhichOneof("value"))


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """One that listens until the block ends."""
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/v1/traces", receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
