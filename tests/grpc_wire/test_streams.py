"""Streams outlive decisions: what began before a forget is decided again, message by message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from quietus.app import Sidecar
from tests.grpc_wire.echo import SERVICE, Echo, echoing, line, profile
from tests.grpc_wire.standing import Said, ended, sidecar

BOB = ("bob", "Bob Keller prefers the early morning train to Basel")
ALICE = ("alice", "Alice Moreau keeps her spare key under the third flower pot")
TOLD = (("x-told", "1"),)


@asynccontextmanager
async def house(tmp_path: Path, **more: Any) -> AsyncIterator[tuple[Echo, Sidecar, aio.Channel]]:
    made = profile(tmp_path, settling_interval="300s", effectuation_bound="900s")
    async with echoing() as echo, sidecar(tmp_path, echo.address, made, **more) as quietus:
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            yield echo, quietus, channel


async def forget(channel: aio.Channel, subject: str) -> Said:
    call = channel.unary_unary(f"/{SERVICE}/Forget")(line(subject))
    try:
        return await ended(call, await call)
    except aio.AioRpcError:
        return await ended(call)


async def watch(channel: aio.Channel, echo: Echo, subject: str = "") -> Any:
    """A stream that has begun: its echo was read."""
    call = channel.unary_stream(f"/{SERVICE}/Scatter")(line(subject), metadata=TOLD)
    assert await call.read() == line(subject)
    return call


@pytest.mark.requirement("R34", "R192", "R203")
async def test_a_stream_goes_on_without_the_erased(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, _, channel):
        call = await watch(channel, echo)
        echo.told.put_nowait(line(rows=(ALICE, BOB)))
        assert await call.read() == line(rows=(ALICE, BOB))

        assert (await forget(channel, "alice")).code == "OK"
        echo.told.put_nowait(line(rows=(ALICE,)))
        echo.told.put_nowait(line(rows=(ALICE, BOB)))
        echo.told.put_nowait(line(rows=(BOB,)))
        # The rows of the erased leave their messages; a message that is left with none comes without them.
        heard = [await call.read() for _ in range(3)]
        assert heard == [b"", line(rows=(BOB,)), line(rows=(BOB,))]
        call.cancel()


@pytest.mark.requirement("R34", "R192")
async def test_a_stream_inside_the_erased_scope_ends_with_a_reason(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, quietus, channel):
        call = await watch(channel, echo, "alice")
        assert (await forget(channel, "alice")).code == "OK"  # a stream that is idle holds up no forget
        echo.told.put_nowait(line(rows=(BOB,)))
        said = await ended(call)
        assert said.code == "FAILED_PRECONDITION" and said.info.reason == "ERASURE_EPOCH_NOT_SETTLED"
        while len(quietus.parts.flights):
            await asyncio.sleep(0)


async def test_what_cannot_be_read_ends_the_stream_once_something_is_erased(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, _, channel):
        call = await watch(channel, echo)
        echo.told.put_nowait(b"\xff\xff")
        assert await call.read() == b"\xff\xff"
        await forget(channel, "alice")
        echo.told.put_nowait(b"\xff\xff")
        said = await ended(call)
        assert said.code == "FAILED_PRECONDITION"
        assert said.info.metadata["problem"].endswith("unscreenable")


async def test_a_sentence_in_pieces_is_not_completed(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, _, channel):
        gather = channel.stream_unary(f"/{SERVICE}/Gather")()
        await gather.write(line(*ALICE))
        await gather.done_writing()
        await gather
        call = await watch(channel, echo)
        await forget(channel, "alice")
        words = ALICE[1].split()
        heard = []
        for word in words:
            echo.told.put_nowait(line(text=word))
        while (message := await _read(call)) is not None:
            heard.append(message)
        assert len(heard) < len(words)


async def _read(call: Any) -> bytes | None:
    try:
        message = await call.read()
    except aio.AioRpcError:
        return None
    return None if message is aio.EOF else message


@pytest.mark.requirement("R192")
async def test_a_message_of_the_erased_in_the_middle_of_a_conversation_ends_it(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, _, channel):
        await forget(channel, "alice")
        call = channel.stream_stream(f"/{SERVICE}/Chat")()
        await call.write(line("bob"))
        assert await call.read() == line("bob")
        await call.write(line("alice"))
        said = await ended(call)
        assert said.code == "FAILED_PRECONDITION" and said.info.reason == "ERASURE_EPOCH_NOT_SETTLED"
        assert echo.heard("Chat") == [line("bob")]


@pytest.mark.requirement("R185", "R192")
async def test_an_upload_is_ended_by_a_forget_of_what_it_writes(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, quietus, channel):
        call = channel.stream_unary(f"/{SERVICE}/Gather")()
        await call.write(line("alice", "one"))
        await echo.arrived.wait()
        forgot = await forget(channel, "alice")
        assert forgot.code == "OK"
        said = await ended(call)
        assert said.code in ("FAILED_PRECONDITION", "ABORTED")
        assert said.info.reason in ("ERASURE_ORDERING_VIOLATION", "ERASURE_EPOCH_NOT_SETTLED")
        again = channel.stream_unary(f"/{SERVICE}/Gather")()
        await again.write(line("bob", "two"))
        await again.write(line("alice", "three"))
        refused = await ended(again)
        assert refused.info.reason == "ERASURE_ORDERING_VIOLATION"
        assert not any(message == line("alice", "three") for _, _, message in echo.received)


async def test_a_forget_in_a_stream_is_refused(tmp_path: Path) -> None:
    made = profile(tmp_path, chat="forget")
    async with echoing() as echo, sidecar(tmp_path, echo.address, made) as quietus:
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            call = channel.stream_stream(f"/{SERVICE}/Chat")()
            await call.write(line("alice"))
            said = await ended(call)
            assert said.code == "INVALID_ARGUMENT" and said.info.reason == "ERASURE_AUDIT"
            assert not echo.received


@pytest.mark.timeout(120)
async def test_a_client_that_does_not_read_holds_up_no_forget(tmp_path: Path) -> None:
    async with house(tmp_path, timeouts__barrier="30s") as (echo, quietus, channel):
        async with aio.insecure_channel(quietus.grpc_address) as lazy:
            many = (("x-times", "100000"),)
            call = lazy.unary_stream(f"/{SERVICE}/Scatter")(line("bob", "x" * 90), metadata=many)
            await echo.arrived.wait()
            while not any(flight.releasing for flight in quietus.parts.flights._open):
                await asyncio.sleep(0)
            assert (await forget(channel, "bob")).code == "OK", "the barrier's time has not run out"
            heard = 0  # what had left before the fence is on its way
            while await _read(call) is not None:
                heard += 1
            assert (await ended(call)).code == "FAILED_PRECONDITION" and heard < 100_000
