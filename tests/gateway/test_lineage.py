"""Lineage in the engine: learned from writes, walked before a forget, held back, read again, severed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.core.policy import Policy
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.policies import load_policy
from quietus.views import erasure_view
from tests.gateway.scenes import SHORT, Held, path, short, turn
from tests.world import World

SOURCE = "Alice Moreau moved to the Quai Voltaire in Lyon in the middle of May"
SUMMARY = f"Summary for the team: {SOURCE}. Nothing else happened."
PARAPHRASE = "Q: where does she live now? A: in a city on the Rhone"
BOB = "Bob prefers the early morning train to Basel on weekdays"
KEEPS = Faults(dangling_provenance="false")
"""A store that leaves derived records alone, and says that their provenance is broken."""
SILENT = Faults(dangling_provenance="false", ack="ok")


def executing(tmp_path: Path) -> Path:
    """The default policy with `cascade: execute`, as a file."""
    document = load_policy("default").model_dump(mode="json", exclude_none=True, by_alias=True)
    document["cascade"] = "execute"
    where = tmp_path / "execute.yaml"
    where.write_text(yaml.safe_dump(document))
    assert isinstance(load_policy(where), Policy)
    return where


async def family(world: World, **more: Any) -> None:
    """source -> summary -> pair, in three subjects' hands, and a bystander."""
    await world.write("source-1", SOURCE, "alice", **more)
    await world.write("summary-1", SUMMARY, "team", derived_from=["source-1"], **more)
    await world.write("qa_pair-1", PARAPHRASE, "desk", derived_from=["summary-1"], **more)
    await world.write("bobs-key-1", BOB, "bob", **more)


def lineage(world: World) -> dict[str, Any]:
    """The `lineage` of the newest erasure as the admin API shows it."""
    erasure = world.erasure()
    view = erasure_view(erasure, verdict=world.parts.verdict(erasure), now=world.clock.now())
    found: dict[str, Any] = view["lineage"]
    return found


@pytest.mark.requirement("R59", "R82", "R94", "R100", "R113")
async def test_descendants_are_walked_and_read_before_the_forget_leaves() -> None:
    async with short(KEEPS, store=SHORT) as world:
        await family(world)
        forward = Held(path("/v1/forget"))
        world.upstream.hooks.append(forward)
        task = world.start("POST", "/v1/forget", {"subject": "alice"})
        await world.until(lambda: forward.waiting == 1, limit=20.0)
        erasure = world.erasure()
        assert erasure.snapshotted and not erasure.answered, "the store has not been asked yet"
        facts = erasure.snapshot["lineage"]
        assert facts["descendants"] == 2 and facts["quarantined"] == 2, "transitively: the pair, too"
        fates = {(node["depth"], node["detector"], node["fate"]) for node in facts["nodes"]}
        assert fates == {(1, "declared", "cascade"), (2, "declared", "escalate")}
        assert b"source-1" not in repr(facts).encode() and b"summary-1" not in repr(facts).encode()
        for key in ("summary-1", "qa_pair-1"):
            one = await world.call("GET", f"/v1/memories/{key}")
            assert one.status == 409 and one.json["reason"] == "INCOMPLETE_ERASURE", "held back already"
        forward.gate.set()
        assert (await world.finish(task)).status == 202


@pytest.mark.requirement("R91", "R99", "R106", "R108", "R109", "R111", "R114")
async def test_a_paraphrase_without_a_word_in_common_is_escalated_and_no_success_is_reported() -> None:
    async with short(KEEPS, store=SHORT) as world:
        await family(world)
        await world.forget(subject="alice")
        await world.clock.advance(50.0)
        erasure = world.erasure()
        assert erasure.unsettled and not erasure.may_assert_non_recallability
        surface = next(s for s in erasure.surfaces if s["name"] == "lineage")
        assert surface["outcome"] == "LEAKING", "an edge still points at the erased"
        assert lineage(world)["logical_unlink"] is True
        wide = await world.recall("where does she live")
        assert wide.keys == ["bobs-key-1"], "never to a client, whatever its words"
        # An operator sees to the summary: the doubtful one alone still keeps it from settling.
        world.direct("DELETE", "/v1/memories/summary-1")
        await world.clock.advance(30.0)
        assert world.erasure().unsettled
        world.direct("DELETE", "/v1/memories/qa_pair-1")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert lineage(world)["quarantined"] == 0 and lineage(world)["cascaded"] == 1


@pytest.mark.requirement("R63", "R87", "R104")
async def test_cascade_execute_deletes_what_bears_the_erased_and_nothing_else(tmp_path: Path) -> None:
    async with short(SILENT, policy=executing(tmp_path)) as world:
        await family(world)
        await world.write("minutes-1", "Minutes: the train to Basel was late again", "bob")
        await world.forget(subject="alice")
        await world.clock.advance(30.0)
        assert world.direct("GET", "/v1/memories/summary-1").status == 404, "severed by its id"
        assert world.direct("GET", "/v1/memories/qa_pair-1").status == 200, "in doubt nothing is deleted"
        assert world.direct("GET", "/v1/memories/minutes-1").status == 200
        found = lineage(world)
        assert (found["descendants"], found["cascaded"], found["escalated"]) == (2, 1, 1)
        assert world.upstream.calls("DELETE", "/v1/memories/summary-1") == 1
        remedied = [e async for e in world.parts.erasures.events() if e.type.value == "remedied"]
        assert remedied[0].facts["cascaded"] == 1
        world.direct("DELETE", "/v1/memories/qa_pair-1")
        await world.until(lambda: world.erasure().state is State.SETTLED)


async def test_plan_deletes_nothing() -> None:
    async with short(SILENT, store=SHORT) as world:
        await family(world)
        await world.forget(subject="alice")
        await world.clock.advance(40.0)
        assert world.direct("GET", "/v1/memories/summary-1").status == 200
        assert [r for purpose, r in world.upstream.sent if purpose == "remedy"] == []


async def test_no_remedy_touches_what_was_written_anew(tmp_path: Path) -> None:
    async with short(SILENT, policy=executing(tmp_path)) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("summary-1", SUMMARY, "team", derived_from=["source-1"])
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(subject="alice")
        again = await world.write("summary-1", "Summary of the week: the office moved", "team")
        assert again.status == 201, "derived anew by its owner, from something else"
        await world.until(lambda: world.erasure().state is State.SETTLED)
        one = await world.call("GET", "/v1/memories/summary-1")
        assert one.status == 200 and "the office moved" in one.json["value"]
        assert world.upstream.calls("DELETE", "/v1/memories/summary-1") == 0


@pytest.mark.requirement("R27", "R52")
async def test_a_derivation_that_the_store_made_itself_is_found_by_search_before_the_forget() -> None:
    async with short(Faults(service_digest=float("inf"))) as world:
        await world.write("source-1", SOURCE, "alice", tenant="acme")
        await world.write("bobs-key-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject="alice")
        facts = world.erasure().snapshot["lineage"]
        assert facts["suspected"] == 1 and facts["nodes"][0]["detector"] == "search"
        digest = await world.call("GET", "/v1/memories/digest-acme?tenant=acme")
        assert digest.status == 409


async def test_a_quote_written_by_somebody_else_is_a_suspected_edge_and_is_borne_out_by_its_text() -> None:
    async with short(SILENT) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("quote-1", f"They wrote: {SOURCE}. Closed.", "desk")
        await world.write("later-1", PARAPHRASE, "desk", derived_from=["quote-1"])
        await world.write("bobs-key-1", BOB, "bob")
        records = {record.parents[0].detector for record in world.parts.lineage.records if record.parents}
        assert {"containment", "declared"} == {detector.value for detector in records}
        await world.forget(subject="alice")
        facts = world.erasure().snapshot["lineage"]
        assert facts["descendants"] == 2, "and what was derived from the quote"


async def test_what_merely_sounds_alike_is_no_descendant() -> None:
    """The suspicion is dropped when the text is read: it bears nothing of the erased any more."""
    async with short(SILENT) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("quote-1", f"They wrote: {SOURCE}. Closed.", "desk")
        await world.write("quote-1", "It was about something else altogether", "desk")
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(subject="alice")
        assert world.erasure().snapshot["lineage"]["descendants"] == 0
        assert (await world.call("GET", "/v1/memories/quote-1")).status == 200


@pytest.mark.requirement("R105")
async def test_unlink_only_when_somebody_vouches_and_no_edge_is_left_in_the_store() -> None:
    vouched = [{"condition": "derived_non_reconstructive", "by": "privacy", "expires": "2099-01-01"}]
    async with short(Faults(), store={**SHORT, "attestations": vouched}) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("count-1", "Three people moved this spring", "team", derived_from=["source-1"])
        await world.write("bobs-key-1", BOB, "bob")
        # The store keeps no edge of it: what it returns has none.
        place = next(p for p in world.legacy._world.rows if p[1] == "count-1")
        world.legacy._world.rows[place].derived_from = ()
        await world.forget(subject="alice")
        facts = world.erasure().snapshot["lineage"]
        assert (facts["descendants"], facts["unlinked"], facts["quarantined"]) == (1, 1, 0)
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert (await world.call("GET", "/v1/memories/count-1")).status == 200
        assert lineage(world)["unlinked"] == 1


@pytest.mark.requirement("R143")
async def test_a_write_that_names_the_erased_or_a_descendant_as_its_source_is_refused() -> None:
    async with short(KEEPS) as world:
        await family(world)
        await world.forget(subject="alice")
        for source in ("source-1", "summary-1", "qa_pair-1"):
            later = await world.write("late-1", "Not a word of it", "team", derived_from=[source])
            assert later.status == 409 and later.json["reason"] == "SCOPE_LAUNDERING", source
        labels = {"store": "memories", "vector": "derived_subject", "effect": "reject"}
        assert world.sample("quietus_laundering_attempts_total", **labels) == 3
        fine = await world.write("late-2", "Made of something else", "team", derived_from=["bobs-key-1"])
        assert fine.status == 201


async def test_a_source_whose_owner_was_erased_is_known_by_its_owner_too() -> None:
    """The snapshot found nothing (the store lists nothing), and the id left no mark."""
    async with short(Faults()) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        world.direct("DELETE", "/v1/memories/source-1")
        await world.forget(subject="alice")
        later = await world.write("late-1", "Not a word of it", "team", derived_from=["source-1"])
        assert later.status == 409 and later.json["reason"] == "SCOPE_LAUNDERING"


@pytest.mark.requirement("R163")
async def test_an_answer_that_merges_into_an_erased_id_is_refused_and_counted() -> None:
    async with short(Faults(stale_dedup=900.0)) as world:
        text = "the flat by the river has two rooms, a piano and a view of the old stone bridge"
        await world.write("record-source-1", text, "alice", tenant="acme")
        await world.write("bobs-key-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject="alice")
        # Near enough for the store's map, and not a quote for the gate.
        near = "a bridge, old stone of the view, and a piano, two rooms has the river by the flat"
        write = await world.write("new-1", near, "bob", tenant="acme")
        assert write.status == 409 and write.json["reason"] == "SCOPE_LAUNDERING"
        labels = {"store": "memories", "vector": "dedup_merge", "effect": "reject"}
        assert world.sample("quietus_laundering_attempts_total", **labels) == 1
        await turn(world)
        assert world.erasure().state in (State.SETTLING, State.LEAKING)


@pytest.mark.requirement("R10")
async def test_a_record_on_two_bases_is_gated_for_the_one_and_answered_for_the_other() -> None:
    async with short(Faults()) as world:
        await world.write("bill-1", "Alice pays by invoice each quarter", "alice", purpose="billing")
        await world.write("bill-1", "Alice pays by invoice each quarter", "alice", purpose="support")
        await world.write("bobs-key-1", BOB, "bob", purpose="billing")
        await world.forget(subject="alice", purposes=["support"])
        assert (await world.recall("invoice", subject="alice", purpose="support")).status == 409
        kept = await world.recall("invoice", subject="alice", purpose="billing")
        assert kept.status == 200
        one = await world.call("GET", "/v1/memories/bobs-key-1")
        assert one.status == 200


async def test_lineage_stays_in_its_tenant() -> None:
    async with short(SILENT) as world:
        await family(world, tenant="acme")
        await family(world, tenant="zenith")
        await world.forget(tenant="acme", subject="alice")
        assert world.erasure().snapshot["lineage"]["descendants"] == 2
        assert (await world.call("GET", "/v1/memories/summary-1?tenant=zenith")).status == 200
        assert (await world.call("GET", "/v1/memories/summary-1?tenant=acme")).status == 409


@pytest.mark.requirement("R60", "R64", "R70")
async def test_what_comes_back_with_a_restart_of_the_store_is_found_and_removed_once() -> None:
    async with short(Faults(restart_resurrection=True), store={**SHORT, "clean_rounds": 2}) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        world.legacy.restart()
        again = await world.write("copy-1", SOURCE, "carol")
        assert again.status == 409, "the denylist stands after it has settled"
        world.parts.timetable.disturb()  # what a reconnect does
        await world.until(lambda: world.erasure().state is not State.SETTLED, limit=60.0)
        assert world.erasure().state is State.RELAPSED
        assert world.sample("quietus_resurrections_total", store="memories", vector="relapse") == 1
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert world.upstream.calls("DELETE", "/v1/memories/source-1") == 1, "one remedy, by its id"


async def test_a_store_that_keeps_bringing_it_back_is_not_deleted_from_for_ever() -> None:
    async with short(Faults()) as world:
        await world.write("source-1", SOURCE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        body = {"key": "source-1", "value": SOURCE, "retention": {"subject": "alice"}}

        def back(request: Any, permit: Any) -> None:
            world.direct("POST", "/v1/memories", body)

        world.upstream.hooks.append(back)
        world.parts.timetable.disturb()
        await world.clock.advance(55.0)
        assert world.erasure().unsettled
        assert world.upstream.calls("DELETE", "/v1/memories/source-1") <= 3


@pytest.mark.requirement("R56", "R191")
async def test_what_others_say_in_the_same_words_was_made_of_nobodys(tmp_path: Path) -> None:
    """One bystander with the same few words, and a greeting that many hold: none of it is deleted."""
    welcome = "Welcome aboard, your account is ready and your first invoice will follow shortly"
    async with short(SILENT, policy=executing(tmp_path)) as world:
        await world.write("tea-0001", "likes green tea with honey", "alice")
        await world.write("tea-0002", "likes green tea with honey", "bob")
        await world.write("welcome-1", welcome, "alice")
        for who in ("bob", "carol", "dave"):
            text = f"{welcome}. Dear {who}, ring us any time you like"
            await world.write(f"welcome-{who}", text, who)
        await world.forget(subject="alice")
        assert world.erasure().snapshot["lineage"]["descendants"] == 0
        await world.until(lambda: world.erasure().state is State.SETTLED)
        for key in ("tea-0002", "welcome-bob", "welcome-carol"):
            assert (await world.call("GET", f"/v1/memories/{key}")).status == 200, key
        assert world.upstream.calls("DELETE", "/v1/memories/tea-0002") == 0


async def test_what_there_was_no_time_to_read_is_held_back_all_the_same() -> None:
    async with short(KEEPS) as world:
        await family(world)

        async def slow(request: Any, permit: Any) -> None:
            if request.path == "/v1/memories/qa_pair-1" and permit.purpose == "probe":
                await world.clock.sleep(60.0)

        world.upstream.hooks.append(slow)
        await world.forget(subject="alice")
        facts = world.erasure().snapshot["lineage"]
        assert (facts["quarantined"], facts["complete"]) == (2, False)
        assert "no time" in facts["nodes"][1]["reason"]
        assert (await world.call("GET", "/v1/memories/qa_pair-1")).status == 409
