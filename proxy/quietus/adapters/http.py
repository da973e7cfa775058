"""The listening side of HTTP/1.1: a wire, and nothing that decides.

aiohttp's parser, streams and flow control read the connection; the loop around them is ours
(`http_connection`). aiohttp's own request handler quotes the bytes it could not read in its answers and
its log, has no limit on how long a head may take, drops the answer of a client that has finished
sending, and costs twice the CPU.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from aiohttp import http_parser

from quietus.adapters.http_connection import Connection
from quietus.adapters.sharing import Sharing
from quietus.core.exchange import Headers, Request


class Answer(Protocol):
    """What goes back to the client. `done` is called once: written in full, or given up."""

    @property
    def status(self) -> int:
        """200 to 599."""

    @property
    def headers(self) -> Headers:
        """Without those of a connection; a Content-Length is restated."""

    @property
    def body(self) -> bytes | AsyncIterator[bytes]:
        """The whole of it, or its pieces as they come."""

    @property
    def overtaken(self) -> asyncio.Event:
        """Set: a fence fell into its scope; what is not written yet must not be."""

    def done(self) -> None:
        """Nothing more of it will leave."""


class Handler(Protocol):
    """Whoever decides: the gateway."""

    async def handle(self, request: Request, principal: str) -> Answer:
        """The answer to one request. Raises nothing; is cancelled when the client goes away."""

    def refuse(self, name: str, detail: str) -> Answer:
        """A refusal of the wire's own, as a problem of that name; its body is bytes."""


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """How much and how long. Seconds and bytes."""

    request_bytes_max: int = 4 * 1024 * 1024
    connections_max: int = 1024
    header: float = 5.0
    body: float = 15.0
    idle: float = 60.0
    write: float = 30.0
    linger: float = 2.0
    held_bytes_max: int = 8 * 1024 * 1024
    """How much of a stream is held to give an HTTP/1.0 client its length."""


class ListenerRefused(Exception):
    """It cannot listen as it must; the message says what to do."""


class HttpListener:
    """Listens, and hands each request that can be read in one way to the handler."""

    def __init__(
        self,
        handler: Handler,
        principal: Callable[[str], str],
        *,
        limits: ListenerLimits | None = None,
        tls: ssl.SSLContext | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        """`principal` makes a keyed digest of the Authorization header; it is not called without one.

        With `sharing`, connections that speak gRPC are taken on the same port, and handed on.
        """
        self.handler = handler
        self.principal = principal
        self.limits = limits or ListenerLimits()
        self._serving: set[Connection] = set()
        self._lingering: set[Connection] = set()
        self._gone = asyncio.Event()
        self._tls = tls
        self._sharing = sharing
        self._server: asyncio.Server | None = None
        self._ids = itertools.count(1)
        self._prefix = ""

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> None:
        """Begins to listen; port 0 takes a free one. Raises ListenerRefused."""
        require_strict_parser()
        self._prefix = secrets.token_hex(8)
        loop = asyncio.get_running_loop()
        sharing = self._sharing

        def made() -> asyncio.Protocol:
            return Connection(self, loop)

        try:
            self._server = await loop.create_server(
                made if sharing is None else lambda: sharing.around(made), host, port, ssl=self._tls,
                backlog=1024,
                reuse_port=reuse_port or None,
                ssl_handshake_timeout=self.limits.header if self._tls else None,
            )  # fmt: skip
        except OSError as error:
            raise ListenerRefused(
                f"cannot listen on {host}:{port} ({error.strerror}): "
                "choose another address under store.http.listen"
            ) from None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if self._server is None or not self._server.sockets:
            raise ListenerRefused("not listening; call start() first")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def in_flight(self) -> int:
        """How many requests are being handled."""
        return sum(connection.busy for connection in self._serving)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._serving) + len(self._lingering)

    def request_id(self) -> str:
        """A name for a request that came without one."""
        return f"{self._prefix}{next(self._ids):08x}"

    async def close(self, drain: float = 10.0) -> None:
        """Takes no more, lets what is being handled finish for so many seconds, drops the rest."""
        if self._server is None:
            return
        self._server.close()
        tasks = {task for connection in self._serving if (task := connection.leave()) is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=drain)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for connection in (*self._serving, *self._lingering):
            connection.abort()
        while self.connections:
            self._gone.clear()
            await self._gone.wait()
        await self._server.wait_closed()
        self._server = None

    # What a connection asks

    def admit(self, connection: Connection) -> bool:
        """Counts one in; False: it is one too many, and may only be told so."""
        room = len(self._serving) < self.limits.connections_max
        (self._serving if room else self._lingering).add(connection)
        return room

    def let_linger(self, connection: Connection) -> bool:
        """Whether it may stay to take in what is still coming, after its last answer."""
        self._serving.discard(connection)
        self._lingering.add(connection)
        return len(self._lingering) <= self.limits.connections_max

    def forget(self, connection: Connection) -> None:
        """It is gone."""
        self._serving.discard(connection)
        self._lingering.discard(connection)
        self._gone.set()


def require_strict_parser() -> None:
    """Raises ListenerRefused unless aiohttp's C parser is in use."""
    # The one in Python takes `Transfer-Encoding: chunked,chunked`, which a store may read otherwise.
    if http_parser.HttpRequestParser is http_parser.HttpRequestParserPy:
        raise ListenerRefused(
            "aiohttp runs without its C parser, and the other one lets a smuggled request through: "
            "install a wheel of aiohttp for this platform, and unset AIOHTTP_NO_EXTENSIONS"
        )
