"""The store over HTTP/1.1: bytes go out once, and come back as they came.

Why not aiohttp's client: it sends GET, HEAD, OPTIONS, TRACE, PUT and DELETE again after a disconnect,
though the store may have done what it was asked; it rewrites paths, decompresses, adds headers; and it
is the largest part of a request's cost. Here nothing is sent twice: once a byte may have left, a lost
connection is an error that says so.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from quietus.adapters.http_reply import HttpReply
from quietus.adapters.http_wire import HOP_BY_HOP, NAMES_MAX, seal_head
from quietus.adapters.store_connection import StoreConnection
from quietus.core.exchange import Headers, Request
from quietus.ports import Permit, UpstreamError

_RESTATED: Final = HOP_BY_HOP | {"host", "content-length", "expect"}
_OURS: Final = frozenset({"prefer"})
_WITH_LENGTH: Final = frozenset({"POST", "PUT", "PATCH"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(r"[/*][!-~]*")
CLIENT: Final = "client"
"""The purpose of a permit for what a client asked; everything else is the sidecar's own."""


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """How many and how long; seconds."""

    connections_max: int = 256
    waiting_max: int = 1024
    connect: float = 3.0
    upstream: float = 60.0
    """For the head of an answer, for the whole of one that is read whole, for each piece of a stream."""
    idle: float = 4.0
    """Less than the five seconds after which many a server closes: a close that we do not see yet would
    cost the next request its outcome."""


class HttpUpstream:
    """Satisfies `ports.Upstream` for one store at one address."""

    def __init__(
        self,
        url: str,
        *,
        limits: UpstreamLimits | None = None,
        tls: ssl.SSLContext | None = None,
        own_headers: Headers = (),
        inject_headers: Headers = (),
    ) -> None:
        """`own_headers` go on what the sidecar itself asks, `inject_headers` on every request.

        Both replace headers of the same name. Raises ValueError when `url` is not one to forward to.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or (
            parts.query or parts.fragment or parts.username is not None
        ):  # fmt: skip
            raise ValueError("an upstream is http(s)://HOST:PORT, without path, query or credentials")
        self._host = parts.hostname
        secure = parts.scheme == "https"
        self._port = parts.port or (443 if secure else 80)
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self._host_line = f"Host: {parts.netloc}\r\n"
        self._limits = limits or UpstreamLimits()
        self._open = 0
        self._idle: deque[StoreConnection] = deque()
        self._queue: deque[asyncio.Future[StoreConnection | None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._for_client = _Outgoing(inject_headers)
        self._for_own = _Outgoing((*own_headers, *inject_headers))

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> HttpReply:
        """Sends the bytes once; returns when the head of the answer is there.

        `fresh` asks for a new connection (probes). Raises UpstreamError.
        """
        outgoing = self._for_client if permit.purpose == CLIENT else self._for_own
        data = outgoing.encode(request, self._host_line)
        connection = None if fresh else self._reuse()
        if connection is None:
            connection = await self._obtain(fresh)
        connection.fresh = fresh
        if not permit.holds:
            # Between the admission and here a connection had to be waited for, or the process stood still.
            self._released(connection, True)
            raise UpstreamError("this replica may not speak for the gate at the moment", sent=False)
        return await connection.send(data, bodiless=request.method == "HEAD")

    def renew(self, tls: ssl.SSLContext) -> None:
        """Makes every new connection with this context; one that stands is not used for another request."""
        self._tls = tls if self._tls is not None else None
        while self._idle:
            self._drop(self._idle.pop())

    async def close(self) -> None:
        """Closes idle connections; those in use close when their exchange ends."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        while self._idle:
            self._drop(self._idle.pop())

    @property
    def idle(self) -> int:
        """How many connections wait to be used again."""
        return len(self._idle)

    def _reuse(self) -> StoreConnection | None:
        if not self._idle:
            return None
        oldest = asyncio.get_running_loop().time() - self._limits.idle
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since > oldest and connection.quiet():
                return connection
            self._drop(connection)
        return None

    async def _obtain(self, fresh: bool) -> StoreConnection:
        """A new connection, or, where no more may be open, the next that becomes free."""
        if self._open >= self._limits.connections_max and self._idle:
            self._drop(self._idle.popleft())
        if self._open >= self._limits.connections_max:
            given = await self._turn()
            if given is not None:
                if not fresh and given.quiet():
                    return given
                given.close()
        else:
            self._open += 1
        loop, tls = asyncio.get_running_loop(), self._tls
        try:
            async with asyncio.timeout(self._limits.connect):
                _, connection = await loop.create_connection(
                    lambda: StoreConnection(loop, self._released, self._limits.upstream),
                    self._host, self._port, ssl=tls,
                )  # fmt: skip
        except BaseException as error:
            self._leave_room()
            if isinstance(error, OSError | TimeoutError):
                raise UpstreamError("the store cannot be reached", sent=False) from None
            raise
        connection.tls = tls
        return connection

    async def _turn(self) -> StoreConnection | None:
        """Waits for a connection that is handed over, or for room to make one."""
        if len(self._queue) >= self._limits.waiting_max:
            raise UpstreamError("too much is waiting for the store", sent=False)
        turn: asyncio.Future[StoreConnection | None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._limits.connect):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                if (given := turn.result()) is None:
                    self._leave_room()
                else:
                    self._released(given, True)
            if isinstance(error, TimeoutError):
                raise UpstreamError("every connection to the store is in use", sent=False) from None
            raise

    def _pass_on(self, connection: StoreConnection | None) -> bool:
        """Gives a connection, or the room for one, to whoever waits longest. False: nobody does."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(connection)
                return True
        return False

    def _leave_room(self) -> None:
        if not self._pass_on(None):
            self._open -= 1

    def _drop(self, connection: StoreConnection) -> None:
        connection.close()
        self._leave_room()

    def _released(self, connection: StoreConnection, reusable: bool) -> None:
        if not reusable or connection.fresh or self._closed or connection.tls is not self._tls:
            self._drop(connection)
        elif not self._queue or not self._pass_on(connection):
            self._pool(connection)

    def _pool(self, connection: StoreConnection) -> None:
        loop = connection.loop
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(self._limits.idle, self._swept)

    def _swept(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._limits.idle
        while self._idle and (not self._idle[0].alive or self._idle[0].idle_since <= oldest):
            self._drop(self._idle.popleft())
        if self._idle:
            self._sweep = loop.call_later(self._limits.idle, self._swept)


class _Outgoing:
    """How the head of a request is written: what stays here, and what is put in its place."""

    def __init__(self, put: Headers) -> None:
        self._put = [f"{name}: {value}\r\n" for name, value in put]
        self._replaced = frozenset(name.lower() for name, _ in put)
        self._kept: dict[str, bool] = {}

    def encode(self, request: Request, host_line: str) -> bytes:
        """The bytes of the request. Raises UpstreamError when it would be more than one."""
        method, body = request.method, request.body
        if not _TOKEN.fullmatch(method) or not _TARGET.fullmatch(request.target):
            raise UpstreamError("the request line cannot be written", sent=False)
        lines = [f"{method} {request.target} HTTP/1.1\r\n", host_line]
        kept = self._kept
        for name, value in request.headers:
            keep = kept.get(name)
            if keep is None:
                keep = self._judge(name)
            if keep:
                lines.append(f"{name}: {value}\r\n")
        lines += self._put
        if body or method in _WITH_LENGTH:
            lines.append(f"Content-Length: {len(body)}\r\n")
        try:
            return seal_head(lines) + body
        except ValueError:  # UnicodeEncodeError is one
            raise UpstreamError("a header of the request cannot be written", sent=False) from None

    def _judge(self, name: str) -> bool:
        if not _TOKEN.fullmatch(name):
            raise UpstreamError("a header of the request has a name that cannot be written", sent=False)
        lower = name.lower()
        keep = lower not in _RESTATED and lower not in _OURS and lower not in self._replaced
        if lower.startswith("quietus-"):
            keep = False
        if len(self._kept) >= NAMES_MAX:
            self._kept.clear()
        self._kept[name] = keep
        return keep
