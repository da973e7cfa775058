"""The legacy store on a real socket.

What a synchronous store cannot do happens here: the delay before a forget is acknowledged, the
pause between two events of a stream, and the answer that never comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from quietus.core.exchange import Reply, Request
from quietus.legacy.forgetting import NoAnswer
from quietus.legacy.store import LegacyStore
from quietus.legacy.wire import BODY_MAX

RECEIPTS_MAX: Final = 10_000
CONTROLS: Final[dict[str, Callable[[LegacyStore], object]]] = {
    "/_legacy/restart": LegacyStore.restart,
    "/_legacy/tick": LegacyStore.tick,
}


@dataclass(slots=True)
class Served:
    """A store that is being served. `receipts` are the newest requests, as "METHOD target"."""

    url: str
    store: LegacyStore
    controls: bool = False
    receipts: deque[str] = field(default_factory=lambda: deque(maxlen=RECEIPTS_MAX))
    runner: web.ServerRunner | None = None

    async def close(self) -> None:
        """Stops listening and drops what is open."""
        if self.runner is not None:
            await self.runner.cleanup()
            self.runner = None


async def serve(host: str, port: int, store: LegacyStore, *, controls: bool = False) -> Served:
    """Serves `store`; port 0 takes a free one. Close what it returns.

    With `controls`, POST /_legacy/restart and POST /_legacy/tick do what the store's methods do.
    """
    served = Served("", store, controls)

    async def answer(incoming: web.BaseRequest) -> web.StreamResponse:
        return await _answer(served, incoming)

    # The store sees the bytes that came: no decompression, no second look at the path.
    server = web.Server(answer, auto_decompress=False, access_log=None)
    runner = web.ServerRunner(server, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    bound = runner.addresses[0]
    name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    served.url = f"http://{name}:{bound[1]}"
    served.runner = runner
    return served


@asynccontextmanager
async def serving(
    store: LegacyStore, host: str = "127.0.0.1", port: int = 0, *, controls: bool = False
) -> AsyncIterator[Served]:
    """`serve` as a context."""
    served = await serve(host, port, store, controls=controls)
    try:
        yield served
    finally:
        await served.close()


async def _answer(served: Served, incoming: web.BaseRequest) -> web.StreamResponse:
    store = served.store
    served.receipts.append(f"{incoming.method} {incoming.raw_path}")
    request = Request(
        incoming.method,
        incoming.raw_path,
        tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in incoming.raw_headers),
        await _body(incoming),
    )
    if served.controls and request.method == "POST" and request.path in CONTROLS:
        CONTROLS[request.path](store)
        return web.Response(status=204)
    try:
        reply = store.handle(request)
    except NoAnswer:
        await store.clock.sleep(store.faults.hang)
        return _hang_up(incoming)
    if store.faults.latency and request.path == "/v1/forget":
        await store.clock.sleep(store.faults.latency)
    if store.faults.event_gap and ("Content-Type", "text/event-stream") in reply.headers:
        return await _stream(store, incoming, reply)
    return _whole(reply)


async def _body(incoming: web.BaseRequest) -> bytes:
    """The body, one byte past the limit at most; the store says what is too long."""
    body = bytearray()
    while len(body) <= BODY_MAX and (chunk := await incoming.content.readany()):
        body += chunk
    return bytes(body)


def _whole(reply: Reply) -> web.Response:
    response = web.Response(status=reply.status, body=reply.body)
    for name, value in reply.headers:
        response.headers[name] = value
    return response


def _hang_up(incoming: web.BaseRequest) -> web.Response:
    """Drops the connection: whoever waits learns that there is no answer, and nothing else."""
    if incoming.transport is not None:
        incoming.transport.abort()
    return web.Response(status=500)


async def _stream(store: LegacyStore, incoming: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status)
    for name, value in reply.headers:
        if name != "Content-Length":
            response.headers[name] = value
    await response.prepare(incoming)
    parts = [reply.body] if store.faults.gzip else reply.body.split(b"\n\n")
    for number, part in enumerate(parts):
        if not part:
            continue
        if number:
            await store.clock.sleep(store.faults.event_gap)
        await response.write(part if store.faults.gzip else part + b"\n\n")
    await response.write_eof()
    return response
