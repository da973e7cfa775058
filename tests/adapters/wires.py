"""What stands at the two ends of the wire in these tests: a store that says what it is told, a client
that sends what it is told, and in the middle a handler that forwards everything."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from quietus.adapters.http import HttpListener, ListenerLimits
from quietus.adapters.http_client import HttpUpstream, UpstreamLimits
from quietus.core.exchange import Headers, Request
from quietus.core.problems import PROBLEMS
from quietus.ports import UpstreamError

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass(frozen=True)
class AsClient:
    purpose: str = "client"
    holds: bool = True


@dataclass
class Told:
    """One answer, as the gateway gives them."""

    status: int
    headers: Headers
    body: bytes | AsyncIterator[bytes]
    overtaken: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0

    def done(self) -> None:
        self.calls += 1
        self.finished.set()


class PassThrough:
    """Forwards everything through an upstream; remembers what it was asked."""

    def __init__(self, upstream: HttpUpstream | None = None, *, streaming: bool = False) -> None:
        self.upstream = upstream
        self.streaming = streaming
        self.requests: list[Request] = []
        self.principals: list[str] = []
        self.answers: list[Told] = []
        self.cancelled = asyncio.Event()
        self.entered = asyncio.Event()
        self.answered = asyncio.Event()
        self.answer: Callable[[Request], Awaitable[Told]] | None = None

    async def handle(self, request: Request, principal: str) -> Told:
        self.requests.append(request)
        self.principals.append(principal)
        self.entered.set()
        try:
            told = await (self.answer or self._forward)(request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        except UpstreamError as error:
            told = self.refuse("outcome-unknown" if error.sent else "upstream-unavailable", str(error))
        self.answers.append(told)
        self.answered.set()
        return told

    def refuse(self, name: str, detail: str) -> Told:
        problem = PROBLEMS[name]
        body = f'{{"type": "{problem.type}", "detail": "{detail}"}}'.encode()
        return Told(problem.status, (("Content-Type", "application/problem+json"),), body)

    async def _forward(self, request: Request) -> Told:
        assert self.upstream is not None
        opened = await self.upstream.open(request, AsClient())
        if self.streaming:
            return Told(opened.status, opened.headers, opened.chunks())
        reply = await opened.read(1 << 23)
        return Told(reply.status, reply.headers, reply.body)


def digest(authorization: str) -> str:
    return hashlib.blake2b(authorization.encode(), digest_size=8).hexdigest()


@dataclass
class Received:
    """One request, as a store's own strict parser read it."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


Script = Callable[[Received, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Store:
    """A server that counts receipts and answers what its script says, byte for byte."""

    def __init__(self, script: Script | bytes = OK) -> None:
        self.script = script
        self.received: list[Received] = []
        self.faults: list[str] = []
        """What was forwarded and is no request in the strictest reading."""
        self.connections = 0
        self.arrived = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def lines(self) -> list[str]:
        return [one.line for one in self.received]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while (request := await read_request(reader)) is not None:
                self.received.append(request)
                self.arrived.set()
                if isinstance(self.script, bytes):
                    writer.write(self.script)
                    await writer.drain()
                else:
                    await self.script(request, reader, writer)
                    if writer.is_closing():
                        return
        except AssertionError as fault:
            self.faults.append(str(fault))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the end of the test, too, is an end of the connection
        finally:
            self.left.set()
            self._writers.discard(writer)
            writer.close()

    def drop_all(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    """Strict on purpose: what it cannot read exactly is a fault of whoever forwarded it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        assert not error.partial, f"a piece of a request was forwarded: {error.partial!r}"
        return None
    line, *rest = head[:-4].decode("latin-1").split("\r\n")
    headers = []
    for one in rest:
        name, colon, value = one.partition(": ")
        assert colon and name == name.strip(), f"not a header: {one!r}"
        headers.append((name, value))
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    assert len(lengths) <= 1 and not any(name.lower() == "transfer-encoding" for name, _ in headers)
    body = await reader.readexactly(int(lengths[0])) if lengths else b""
    return Received(line, headers, body)


@asynccontextmanager
async def storing(script: Script | bytes = OK) -> AsyncIterator[Store]:
    store = Store(script)
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    store.port = server.sockets[0].getsockname()[1]
    store.url = f"http://127.0.0.1:{store.port}"
    try:
        yield store
    finally:
        server.close()
        store.drop_all()
        await server.wait_closed()


@dataclass
class Line:
    """A client that sends bytes and reads bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, *, head_only: bool = False) -> tuple[int, dict[str, str], bytes]:
        """One answer; its headers in lower case. Interim ones are passed over."""
        while True:
            head = await self.reader.readuntil(b"\r\n\r\n")
            line, *rest = head[:-4].decode("latin-1").split("\r\n")
            status = int(line.split(" ")[1])
            if status >= 200:
                break
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
        if head_only or status in (204, 304):
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            return status, headers, await self._chunks()
        return status, headers, await self.reader.readexactly(int(headers["content-length"]))

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readline(), 16):
            body += await self.reader.readexactly(size)
            assert await self.reader.readexactly(2) == b"\r\n"
        assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def rest(self) -> bytes:
        """Everything until the other side ends, however it does."""
        data = b""
        with suppress(ConnectionError):
            while piece := await self.reader.read(65536):
                data += piece
        return data

    def close(self) -> None:
        self.writer.close()


@dataclass
class Wire:
    """The whole of it, running."""

    store: Store
    handler: PassThrough
    listener: HttpListener
    upstream: HttpUpstream
    lines: list[Line] = field(default_factory=list)

    async def connect(self) -> Line:
        line = Line(*await asyncio.open_connection("127.0.0.1", self.listener.port))
        self.lines.append(line)
        return line

    async def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        line = await self.connect()
        await line.send(data)
        return await line.answer(head_only=data.startswith(b"HEAD "))

    async def ask_raw(self, data: bytes) -> bytes:
        line = await self.connect()
        await line.send(data)
        line.writer.write_eof()
        return await line.rest()


@asynccontextmanager
async def wiring(
    script: Script | bytes = OK,
    *,
    limits: ListenerLimits | None = None,
    upstream_limits: UpstreamLimits | None = None,
    streaming: bool = False,
) -> AsyncIterator[Wire]:
    async with storing(script) as store:
        upstream = HttpUpstream(store.url, limits=upstream_limits)
        handler = PassThrough(upstream, streaming=streaming)
        listener = HttpListener(handler, digest, limits=limits)
        await listener.start("127.0.0.1", 0)
        wire = Wire(store, handler, listener, upstream)
        try:
            yield wire
        finally:
            for line in wire.lines:
                line.close()
            await listener.close(drain=1.0)
            await upstream.close()


def post(body: bytes, target: str = "/v1/recall", extra: bytes = b"", method: bytes = b"POST") -> bytes:
    return (method + b" " + target.encode() + b" HTTP/1.1\r\nHost: store\r\n" + extra
            + b"Content-Length: %d\r\n\r\n" % len(body) + body)  # fmt: skip


def get(target: str = "/v1/memories/k1", extra: bytes = b"", method: bytes = b"GET") -> bytes:
    return method + b" " + target.encode() + b" HTTP/1.1\r\nHost: store\r\n" + extra + b"\r\n"
