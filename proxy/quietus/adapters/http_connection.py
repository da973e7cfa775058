"""One client's connection: requests in, one after the other, answers out in the same order.

After the head of an answer has left, the only thing that can be done about a fault is to drop the
connection: an answer cut short must never look like a whole one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from enum import Enum, auto
from typing import TYPE_CHECKING

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from quietus.adapters import http_wire
from quietus.adapters.deadline import Deadline
from quietus.adapters.departure import Departure
from quietus.adapters.http_answer import write_answer
from quietus.adapters.http_wire import Head, WireFault, malformed, too_large
from quietus.core.exchange import Request

if TYPE_CHECKING:
    from quietus.adapters.http import Answer, HttpListener

READ_AHEAD = 65536
PIPELINE_MAX = 8
LINE_MAX = 8190
HEADERS_MAX = 100
ANONYMOUS = "anonymous"


class BodyFault(Exception):
    """The body ended early, could not be read, or took too long."""


class Phase(Enum):
    """What the connection waits for, and so what a lapse of its deadline means."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    WRITE = auto()
    LINGER = auto()


class Connection(BaseProtocol):
    """The server's end of one connection."""

    __slots__ = ("_arriving", "_deadline", "_deaf", "_departure", "_ended", "_last", "_limits", "_listener",
                 "_messages", "_phase", "_task", "_waiter")  # fmt: skip

    def __init__(self, listener: HttpListener, loop: asyncio.AbstractEventLoop) -> None:
        parser = HttpRequestParser(
            self, loop, READ_AHEAD, max_line_size=LINE_MAX, max_field_size=LINE_MAX, max_headers=HEADERS_MAX,
            payload_exception=BodyFault, auto_decompress=False, max_msg_queue_size=PIPELINE_MAX,
        )  # fmt: skip
        super().__init__(loop, parser)
        self._listener = listener
        self._limits = listener.limits
        self._messages: deque[tuple[RawRequestMessage, StreamReader] | WireFault] = deque()
        self._arriving: StreamReader = EMPTY_PAYLOAD
        self._deadline = Deadline(loop, self._expired)
        self._departure = Departure(self)
        self._phase = Phase.IDLE
        self._waiter: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._deaf = False
        self._ended = False
        self._last = False

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve, or turns away when there are too many."""
        super().connection_made(transport)
        assert self.transport is not None
        # Nothing may wait in the transport unseen: "paused" then means "not all of it has left".
        self.transport.set_write_buffer_limits(high=0)
        if not self._listener.admit(self):
            self._stop_reading(WireFault("overloaded", "Too many connections."))
        self._wait_for(Phase.IDLE, self._limits.header)
        self._task = self._loop.create_task(self._serve())

    def connection_lost(self, exc: BaseException | None) -> None:
        """Whatever is being done for this client is cancelled; what must not be, shields itself."""
        self._listener.forget(self)
        self._deadline.close()
        self._departure.clear()
        self._deaf = True
        super().connection_lost(exc)
        if not self._arriving.is_eof():
            self._arriving.set_exception(BodyFault())
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Parses; whole heads are queued, bodies flow into their streams."""
        if self._deaf or self._parser is None:
            return
        try:
            messages, upgraded, _ = self._parser.feed_data(data)
        except Exception:  # whatever the parser says quotes what was sent: it goes nowhere
            self._stop_reading(malformed("This is not a request of HTTP/1.1."))
            return
        if messages:
            self._messages.extend(messages)
            self._arriving = messages[-1][1]
            if len(self._messages) >= PIPELINE_MAX and not self._buffer_paused:
                self._pause_reading_for_buffer()
            self._wake()
        elif self._waiter is not None and data and self._phase is Phase.IDLE:
            self._wait_for(Phase.HEAD, self._limits.header)
        if upgraded:
            self._deaf = True

    def eof_received(self) -> bool:
        """The client has finished sending; it may still be waiting for its answer."""
        self._ended = True
        if not self._arriving.is_eof():
            self._arriving.set_exception(BodyFault())
        tls = self.transport is not None and self.transport.get_extra_info("sslcontext") is not None
        if tls or self._phase is Phase.LINGER or (self._waiter is not None and not self._messages):
            return False
        self._departure.half_closed()
        return True

    def resume_reading(self, resume_parser: bool = True) -> None:
        """aiohttp's streams call this for every piece that is taken; nearly always nothing is paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    # What the listener asks

    @property
    def busy(self) -> bool:
        """Whether a request is being handled."""
        return self._task is not None and self._waiter is None

    def leave(self) -> asyncio.Task[None] | None:
        """Ends after the request that is being handled; returns what to wait for, if anything."""
        self._last = True
        self._wake()
        return self._task

    def abort(self) -> None:
        """Drops the connection at once, with whatever has not been written."""
        self._deaf = True
        if self.transport is not None:
            self.transport.abort()

    async def drained(self, seconds: float) -> None:
        """Returns when everything written has left. Raises ConnectionError when it does not in time."""
        self._wait_for(Phase.WRITE, seconds)
        await self._drain_helper()
        self._deadline.clear()
        if self.transport is None:
            raise ConnectionError

    # Serving

    async def _serve(self) -> None:
        linger = False
        try:
            while not linger and (message := await self._next()) is not None:
                linger = not await (
                    self._refuse(message) if isinstance(message, WireFault) else self._exchange(*message)
                )
        except asyncio.CancelledError:
            self.abort()
            raise
        except Exception:
            # A fault of ours in the middle of an answer: half an answer must not look whole.
            self.abort()
        finally:
            self._task = None
            self._go(linger)

    async def _next(self) -> tuple[RawRequestMessage, StreamReader] | WireFault | None:
        if not self._messages:
            if self._ended or self._last or self._deaf:
                return None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
            if not self._messages:
                return None
        self._deadline.clear()
        message = self._messages.popleft()
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= PIPELINE_MAX // 2:
            self.data_received(b"")
            if len(self._messages) < PIPELINE_MAX:
                self._resume_reading_for_buffer()
        return message

    async def _exchange(self, message: RawRequestMessage, payload: StreamReader) -> bool:
        """One request and its answer. False: the last one here."""
        listener = self._listener
        head: Head | None = None
        try:
            head = http_wire.read_head(message)
            body = await self._body(head, payload) if payload is not EMPTY_PAYLOAD else b""
        except WireFault as fault:
            return await self._refuse(fault, head, message.method)
        principal = ANONYMOUS if head.authorization is None else listener.principal(head.authorization)
        http_wire.name_request(head, listener.request_id())
        request = Request(message.method, message.path, tuple(head.headers), body)
        if not head.old:
            self._departure.watch(self._ended)
        try:
            answer = await listener.handler.handle(request, principal)
        except Exception:  # it promises not to; if it does, nothing of what it knows may leave
            return await self._refuse(WireFault("internal", "The request failed here."), head, message.method)
        close = head.close or self._last or ((self._deaf or self._ended) and not self._messages)
        return await self._answer(answer, head, message.method, close=close)

    async def _answer(self, answer: Answer, head: Head | None, method: str, *, close: bool) -> bool:
        self._departure.clear()
        whole = await write_answer(self, self._limits, answer, head, method, close)
        self._wait_for(Phase.IDLE, self._limits.idle)
        return whole and not close

    async def _body(self, head: Head, payload: StreamReader) -> bytes:
        limit = self._limits.request_bytes_max
        if head.length > limit:
            raise too_large(limit)
        if payload.is_eof():
            whole = payload.read_nowait()
            if len(whole) > limit:
                raise too_large(limit)
            return whole
        if head.expects_continue and self.transport is not None:
            self.transport.write(http_wire.CONTINUE)
        self._wait_for(Phase.BODY, self._limits.body)
        buffer = bytearray()
        try:
            while not payload.at_eof():
                buffer += await payload.readany()
                if len(buffer) > limit:
                    raise too_large(limit)
        except BodyFault:
            raise malformed("The body could not be read, or did not arrive in time.") from None
        finally:
            self._deadline.clear()
        return bytes(buffer)

    async def _refuse(self, fault: WireFault, head: Head | None = None, method: str = "GET") -> bool:
        self._deaf = True
        answer = self._listener.handler.refuse(fault.problem, fault.detail)
        return await self._answer(answer, head, method, close=True)

    # Ends

    def _stop_reading(self, fault: WireFault) -> None:
        self._deaf = True
        if not self._arriving.is_eof():
            self._arriving.set_exception(BodyFault())
        self._messages.append(fault)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _wait_for(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._deadline.set(seconds)

    def _expired(self) -> None:
        if self._phase is Phase.IDLE:
            self.leave()
        elif self._phase is Phase.HEAD:
            self._stop_reading(malformed("The head of the request did not arrive in time."))
        elif self._phase is Phase.BODY:
            self._deaf = True
            self._arriving.set_exception(BodyFault())
        else:
            self.abort()

    def _go(self, linger: bool) -> None:
        """Closes; lingering first where bytes may still come, which would turn our close into a reset."""
        if self.transport is None or self.transport.is_closing():
            return
        self._deaf = True
        may = linger and not self._ended and self.transport.can_write_eof()
        if may and self._listener.let_linger(self):
            with suppress(OSError):
                self.transport.write_eof()
            self._resume_transport_reading()
            self._wait_for(Phase.LINGER, self._limits.linger)
        else:
            self.transport.close()
