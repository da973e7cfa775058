"""The legacy store on a real socket, over gRPC: beside its HTTP server, or alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import grpc
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from quietus.core.exchange import Headers, Reply, Request
from quietus.legacy.forgetting import NoAnswer
from quietus.legacy.grpc_wire import (
    METHODS,
    SERVICE,
    Method,
    Undecodable,
    code_of,
    gathered,
    messages_of,
    request_of,
)
from quietus.legacy.server import RECEIPTS_MAX
from quietus.legacy.store import LegacyStore

MESSAGE_MAX: Final = 64 * 1024 * 1024


@dataclass(slots=True)
class ServedGrpc:
    """A store that is being served. `receipts` are the newest calls, as their methods' names."""

    address: str
    store: LegacyStore
    receipts: deque[str] = field(default_factory=lambda: deque(maxlen=RECEIPTS_MAX))
    server: aio.Server | None = None

    async def close(self) -> None:
        """Stops listening and drops what is open."""
        server, self.server = self.server, None
        if server is not None:
            await server.stop(0)


async def serve_grpc(host: str, port: int, store: LegacyStore) -> ServedGrpc:
    """Serves `store` with health and reflection; port 0 takes a free one. Close what it returns."""
    server = aio.server(options=[
        ("grpc.max_receive_message_length", MESSAGE_MAX),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", 0),
    ])  # fmt: skip
    served = ServedGrpc("", store, server=server)
    server.add_generic_rpc_handlers((_Tool(served),))
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    await checks.set("", health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    bound = server.add_insecure_port(f"{host}:{port}")
    await server.start()
    served.address = f"{host}:{bound}"
    return served


class _Tool(grpc.GenericRpcHandler):
    """Finds a method of the memory tool by its exact name."""

    def __init__(self, served: ServedGrpc) -> None:
        self._served = served

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        service, _, name = details.method.removeprefix("/").partition("/")
        method = METHODS.get(name) if service == SERVICE else None
        if method is None:
            return None
        if method.sends:
            return grpc.stream_unary_rpc_method_handler(partial(_ingest, self._served, name, method))
        if method.streams:
            return grpc.unary_stream_rpc_method_handler(partial(_stream, self._served, name, method))
        return grpc.unary_unary_rpc_method_handler(partial(_one, self._served, name, method))


async def _one(served: ServedGrpc, name: str, method: Method, message: bytes, context: Any) -> bytes:
    reply = await _handled(served, name, method, message, context)
    if served.store.faults.latency and name == "Forget":
        await served.store.clock.sleep(served.store.faults.latency)
    await _or_abort(reply, context)
    return messages_of(method, reply)[0]


async def _stream(served: ServedGrpc, name: str, method: Method, message: bytes, context: Any) -> None:
    reply = await _handled(served, name, method, message, context)
    await _or_abort(reply, context)
    for number, one in enumerate(messages_of(method, reply)):
        if number and served.store.faults.event_gap:
            await served.store.clock.sleep(served.store.faults.event_gap)
        await context.write(one)


async def _ingest(served: ServedGrpc, name: str, method: Method, messages: Any, context: Any) -> bytes:
    replies = []
    async for message in messages:
        reply = await _handled(served, name, method, message, context)
        await _or_abort(reply, context)
        replies.append(reply)
    return gathered(replies)


async def _handled(served: ServedGrpc, name: str, method: Method, message: bytes, context: Any) -> Reply:
    served.receipts.append(name)
    try:
        request = request_of(method, message, _headers(context))
    except Undecodable:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the message cannot be read")
        raise
    return await _answered(served.store, request, context)


async def _answered(store: LegacyStore, request: Request, context: Any) -> Reply:
    try:
        return store.handle(request)
    except NoAnswer:
        await store.clock.sleep(store.faults.hang)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the connection was lost")
        raise


async def _or_abort(reply: Reply, context: Any) -> None:
    code, words = code_of(reply)
    if code != "OK":
        await context.abort(grpc.StatusCode[code], words)


def _headers(context: Any) -> Headers:
    metadata = context.invocation_metadata() or ()
    return tuple((key, value) for key, value in metadata if isinstance(value, str))
