"""The listening side of gRPC: a wire, and nothing that decides.

Any method of any service is taken, its messages as bytes. grpcio reads the connection: framing, compression,
flow control, the limits of messages and metadata. A method that the profile knows to take one message and
give one goes the way that a request of HTTP goes; every other call is a conversation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import grpc
from grpc import aio

from quietus.adapters.grpc_metadata import UnfitMetadata, headers_of, metadata_of, timeout_header
from quietus.adapters.grpc_status import code_of, refusal_trailers, sentence_of, split
from quietus.adapters.http import ListenerRefused
from quietus.answers import Answer
from quietus.conversation_ports import Client
from quietus.core.exchange import Headers, Request, Wire, header

METHOD: Final = re.compile(r"/[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*/[A-Za-z_]\w*", re.ASCII)
"""A method's full name. Whoever compares prefixes of anything else can be led astray."""
METHODS_MAX: Final = 1024
SMALL: Final = 65536
"""Bytes of an answer that fit into a connection's first window: they have left when they are handed over."""


@dataclass(frozen=True, slots=True)
class GrpcListenerLimits:
    """How much, and how many at a time."""

    request_bytes_max: int = 4 * 1024 * 1024
    """Of one message, unpacked."""
    metadata_bytes_max: int = 16 * 1024
    calls_max: int = 4096
    streams_max: int = 1024
    """Of one connection, at a time."""
    connections_max: int = 1024


class Handler(Protocol):
    """Whoever decides: the gateway."""

    async def handle(self, request: Request, principal: str) -> Answer:
        """The answer to one message. Raises nothing; is cancelled when the client goes away."""

    def refuse(self, name: str, detail: str = "", wire: Wire = "http") -> Answer:
        """A refusal of the wire's own."""


class Talker(Protocol):
    """Whoever decides about streams, message by message."""

    async def hold(self, request: Request, principal: str, client: Client) -> Answer:
        """A whole call; what comes back says how it ended, and has no body."""


class GrpcListener:
    """Listens, and hands each call on."""

    def __init__(
        self,
        handler: Handler,
        talker: Talker,
        principal: Callable[[str], str],
        single: Callable[[str], bool],
        refusal_code: Callable[[], str | None],
        *,
        limits: GrpcListenerLimits | None = None,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """`single` says of a method that it takes one message and gives one.

        `principal` makes a keyed digest of the authorization metadata. `refusal_code` is the code that the
        profile wants for refusals, or None.
        """
        self._handler = handler
        self._talker = talker
        self._principal = principal
        self._single = single
        self._refusal_code = refusal_code
        self._limits = limits or GrpcListenerLimits()
        self._credentials = credentials
        self._server: aio.Server | None = None
        self._methods = _Methods(self)
        self._kinds: dict[tuple[str, bool], grpc.RpcMethodHandler[bytes, bytes]] = {}
        self.port = 0
        """Where it listens, once started."""

    async def start(self, address: str, *, reuse_port: bool = False) -> None:
        """Begins to listen on HOST:PORT (port 0 takes a free one) or `unix:PATH`. Raises ListenerRefused."""
        server = aio.server(
            options=[
                ("grpc.max_receive_message_length", self._limits.request_bytes_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_metadata_size", self._limits.metadata_bytes_max),
                ("grpc.absolute_max_metadata_size", self._limits.metadata_bytes_max),
                ("grpc.max_concurrent_streams", self._limits.streams_max),
                ("grpc.max_allowed_incoming_connections", self._limits.connections_max),
                # Beyond a thousand that wait grpcio drops some at random, those of other connections too.
                ("grpc.server.max_pending_requests", self._limits.calls_max),
                ("grpc.server.max_pending_requests_hard_limit", self._limits.calls_max),
                # Without this a second process listens on the same port without a word.
                ("grpc.so_reuseport", int(reuse_port)),
            ],
            maximum_concurrent_rpcs=self._limits.calls_max,
        )
        server.add_generic_rpc_handlers((self._methods,))
        try:
            if self._credentials is None:
                self.port = server.add_insecure_port(address)
            else:
                self.port = server.add_secure_port(address, self._credentials)
        except RuntimeError:
            raise ListenerRefused(
                f"cannot listen on {address}: choose another address under store.grpc.listen"
            ) from None
        await server.start()
        self._server = server

    async def close(self, drain: float = 10.0) -> None:
        """Takes no more, lets what is being handled finish for so many seconds, drops the rest."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(drain)

    # --- one call ------------------------------------------------------------------------------

    def kind(self, method: str) -> grpc.RpcMethodHandler[bytes, bytes]:
        """How a method is taken."""
        single = self._single(method)
        known = self._kinds.get((method, single))
        if known is None:
            if len(self._kinds) >= METHODS_MAX:
                self._kinds.clear()
            known = self._kinds[method, single] = self._made(method, single)
        return known

    def _made(self, method: str, single: bool) -> grpc.RpcMethodHandler[bytes, bytes]:
        make: Any = grpc.stream_stream_rpc_method_handler
        does: Any = partial(self._many, method)
        if METHOD.fullmatch(method) is None:
            does = self._nowhere
        elif single:
            make, does = grpc.unary_unary_rpc_method_handler, partial(self._one, method)
        made: grpc.RpcMethodHandler[bytes, bytes] = make(does)
        return made

    async def _nowhere(self, _messages: Any, context: Any) -> None:
        refused = self._handler.refuse("malformed-request", "the path is not /package.Service/Method", "grpc")
        assert refused.refused is not None
        refused.refused.code = "UNIMPLEMENTED"
        await self._tell(context, refused)

    async def _one(self, method: str, message: bytes, context: Any) -> bytes:
        request = await self._request(method, message, context)
        answer = await self._handler.handle(request, self._principal_of(request))
        return await self._tell(context, answer)

    async def _many(self, method: str, _messages: Any, context: Any) -> None:
        request = await self._request(method, b"", context)
        client = _Caller(context)
        answer = await self._talker.hold(request, self._principal_of(request), client)
        await self._tell(context, answer, begun=client.begun)

    async def _request(self, method: str, message: bytes, context: Any) -> Request:
        try:
            headers = headers_of(context.invocation_metadata())
        except UnfitMetadata as error:
            await self._tell(context, self._handler.refuse("malformed-request", str(error), "grpc"))
            raise AssertionError("a refusal ends the call") from None
        return Request("POST", method, (*headers, *timeout_header(context.time_remaining())), message, "grpc")

    def _principal_of(self, request: Request) -> str:
        credential = header(request.headers, "authorization")
        return "anonymous" if credential is None else self._principal(credential)

    async def _tell(self, context: Any, answer: Answer, *, begun: bool = False) -> bytes:
        """Gives an answer back. A status that is not OK ends the call by an exception of grpcio's."""
        context.add_done_callback(lambda _: answer.done())
        if answer.refused is not None:
            code = code_of(answer.refused, self._refusal_code())
            await context.abort(code, sentence_of(answer.refused), refusal_trailers(answer, code))
        theirs, ours = split(answer.headers)
        trailing = metadata_of((*answer.trailers, *ours))
        if theirs and not begun:
            await context.send_initial_metadata(metadata_of(theirs))
        if answer.overtaken.is_set():
            # A fence has fallen into its scope since it was let go: what is not written must not be.
            overtaken = self._handler.refuse("erasure-not-settled", "", "grpc")
            assert overtaken.refused is not None
            code = code_of(overtaken.refused, self._refusal_code())
            await context.abort(code, sentence_of(overtaken.refused), refusal_trailers(overtaken, code))
        if answer.code not in (None, "OK"):
            await context.abort(grpc.StatusCode[answer.code or "UNKNOWN"], answer.reason, trailing)
        if trailing:
            context.set_trailing_metadata(trailing)
        if answer.reason:
            context.set_details(answer.reason)
        body = answer.body if isinstance(answer.body, bytes) else b""
        if len(body) > SMALL:
            watch = asyncio.get_running_loop().create_task(_land_when(answer))
            context.add_done_callback(lambda _: watch.cancel())
        return body


class _Methods(grpc.GenericRpcHandler):
    """Finds, or makes, the handler of a method."""

    def __init__(self, listener: GrpcListener) -> None:
        self._listener = listener

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        return self._listener.kind(details.method)


class _Caller:
    """The client of a conversation."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self.begun = False

    async def messages(self) -> AsyncIterator[bytes]:
        """What the client sends, each message read only when it is asked for."""
        while True:
            message = await self._context.read()
            if message is aio.EOF:
                return
            yield message

    async def begin(self, headers: Headers) -> None:
        """Sends the head of the answer."""
        self.begun = True
        await self._context.send_initial_metadata(metadata_of(headers))

    async def write(self, message: bytes) -> None:
        """Sends one message; returns when the connection has taken it."""
        await self._context.write(message)


async def _land_when(answer: Answer) -> None:
    """A client that does not read its answer must not hold up a forget for ever."""
    await answer.overtaken.wait()
    answer.done()
