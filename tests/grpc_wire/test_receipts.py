"""Nothing is sent twice: what the server receives is counted, while connections are reset around it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio

from tests.grpc_wire.echo import SERVICE, Echo, echoing, line, profile
from tests.grpc_wire.standing import Said, ended, sidecar
from tests.harness.chaos import Chaos, Toxic
from tests.harness.chaos_wires import Http2

SLEEP = (("x-sleep", "1"),)


@asynccontextmanager
async def mistreated(echo: Echo) -> AsyncIterator[Chaos]:
    """A proxy in front of the server that can reset connections."""
    with Chaos(echo.address, Http2()) as between:
        yield between


async def ask(channel: aio.Channel, method: str, message: bytes, **more: object) -> Said:
    call = channel.unary_unary(f"/{SERVICE}/{method}")(message, **more)
    try:
        return await ended(call, await call)
    except aio.AioRpcError:
        return await ended(call)


@pytest.mark.requirement("R192")
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_a_reset_after_the_receipt_is_not_made_good_by_asking_again(
    tmp_path: Path, known: bool
) -> None:
    name = profile(tmp_path) if known else "memory-tool"
    async with echoing() as echo, mistreated(echo) as between:
        async with sidecar(tmp_path, between.address, name) as quietus:
            async with aio.insecure_channel(quietus.grpc_address) as channel:
                asked = asyncio.ensure_future(ask(channel, "Unary", line("bob"), metadata=SLEEP))
                await echo.arrived.wait()
                between.reset()
                said = await asked
                # A read may be asked for again; of what nobody described, nobody knows what it did.
                problem = "upstream-unavailable" if known else "outcome-unknown"
                assert said.code == ("UNAVAILABLE" if known else "DEADLINE_EXCEEDED")
                assert said.info.metadata["problem"].endswith(problem)
                assert len(echo.received) == 1
                assert (await ask(channel, "Unary", line("bob"))).code == "OK"


async def test_a_reset_before_the_receipt_is_not_made_good_either(tmp_path: Path) -> None:
    async with echoing() as echo, mistreated(echo) as between:
        async with sidecar(tmp_path, between.address, profile(tmp_path)) as quietus:
            async with aio.insecure_channel(quietus.grpc_address) as channel:
                assert (await ask(channel, "Unary", line("bob", "first"))).code == "OK"
                between.use(Toxic(swallow_request=True))
                asked = asyncio.ensure_future(ask(channel, "Unary", line("bob", "second")))
                await asyncio.to_thread(between.came, "call")
                between.reset()
                assert (await asked).code == "UNAVAILABLE"
                between.use()
                assert (await ask(channel, "Unary", line("bob", "third"))).code == "OK"
                assert [message for _, _, message in echo.received] == [
                    line("bob", "first"),
                    line("bob", "third"),
                ]


async def test_a_store_that_is_down_is_told_at_once(tmp_path: Path) -> None:
    async with sidecar(tmp_path, "127.0.0.1:1", profile(tmp_path)) as quietus:
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            for method in ("Unary", "Gather"):
                said = await ask(channel, method, line("bob"))
                assert said.code == "UNAVAILABLE" and said.retry is not None
                assert "127.0.0.1" not in said.words


@pytest.mark.timeout(120)
async def test_no_message_arrives_twice_under_resets(tmp_path: Path) -> None:
    rng = random.Random(7)
    async with echoing() as echo, mistreated(echo) as between:
        async with sidecar(tmp_path, between.address, profile(tmp_path)) as quietus:
            async with aio.insecure_channel(quietus.grpc_address) as channel:
                codes: Counter[str] = Counter()
                for batch in range(40):
                    messages = [line("bob", f"{batch}/{number}") for number in range(10)]
                    asked = [asyncio.ensure_future(ask(channel, "Unary", message)) for message in messages]
                    for _ in range(rng.randrange(60)):
                        await asyncio.sleep(0)
                    between.reset()
                    codes.update(said.code for said in await asyncio.gather(*asked))
                assert set(codes) <= {"OK", "UNAVAILABLE"} and codes["UNAVAILABLE"], codes
                received = Counter(message for _, _, message in echo.received)
                assert max(received.values()) == 1
