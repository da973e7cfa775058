"""The main job over gRPC: write, recall, forget; recall refused, wider recalls screened; settled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quietus.legacy.faults import Faults
from quietus.legacy.grpc_wire import METHODS, SERVICE
from tests.grpc_wire.standing import hurried, legacy, sidecar, tool

SECRET = "Alice Moreau keeps her spare key under the third flower pot"
PLAIN = "Bob Keller prefers the early morning train to Basel"
ALICE = {"query": "spare key", "subject": "alice"}


@pytest.mark.requirement("R13", "R41", "R151", "R185", "R192")
async def test_a_forget_over_grpc_from_its_intent_to_settled(tmp_path: Path) -> None:
    async with (
        legacy(Faults(lazy_index=6.0, chunk_cache=6.0)) as store,
        sidecar(tmp_path, store.address, hurried(tmp_path)) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        assert (await agent.write("a1", SECRET, "alice")).message.status == "stored"
        assert (await agent.write("b1", PLAIN, "bob")).code == "OK"
        assert (await agent.call("Read", key="a1")).message.value == SECRET
        assert await agent.keys(query="spare key") == ["a1", "b1"]

        forgot = await agent.call("Forget", subject="alice")
        assert forgot.code == "OK" and forgot.message.keys == 1
        erasure = forgot.trailers["quietus-erasure"]
        assert "state=settling" in erasure or "state=leaking" in erasure
        assert "assurance=policy_only" in erasure

        # The store has said "erased", and goes on recalling.
        assert "a1" in await direct.keys(query="spare key")
        wider = await agent.call("Recall", query="spare key")
        assert [row.key for row in wider.message.results] == ["b1"]
        assert wider.trailers["quietus-candidate-set"] == "contaminated"
        assert wider.trailers["quietus-decision"].startswith("screen;")

        refused = await agent.call("Recall", **ALICE)
        assert refused.code == "FAILED_PRECONDITION"
        assert refused.info.reason == "ERASURE_EPOCH_NOT_SETTLED" and refused.info.domain == "quietus"
        assert refused.info.metadata["subject"].startswith("hmac:")
        assert refused.info.metadata["erasure_epoch"]
        assert refused.retry is not None and refused.retry.retry_delay.seconds >= 1
        assert refused.precondition is not None
        assert refused.precondition.violations[0].subject == "urn:quietus:problem:erasure-not-settled"
        assert "alice" not in repr(refused) and "flower" not in repr(refused)

        again = await agent.write("a2", "Something new about her", "alice")
        assert again.code == "FAILED_PRECONDITION" and again.info.reason == "ERASURE_ORDERING_VIOLATION"
        assert again.retry is None
        restated = await agent.write("b2", SECRET, "bob")
        assert restated.info.reason == "SCOPE_LAUNDERING"

        name = erasure.split(";")[0].strip('"')
        settled = await quietus.parts.erasures.settled(name, 100.0)
        assert settled.state.value == "settled", settled.surfaces
        after = await agent.call("Recall", **ALICE)
        assert after.code == "OK" and not after.message.results
        assert "quietus-decision" not in after.trailers
        assert store.receipts.count("Forget") == 1


@pytest.mark.requirement("R13")
async def test_a_repeat_of_a_forget_joins_the_first(tmp_path: Path) -> None:
    async with (
        legacy(Faults(lazy_index=900.0)) as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
    ):
        await agent.write("a1", SECRET, "alice")
        first = await agent.call("Forget", subject="alice")
        second = await agent.call("Forget", subject="alice")
        named = [said.trailers["quietus-erasure"].split(";")[0] for said in (first, second)]
        assert named[0] == named[1] and first.message == second.message
        assert store.receipts.count("Forget") == 1


async def test_what_the_store_refuses_comes_as_the_store_said_it(tmp_path: Path) -> None:
    async with (
        legacy() as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        for name, fields in (("Read", {"key": "nobody"}), ("Write", {"value": "x", "salience": 7.0})):
            through, straight = await agent.call(name, **fields), await direct.call(name, **fields)
            assert (through.code, through.words) == (straight.code, straight.words)
            assert through.code != "OK"


async def test_a_predicate_that_names_nothing_is_not_forwarded(tmp_path: Path) -> None:
    async with (
        legacy() as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
    ):
        said = await agent.call("Forget")
        assert said.code == "INVALID_ARGUMENT" and said.info.reason == "ERASURE_AUDIT"
        assert "Forget" not in store.receipts


async def test_a_forget_waits_where_it_is_asked_to(tmp_path: Path) -> None:
    async with (
        legacy() as store,
        sidecar(tmp_path, store.address, hurried(tmp_path)) as quietus,
        tool(quietus.grpc_address, prefer="wait=100") as agent,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.write("b1", PLAIN, "bob")
        said = await agent.call("Forget", subject="alice")
        assert "state=settled" in said.trailers["quietus-erasure"]
        assert "quietus-retry-after" not in said.trailers


@pytest.mark.requirement("R197")
async def test_a_client_that_gives_up_a_forget_cancels_nothing(tmp_path: Path) -> None:
    async with (
        legacy(Faults(latency=2.0)) as store,
        sidecar(tmp_path, store.address, hurried(tmp_path)) as quietus,
        tool(quietus.grpc_address) as agent,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.write("b1", PLAIN, "bob")
        asks = METHODS["Forget"].takes(tenant="acme", subject="alice").SerializeToString()
        call = agent.channel.unary_unary(f"/{SERVICE}/Forget")(asks)
        while "Forget" not in store.receipts:
            await asyncio.sleep(0)
        call.cancel()
        assert (await call.code()).name == "CANCELLED"
        (erasure,) = quietus.parts.erasures.all()
        settled = await quietus.parts.erasures.settled(erasure.id, 100.0)
        assert settled.state.value == "settled"
        assert store.receipts.count("Forget") == 1
        assert not any(
            key.startswith("quietus-canary") for key in await agent.keys(query="anything", top_k=100)
        )
