"""Bytes in, bytes out: whatever passes through listener and client is what was sent, both ways."""

from __future__ import annotations

import asyncio
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.wires import Received, wiring

NAMES = st.text(string.ascii_letters + string.digits + "-.!#$%&'*+^`|~", min_size=1, max_size=20)
# What llhttp takes as a value, without space at its ends: that is framing.
VALUES = st.text([chr(n) for n in (9, *range(32, 127), *range(128, 256))], max_size=60).map(
    lambda text: text.strip(" \t")
)
OURS = (
    "quietus-",
    "content-length",
    "x-request-id",
    "host",
    "expect",
    "prefer",
    "upgrade",
    "http2-settings",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "connection",
    "te",
    "trailer",
    "keep-alive",
    "transfer-encoding",
    "proxy-",
)
HEADERS = st.lists(
    st.tuples(NAMES.filter(lambda name: not name.lower().startswith(OURS)), VALUES),
    max_size=12,
    unique_by=lambda pair: pair[0].lower(),
)
TARGETS = st.text([chr(n) for n in range(33, 127) if chr(n) != "#"], max_size=80).map(lambda text: "/" + text)


@pytest.mark.requirement("R193")
@settings(max_examples=120, deadline=None)
@given(
    method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    target=TARGETS.filter(lambda target: "_method" not in target.lower()),
    headers=HEADERS,
    body=st.binary(max_size=3000),
    status=st.integers(200, 599).filter(lambda status: status not in (204, 304)),
    answer_headers=HEADERS,
    answer=st.binary(max_size=3000),
    chunked=st.booleans(),
    streaming=st.booleans(),
)
def test_transparent(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes, status: int,
    answer_headers: list[tuple[str, str]], answer: bytes, chunked: bool, streaming: bool,
) -> None:  # fmt: skip
    async def script(got: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status} any words\r\n" + "".join(f"{n}: {v}\r\n" for n, v in answer_headers)
        if chunked:
            head += "Transfer-Encoding: chunked\r\n\r\n"
            pieces = [answer[n : n + 700] for n in range(0, len(answer), 700)]
            framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        else:
            head += f"Content-Length: {len(answer)}\r\n\r\n"
            framed = answer
        writer.write(head.encode("latin-1") + framed)

    async def play() -> None:
        async with wiring(script, streaming=streaming) as wire:
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
            head = f"{method} {target} HTTP/1.1\r\nHost: store\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
            line = await wire.connect()
            await line.send(head.encode("latin-1") + body)
            raw_head = (await line.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = raw_head[:-4].split("\r\n")
            given_headers = [one.partition(": ")[::2] for one in rest]
            kept = [
                pair
                for pair in given_headers
                if pair[0].lower() not in ("x-request-id", "content-length", "transfer-encoding")
            ]
            assert first.startswith(f"HTTP/1.1 {status} ")
            assert kept == answer_headers
            framing = {name.lower(): value for name, value in given_headers}
            if "transfer-encoding" in framing:
                assert await line._chunks() == answer
            else:
                assert await line.reader.readexactly(int(framing["content-length"])) == answer
            (got,) = wire.store.received
            assert not wire.store.faults
            assert (got.line, got.body) == (f"{method} {target} HTTP/1.1", body)
            sent_on = [pair for pair in got.headers[1:] if pair[0].lower() != "content-length"]
            assert sent_on == headers

    asyncio.run(play())
