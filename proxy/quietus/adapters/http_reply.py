"""An answer of the store's that is being read.

What a proxy must know to hand it on is where it ends, and that it ended: a cut never looks like an end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Protocol

from quietus.core.exchange import Headers, Reply
from quietus.ports import ReplyTooLarge, UpstreamError

READ_AHEAD: Final = 262144
"""How much of a body is taken in before somebody wants it."""


class Source(Protocol):
    """The connection that it comes from."""

    loop: asyncio.AbstractEventLoop

    def fail(self, error: UpstreamError) -> None:
        """Ends the exchange and the connection."""

    def pause(self) -> None:
        """Takes in no more for now."""

    def resume(self) -> None:
        """Takes in more."""

    def expect_more(self) -> None:
        """Begins the time limit anew."""


class HttpReply:
    """An answer whose head has arrived. Satisfies `ports.OpenReply`."""

    __slots__ = ("_connection", "_error", "_fed", "_limit", "_pieces", "_waiter", "finished", "headers",
                 "reason", "size", "status")  # fmt: skip

    def __init__(self, connection: Source) -> None:
        self._connection = connection
        self._pieces: deque[bytes] = deque()
        self._error: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._limit: int | None = None
        self._fed = 0
        self.size: int | None = None
        """As the head declares it; None: in chunks."""
        self.status = 0
        self.reason = ""
        self.headers: Headers = ()
        self.finished = False

    async def read(self, limit: int) -> Reply:
        """The whole answer. Raises ReplyTooLarge, or UpstreamError when it was cut short."""
        if not self.finished:
            self._limit = limit
            if self._fed > limit or (self.size is not None and self.size > limit):
                self._connection.fail(_too_large(limit))
            while not self.finished and self._error is None:
                self._connection.resume()
                await self._more()
        if self._error is not None:
            raise self._error
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if len(body) > limit:
            raise _too_large(limit)
        return Reply(self.status, self.headers, body, self.reason)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive, framing removed. Raises UpstreamError when cut short."""
        try:
            while True:
                while self._pieces:
                    piece = self._pieces.popleft()
                    self._fed -= len(piece)
                    yield piece
                if self._error is not None:
                    raise self._error
                if self.finished:
                    return
                self._connection.resume()
                self._connection.expect_more()
                await self._more()
        finally:
            if not self.finished:
                self.abort()

    def abort(self) -> None:
        """Drops the connection at once."""
        if not self.finished and self._error is None:
            self._connection.fail(UpstreamError("the answer was given up", sent=True))

    # What the connection tells

    def feed(self, piece: bytes) -> None:
        """Takes in a piece of the body."""
        self._pieces.append(piece)
        self._fed += len(piece)
        if self._limit is not None:
            if self._fed > self._limit:
                self._connection.fail(_too_large(self._limit))
            return
        if self._fed > READ_AHEAD:
            self._connection.pause()
        self._wake()

    def finish(self, error: UpstreamError | None = None) -> None:
        """The body has ended, or never will."""
        if error is None:
            self.finished = True
        elif not self.finished:
            self._error = error
        self._wake()

    async def _more(self) -> None:
        self._waiter = self._connection.loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _too_large(limit: int) -> ReplyTooLarge:
    return ReplyTooLarge(f"the store's answer is larger than {limit} bytes", sent=True)
