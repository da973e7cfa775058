"""The interop list: what a client gets through the sidecar is what it gets from the server itself.

Each case runs twice: with a profile that knows the methods, and with one that does not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc.status_pb2 import Status
from grpc import aio

from tests.grpc_wire.echo import SERVICE, Echo, echoing, line, profile
from tests.grpc_wire.standing import ended, sidecar

DETAILS = Status(code=10, message="no", details=[AnyMessage()]).SerializeToString()
CASES: dict[str, tuple[bytes, tuple[tuple[str, str | bytes], ...]]] = {
    "empty": (b"", ()),
    "small": (line("bob", "a text"), ()),
    "large": (line("bob", padding=271828), ()),
    "large answer": (line("bob"), (("x-size", "3141590"),)),
    "compressed answer": (line("bob"), (("x-compress", "1"), ("x-size", "100000"))),
    "custom metadata": (line("bob"), (
        ("x-head-echo-initial", "one"), ("x-tail-echo-trailing-bin", b"\xab\xab\x00"),
    )),
    "duplicate keys": (line("bob"), (("x-tail-k", "1"), ("x-tail-k", "2"), ("x-dup", "a"), ("x-dup", "b"))),
    "status": (line("bob"), (("x-code", "UNKNOWN"), ("x-words-bin", b"test status message"))),
    "special message": (line("bob"), (
        ("x-code", "UNKNOWN"),
        ("x-words-bin", "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n".encode()),
    )),
    "details": (line("bob"), (
        ("x-code", "ABORTED"), ("x-words-bin", b"no"),
        ("x-tail-grpc-status-details-bin", DETAILS),
    )),
    "large trailers": (line("bob"), (
        ("x-code", "NOT_FOUND"), ("x-words-bin", b"gone"), ("x-tail-much-bin", bytes(6000)),
    )),
    "own unavailable": (line("bob"), (("x-code", "UNAVAILABLE"), ("x-words-bin", b"busy, come again"))),
}  # fmt: skip


@asynccontextmanager
async def both(tmp_path: Path, known: bool) -> AsyncIterator[tuple[Echo, aio.Channel, aio.Channel]]:
    """The server, a channel straight to it, and one through a sidecar."""
    name = profile(tmp_path) if known else "memory-tool"
    options = [("grpc.max_receive_message_length", -1), ("grpc.enable_retries", 0)]
    async with echoing() as echo, sidecar(tmp_path, echo.address, name) as quietus:
        async with (
            aio.insecure_channel(echo.address, options=options) as straight,
            aio.insecure_channel(quietus.grpc_address, options=options) as through,
        ):
            yield echo, straight, through


async def unary(
    channel: aio.Channel, message: bytes, metadata: Any, method: str = f"/{SERVICE}/Unary"
) -> Any:
    call = channel.unary_unary(method)(message, metadata=metadata)
    try:
        body = await call
    except aio.AioRpcError:
        body = None
    said = await ended(call)
    pairs = [tuple(await call.initial_metadata() or ()), tuple(await call.trailing_metadata() or ())]
    return body, said.code, said.words, pairs


@pytest.mark.requirement("R193")
@pytest.mark.case(149)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_through_is_as_direct(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (echo, straight, through):
        for name, (message, metadata) in CASES.items():
            expected = await unary(straight, message, metadata)
            got = await unary(through, message, metadata)
            assert got == expected, name
            (_, sent, body), (_, forwarded, again) = echo.received[-2:]
            ours = [pair for pair in forwarded if pair[0] != "user-agent"]
            assert ours == [pair for pair in sent if pair[0] != "user-agent"], name
            assert again == body == message, name


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_what_a_client_packs_arrives_unpacked(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (echo, straight, through):
        for way in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            for channel in (straight, through):
                message = line("bob", padding=27182)
                assert await channel.unary_unary(f"/{SERVICE}/Unary")(message, compression=way) == message
                call = channel.stream_stream(f"/{SERVICE}/Chat")(compression=way)
                for number in range(3):
                    await call.write(message)
                    assert await call.read() == message, number
                await call.done_writing()
                assert await call.read() is aio.EOF
                assert echo.received[-1][2] == echo.received[-4][2] == message


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_a_stream_without_a_message_and_one_that_is_left_after_the_first(
    tmp_path: Path, known: bool
) -> None:
    async with both(tmp_path, known) as (echo, straight, through):
        for channel in (straight, through):
            call = channel.stream_stream(f"/{SERVICE}/Chat")()
            await call.done_writing()
            assert await call.read() is aio.EOF
            assert (await ended(call)).code == "OK" and not echo.received
        call = through.stream_stream(f"/{SERVICE}/Chat")()
        await call.write(line("bob"))
        assert await call.read() == line("bob")
        echo.left.clear()
        call.cancel()
        assert (await ended(call)).code == "CANCELLED"
        await asyncio.wait_for(echo.left.wait(), 30)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_what_is_not_there(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (_, straight, through):
        for method in (f"/{SERVICE}/Nothing", "/no.such.Service/Method"):
            expected = await unary(straight, b"", (), method)
            assert expected[1] == "UNIMPLEMENTED"
            assert await unary(through, b"", (), method) == expected


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_streams_of_every_kind(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (_, straight, through):
        messages = [line("bob", f"text {number}") for number in range(20)]

        async def scatter(channel: aio.Channel) -> Any:
            call = channel.unary_stream(f"/{SERVICE}/Scatter")(
                messages[0], metadata=(("x-times", "50"), ("x-tail-a", "b"))
            )
            return [m async for m in call], await ended(call)

        async def gather(channel: aio.Channel) -> Any:
            call = channel.stream_unary(f"/{SERVICE}/Gather")(iter_of(messages))
            return await call, await ended(call)

        async def chat(channel: aio.Channel) -> Any:
            call = channel.stream_stream(f"/{SERVICE}/Chat")()
            heard = []
            for message in messages:  # each waits for the one before
                await call.write(message)
                heard.append(await call.read())
            await call.done_writing()
            assert await call.read() is aio.EOF
            return heard, await ended(call)

        asked: list[Callable[[aio.Channel], Awaitable[Any]]] = [scatter, gather, chat]
        for ask in asked:
            assert await ask(through) == await ask(straight), ask.__name__


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("method", ["Unary", "Scatter"])
async def test_cancel_after_begin_reaches_the_server(tmp_path: Path, known: bool, method: str) -> None:
    async with both(tmp_path, known) as (echo, _, through):
        call = through.unary_stream(f"/{SERVICE}/{method}")(line("bob"), metadata=(("x-sleep", "1"),))
        await echo.arrived.wait()
        call.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), 30)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_a_deadline_reaches_a_sleeping_server(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (echo, _, through):
        for patience in (1.0, 5.0, 30.0):  # until it gets there in time, on a machine that is slow
            call = through.unary_unary(f"/{SERVICE}/Unary")(
                line("bob"), metadata=(("x-sleep", "1"),), timeout=patience
            )
            with pytest.raises(aio.AioRpcError) as error:
                await call
            assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if echo.arrived.is_set():
                break
        await asyncio.wait_for(echo.cancelled.wait(), 30)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_three_hundred_streams_at_once(tmp_path: Path, known: bool) -> None:
    async with both(tmp_path, known) as (_, _, through):
        calls = [through.stream_stream(f"/{SERVICE}/Chat")() for _ in range(300)]

        async def talk(number: int) -> bool:
            call = calls[number]
            for turn in range(3):
                message = line("bob", f"{number}/{turn}")
                await call.write(message)
                assert await call.read() == message
            await call.done_writing()
            return await call.read() is aio.EOF and await call.code() is grpc.StatusCode.OK

        assert all(await asyncio.gather(*(talk(number) for number in range(300))))


async def iter_of(messages: list[bytes]) -> AsyncIterator[bytes]:
    for message in messages:
        yield message
