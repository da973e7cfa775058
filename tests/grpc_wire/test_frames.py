"""Frames and header fields that no library would send: none reaches the store, nobody else suffers."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio

from quietus.adapters.grpc import GrpcListener, GrpcListenerLimits
from tests.grpc_wire.echo import SERVICE, Echo, echoing, line, profile
from tests.grpc_wire.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PRIORITY,
    RESET,
    SETTINGS,
    WINDOW,
    Pairs,
    block,
    frame,
    head,
    message,
    wire,
)
from tests.grpc_wire.standing import sidecar

UNARY = f"/{SERVICE}/Unary"
PATH = UNARY.encode()
BOB = line("bob", "text")
AFTER = line("bob", "the next")
FLOOD = 5000
BOMB = 40 << 20
"""Bytes, unpacked; packed it fits into a connection's first window."""


@asynccontextmanager
async def house(tmp_path: Path) -> AsyncIterator[tuple[Echo, str]]:
    """The server and the sidecar's address; in the end somebody else is served as ever."""
    async with echoing() as echo, sidecar(tmp_path, echo.address, profile(tmp_path)) as quietus:
        yield echo, quietus.grpc_address
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            other = line("carol", "still here")
            assert await channel.unary_unary(UNARY)(other, timeout=30) == other
        while len(quietus.parts.flights):
            await asyncio.sleep(0)


def call(pairs: Pairs, data: bytes, stream: int = 1) -> bytes:
    """A whole call."""
    return frame(HEADERS, END_HEADERS, stream, block(pairs)) + frame(DATA, END_STREAM, stream, data)


async def test_the_control_a_call_by_hand_arrives(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, address):
        async with wire(address) as by_hand:
            await by_hand.send(call(head(PATH, (b"x-keep", b"yes")), message(BOB)))
            assert not await asyncio.wait_for(by_hand.ended(1), 30)
        ((name, metadata, body),) = echo.received
        assert (name, body) == ("Unary", BOB) and ("x-keep", "yes") in metadata


@pytest.mark.requirement("R13")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"x-bad", b"one\r\nquietus-decision: allow"),
        (b"x-bad", b"one\ntwo"),
        (b"x-bad", b"one\x00two"),
        (b"x-bad\r\nx-more", b"one"),
        (b"X-Bad", b"one"),
        (b"x bad", b"one"),
        (b"x-bad", b"caf\xc3\xa9"),
        (b"x-bad-bin", b"no base64 \x01"),
        (b":x-bad", b"one"),
    ],
)
async def test_a_field_that_would_break_a_line_is_not_forwarded(
    tmp_path: Path, name: bytes, value: bytes
) -> None:
    async with house(tmp_path) as (echo, address):
        async with wire(address) as by_hand:
            await by_hand.send(call(head(PATH, (name, value)), message(BOB)))
            await asyncio.wait_for(by_hand.ended(1), 30)
        for _, metadata, _ in echo.received:  # what is let through has lost it
            assert not any("bad" in key or "quietus" in key for key, _ in metadata)


PACKED = {
    "a flag without a coding": (message(BOB, 1), ()),
    "a coding that nobody knows": (message(BOB, 1), ((b"grpc-encoding", b"snappy"),)),
    "no gzip": (message(BOB, 1), ((b"grpc-encoding", b"gzip"),)),
    "half of gzip": (message(gzip.compress(BOB)[:-12], 1), ((b"grpc-encoding", b"gzip"),)),
    "a flag of nobody's": (message(BOB, 7), ()),
    "larger than allowed": (message(BOB, size=1 << 31), ()),
    "shorter than it says": (message(BOB, size=len(BOB) + 5), ()),
    "half a prefix": (b"\x00\x00", ()),
    "no message": (b"", ()),
    "two messages": (message(BOB) + message(BOB), ()),
    "a bomb of deflate": (
        message(zlib.compress(bytes(BOMB)), 1), ((b"grpc-encoding", b"deflate"),)
    ),
    "a bomb of gzip": (message(gzip.compress(bytes(BOMB)), 1), ((b"grpc-encoding", b"gzip"),)),
}  # fmt: skip


@pytest.mark.requirement("R203")
@pytest.mark.parametrize("name", PACKED)
async def test_a_message_that_is_not_what_it_says_is_not_forwarded(tmp_path: Path, name: str) -> None:
    data, more = PACKED[name]
    async with house(tmp_path) as (echo, address):
        async with wire(address) as by_hand:
            await by_hand.send(frame(HEADERS, END_HEADERS, 1, block(head(PATH, *more))))
            step = 16384
            parts = [data[at : at + step] for at in range(0, len(data), step)] or [b""]
            for number, part in enumerate(parts):
                await by_hand.send(frame(DATA, END_STREAM if number == len(parts) - 1 else 0, 1, part))
            # grpcio leaves some of these without an answer; what comes after them on the wire gets one.
            await by_hand.send(call(head(PATH), message(AFTER), stream=3))
            gone = await asyncio.wait_for(by_hand.ended(3), 30)
        heard = echo.heard("Unary")
        if not gone:
            heard.remove(AFTER)
        # Of a flag that it does not know it makes an empty message: that one is decided, and forwarded.
        through = {"two messages": [[], [BOB]], "a flag of nobody's": [[], [b""]]}
        assert heard in through.get(name, [[]])


async def test_a_head_without_an_end_is_not_collected_for_ever(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, address):
        async with wire(address) as by_hand:
            await by_hand.send(frame(HEADERS, 0, 1, block(head(PATH))))
            more = block(((b"x-more", b"y" * 4000),))
            for _ in range(FLOOD):
                if not await by_hand.send(frame(CONTINUATION, 0, 1, more)):
                    break
            await by_hand.send(frame(CONTINUATION, END_HEADERS, 1))
            await asyncio.wait_for(by_hand.ended(1), 30)
        assert not echo.received


FLOODS = {
    "pings": frame(PING, 0, 0, bytes(8)),
    "settings": frame(SETTINGS, 0, 0, b"\x00\x04\x00\x00\xff\xff"),
    "empty data": frame(DATA, 0, 1),
    "priorities": frame(PRIORITY, 0, 1, b"\x00\x00\x00\x03\x01"),
    "windows": frame(WINDOW, 0, 0, b"\x00\x00\x00\x01"),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_frames_harms_nobody_else(tmp_path: Path, name: str) -> None:
    async with house(tmp_path) as (_, address), wire(address) as by_hand:
        await by_hand.send(frame(HEADERS, END_HEADERS, 1, block(head(PATH))))
        reading = asyncio.ensure_future(by_hand.ended(1))
        for _ in range(FLOOD // 50):
            if not await by_hand.send(FLOODS[name] * 50):
                break
        async with aio.insecure_channel(address) as channel:
            assert await channel.unary_unary(UNARY)(BOB, timeout=30) == BOB, "while the flood's wire is open"
        reading.cancel()


async def test_connections_are_so_many_and_no_more(tmp_path: Path) -> None:
    async with echoing() as echo, sidecar(tmp_path, echo.address, profile(tmp_path)) as quietus:
        parts = quietus.parts
        limits = GrpcListenerLimits(connections_max=3)
        listener = GrpcListener(
            parts.gateway, parts.conversations, str, lambda _: True, lambda: None, limits=limits
        )
        await listener.start("127.0.0.1:0")
        address = f"127.0.0.1:{listener.port}"
        async with wire(address) as first, wire(address) as second, wire(address) as third:
            for held in (first, second, third):
                await held.send(call(head(PATH), message(BOB)))
                assert not await asyncio.wait_for(held.ended(1), 30)
            async with wire(address) as fourth:
                await fourth.send(call(head(PATH), message(BOB)))
                assert await asyncio.wait_for(fourth.ended(1), 30), "the connection was closed"
        await listener.close(0)
        assert len(echo.heard("Unary")) == 3


@pytest.mark.timeout(120)
async def test_calls_that_are_taken_back_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, address), wire(address) as by_hand:
        reading = asyncio.ensure_future(by_hand.ended(0))
        for number in range(1, FLOOD, 2):
            begun = frame(HEADERS, END_HEADERS, number, block(head(PATH)))
            if not await by_hand.send(begun + frame(RESET, 0, number, b"\x00\x00\x00\x08")):
                break
        async with aio.insecure_channel(address) as channel:
            assert await channel.unary_unary(UNARY)(BOB, timeout=30) == BOB
        assert echo.heard("Unary") == [BOB], "a call without its message is none"
        reading.cancel()
