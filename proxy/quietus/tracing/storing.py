"""Spans around requests to the store: clients', and the sidecar's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from quietus.conversation_ports import OpenStream, Streams
from quietus.core.exchange import Headers, Reply, Request, Wire
from quietus.ports import OpenReply, Permit, Upstream, UpstreamError

MEMORY: Final = {
    "recall": "search_memory", "read": "search_memory", "write": "upsert_memory", "forget": "delete_memory",
}  # fmt: skip
"""Our operations by the names that the GenAI conventions have for those on memories."""
OURS: Final = {"remedy": "forget", "forget": "forget"}
"""What the sidecar's own requests do, by the purpose of their permit. A probe reads, or writes a canary."""
CLIENT: Final = "client"
operation: ContextVar[str] = ContextVar("quietus_operation", default="")
"""What the call under way is; empty until it is known."""


class Storing:
    """Satisfies `Upstream` and `Streams`."""

    def __init__(self, tracer: trace.Tracer, store: str, upstream: Upstream, streams: Streams) -> None:
        self._tracer = tracer
        self._store = store
        self._upstream = upstream
        self._streams = streams

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        """Sends the request once. Raises UpstreamError."""
        span = self._span(request, permit)
        try:
            reply = await self._upstream.open(request, permit, fresh=fresh)
        except BaseException as error:
            ended(span, _cause(error))
            raise
        return _Reply(span, request.wire, reply)

    async def converse(self, request: Request, permit: Permit) -> OpenStream:
        """Begins a call of many messages. Raises UpstreamError."""
        span = self._span(request, permit)
        try:
            stream = await self._streams.converse(request, permit)
        except BaseException as error:
            ended(span, _cause(error))
            raise
        return _Stream(span, stream)

    async def close(self) -> None:
        """Closes what is open to the store."""
        await self._upstream.close()

    def _span(self, request: Request, permit: Permit) -> trace.Span:
        purpose = str(permit.purpose)
        memory = MEMORY.get(operation.get() if purpose == CLIENT else OURS.get(purpose, ""))
        attributes = {"quietus.purpose": purpose, "quietus.wire": request.wire}
        if memory is not None:
            attributes |= {"gen_ai.operation.name": memory, "gen_ai.memory.store.id": self._store}
        return self._tracer.start_span(memory or purpose, kind=SpanKind.CLIENT, attributes=attributes)


class _Reply:
    """An answer of the store; its span ends when it is read, or dropped. Satisfies `OpenReply`."""

    def __init__(self, span: trace.Span, wire: Wire, reply: OpenReply) -> None:
        self._span = span
        self._reply = reply
        if wire == "http":
            span.set_attribute("http.response.status_code", reply.status)
        self._failed = str(reply.status) if reply.status >= 500 else ""

    @property
    def status(self) -> int:
        """The status code."""
        return self._reply.status

    @property
    def headers(self) -> Headers:
        """The headers as they came."""
        return self._reply.headers

    async def read(self, limit: int) -> Reply:
        """The whole answer."""
        try:
            reply = await self._reply.read(limit)
        except BaseException as error:
            ended(self._span, _cause(error))
            raise
        if reply.code not in (None, "OK"):
            self._failed = str(reply.code)
        ended(self._span, self._failed)
        return reply

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive."""
        failed = "cancelled"
        try:
            async for piece in self._reply.chunks():
                yield piece
            failed = self._failed
        except UpstreamError as error:
            failed = _cause(error)
            raise
        finally:
            ended(self._span, failed)

    def abort(self) -> None:
        """Drops the connection at once."""
        self._reply.abort()
        ended(self._span, self._failed)


class _Stream:
    """A call of many messages to the store. Satisfies `OpenStream`."""

    def __init__(self, span: trace.Span, stream: OpenStream) -> None:
        self._span = span
        self._stream = stream
        self.head = stream.head
        self.send = stream.send
        self.finish_sending = stream.finish_sending
        self.messages = stream.messages

    async def end(self) -> Reply:
        """How the call ended."""
        try:
            reply = await self._stream.end()
        except BaseException as error:
            ended(self._span, _cause(error))
            raise
        ended(self._span, "" if reply.code in (None, "OK") else str(reply.code))
        return reply

    def abort(self) -> None:
        """Cancels the call."""
        self._stream.abort()
        ended(self._span, "cancelled")


def _cause(error: BaseException) -> str:
    """The kind of a failure, without its words: they may quote what was sent."""
    return type(error).__name__


def ended(span: trace.Span, failed: str) -> None:
    """Ends a span, once."""
    if not span.is_recording():
        return
    if failed:
        span.set_attribute("error.type", failed)
        span.set_status(StatusCode.ERROR)
    span.end()
