"""The store over gRPC: one message, or a stream of them, sent once and handed back as bytes.

grpcio speaks HTTP/2. Its retries are switched off, the transparent ones too: what may have reached the store
is never sent again. It reports a lost connection as a status like any of the store's own; here the two are
told apart by grpcio's words, and a doubt falls to the side that is safe: a code that grpcio can make itself
never counts as an acknowledgement, or as a refusal, of a forget.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from grpc import aio

from quietus.adapters.grpc_channels import Channels
from quietus.adapters.grpc_channels import GrpcLimits as GrpcLimits
from quietus.adapters.grpc_metadata import UnfitMetadata, headers_of, metadata_of, timeout_in
from quietus.core.exchange import GRPC_STATUS, Headers, Reply, Request
from quietus.ports import Permit, ReplyTooLarge, UpstreamError

CLIENT: Final = "client"
"""The purpose of a permit for what a client asked; everything else is the sidecar's own."""
_UNSENT: Final = re.compile(r"failed to connect|Name resolution|DNS|no (ready )?(subchannel|address)", re.I)
_CUT: Final = re.compile(
    r"(UNKNOWN:|UNAVAILABLE:|INTERNAL:)?\s*(Stream removed|Socket closed|Transport closed|Endpoint|"
    r"Broken pipe|recvmsg|sendmsg|Connection (reset|closed|timed)|GOAWAY|Received RST_STREAM|RST_STREAM|"
    r"keepalive|"
    r"Deadline Exceeded|Cancelled|CANCELLED|Received http2|CLIENT:|Failed parsing|ipv4:|ipv6:|unix:)",
    re.I,
)
_LARGE: Final = re.compile(r"CLIENT:.*larger than max", re.I)
_NO_ANSWER: Final = grpc.StatusCode.DEADLINE_EXCEEDED
_MAKES: Final = frozenset({"CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INTERNAL",
                           "UNAVAILABLE"})  # fmt: skip
"""The codes that grpcio gives by itself."""


class GrpcUpstream:
    """Satisfies `ports.Upstream` for one store at one address, and opens streams to it."""

    def __init__(
        self,
        address: str,
        *,
        limits: GrpcLimits | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        own_headers: Headers = (),
        inject_headers: Headers = (),
    ) -> None:
        """`own_headers` go on what the sidecar itself asks, `inject_headers` on every call; both replace."""
        self._limits = limits or GrpcLimits()
        self._channels = Channels(address, self._limits, credentials)
        self._own = _lowered((*own_headers, *inject_headers))
        self._injected = _lowered(inject_headers)

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> GrpcReply:
        """Sends one message and returns when the whole answer is there. Raises UpstreamError.

        `fresh` asks on a connection of its own (probes).
        """
        metadata = self._metadata(request, permit)
        patience = timeout_in(request.headers)
        patience = self._limits.upstream if patience is None else min(patience, self._limits.upstream)
        if fresh:
            channel = self._channels.alone()
            try:
                await self._channels.ready(channel)
                return await self._asked(channel, request, permit, metadata, patience)
            finally:
                await channel.close(None)
        return await self._asked(await self._channels.standing(), request, permit, metadata, patience)

    async def _asked(
        self, channel: aio.Channel, request: Request, permit: Permit, metadata: Any, patience: float
    ) -> GrpcReply:
        _standing(permit)
        call = self._channels.method(channel, request.target)(
            request.body, metadata=metadata, timeout=patience
        )
        self._channels.carries(channel, call)
        try:
            return GrpcReply(await self._answer(call))
        finally:
            if patience >= self._limits.upstream and call.done() and await call.code() is _NO_ANSWER:
                self._channels.doubt(channel)

    async def converse(self, request: Request, permit: Permit) -> GrpcStream:
        """Begins a call with streams both ways; nothing of `request.body` is sent. Raises UpstreamError."""
        metadata = self._metadata(request, permit)
        channel = await self._channels.standing()
        _standing(permit)
        begin: Any = channel.stream_stream(request.target)
        call = begin(metadata=metadata, timeout=timeout_in(request.headers))
        self._channels.carries(channel, call)
        return GrpcStream(call)

    def renew(self, credentials: grpc.ChannelCredentials) -> None:
        """Makes every new connection with these; one that stands is closed when its calls have ended."""
        self._channels.renew(credentials)

    async def close(self) -> None:
        """Closes the connection, and whatever is under way on it."""
        await self._channels.close()

    async def _answer(self, call: Any) -> Reply:
        try:
            body = await call
            initial, trailing = await call.initial_metadata(), await call.trailing_metadata()
        except aio.AioRpcError as error:
            return _failed(error.code(), error.details(), error.initial_metadata(), error.trailing_metadata())
        return _reply("OK", await call.details(), initial, trailing, body)

    def _metadata(self, request: Request, permit: Permit) -> Any:
        ours = self._injected if permit.purpose == CLIENT else self._own
        headers = request.headers
        if ours:
            named = {name for name, _ in ours}
            headers = (*(pair for pair in headers if pair[0].lower() not in named), *ours)
        try:
            return metadata_of(headers)
        except UnfitMetadata as error:
            raise UpstreamError(str(error), sent=False) from None


class GrpcReply:
    """An answer that is there in full. Satisfies `ports.OpenReply`."""

    __slots__ = ("_reply", "headers", "status")

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.status = reply.status
        self.headers = reply.headers

    async def read(self, limit: int) -> Reply:
        """The answer. Raises ReplyTooLarge."""
        if len(self._reply.body) > limit:
            raise ReplyTooLarge(f"the store's answer is larger than {limit} bytes", sent=True)
        return self._reply

    async def chunks(self) -> AsyncIterator[bytes]:
        """The message, in one piece."""
        yield self._reply.body

    def abort(self) -> None:
        """It is here already."""


class GrpcStream:
    """A call with streams of messages both ways. Satisfies `conversation_ports.OpenStream`."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def head(self) -> Headers:
        """The store's initial metadata, when it is there."""
        try:
            return headers_of(await self._call.initial_metadata())
        except UnfitMetadata as error:
            raise UpstreamError(str(error), sent=True) from None

    async def send(self, message: bytes) -> bool:
        """Sends one message; returns when there is room for another. False: the call has ended."""
        call = self._call
        with contextlib.suppress(aio.AioRpcError):
            await call.wait_for_connection()
        if call.done():
            return False
        try:
            # Not `call.write`: where the call ends while it writes, that one reports INTERNAL in place of the
            # status that the server gave.
            await call._cython_call.send_serialized_message(message)
            return True
        except aio.InternalError:
            return False

    async def finish_sending(self) -> None:
        """Says that no more messages come."""
        try:
            await self._call.done_writing()
        except aio.InternalError:
            return  # the call has ended

    async def messages(self) -> AsyncIterator[bytes]:
        """The store's messages, one by one, each read only when it is asked for."""
        while True:
            try:
                message = await self._call.read()
            except aio.AioRpcError:
                return  # how it ended is told by `end`
            if message is aio.EOF:
                return
            yield message

    async def end(self) -> Reply:
        """How the call ended: a reply without a body. Raises UpstreamError where the store did not say."""
        code, details = await self._call.code(), await self._call.details()
        trailing = await self._call.trailing_metadata()
        if code is grpc.StatusCode.OK:
            return _reply("OK", details, (), trailing, b"")
        return _failed(code, details, (), trailing)

    def abort(self) -> None:
        """Cancels the call."""
        self._call.cancel()


def _standing(permit: Permit) -> None:
    """A connection had to be waited for, or the process stood still: is it still admitted?"""
    if not permit.holds:
        raise UpstreamError("this replica may not speak for the gate at the moment", sent=False)


def _reply(code: str, details: str | None, initial: Any, trailing: Any, body: bytes) -> Reply:
    try:
        return Reply(
            GRPC_STATUS[code], headers_of(initial), body, details or "", code, headers_of(trailing)
        )
    except UnfitMetadata as error:
        raise UpstreamError(str(error), sent=True) from None


def _failed(code: grpc.StatusCode, details: str | None, initial: Any, trailing: Any) -> Reply:
    """The store's own status. Raises UpstreamError where it is grpcio's."""
    name, words = code.name, details or ""
    if name in _MAKES and not trailing:
        if name == "RESOURCE_EXHAUSTED" and _LARGE.search(words):
            raise ReplyTooLarge("the store's answer is larger than the limit", sent=True)
        if name == "UNAVAILABLE" and _UNSENT.match(words):
            raise UpstreamError("the store cannot be reached", sent=False)
        if _CUT.match(words):
            raise UpstreamError("the store gave no whole answer", sent=True)
    return _reply(name, words, initial, trailing, b"")


def _lowered(headers: Headers) -> Headers:
    return tuple((name.lower(), value) for name, value in headers)
