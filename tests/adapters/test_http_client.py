"""The store's side of the wire: sent once, and taken only when it is whole and has one reading."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from quietus.adapters.http_client import HttpUpstream, UpstreamLimits
from quietus.core.exchange import Headers, Request, header
from quietus.ports import ReplyTooLarge, UpstreamError
from tests.adapters.wires import OK, AsClient, Received, Store, storing

SHORT = UpstreamLimits(connect=0.3, upstream=0.3)
BIG = 1 << 20


def request(method: str = "GET", body: bytes = b"", headers: Headers = (), target: str = "/v1/x") -> Request:
    return Request(method, target, headers, body)


async def ask(upstream: HttpUpstream, asked: Request, limit: int = BIG) -> bytes:
    return (await (await upstream.open(asked, AsClient())).read(limit)).body


def dies(moment: str, survive: int = 0) -> Store:
    """A store that resets the connection at a moment, after so many requests that went well."""
    store = Store()

    async def script(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(store.received) <= survive:
            writer.write(OK)
            return
        if moment == "head":
            writer.write(OK[:20])
        elif moment == "body":
            writer.write(OK.replace(b"Length: 2", b"Length: 9"))
        elif moment == "after":
            writer.write(OK)
        if moment != "before":
            await writer.drain()
        if moment == "after":
            writer.close()
        else:
            writer.transport.abort()

    store.script = script
    return store


@pytest.mark.parametrize("survive", [0, 1], ids=["new-connection", "reused-connection"])
@pytest.mark.parametrize(
    ("method", "moment"),
    [
        (method, moment)
        for method in ("GET", "PUT", "DELETE", "POST", "HEAD", "OPTIONS", "PATCH")
        for moment in ("before", "head", "body", "after")
        if (method, moment) != ("HEAD", "body")
    ],
)
async def test_a_request_reaches_the_store_once(method: str, moment: str, survive: int) -> None:
    dying = dies(moment, survive)
    async with storing(dying.script) as store:
        dying.received = store.received
        upstream = HttpUpstream(store.url)
        for _ in range(survive):
            await ask(upstream, request("GET"))
        asked = request(method, b"" if method in ("GET", "HEAD", "OPTIONS") else b'{"a":1}')
        if moment == "after":
            if method == "HEAD":
                with pytest.raises(UpstreamError):
                    await ask(upstream, asked)
            else:
                assert await ask(upstream, asked) == b"{}"
        else:
            with pytest.raises(UpstreamError) as caught:
                await ask(upstream, asked)
            assert caught.value.sent
        assert [one.partition(" ")[0] for one in store.lines].count(method) == 1 + (
            survive and method == "GET"
        )
        assert store.connections == 1
        await upstream.close()


async def test_nothing_listening_is_nothing_sent() -> None:
    async with storing() as store:
        url = store.url
    upstream = HttpUpstream(url)
    with pytest.raises(UpstreamError) as caught:
        await upstream.open(request("DELETE"), AsClient())
    assert not caught.value.sent


HEAD = b"HTTP/1.1 200 OK\r\n"
HOSTILE = {
    "folded header": HEAD + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
    "bare line feed in a header": HEAD + b"X: a\nContent-Length: 2\r\n\r\n{}",
    "bare carriage return": HEAD + b"X: a\rb\r\nContent-Length: 2\r\n\r\n{}",
    "space before the colon": HEAD + b"Content-Length : 2\r\n\r\n{}",
    "NUL in a header": HEAD + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "control byte in a header": HEAD + b"X: a\x01b\r\nContent-Length: 2\r\n\r\n{}",
    "control byte in the reason": b"HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\n{}",
    "control byte in a name": HEAD + b"X\x01: a\r\nContent-Length: 2\r\n\r\n{}",
    "status 999": b"HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status 600": b"HTTP/1.1 600 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status 099": b"HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status 20": b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
    "unasked 101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "bare 101": b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    "length and chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "the same length twice": HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
    "signed length": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "hexadecimal length": HEAD + b"Content-Length: 0x2\r\n\r\n{}",
    "huge length": HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    "no length": HEAD + b"Content-Type: application/json\r\n\r\n{}",
    "no length, closed": HEAD + b"Connection: close\r\n\r\n{}",
    "gzip as transfer coding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked in two lines": HEAD
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "identity as transfer coding": HEAD + b"Transfer-Encoding: identity\r\n\r\n{}",
    "bad chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "negative chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    "chunk longer than it says": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "chunk with a bare line feed": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n",
    "space after a chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n",
    "HTTP/0.9": b"{}",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "another protocol": b"RTSP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "empty lines first": b"\r\n\r\n" + OK,
    "204 with a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
    "304 with a body": b"HTTP/1.1 304 Not Modified\r\n\r\n{}",
    "interim with a body": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 2\r\n\r\n" + OK,
    "interim for ever": b"HTTP/1.1 102 Processing\r\n\r\n" * 20 + OK,
    "endless head": HEAD + b"X: " + b"a" * 200_000,
    "endless reason": b"HTTP/1.1 200 " + b"a" * 200_000,
    "too many headers": HEAD + b"X: a\r\n" * 500 + b"Content-Length: 2\r\n\r\n{}",
    "a name without a colon": HEAD + b"X\r\nContent-Length: 2\r\n\r\n{}",
    "an empty name": HEAD + b": a\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_answer_is_none(reply: bytes) -> None:
    async with storing(reply) as store:
        upstream = HttpUpstream(store.url, limits=SHORT)
        with pytest.raises(UpstreamError) as caught:
            await ask(upstream, request())
        assert caught.value.sent
        assert not upstream.idle
        assert len(store.received) == 1
        await upstream.close()


async def test_errors_quote_nothing() -> None:
    async with storing(b"HTTP/1.1 200 OK\r\nalice secret\r\n\r\n") as store:
        upstream = HttpUpstream(store.url)
        with pytest.raises(UpstreamError) as caught:
            await ask(upstream, request())
        assert "alice" not in str(caught.value)
        assert caught.value.__cause__ is None or caught.value.__suppress_context__


async def test_what_follows_an_answer_poisons_no_other() -> None:
    async with storing(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nalice") as store:
        upstream = HttpUpstream(store.url)
        assert [await ask(upstream, request()) for _ in range(3)] == [b"{}"] * 3
        assert store.connections == 3


async def test_connections_are_reused_but_not_by_probes() -> None:
    async with storing() as store:
        upstream = HttpUpstream(store.url)
        for _ in range(3):
            await ask(upstream, request())
        assert store.connections == 1
        for _ in range(3):
            opened = await upstream.open(request(), AsClient("probe"), fresh=True)
            await opened.read(BIG)
        assert store.connections == 4 and upstream.idle == 1
        await upstream.close()
        assert upstream.idle == 0


async def test_a_connection_that_the_store_closed_meanwhile_is_not_used() -> None:
    async def once(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await writer.drain()
        writer.close()

    async with storing(once) as store:
        upstream = HttpUpstream(store.url)
        for _ in range(20):
            await ask(upstream, request("DELETE"))
            store.left.clear()
        assert len(store.received) == 20


async def test_connections_idle_too_long_are_closed() -> None:
    async with storing() as store:
        upstream = HttpUpstream(store.url, limits=UpstreamLimits(idle=0.05))
        await ask(upstream, request())
        await asyncio.wait_for(store.left.wait(), 5)
        assert upstream.idle == 0


async def test_connections_are_bounded_and_handed_over() -> None:
    gate = asyncio.Event()

    async def waits(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gate.wait()
        writer.write(OK)

    async with storing(waits) as store:
        upstream = HttpUpstream(store.url, limits=UpstreamLimits(connections_max=2, connect=5))
        tasks = [asyncio.create_task(ask(upstream, request(target=f"/{n}"))) for n in range(9)]
        while len(store.received) < 2:
            await store.arrived.wait()
            await asyncio.sleep(0)
        tasks[5].cancel()
        gate.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [result for result in results if result == b"{}"] == [b"{}"] * 8
        assert store.connections == 2 and len(store.received) == 8 and upstream.idle == 2
        await upstream.close()


async def test_no_free_connection_in_time_is_nothing_sent() -> None:
    async def never(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with storing(never) as store:
        upstream = HttpUpstream(store.url, limits=UpstreamLimits(connections_max=1, connect=0.05, upstream=5))
        first = asyncio.create_task(ask(upstream, request()))
        await store.arrived.wait()
        with pytest.raises(UpstreamError) as caught:
            await ask(upstream, request())
        assert not caught.value.sent
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await store.left.wait()
        again = asyncio.create_task(ask(upstream, request()))
        store.arrived.clear()
        await store.arrived.wait()
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
        assert store.connections == 2


@pytest.mark.parametrize("reply", [b"", OK[:30], OK[:-1], b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_a_store_that_does_not_go_on_runs_into_its_limit(reply: bytes) -> None:
    async def stalls(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await reader.read()

    async with storing(stalls) as store:
        upstream = HttpUpstream(store.url, limits=UpstreamLimits(upstream=0.1))
        with pytest.raises(UpstreamError) as caught:
            await ask(upstream, request("POST", b"{}"))
        assert caught.value.sent
        await store.left.wait()


async def test_interim_answers_are_passed_over() -> None:
    async with storing(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK) as store:
        upstream = HttpUpstream(store.url)
        opened = await upstream.open(request(), AsClient())
        reply = await opened.read(BIG)
        assert (reply.status, reply.reason, reply.body, header(reply.headers, "link")) == (
            200,
            "OK",
            b"{}",
            None,
        )
        await upstream.close()


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 4711\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4711\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ],
)
async def test_answers_without_a_body_end_with_their_head(method: str, reply: bytes) -> None:
    async with storing(reply) as store:
        upstream = HttpUpstream(store.url)
        for _ in range(3):
            assert await ask(upstream, request(method)) == b""
        assert store.connections == 1
        await upstream.close()


async def test_size_is_bounded_while_it_arrives() -> None:
    async def endless(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            await writer.drain()

    async with storing(endless) as store:
        upstream = HttpUpstream(store.url)
        with pytest.raises(ReplyTooLarge):
            await ask(upstream, request(), 100_000)
        await store.left.wait()
    async with storing(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\nabc") as store:
        upstream = HttpUpstream(store.url)
        with pytest.raises(ReplyTooLarge):
            await ask(upstream, request(), 100)
    async with storing(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde") as store:
        upstream = HttpUpstream(store.url)
        with pytest.raises(ReplyTooLarge):
            await ask(upstream, request(), 4)
        assert await ask(upstream, request(), 5) == b"abcde"
        await upstream.close()


async def test_a_stream_is_taken_in_only_as_it_is_wanted() -> None:
    written = 0

    async def flood(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.transport.set_write_buffer_limits(high=65536)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(500):
            writer.write(b"x" * 100_000)
            written += 100_000
            await writer.drain()

    async with storing(flood) as store:
        upstream = HttpUpstream(store.url)
        opened = await upstream.open(request(), AsClient())
        for _ in range(2000):
            await asyncio.sleep(0)
        assert written < 20_000_000
        assert sum([len(piece) async for piece in opened.chunks()]) == 50_000_000
        await upstream.close()


async def test_a_cut_stream_is_an_error_and_never_an_end() -> None:
    async def cut(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
        await writer.drain()
        writer.close()

    async with storing(cut) as store:
        upstream = HttpUpstream(store.url)
        opened = await upstream.open(request(), AsClient())
        pieces = []
        with pytest.raises(UpstreamError):
            async for piece in opened.chunks():
                pieces.append(piece)
        assert b"".join(pieces) == b"{}"
        with pytest.raises(UpstreamError):
            await opened.read(BIG)


async def test_an_abandoned_answer_frees_its_connection() -> None:
    async def half(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-1])
        await reader.read()

    async with storing(half) as store:
        upstream = HttpUpstream(store.url, limits=UpstreamLimits(connections_max=1))
        for _ in range(3):
            opened = await upstream.open(request(), AsClient())
            opened.abort()
            opened.abort()
            with pytest.raises(UpstreamError):
                await opened.read(BIG)
        assert store.connections == 3


@pytest.mark.requirement("R193")
async def test_bytes_are_not_touched() -> None:
    packed = gzip.compress(b'{"a": 1}')
    reply = (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nX-Odd:   spaced out \t\r\nx-odd: \xe9\r\n"
             b"Connection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
             b"Content-Length: %d\r\n\r\n" % len(packed) + packed)  # fmt: skip
    async with storing(reply) as store:
        upstream = HttpUpstream(store.url)
        sent = (("X-Odd", "\xe9"), ("Content-Encoding", "gzip"), ("accept", "a"), ("ACCEPT", "b"))
        reply_ = await (await upstream.open(request("DELETE", packed, sent), AsClient())).read(BIG)
        assert reply_.body == packed
        assert reply_.headers == (("Content-Encoding", "gzip"), ("X-Odd", "spaced out"), ("x-odd", "\xe9"),
                                  ("Content-Length", str(len(packed))))  # fmt: skip
        got = store.received[0]
        assert got.body == packed
        assert got.headers == [
            ("Host", f"127.0.0.1:{store.port}"),
            *sent,
            ("Content-Length", str(len(packed))),
        ]


async def test_whose_credentials_go_along() -> None:
    async with storing() as store:
        upstream = HttpUpstream(
            store.url, own_headers=(("Authorization", "sidecar"),), inject_headers=(("X-Api-Key", "k"),)
        )
        sent = (("authorization", "alice"), ("x-api-key", "stolen"), ("Quietus-Min-Epoch", "3"),
                ("Prefer", "wait=3"), ("Connection", "close"), ("Host", "evil"), ("Content-Length", "99"),
                ("Transfer-Encoding", "chunked"), ("Expect", "100-continue"))  # fmt: skip
        for purpose in ("client", "probe", "remedy", "forget"):
            await (await upstream.open(request(headers=sent), AsClient(purpose))).read(BIG)
        host = ("Host", f"127.0.0.1:{store.port}")
        assert store.received[0].headers == [host, ("authorization", "alice"), ("X-Api-Key", "k")]
        for got in store.received[1:]:
            assert got.headers == [host, ("Authorization", "sidecar"), ("X-Api-Key", "k")]
        await upstream.close()


@pytest.mark.parametrize(
    "asked",
    [
        request(target="/a b"),
        request(target="/a\r\nX: y"),
        request(target="a"),
        request(target="/\xe9"),
        request(method="GET /x HTTP/1.1\r\n"),
        request(headers=(("X", "a\r\nY: b"),)),
        request(headers=(("X", "a\nb"),)),
        request(headers=(("X", "a\0b"),)),
        request(headers=(("X", "\u0430"),)),
        request(headers=(("X Y", "a"),)),
        request(headers=(("X:", "a"),)),
        request(headers=(("", "a"),)),
    ],
)
async def test_what_would_be_two_requests_is_not_sent(asked: Request) -> None:
    async with storing() as store:
        upstream = HttpUpstream(store.url)
        with pytest.raises(UpstreamError) as caught:
            await upstream.open(asked, AsClient())
        assert not caught.value.sent and not store.received and not store.connections


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://u:p@h", "http://h/base", "http://h?x", "h:80"])
def test_an_upstream_is_a_server_and_nothing_else(url: str) -> None:
    with pytest.raises(ValueError, match="upstream"):
        HttpUpstream(url)
