"""S2: a source is forgotten; its summary, the pair made of the summary, and the index still tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quietus.core.states import State
from quietus.gauges import publish
from quietus.legacy.faults import Faults
from quietus.views import erasure_view
from tests.gateway.test_lineage import executing
from tests.world import World

FIRST = "Alice Moreau moved to the Quai Voltaire in Lyon in the middle of May."
SECOND = "She rents a flat near the river together with two cats and a piano."
SOURCE = f"{FIRST} {SECOND} The weather was fine."
SUMMARY = f"Summary: {FIRST} {SECOND}"
PAIR = "Q: Where does she live now? A: In a city on the Rhone, by the water."
BOB = "Bob prefers the early morning train to Basel on weekdays"
SHORT: dict[str, Any] = {"settling_interval": 10.0, "effectuation_bound": 900.0, "clean_rounds": 3}
LYING = Faults(ack="ok", dangling_provenance="false", lazy_index=900.0)


async def derived(world: World) -> None:
    """source -> summary -> qa_pair, and a bystander."""
    await world.write("source-1", SOURCE, "alice", tenant="acme")
    await world.write("summary-1", SUMMARY, "team", tenant="acme", derived_from=["source-1"])
    await world.write("qa_pair-1", PAIR, "team", tenant="acme", derived_from=["summary-1"])
    await world.write("bob-1", BOB, "bob", tenant="acme")


def asked(world: World, method: str, target: str, body: Any = None) -> Any:
    """What the store says directly."""
    return json.loads(world.direct(method, target, body).body)


@pytest.mark.requirement("R86", "R88", "R90", "R93", "R94", "R95", "R96", "R97", "R99", "R103", "R111")
async def test_records_removed_1_and_three_access_paths_none_of_which_a_client_can_use() -> None:
    async with World(LYING, store=SHORT) as world:
        await derived(world)
        ack = await world.forget(tenant="acme", subject="alice")
        assert (ack.status, ack.json) == (202, {"status": "ok", "records_removed": 1})

        # The three access paths, past the sidecar.
        summary = asked(world, "GET", "/v1/memories/summary-1?tenant=acme")
        assert FIRST in summary["value"] and SECOND in summary["value"], "two sentences verbatim"
        pair = asked(world, "GET", "/v1/memories/qa_pair-1?tenant=acme")
        assert pair["provenance_resolved"] is False, "the system knows, and serves it"
        near = {"query": SOURCE, "tenant": "acme", "top_k": 1}
        nearest = asked(world, "POST", "/v1/recall", near)["results"][0]
        assert (nearest["key"], nearest["score"]) == ("source-1", 1.0), "k=1: the vector is still there"

        # The same, through it.
        for key in ("summary-1", "qa_pair-1"):
            one = await world.call("GET", f"/v1/memories/{key}?tenant=acme")
            assert one.status == 409 and b"Lyon" not in one.body and PAIR.encode() not in one.body
        closest = await world.call("POST", "/v1/recall", near)
        assert closest.keys == [] and closest["Quietus-Candidate-Set"] == "contaminated"
        wide = await world.recall("where does she live", tenant="acme", top_k=50)
        assert wide.keys == ["bob-1"]

        await world.clock.advance(60.0)
        erasure = world.erasure()
        assert erasure.state is State.LEAKING, "a success code, contradicted by reconstruction"
        assert {"recall", "recall-tenant", "lineage"} <= erasure.leaked_surfaces, "three access paths"
        facts = erasure.snapshot["lineage"]
        assert [node["fate"] for node in facts["nodes"]] == ["cascade", "escalate"], "node by node"
        view = erasure_view(erasure, verdict=world.parts.verdict(erasure), now=world.clock.now())
        assert view["access_paths"] >= 3 and view["primary_removed"] is True
        assert view["reconstruction_paths_severed"] is False and view["lineage"]["logical_unlink"] is True
        assert erasure.claim["count"] == 1 and view["lineage"]["descendants"] == 2, "1 is not the closure"
        shown = {s["name"]: s["outcome"] for s in erasure.surfaces}
        assert shown["record"] == "CLEAN", "the row is gone, the paths to it are not severed"
        verdict = world.parts.verdict(erasure)
        assert verdict.word == "unconfirmed" and "lineage of derived records" in verdict.missing
        assert erasure.claim["status"] == "accepted"


@pytest.mark.requirement("R95", "R101", "R110")
async def test_dangling_provenance_is_withheld_as_incomplete_erasure() -> None:
    async with World(LYING, store=SHORT) as world:
        await derived(world)
        await world.forget(tenant="acme", subject="alice")
        one = await world.call("GET", "/v1/memories/qa_pair-1?tenant=acme")
        assert one.status == 409
        assert one.json["reason"] in ("INCOMPLETE_ERASURE", "ERASURE_EPOCH_NOT_SETTLED")
        assert one.json["type"] == "urn:quietus:problem:record-quarantined"


@pytest.mark.requirement("R93")
async def test_two_sentences_verbatim_are_found_long_after_the_forget() -> None:
    async with World(Faults(ack="ok"), store=SHORT) as world:
        await derived(world)
        await world.forget(tenant="acme", subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        past = {"key": "late-9", "value": f"Minutes. {SECOND}", "tenant": "acme"}
        assert world.direct("POST", "/v1/memories", past).status == 201
        assert (await world.recall("minutes", tenant="acme")).keys == ["bob-1"]
        again = await world.write("late-10", f"Minutes. {SECOND}", "team", tenant="acme")
        assert again.status == 409 and again.json["reason"] == "SCOPE_LAUNDERING"
        by_id = await world.write("late-11", "Not hers", "team", tenant="acme", derived_from=["source-1"])
        assert by_id.status == 409 and by_id.json["reason"] == "SCOPE_LAUNDERING"
        labels = {"store": "memories", "vector": "derived_subject", "effect": "reject"}
        assert world.sample("quietus_laundering_attempts_total", **labels) == 1


@pytest.mark.requirement("R95", "R101")
async def test_a_link_that_resolves_to_null_is_no_link_either() -> None:
    async with World(Faults(ack="ok", dangling_provenance="null"), store=SHORT) as world:
        await derived(world)
        await world.forget(tenant="acme", subject="alice")
        assert asked(world, "GET", "/v1/memories/qa_pair-1?tenant=acme")["provenance_resolved"] is None
        for key in ("summary-1", "qa_pair-1"):
            one = await world.call("GET", f"/v1/memories/{key}?tenant=acme")
            assert one.status == 409 and one.json["reason"] == "INCOMPLETE_ERASURE"


async def test_a_paraphrase_that_names_no_source_is_served() -> None:
    """The limit: no edge is known, and no word of it is the source's. Nothing lexical finds it."""
    async with World(Faults(ack="ok"), store=SHORT) as world:
        await world.write("source-1", SOURCE, "alice", tenant="acme")
        await world.write("qa_pair-1", PAIR, "team", tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject="alice")
        pair = await world.call("GET", "/v1/memories/qa_pair-1?tenant=acme")
        assert pair.status == 200
        await world.until(lambda: world.erasure().state is State.SETTLED)
        verdict = world.parts.verdict(world.erasure())
        assert verdict.word == "partial" and "lineage of derived records" in verdict.missing, "and it says so"


@pytest.mark.requirement("R87", "R91", "R92", "R98", "R104", "R106", "R108", "R109", "R116")
async def test_the_cascade_severs_what_bears_the_source_and_success_is_refused(tmp_path: Path) -> None:
    async with World(Faults(ack="ok", dangling_provenance="false"), store=SHORT,
                     policy=executing(tmp_path)) as world:  # fmt: skip
        await derived(world)
        await world.forget(tenant="acme", subject="alice")
        await world.clock.advance(40.0)
        assert world.direct("GET", "/v1/memories/summary-1?tenant=acme").status == 404, "cascade-forget"
        pair = asked(world, "GET", "/v1/memories/qa_pair-1?tenant=acme")
        assert pair["provenance_resolved"] is False, "refuse-and-escalate: a person decides about it"
        erasure = world.erasure()
        assert erasure.unsettled and not erasure.may_assert_non_recallability, "never ok while one dangles"
        status = await world.forget(tenant="acme", subject="alice")
        assert status.status == 202 and "verdict=unconfirmed" in (status["Quietus-Erasure"] or "")
        world.direct("DELETE", "/v1/memories/qa_pair-1?tenant=acme")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        verdict = world.parts.verdict(world.erasure())
        assert "lineage" in verdict.through and verdict.word == "partial"


@pytest.mark.requirement("R107")
async def test_what_is_not_proven_is_pending_and_its_legal_clock_runs() -> None:
    async with World(Faults(ack="ok", dangling_provenance="false"), store=SHORT) as world:
        await derived(world)
        await world.forget(tenant="acme", subject="alice")
        await world.clock.advance(30.0)
        world.clock.jump(25 * 86400.0)
        assert world.erasure().unsettled, "no timer settles it"
        await publish(world.parts, world.metrics)
        assert world.sample("quietus_oldest_unsettled_seconds", store="memories") >= 25 * 86400.0
        assert world.sample("quietus_due_erasures", store="memories", within="7d") == 1
        verdict = world.parts.verdict(world.erasure())
        view = erasure_view(world.erasure(), verdict=verdict, now=world.clock.now())
        assert view["seconds_left"] < 7 * 86400 and view["verdict"] == "unconfirmed"
