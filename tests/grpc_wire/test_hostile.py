"""What must not get through, or not uncounted: what means to deceive, or to flood."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio

from tests.e2e.process import Quietus
from tests.grpc_wire.echo import SERVICE, Echo, echoing, line, profile
from tests.grpc_wire.standing import Said, ended, sidecar

UNARY = f"/{SERVICE}/Unary"
OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_metadata_size", 1 << 20)]


@asynccontextmanager
async def house(tmp_path: Path, **more: Any) -> AsyncIterator[tuple[Echo, aio.Channel]]:
    async with echoing() as echo, sidecar(tmp_path, echo.address, profile(tmp_path), **more) as quietus:
        async with aio.insecure_channel(quietus.grpc_address, options=OPTIONS) as channel:
            yield echo, channel


async def ask(channel: aio.Channel, message: bytes, method: str = UNARY, **more: Any) -> Said:
    call = channel.unary_unary(method)(message, **more)
    try:
        return await ended(call, await call)
    except aio.AioRpcError:
        return await ended(call)


@pytest.mark.requirement("R13")
@pytest.mark.parametrize(
    "path",
    [
        "echo.v1.EchoService/Unary",
        "/echo.v1.EchoService/../EchoService/Unary",
        "/echo.v1.EchoService/./Unary",
        "/echo.v1.%45choService/Unary",
        "/echo.v1.EchoService/Unary/",
        "//echo.v1.EchoService/Unary",
        "/echo.v1.EchoService/Unary?x=1",
        "/echo.v1..EchoService/Unary",
        "/",
    ],
)
async def test_a_path_that_is_no_method_is_not_forwarded(tmp_path: Path, path: str) -> None:
    async with house(tmp_path) as (echo, channel):
        said = await ask(channel, line("bob"), path)
        assert said.code == "UNIMPLEMENTED"
        assert not echo.received


@pytest.mark.parametrize(
    "garbage", [b"\xff\xff\xff\xff", b"\x0a\x7f", b"\x0a\x02\xc3\x28", b"\x0b" * 50, b"\x08"]
)
async def test_a_message_that_does_not_decode_is_refused_on_a_known_method(
    tmp_path: Path, garbage: bytes
) -> None:
    async with house(tmp_path) as (echo, channel):
        said = await ask(channel, garbage)
        assert said.code == "INVALID_ARGUMENT" and said.info.metadata["problem"].endswith("malformed-request")
        call = channel.stream_stream(f"/{SERVICE}/Chat")()
        await call.write(garbage)
        assert (await ended(call)).code == "INVALID_ARGUMENT"
        assert not echo.received


async def test_fields_that_nobody_knows_go_on_as_they_came(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, channel):
        message = line("bob", "text") + b"\xfa\x07\x03abc"
        said = await ask(channel, message)
        assert said.message == message == echo.received[0][2]


@pytest.mark.requirement("R203")
async def test_a_message_over_the_limit_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, limits__request_bytes_max=100_000) as (echo, channel):
        assert (await ask(channel, line("bob", padding=90_000))).code == "OK"
        assert (await ask(channel, line("bob", padding=110_000))).code == "RESOURCE_EXHAUSTED"
        assert len(echo.received) == 1


async def test_a_bomb_does_not_fill_the_memory(tmp_path: Path) -> None:
    made = profile(tmp_path)
    async with echoing() as echo:
        reached = {"listen": "127.0.0.1:0", "upstream": echo.address}
        quietus = Quietus(tmp_path, "", made, {"store": {"profile": made, "grpc": reached}}).start()
        try:
            async with aio.insecure_channel(quietus.grpc, options=OPTIONS) as channel:
                assert (await ask(channel, line("bob"))).code == "OK"
                before = _peak(quietus)
                bomb = line("bob", padding=100 << 20)
                said = await ask(channel, bomb, compression=grpc.Compression.Gzip)
                assert said.code == "RESOURCE_EXHAUSTED"
                assert _peak(quietus) - before < 64 << 10, "kibibytes"
                assert len(echo.received) == 1
        finally:
            assert quietus.stop() == 0


def _peak(quietus: Quietus) -> int:
    """The most memory that the process ever had, in kibibytes."""
    assert quietus.process is not None
    status = Path(f"/proc/{quietus.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


async def test_an_answer_over_the_limit_is_refused_in_words_of_our_own(tmp_path: Path) -> None:
    async with house(tmp_path, limits__response_bytes_max=100_000) as (_, channel):
        said = await ask(channel, line("bob"), metadata=(("x-size", "200000"),))
        assert said.code == "RESOURCE_EXHAUSTED" and "CLIENT:" not in said.words
        assert said.info.metadata["problem"].endswith("unscreenable")


async def test_too_much_metadata_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, channel):
        said = await ask(channel, line("bob"), metadata=(("much", "x" * 20_000),))
        assert said.code == "RESOURCE_EXHAUSTED"
        assert not echo.received


async def test_ours_is_not_forwarded_and_cannot_be_forged(tmp_path: Path) -> None:
    async with house(tmp_path) as (echo, channel):
        forged = (("quietus-decision", "allow"), ("quietus-min-epoch", "0"), ("x-keep", "yes"))
        assert (await ask(channel, line("bob"), metadata=forged)).code in ("OK", "FAILED_PRECONDITION")
        said = await ask(channel, line("bob"), metadata=(("quietus-anything", "1"), ("x-keep", "yes")))
        assert said.code == "OK"
        names = {name for name, _ in echo.received[-1][1]}
        assert "x-keep" in names and not any(name.startswith("quietus-") for name in names)


async def test_a_method_is_matched_by_its_exact_name(tmp_path: Path) -> None:
    async with house(tmp_path, policy="strict") as (echo, channel):
        for method in (
            "/echo.v1.EchoService/unary",
            "/echo.v1.EchoServiceX/Unary",
            "/echo.v1.EchoService/UnaryX",
        ):
            assert (await ask(channel, line("bob"), method)).code == "PERMISSION_DENIED", method
        assert not echo.received


async def test_a_client_that_goes_away_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    async with echoing() as echo, sidecar(tmp_path, echo.address, profile(tmp_path)) as quietus:
        for _ in range(5):
            async with aio.insecure_channel(quietus.grpc_address) as channel:
                call = channel.stream_stream(f"/{SERVICE}/Chat")()
                await call.write(line("bob"))
                await call.read()
                call.cancel()
        while len(quietus.parts.flights):
            await asyncio.sleep(0)
