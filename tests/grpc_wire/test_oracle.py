"""What can be found out by asking: a refusal tells of an erasure, and nothing of what the store holds.

What a refusal says of time (epochs, when to ask again) and of the asked (a keyed digest of what the caller
itself has named) is left out of the comparison; everything else must be the same to the last byte.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest

from quietus.legacy.faults import Faults
from tests.grpc_wire.standing import Said, legacy, sidecar, tool
from tests.grpc_wire.test_one_port import both_wires

SECRET = "Alice Moreau keeps her spare key under the third flower pot"
PLAIN = "Bob Keller prefers the early morning train to Basel"
OF_TIME = {"erasure_epoch", "read_epoch", "subject"}


def told(said: Said) -> dict[str, Any]:
    """All that a refused caller gets to know, without times and digests."""
    assert said.code != "OK" and said.retry is not None and said.precondition is not None
    return {
        "code": said.code,
        "words": said.words,
        "head": said.head,
        "reason": said.info.reason,
        "metadata": {name: value for name, value in said.info.metadata.items() if name not in OF_TIME},
        "named": sorted(said.info.metadata),
        "violations": [str(each) for each in said.precondition.violations],
        "details": [each.type_url for each in said.status.details],
        "trailers": {n: v for n, v in said.trailers.items() if n not in ("grpc-status-details-bin",
                                                                         "quietus-retry-after")},
        "names": sorted(said.trailers),
    }  # fmt: skip


@pytest.mark.requirement("R41", "R205")
async def test_a_refusal_is_the_same_whatever_the_store_holds(tmp_path: Path) -> None:
    """Of somebody with records, somebody whose records are gone, and somebody who never had any."""
    async with (
        legacy(Faults(lazy_index=900.0)) as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.write("c1", "Carol Weber paints boats in the harbour", "carol")
        await direct.call("Forget", subject="carol")
        for subject in ("alice", "carol", "nobody"):
            said = await agent.call("Forget", subject=subject)
            assert said.code in ("OK", "NOT_FOUND") and "quietus-erasure" in said.trailers
        assert "a1" in await direct.keys(query="spare key"), "the control: one of them is still told of"
        asked = [
            await agent.call("Recall", query=query, subject=subject)
            for subject in ("alice", "carol", "nobody")
            for query in ("spare key", "boats in the harbour", "nothing like it")
        ]
        assert [told(each) for each in asked] == [told(asked[0])] * len(asked)
        wrote = [
            await agent.write("x1", "a text of now", subject) for subject in ("alice", "carol", "nobody")
        ]
        assert len({(each.code, each.words, each.info.reason) for each in wrote}) == 1


@pytest.mark.requirement("R17", "R192")
async def test_a_screened_answer_does_not_tell_whether_anything_left_it(tmp_path: Path) -> None:
    async with (
        legacy(Faults(lazy_index=900.0)) as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.write("b1", PLAIN, "bob")
        await agent.call("Forget", subject="alice")
        hits = {"query": "spare key", "top_k": 1}
        assert await direct.keys(**hits) == ["a1"], "the control: a row has to leave"
        with_her, without = (
            await agent.call("Recall", **hits),
            await agent.call("Recall", query="train", top_k=1),
        )
        assert with_her.code == without.code == "OK"
        assert with_her.trailers == without.trailers and with_her.head == without.head
        assert [row.key for row in without.message.results] == ["b1"] and not with_her.message.results


async def test_another_tenant_learns_nothing_at_all(tmp_path: Path) -> None:
    async with (
        legacy(Faults(lazy_index=900.0)) as store,
        sidecar(tmp_path, store.address) as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.write("o1", PLAIN, "alice", tenant="other")
        await agent.call("Forget", subject="alice")
        for fields in ({"query": "train", "subject": "alice"}, {"query": "spare key"}):
            through = await agent.call("Recall", tenant="other", **fields)
            straight = await direct.call("Recall", tenant="other", **fields)
            assert through == straight and through.code == "OK"


@pytest.mark.requirement("R41", "R192")
async def test_both_wires_tell_the_same(tmp_path: Path) -> None:
    async with (
        both_wires(tmp_path) as (_, quietus),
        tool(quietus.grpc_address) as agent,
        aiohttp.ClientSession(quietus.data_url) as session,
    ):
        await agent.write("a1", SECRET, "alice")
        await agent.call("Forget", subject="alice")
        said = await agent.call("Recall", query="spare key", subject="alice")
        asked = {"tenant": "acme", "query": "spare key", "subject": "alice"}
        async with session.post("/v1/recall", json=asked) as answer:
            problem, decision = await answer.json(), answer.headers["Quietus-Decision"]
        info = dict(said.info.metadata)
        assert (info.pop("problem"), said.info.reason) == (problem["type"], problem["reason"])
        assert info == {
            name: ",".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in problem.items()
            if name in info
        }
        of_the_wire = {"type", "title", "status", "reason", "detail", "instance", "retry_after", "retry"}
        assert set(problem) - of_the_wire == set(info)
        assert said.trailers["quietus-decision"] == decision
