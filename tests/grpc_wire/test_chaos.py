"""What fails between client, sidecar and store over gRPC: slow, reset, cut, silent. Nothing is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from quietus.app import Sidecar
from quietus.core.erasure import Erasure
from quietus.legacy.grpc_server import ServedGrpc
from quietus.legacy.grpc_wire import METHODS, SERVICE
from tests.grpc_wire.standing import TENANT, Said, ended, hurried, legacy, sidecar, tool
from tests.harness.chaos import Chaos, Toxic
from tests.harness.chaos_wires import Http2

PLAIN = "Bob Keller prefers the early morning train to Basel"
CAROL = "Carol likes tea"
SECRET = "Alice Moreau keeps her spare key under the third flower pot"
WORDS = 400
"""Bob's memories are longer than a few frames' heads, so that an answer can be cut within its message."""
LONG = " ".join([PLAIN, *(f"word{number}" for number in range(WORDS))])

SLOW = {
    "latency": Toxic(latency=0.05),
    "bandwidth": Toxic(bandwidth=20_000, slice=500),
    "slices": Toxic(slice=7),
    "single bytes": Toxic(slice=1),
    "slow close": Toxic(slow_close=0.2),
}
BROKEN = {
    "reset before": (Toxic(reset_before=True), 0),
    "reset within": (Toxic(reset_within=12), 0),
    "dropped answer": (Toxic(drop_answer=True), 1),
    "no answer": (Toxic(swallow_answer=True), 1),
    "cut head": (Toxic(cut_after=12), 1),
    "cut message": (Toxic(cut_after=1000), 1),
    "closed in the message": (Toxic(close_after=1000), 1),
}
"""What is done, and how often the call arrives at the store."""
SHORT = {name: each for name, each in BROKEN.items() if "message" not in name}
"""Those that do something to a short answer too."""


@dataclass
class Parts:
    """client - near - sidecar - far - store."""

    store: ServedGrpc
    far: Chaos
    quietus: Sidecar
    near: Chaos

    async def calm(self) -> None:
        """Nothing is done from now on; returns when the sidecar has noticed that its connection is gone."""
        self.far.use()
        self.near.use()
        self.far.reset()
        async with asyncio.timeout(30):
            while (said := await ask(self.near.address, "Read", key="b1")).code != "OK":
                assert said.code == "UNAVAILABLE", said
        assert said.message.value == LONG

    async def landed(self) -> None:
        """Waits until no call is under way: what went wrong holds up no forget."""
        while len(self.quietus.parts.flights):
            await asyncio.sleep(0)

    async def settled(self, said: Said) -> Erasure:
        name = said.trailers["quietus-erasure"].split(";")[0].strip('"')
        found = await self.quietus.parts.erasures.settled(name, 60.0)
        assert found.state.value == "settled", found.surfaces
        return found


@asynccontextmanager
async def house(tmp_path: Path, patience: str = "2s") -> AsyncIterator[Parts]:
    limits = {"timeouts__upstream": patience}
    async with legacy() as store:
        with Chaos(store.address, Http2()) as far:
            async with sidecar(tmp_path, far.address, hurried(tmp_path), **limits) as quietus:
                with Chaos(quietus.grpc_address, Http2()) as near:
                    for key, text, subject in (("b1", LONG, "bob"), ("a1", SECRET, "alice")):
                        store.store.put(text, key=key, subject=subject, tenant=TENANT)
                    yield Parts(store, far, quietus, near)


async def ask(address: str, name: str, **fields: Any) -> Said:
    """One call over a connection of its own, by a client that sends nothing twice by itself."""
    async with aio.insecure_channel(address, options=[("grpc.enable_retries", 0)]) as channel:
        method = METHODS[name]
        message = method.takes(**{"tenant": TENANT, **fields}).SerializeToString()
        call = channel.unary_unary(f"/{SERVICE}/{name}")(message, timeout=30)
        try:
            return await ended(call, method.gives.FromString(await call))
        except aio.AioRpcError:
            return await ended(call)


# --- slow, but sound -----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["near", "far"])
async def test_slow_pieces_make_the_same_answer(tmp_path: Path, side: str) -> None:
    async with house(tmp_path, "30s") as parts:
        for name, toxic in SLOW.items():
            getattr(parts, side).use(toxic)
            for method, fields in (("Read", {"key": "b1"}), ("Recall", {"query": "train", "subject": "bob"})):
                straight = await ask(parts.store.address, method, **fields)
                before = parts.store.receipts.count(method)
                through = await ask(parts.near.address, method, **fields)
                assert straight.code == "OK" and PLAIN in str(straight.message)
                assert (through.code, through.message) == (straight.code, straight.message), name
                assert parts.store.receipts.count(method) == before + 1, name


@pytest.mark.parametrize("side", ["near", "far"])
async def test_a_slow_stream_loses_nothing_and_a_cut_one_says_so(tmp_path: Path, side: str) -> None:
    async with (
        house(tmp_path, "30s") as parts,
        tool(parts.near.address) as agent,
        tool(parts.store.address) as direct,
    ):
        asked = {"query": "train", "subject": "bob"}
        straight, _ = await direct.stream("StreamRecall", **asked)
        getattr(parts, side).use(Toxic(latency=0.02, slice=100))
        slow, said = await agent.stream("StreamRecall", **asked)
        assert (slow, said.code) == (straight, "OK") and slow
        for toxic in (Toxic(cut_after=1000), Toxic(close_after=1000), Toxic(drop_answer=True)):
            getattr(parts, side).use(toxic)
            rows, said = await agent.stream("StreamRecall", **asked)
            assert (rows, said.code) == ([], "UNAVAILABLE")
            await parts.landed()


# --- the store's side fails ----------------------------------------------------------------------------


async def test_a_recall_gives_nothing_away_in_part_and_is_sent_once(tmp_path: Path) -> None:
    async with house(tmp_path) as parts:
        for name, (toxic, arrives) in BROKEN.items():
            before = parts.store.receipts.count("Read")
            parts.far.use(toxic)
            said = await ask(parts.near.address, "Read", key="b1")
            assert said.code == "UNAVAILABLE" and said.retry is not None, name
            assert said.info.metadata["problem"].endswith("upstream-unavailable"), name
            assert "Basel" not in repr(said)
            assert parts.far.count("call") == 1, name
            assert parts.store.receipts.count("Read") == before + arrives, name
            await parts.landed()
            await parts.calm()


async def test_a_connection_that_has_gone_silent_is_left_for_a_new_one(tmp_path: Path) -> None:
    """Nobody resets it: nothing but the time-out of a call tells that it is gone."""
    async with house(tmp_path) as parts, tool(parts.quietus.grpc_address) as agent:
        assert (await agent.call("Read", key="b1")).code == "OK"
        parts.far.use(Toxic(swallow_answer=True))
        first, second = await asyncio.gather(agent.call("Read", key="b1"), agent.call("Read", key="b1"))
        assert first.code == second.code == "UNAVAILABLE"
        parts.far.use()
        assert (await agent.call("Read", key="b1")).message.value == LONG


async def test_the_outcome_of_a_write_is_unknown_and_it_is_not_sent_again(tmp_path: Path) -> None:
    async with house(tmp_path) as parts:
        for number, (name, (toxic, arrives)) in enumerate(SHORT.items()):
            before = parts.store.receipts.count("Write")
            parts.far.use(toxic)
            text = f"The subject-{number} owns painting number {number} of the bay"
            said = await ask(
                parts.near.address, "Write", key=f"k{number}", value=text,
                retention={"subject": f"subject-{number}"},
            )  # fmt: skip
            assert said.code == "DEADLINE_EXCEEDED", name
            assert said.info.metadata["problem"].endswith("outcome-unknown"), name
            assert parts.far.count("call") == 1, name
            assert parts.store.receipts.count("Write") == before + arrives, name
            await parts.landed()


@pytest.mark.timeout(180)
@pytest.mark.case(100, 104)
@pytest.mark.requirement("R43", "R144")
@pytest.mark.parametrize("name", SHORT)
async def test_a_forget_without_an_answer_is_taken_up_again(tmp_path: Path, name: str) -> None:
    async with house(tmp_path) as parts:
        parts.far.use(SHORT[name][0])
        said = await ask(parts.near.address, "Forget", subject="alice")
        assert said.code == "DEADLINE_EXCEEDED"
        assert said.info.metadata["problem"].endswith("outcome-unknown")
        assert "state=requested" in said.trailers["quietus-erasure"]
        inside = await ask(parts.near.address, "Recall", query="spare key", subject="alice")
        assert inside.code == "FAILED_PRECONDITION", "the gate shut before the store heard of it"
        (erasure,) = parts.quietus.parts.erasures.all()
        assert erasure.policy_phase.value == "none"
        await parts.calm()
        settled = await parts.settled(said)
        assert settled.forwards >= 2
        assert not parts.store.store.holds("Alice Moreau")


async def test_an_end_of_what_is_sent_is_an_answer_or_a_refusal_and_never_a_second_call(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as parts:
        for side in (parts.far, parts.near):
            before = parts.store.receipts.count("Read")
            side.use(Toxic(half_close=True))
            said = await ask(parts.near.address, "Read", key="b1")
            assert said.code in ("OK", "UNAVAILABLE")
            assert said.code != "OK" or said.message.value == LONG
            assert parts.store.receipts.count("Read") <= before + 1
            await parts.landed()
            await parts.calm()


# --- the client's side fails ---------------------------------------------------------------------------


@pytest.mark.timeout(180)
@pytest.mark.requirement("R43", "R197")
@pytest.mark.parametrize("name", SHORT)
async def test_a_client_that_hears_nothing_has_had_its_effect_once_or_not_at_all(
    tmp_path: Path, name: str
) -> None:
    toxic, arrives = SHORT[name]
    async with house(tmp_path) as parts:
        parts.near.use(toxic)
        asked = asyncio.ensure_future(
            ask(parts.near.address, "Write", key="c1", value=CAROL, retention={"subject": "carol"})
        )
        forgot = asyncio.ensure_future(ask(parts.near.address, "Forget", subject="alice"))
        if name == "no answer":
            while parts.store.receipts.count("Write") + parts.store.receipts.count("Forget") < 2:
                await asyncio.sleep(0)
            parts.near.reset()
        for said in (await asked, await forgot):
            assert said.code == "UNAVAILABLE" and not said.trailers
        erasures = list(parts.quietus.parts.erasures.all())
        assert len(erasures) == arrives
        for erasure in erasures:
            settled = await parts.quietus.parts.erasures.settled(erasure.id, 60.0)
            assert settled.state.value == "settled" and settled.forwards == 1
        assert [parts.store.receipts.count(method) for method in ("Write", "Forget")] == [arrives] * 2
        assert bool(parts.store.store.holds(CAROL)) == bool(arrives)
        await parts.landed()
