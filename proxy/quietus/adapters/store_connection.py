"""One connection to the store.

The parser is llhttp in its strict mode, through httptools: aiohttp's own client reads answers
leniently (folded lines, bare line feeds, a space before the colon). An answer that ends only with its
connection is refused here, since a cut would look like its end.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable
from typing import Final, cast

import httptools

from quietus.adapters.deadline import Deadline
from quietus.adapters.http_reply import HttpReply
from quietus.adapters.http_wire import BODILESS_STATUSES
from quietus.adapters.reply_head import Unfit, name_of, read_special
from quietus.ports import UpstreamError

HEAD_BYTES_MAX: Final = 65536
HEADERS_MAX: Final = 200
INTERIM_MAX: Final = 8
_NOT_HTTP: Final = "the store's answer is not HTTP/1.1"


class StoreConnection(asyncio.Protocol):
    """A connection that carries one exchange at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        released: Callable[[StoreConnection, bool], None],
        patience: float,
    ) -> None:
        """`released` is called once an exchange, with whether the connection may carry another one."""
        self.loop = loop
        self.idle_since = 0.0
        self.alive = True
        self.fresh = False
        self.tls: ssl.SSLContext | None = None
        """What it was made with: certificates may have been renewed since."""
        self._released = released
        self._patience = patience
        self._transport: asyncio.Transport | None = None
        self._poll = select.poll()
        self._deadline = Deadline(loop, self._expired)
        self._parser = httptools.HttpResponseParser(self)
        self._reply: HttpReply | None = None
        self._ready: asyncio.Future[None] | None = None
        self._paused = False
        self._bodiless = False
        self._heading = False
        self._complete = False
        self._surplus = False
        self._keep = False
        self._chunked = False
        self._head_bytes = 0
        self._interim = 0
        self._kept: list[tuple[str, str]] = []
        self._special: list[tuple[str, str]] = []
        self._reason = b""

    # The pool's side

    def quiet(self) -> bool:
        """Whether it may be used again: open, and nothing has come in since the last answer."""
        assert self._transport is not None
        return self.alive and not self._transport.is_closing() and not self._poll.poll(0)

    async def send(self, data: bytes, *, bodiless: bool) -> HttpReply:
        """Sends the bytes, once; returns when the head of the answer is there. Raises UpstreamError."""
        assert self._transport is not None and self._reply is None
        self._bodiless = bodiless
        self._heading = True
        self._complete = self._surplus = self._keep = False
        self._head_bytes = self._interim = 0
        self._kept, self._special = [], []
        self._reason = b""
        self._reply = reply = HttpReply(self)
        self._ready = ready = self.loop.create_future()
        self._deadline.set(self._patience)
        self._transport.write(data)
        try:
            await ready
            return reply
        except asyncio.CancelledError:
            # Its answer may have come in the same breath, and the connection be another's by now.
            if self._reply is reply:
                self.fail(UpstreamError("the request was given up", sent=True))
            raise
        finally:
            if self._ready is ready:
                self._ready = None

    def close(self) -> None:
        """Closes it, idle or not."""
        self.alive = False
        self._deadline.close()
        if self._transport is not None:
            self._transport.abort()

    # The reply's side

    def fail(self, error: UpstreamError) -> None:
        """Ends the exchange and the connection."""
        reply, self._reply = self._reply, None
        self.close()
        if reply is None:
            return
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error)
        reply.finish(error)
        self._released(self, False)

    def pause(self) -> None:
        """Takes in no more for now."""
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Takes in more."""
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def expect_more(self) -> None:
        """A stream may go on for long; each piece has its own limit."""
        self._deadline.set(self._patience)

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)
        descriptor = transport.get_extra_info("socket")
        if descriptor is not None:
            self._poll.register(descriptor.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)

    def data_received(self, data: bytes) -> None:
        """Parses. Whatever comes between two exchanges ends the connection."""
        if self._reply is None:
            self.close()
            return
        if self._heading:
            if not self._head_bytes and data[:7] != b"HTTP/1."[: len(data)]:
                self.fail(UpstreamError(_NOT_HTTP, sent=True))
                return
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete or self._bodiless:
                # The parser quotes what the store sent; only our own words go on.
                why = error.__context__
                words = str(why) if isinstance(why, Unfit) else _NOT_HTTP
                self.fail(UpstreamError(words, sent=True))
                return
            self._surplus = True
        if self._complete:
            self._end()
        elif self._heading and self._head_bytes > HEAD_BYTES_MAX:
            self.fail(UpstreamError("the head of the store's answer is too large", sent=True))

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends whatever was going on."""
        self.fail(UpstreamError("the store closed the connection before its answer was whole", sent=True))

    def _expired(self) -> None:
        self.fail(UpstreamError("the store did not answer in time", sent=True))

    # What the parser tells

    def on_message_begin(self) -> None:
        """Another answer behind the one that was asked for is none."""
        if self._complete:
            self._surplus = True

    def on_status(self, reason: bytes) -> None:
        """A piece of the reason phrase."""
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; those after a body are not handed on."""
        if not self._heading:
            return
        shown, special = name_of(name)
        text = value.decode("latin-1")
        if text[-1:] in " \t":  # llhttp takes the space before a value away, not the one behind it
            text = text.rstrip(" \t")
        if special is None:
            self._kept.append((shown, text))
        else:
            self._special.append((special, text))
            if special == "content-length":
                self._kept.append((shown, text))

    def on_headers_complete(self) -> None:
        """Judges the head."""
        reply = self._reply
        if reply is None or self._complete:
            return
        parser = self._parser
        status = parser.get_status_code()
        if not 100 <= status <= 599 or status == 101:
            raise Unfit("the store's answer has a status that was not asked for")
        if parser.get_http_version() not in ("1.1", "1.0"):
            raise Unfit(_NOT_HTTP)
        length, self._chunked, listed = read_special(self._special, self._reason)
        if status < 200:
            self._interim += 1
            if self._interim > INTERIM_MAX or self._chunked or length is not None:
                raise Unfit("the store only says that it will answer, too often or at too great length")
            self._kept, self._special, self._reason = [], [], b""
            return
        if len(self._kept) > HEADERS_MAX:
            raise Unfit("the store's answer has too many headers")
        kept = self._kept
        self._heading = False
        reply.status = status
        reply.size = length
        reply.headers = tuple([pair for pair in kept if pair[0].lower() not in listed] if listed else kept)
        reply.reason = self._reason.decode("latin-1")
        if self._bodiless or status in BODILESS_STATUSES:
            self._bodiless = self._complete = True
            self._keep = bool(parser.should_keep_alive())
        elif length is None and not self._chunked:
            raise Unfit("the store's answer ends only with its connection: a cut would look like its end")
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        if self._complete:
            raise Unfit("the store's answer has a body where none can be")
        if self._reply is not None:
            self._reply.feed(piece)

    def on_message_complete(self) -> None:
        """The end, and it is the real one."""
        if not self._heading and not self._complete:
            self._complete = True
            self._keep = bool(self._parser.should_keep_alive())

    def _end(self) -> None:
        """Hands the connection back; what the store sent beyond its answer spoils it for the next."""
        reply, self._reply = self._reply, None
        if reply is None:
            return
        self._deadline.clear()
        assert self._transport is not None
        reusable = (
            self._keep and not self._surplus and self.alive and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
        )  # fmt: skip
        self.resume()
        if self._bodiless:
            # The parser may still wait for the body that its headers told of.
            self._parser = httptools.HttpResponseParser(self)
        reply.finish()
        self._released(self, reusable)
