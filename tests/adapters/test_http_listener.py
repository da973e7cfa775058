"""The client's side of the wire: what is taken, what is refused, and how an answer leaves."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import http_parser

from quietus.adapters.http import HttpListener, ListenerLimits, ListenerRefused
from quietus.core.exchange import Request, header
from tests.adapters.wires import OK, PassThrough, Received, Told, digest, get, post, wiring

HOST = b"Host: store\r\n"


def raw(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return line + b"\r\n" + b"".join(one + b"\r\n" for one in headers) + b"\r\n" + body


REFUSED = {
    "absolute form": raw(b"GET http://evil/v1 HTTP/1.1", b"Host: evil"),
    "authority form": raw(b"GET evil:80 HTTP/1.1", b"Host: evil"),
    "asterisk": raw(b"OPTIONS * HTTP/1.1", b"Host: a"),
    "no slash": raw(b"GET v1 HTTP/1.1", b"Host: a"),
    "fragment": raw(b"GET /v1?x#y HTTP/1.1", b"Host: a"),
    "raw byte in the target": raw(b"GET /v\xe9 HTTP/1.1", b"Host: a"),
    "control byte in the target": raw(b"GET /v\x01 HTTP/1.1", b"Host: a"),
    "tab in the target": raw(b"GET /v\tx HTTP/1.1", b"Host: a"),
    "space in the target": raw(b"GET /v x HTTP/1.1", b"Host: a"),
    "HTTP/0.9": b"GET /v1\r\n\r\n",
    "HTTP/2.0": raw(b"GET /v1 HTTP/2.0", b"Host: a"),
    "HTTP/1.2": raw(b"GET /v1 HTTP/1.2", b"Host: a"),
    "HTTP/1.1 in lower case": raw(b"GET /v1 http/1.1", b"Host: a"),
    "no Host": raw(b"GET /v1 HTTP/1.1"),
    "empty Host": raw(b"GET /v1 HTTP/1.1", b"Host:"),
    "two Hosts": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Host: a"),
    "two Hosts in one": raw(b"GET /v1 HTTP/1.1", b"Host: a, b"),
    "a Host with a path": raw(b"GET /v1 HTTP/1.1", b"Host: a/b"),
    "a Host with credentials": raw(b"GET /v1 HTTP/1.1", b"Host: a@b"),
    "CONNECT": raw(b"CONNECT a:443 HTTP/1.1", b"Host: a:443"),
    "TRACE": raw(b"TRACE /v1 HTTP/1.1", b"Host: a"),
    "SEARCH": raw(b"SEARCH /v1 HTTP/1.1", b"Host: a"),
    "PURGE": raw(b"PURGE /v1 HTTP/1.1", b"Host: a"),
    "an unknown method": raw(b"FORGET /v1 HTTP/1.1", b"Host: a"),
    "a method in lower case": raw(b"get /v1 HTTP/1.1", b"Host: a"),
    "Upgrade": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Connection: Upgrade", b"Upgrade: websocket"),
    "Upgrade without Connection": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Upgrade: h2c"),
    "h2c": raw(
        b"GET /v1 HTTP/1.1",
        b"Host: a",
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABkAAQ",
    ),
    "h2 with prior knowledge": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "method override": raw(
        b"POST /v1 HTTP/1.1", b"Host: a", b"X-HTTP-Method-Override: DELETE", b"Content-Length: 0"
    ),
    "method override, other name": raw(
        b"POST /v1 HTTP/1.1", b"Host: a", b"x-http-method: DELETE", b"Content-Length: 0"
    ),
    "method in the query": raw(b"POST /v1?a=b&_method=DELETE HTTP/1.1", b"Host: a", b"Content-Length: 0"),
    "target override": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X-Original-URL: /admin"),
    "target override, other name": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X-Rewrite-Url: /admin"),
    "underscore": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"x_subject: alice"),
    "underscore for Content-Length": raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Content_Length: 3"),
    "body on GET": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Content-Length: 2", body=b"{}"),
    "body on HEAD": raw(b"HEAD /v1 HTTP/1.1", b"Host: a", b"Content-Length: 2", body=b"{}"),
    "chunks on GET": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunks in HTTP/1.0": raw(
        b"POST /v1 HTTP/1.0", b"Host: a", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "another expectation": raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Expect: 200-ok", b"Content-Length: 0"),
    "TE gzip": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"TE: gzip"),
    "Connection lists Authorization": raw(
        b"GET /v1 HTTP/1.1", b"Host: a", b"Authorization: x", b"Connection: authorization"
    ),
    "Connection lists Content-Type": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Connection: close, Content-Type"),
    "folded header": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X: a", b" b"),
    "space before the colon": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X : a"),
    "bare line feeds": b"GET /v1 HTTP/1.1\nHost: a\n\n",
    "NUL in a value": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X: a\0b"),
    "DEL in a value": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X: a\x7fb"),
    "too long a target": raw(b"GET /" + b"a" * 9000 + b" HTTP/1.1", b"Host: a"),
    "too long a header": raw(b"GET /v1 HTTP/1.1", b"Host: a", b"X: " + b"a" * 9000),
    "too many headers": raw(b"GET /v1 HTTP/1.1", b"Host: a", *(b"X-%d: a" % n for n in range(200))),
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\0" * 40,
    "garbage": b"\xff\xfe\xfd\r\n\r\n",
}
TWICE = ["Authorization", "Content-Type", "Content-Encoding", "X-Subject", "X-Tenant", "Idempotency-Key",
         "Quietus-Min-Epoch", "Expect", "X-Request-Id", "User-Agent", "Keep-Alive"]  # fmt: skip


@pytest.mark.parametrize("sent", REFUSED.values(), ids=REFUSED.keys())
async def test_a_request_with_two_readings_goes_nowhere(sent: bytes) -> None:
    async with wiring() as wire:
        line = await wire.connect()
        await line.send(sent)
        # Whatever stands behind it is not read as a request.
        line.writer.write(get("/smuggled"))
        asked_head = sent.startswith(b"HEAD ")
        status, headers, body = await line.answer(head_only=asked_head)
        assert status == 400
        assert headers["connection"] == "close"
        assert asked_head or json.loads(body)["type"] == "urn:quietus:problem:malformed-request"
        assert "server" not in headers
        assert await line.rest() == b""
        assert not wire.handler.requests and not wire.store.received


@pytest.mark.parametrize("name", TWICE)
async def test_a_header_that_may_come_once_comes_once(name: str) -> None:
    one, other = name.encode(), name.swapcase().encode()
    async with wiring() as wire:
        status, _, body = await wire.ask(raw(b"POST /v1 HTTP/1.1", b"Host: a", one + b": a", other + b": b",
                                             b"Content-Length: 0"))  # fmt: skip
        assert status == 400 and not wire.store.received
        assert json.loads(body)["type"].startswith("urn:quietus:problem:")


async def test_lists_may_come_in_several_headers() -> None:
    async with wiring() as wire:
        sent = raw(b"GET /v1 HTTP/1.1", b"Host: a", b"Accept: a", b"accept: b", b"Cookie: c", b"Cookie: d",
                   b"Connection: keep-alive", b"connection: x-hop", b"X-Hop: 1", b"TE: trailers")  # fmt: skip
        assert (await wire.ask(sent))[0] == 200
        assert wire.store.received[0].headers[1:] == [("Accept", "a"), ("accept", "b"), ("Cookie", "c"),
                                                      ("Cookie", "d")]  # fmt: skip


@pytest.mark.requirement("R205")
async def test_refusals_quote_nothing(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with wiring() as wire:
        for sent in (
            raw(b"GET /alice\x01 HTTP/1.1", b"Host: a"),
            raw(b"GET /v1 HTTP/1.1", b"alice alice: alice"),
            raw(b"alice /v1 HTTP/1.1", b"Host: a"),
            post(b"alice", "/v1", b"X_Alice: alice\r\n"),
        ):
            line = await wire.connect()
            await line.send(sent)
            status, headers, body = await line.answer()
            assert b"alice" not in body and "alice" not in str(headers)
    assert "alice" not in caplog.text
    assert "alice" not in "".join(capfd.readouterr())


@pytest.mark.requirement("R193")
async def test_what_is_sent_is_what_arrives() -> None:
    packed = gzip.compress(b'{"subject": "alice"}')
    async with wiring() as wire:
        for method, body, extra in (
            (b"DELETE", b'{"subject":"alice"}', b"Content-Type: application/json\r\n"),
            (b"POST", packed, b"Content-Encoding: gzip\r\n"),
            (b"PUT", b"\0\xff" * 100_000, b""),
            (b"PATCH", b"", b""),
            (b"OPTIONS", b"x", b""),
        ):
            assert (await wire.ask(post(body, "/a%2Fb/..%2f//x;y?q=%zz&&=", extra, method)))[0] == 200
            got = wire.store.received[-1]
            assert got.line == f"{method.decode()} /a%2Fb/..%2f//x;y?q=%zz&&= HTTP/1.1"
            assert got.body == body
            assert got.header("content-length") == [str(len(body))] if body else True
            assert got.header("content-encoding") == (["gzip"] if body is packed else [])
            assert not got.header("accept-encoding") and not got.header("user-agent")


async def test_chunks_arrive_as_one_body() -> None:
    async with wiring() as wire:
        line = await wire.connect()
        await line.send(raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Transfer-Encoding: Chunked",
                            b"Trailer: X-T"))  # fmt: skip
        for piece in (b"5\r\n", b"hel", b"lo\r\n6;ext=1\r\n world", b"\r\n0\r\nX-T: 1\r\n\r\n"):
            await line.send(piece)
        assert (await line.answer())[0] == 200
        assert wire.store.received[0].body == b"hello world"
        assert not wire.store.received[0].header("trailer") and not wire.store.received[0].header("x-t")
        assert wire.handler.requests[0].body == b"hello world"


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\nhello",
        b"zz\r\n",
        b"5\r\nhelloX\r\n0\r\n\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"-1\r\n",
        b"fffffffffffffffff\r\n",
    ],
)
async def test_broken_chunks_are_refused(body: bytes) -> None:
    async with wiring() as wire:
        line = await wire.connect()
        await line.send(raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Transfer-Encoding: chunked") + body)
        line.writer.write_eof()
        status, headers, _ = await line.answer()
        assert (status, headers["connection"]) == (400, "close")
        assert not wire.store.received


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413(chunked: bool) -> None:
    async with wiring(limits=ListenerLimits(request_bytes_max=1000)) as wire:
        assert (await wire.ask(post(b"x" * 1000)))[0] == 200
        line = await wire.connect()
        if chunked:
            await line.send(raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Transfer-Encoding: chunked"))
            await line.send(b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
        else:
            await line.send(raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Content-Length: 1001"))
        status, headers, body = await line.answer()
        assert (status, headers["connection"]) == (413, "close")
        assert json.loads(body)["type"] == "urn:quietus:problem:too-large"
        assert len(wire.store.received) == 1


async def test_expect_continue_is_answered_when_the_body_is_wanted() -> None:
    async with wiring(limits=ListenerLimits(request_bytes_max=1000)) as wire:
        line = await wire.connect()
        await line.send(raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Expect: 100-continue", b"Content-Length: 2"))
        assert await line.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await line.send(b"{}")
        assert (await line.answer())[0] == 200
        assert not wire.store.received[0].header("expect")
        await line.send(
            raw(b"POST /v1 HTTP/1.1", b"Host: a", b"Expect: 100-continue", b"Content-Length: 9999")
        )
        assert (await line.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413")


async def test_pipelined_requests_are_answered_in_order() -> None:
    async def echo(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = got.line.split(" ")[1].encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(target) + target)

    async with wiring(echo) as wire:
        line = await wire.connect()
        await line.send(b"".join(post(b"{}", f"/{n}") for n in range(50)))
        assert [(await line.answer())[2] for _ in range(50)] == [f"/{n}".encode() for n in range(50)]
        assert len(wire.store.received) == 50


async def test_garbage_behind_a_request_is_refused_behind_its_answer() -> None:
    async with wiring() as wire:
        line = await wire.connect()
        await line.send(get("/v1"))
        await wire.handler.entered.wait()
        await line.send(b"\0garbage\r\n\r\n")
        assert (await line.answer())[0] == 200
        assert (await line.answer())[0] == 400
        assert await line.rest() == b""


async def test_the_last_request_of_a_connection_says_so() -> None:
    async with wiring() as wire:
        line = await wire.connect()
        await line.send(get("/1", b"Connection: close\r\n"))
        assert (await line.answer())[1]["connection"] == "close"
        line.writer.write(get("/2"))
        assert await line.rest() == b""
        assert wire.store.lines == ["GET /1 HTTP/1.1"]
        # In one breath it contradicts itself.
        assert (await wire.ask(get("/1", b"Connection: close\r\n") + get("/2")))[0] == 400
        assert wire.store.lines == ["GET /1 HTTP/1.1"]


async def test_http_1_0() -> None:
    async with wiring() as wire:
        raw_answer = await wire.ask_raw(b"GET /v1 HTTP/1.0\r\n\r\n")
        assert raw_answer.startswith(b"HTTP/1.1 200 OK\r\n") and raw_answer.endswith(b"\r\n\r\n{}")
        assert wire.store.received[0].line == "GET /v1 HTTP/1.1"


@pytest.mark.parametrize(
    ("method", "reply", "length"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 4711\r\n\r\n", "4711"),
        (b"HEAD", b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\n", "12"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4711\r\nETag: x\r\n\r\n", "4711"),
        (b"DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", None),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_answers_without_a_body(
    method: bytes, reply: bytes, length: str | None, streaming: bool
) -> None:
    async with wiring(reply, streaming=streaming) as wire:
        line = await wire.connect()
        for _ in range(2):
            await line.send(get(method=method))
            _, headers, _ = await line.answer(head_only=True)
            assert headers.get("content-length") == length and "transfer-encoding" not in headers
        line.writer.write_eof()
        assert await line.rest() == b""
        assert wire.store.connections == 1


async def test_a_refusal_of_head_has_its_length_and_no_body() -> None:
    async with wiring() as wire:

        async def refuse(request: Request) -> Told:
            return wire.handler.refuse("erasure-not-settled", "x")

        wire.handler.answer = refuse
        line = await wire.connect()
        await line.send(get(method=b"HEAD") + get())
        status, headers, _ = await line.answer(head_only=True)
        assert status == 409 and int(headers["content-length"]) > 20
        assert (await line.answer())[0] == 409


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cut_answer_never_looks_whole(streaming: bool) -> None:
    async def cut(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        writer.transport.abort()

    async with wiring(cut, streaming=streaming) as wire:
        got = await wire.ask_raw(get())
        if streaming:
            assert not got.endswith(b"0\r\n\r\n") and got.count(b"HTTP/1.1") <= 1
        else:
            assert got.startswith(b"HTTP/1.1 504") and b"hello" not in got
        assert all(told.calls == 1 for told in wire.handler.answers)


async def test_a_stream_shorter_or_longer_than_it_said_is_cut() -> None:
    async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    for parts, whole in (((b"abc",), False), ((b"abc", b"defgh"), False), ((b"ab", b"", b"cde"), True)):
        async with wiring() as wire:

            async def answer(request: Request, parts: tuple[bytes, ...] = parts) -> Told:
                return Told(200, (("Content-Length", "5"),), pieces(*parts))

            wire.handler.answer = answer
            got = await wire.ask_raw(get())
            assert got.endswith(b"\r\n\r\nabcde") is whole
            await wire.handler.answers[0].finished.wait()


async def test_a_stream_to_an_old_client_is_held_until_its_length_is_known() -> None:
    async def pieces(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b"data: x\n\n"

    async with wiring(limits=ListenerLimits(held_bytes_max=90)) as wire:

        async def answer(request: Request) -> Told:
            return Told(200, (), pieces(int(request.path[1:])))

        wire.handler.answer = answer
        assert b"Content-Length: 90\r\n" in await wire.ask_raw(b"GET /10 HTTP/1.0\r\n\r\n")
        assert await wire.ask_raw(b"GET /11 HTTP/1.0\r\n\r\n") == b""


async def test_events_are_relayed_as_they_come() -> None:
    more = asyncio.Event()

    async def events(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        writer.write(b"9\r\ndata: 1\n\n\r\n")
        await writer.drain()
        await more.wait()
        writer.write(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    async with wiring(events, streaming=True) as wire:
        line = await wire.connect()
        await line.send(get())
        assert b"data: 1" in await line.reader.readuntil(b"data: 1\n\n\r\n")
        more.set()
        assert await line.reader.readuntil(b"0\r\n\r\n") == b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"
        await line.send(get())
        assert (await line.answer())[2] == b"data: 1\n\ndata: 2\n\n"


@pytest.mark.requirement("R203")
async def test_an_answer_that_a_fence_overtakes_is_dropped_at_once() -> None:
    hold = asyncio.Event()
    written = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"one"
        written.set()
        await hold.wait()
        yield b"two"

    for kind in ("before", "stream", "large"):
        written.clear()
        async with wiring() as wire:

            async def answer(request: Request, kind: str = kind) -> Told:
                if kind == "large":
                    return Told(200, (), b"x" * 50_000_000)
                told = Told(200, (), b"{}" if kind == "before" else slow())
                if kind == "before":
                    told.overtaken.set()
                return told

            wire.handler.answer = answer
            line = await wire.connect()
            await line.send(get())
            if kind == "stream":
                await written.wait()
            else:
                await line.reader.read(1)
            told = wire.handler.answers[0]
            assert told.finished.is_set() is (kind == "before")
            told.overtaken.set()
            await asyncio.wait_for(told.finished.wait(), 5)
            rest = await line.rest()
            assert b"two" not in rest and b"{}" not in rest and b"\r\n0\r\n\r\n" not in rest
            assert len(rest) < 50_000_000
            assert told.calls == 1


async def test_a_client_that_goes_away_cancels_the_handling() -> None:
    async def never(request: Request) -> Told:
        await asyncio.Event().wait()
        raise AssertionError

    for how in ("reset", "close"):
        async with wiring() as wire:
            wire.handler.answer = never
            line = await wire.connect()
            await line.send(post(b"{}"))
            await wire.handler.entered.wait()
            if how == "reset":
                line.writer.transport.abort()
            else:
                line.close()
            await asyncio.wait_for(wire.handler.cancelled.wait(), 5)
            assert not wire.handler.answers


async def test_a_client_that_has_only_finished_sending_gets_its_answer() -> None:
    release = asyncio.Event()

    async def slow(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(OK)

    async with wiring(slow) as wire:
        line = await wire.connect()
        await line.send(post(b"{}") + post(b"{}", "/2"))
        line.writer.write_eof()
        # It is asked whether it is still there, in a way that clients pass over.
        assert await line.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        release.set()
        assert (await line.answer())[0] == 200
        assert (await line.answer())[0] == 200
        assert await line.rest() == b""
        assert not wire.handler.cancelled.is_set()


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        (b"", False),
        (b"GET /v1 HTTP/1.1\r\nHost: a\r\nX-Slow: ", True),
        (b"POST /v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{", True),
        (b"POST /v1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", True),
        (get(), False),
    ],
    ids=["nothing", "half a head", "half a body", "half a chunk", "idle"],
)
async def test_every_phase_has_its_limit(sent: bytes, answered: bool) -> None:
    async with wiring(limits=ListenerLimits(header=0.1, body=0.1, idle=0.1)) as wire:
        line = await wire.connect()
        await line.send(sent)
        got = await asyncio.wait_for(line.rest(), 5)
        assert (b"HTTP/1.1 400" in got) is answered
        assert len(wire.store.received) == (sent == get())
        assert not wire.listener.connections or answered


async def test_a_trickle_is_not_progress() -> None:
    async with wiring(limits=ListenerLimits(header=0.2)) as wire:
        line = await wire.connect()

        async def trickle() -> None:
            await line.send(b"GET /v1 HTTP/1.1\r\n")
            while not line.reader.at_eof():
                await line.send(b"X: a\r\n"[:1])
                await asyncio.sleep(0)

        dripping = asyncio.create_task(trickle())
        got = await asyncio.wait_for(line.rest(), 5)
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)
        assert got.startswith(b"HTTP/1.1 400") and not wire.store.received


async def test_a_client_that_does_not_read_is_dropped() -> None:
    async with wiring(limits=ListenerLimits(write=0.1)) as wire:

        async def large(request: Request) -> Told:
            async def pieces() -> AsyncIterator[bytes]:
                while True:
                    yield b"x" * 1_000_000

            return Told(200, (), pieces())

        wire.handler.answer = large
        await (await wire.connect()).send(get())
        await wire.handler.answered.wait()
        await asyncio.wait_for(wire.handler.answers[0].finished.wait(), 5)


async def test_too_many_connections_are_turned_away() -> None:
    async with wiring(limits=ListenerLimits(connections_max=3)) as wire:
        kept = [await wire.connect() for _ in range(3)]
        for line in kept:
            await line.send(get())
            assert (await line.answer())[0] == 200
        status, _, body = await wire.ask(b"")
        assert status == 429 and json.loads(body)["type"] == "urn:quietus:problem:overloaded"
        kept[0].close()
        # The one turned away lingers, and does not count.
        while wire.listener.connections > 3:  # noqa: ASYNC110 (only the transport knows when it is gone)
            await asyncio.sleep(0)
        assert (await wire.ask(get()))[0] == 200


async def test_who_calls_is_a_digest() -> None:
    async with wiring() as wire:
        await wire.ask(get(extra=b"Authorization: Bearer token\r\n"))
        await wire.ask(get())
        assert wire.handler.principals == [digest("Bearer token"), "anonymous"]
        assert wire.store.received[0].header("authorization") == ["Bearer token"]


async def test_requests_have_names() -> None:
    async with wiring() as wire:
        line = await wire.connect()
        names = []
        for sent in (b"", b"", b"X-Request-Id: 0123-abcd\r\n", b"X-Request-Id: alice@x\r\n",
                     b"X-Request-Id: alice\r\n", b"Quietus-Request-Id: mine\r\n"):  # fmt: skip
            await line.send(get(extra=sent))
            _, headers, _ = await line.answer()
            names.append(
                (headers["x-request-id"], header(wire.handler.requests[-1].headers, "quietus-request-id"))
            )
            assert not wire.store.received[-1].header("quietus-request-id")
        assert len({name for name, _ in names}) == 6
        assert names[2] == ("0123-abcd", "0123-abcd")
        assert names[4][0] == "alice"
        assert not any("alice" in str(logged) or logged == "mine" for _, logged in names)
        assert wire.store.received[2].header("x-request-id") == ["0123-abcd"]


async def test_headers_of_ours_stay_here() -> None:
    async with wiring() as wire:
        await wire.ask(get(extra=b"Prefer: wait=30\r\nQuietus-Min-Epoch: 3\r\n"))
        asked = wire.handler.requests[0]
        assert header(asked.headers, "prefer") == "wait=30"
        assert header(asked.headers, "quietus-min-epoch") == "3"
        assert wire.store.received[0].headers == [("Host", f"127.0.0.1:{wire.store.port}")]


async def test_an_answer_that_would_break_out_of_its_head_is_not_written() -> None:
    async with wiring() as wire:

        async def split(request: Request) -> Told:
            return Told(200, (("X", "a\r\nSet-Cookie: b"),), b"{}")

        wire.handler.answer = split
        assert await wire.ask_raw(get()) == b""
        assert wire.handler.answers[0].calls == 1


async def test_a_fault_of_the_handler_says_nothing() -> None:
    async with wiring() as wire:

        async def broken(request: Request) -> Told:
            raise LookupError("alice")

        wire.handler.answer = broken
        status, headers, body = await wire.ask(post(b"{}"))
        assert (status, headers["connection"]) == (500, "close")
        assert b"alice" not in body and json.loads(body)["type"] == "urn:quietus:problem:internal"


async def test_closing_lets_what_is_handled_finish() -> None:
    release = asyncio.Event()

    async def slow(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(OK)

    async with wiring(slow) as wire:
        idle, busy = await wire.connect(), await wire.connect()
        await busy.send(get())
        await wire.handler.entered.wait()
        assert wire.listener.in_flight == 1
        closing = asyncio.create_task(wire.listener.close(drain=5))
        assert await idle.rest() == b""
        release.set()
        status, headers, _ = await busy.answer()
        assert (status, headers["connection"]) == (200, "close")
        await closing
        assert not wire.listener.connections


async def test_closing_waits_no_longer_than_it_is_told() -> None:
    async def never(request: Request) -> Told:
        await asyncio.Event().wait()
        raise AssertionError

    async with wiring() as wire:
        wire.handler.answer = never
        line = await wire.connect()
        await line.send(get())
        await wire.handler.entered.wait()
        await wire.listener.close(drain=0.05)
        assert wire.handler.cancelled.is_set()
        assert await line.rest() == b""


async def test_the_lenient_parser_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_parser, "HttpRequestParser", http_parser.HttpRequestParserPy)
    with pytest.raises(ListenerRefused, match="C parser"):
        await HttpListener(PassThrough(), digest).start("127.0.0.1", 0)


async def test_a_taken_address_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ListenerRefused, match="choose another address"):
            await HttpListener(PassThrough(), digest).start("127.0.0.1", taken.getsockname()[1])
