"""S1: a forget tool deletes S-4471's record; a quote of it, and a template, bring the subject back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quietus.core.states import State
from quietus.legacy.faults import Faults
from tests.gateway.test_lineage import executing
from tests.gateway.test_lineage_kept import scanned as gone_through
from tests.world import World

SUBJECT = "S-4471"
TEXT = "Marigold Quenby of unit 4471 asked for a refund of 89 francs in early March"
QUOTE = f"Ticket summary by the night shift: the customer wrote: {TEXT}. Closed without a reply."
TEMPLATE = "Welcome aboard, your account is ready and your first invoice will follow shortly"
BOB = "Bob prefers the early morning train to Basel on weekdays"
SHORT: dict[str, Any] = {"settling_interval": 10.0, "effectuation_bound": 60.0, "clean_rounds": 3}


async def filed(world: World) -> None:
    """S-4471's record, its quote in another's, and a bystander."""
    await world.write("record-4471", TEXT, SUBJECT, tenant="acme")
    await world.write("summary-9000", QUOTE, "S-9000", tenant="acme")
    await world.write("bob-1", BOB, "bob", tenant="acme")


@pytest.mark.requirement("R8", "R53", "R54", "R61", "R86", "R112")
async def test_s_4471_is_not_erased_while_another_record_quotes_them() -> None:
    async with World(Faults(ack="deleted"), store=SHORT) as world:
        await filed(world)
        ack = await world.forget(tenant="acme", subject=SUBJECT)
        assert (ack.status, ack.json) == (202, {"status": "deleted"}), "the tool's claim, and no more"
        await world.clock.advance(40.0)
        assert world.direct("GET", "/v1/memories/record-4471?tenant=acme").status == 404
        assert b"89 francs" in world.direct("GET", "/v1/memories/summary-9000?tenant=acme").body
        erasure = world.erasure()
        assert erasure.state is State.LEAKING
        assert erasure.leaked_surfaces == {"recall-tenant", "lineage"}, "found in a record of somebody else"
        assert world.parts.verdict(erasure).word == "unconfirmed", "never COMPLIANT while retrievable"
        assert not erasure.may_assert_non_recallability
        by_kind = {s["name"]: s["outcome"] for s in erasure.surfaces}
        assert by_kind["record"] == "CLEAN" and by_kind["recall-tenant"] == "LEAKING"
        labels = {"store": "memories", "surface": "recall-tenant"}
        assert world.sample("quietus_premature_assurance_total", **labels) > 0

        semantic = await world.recall(f"{SUBJECT} Marigold refund francs", tenant="acme")
        assert semantic.keys == ["bob-1"] and b"francs" not in semantic.body
        one = await world.call("GET", "/v1/memories/summary-9000?tenant=acme")
        assert one.status == 409 and b"francs" not in one.body
        assert world.upstream.calls("DELETE", "/v1/memories/summary-9000") == 0, "S-9000 lost nothing"

        world.direct("DELETE", "/v1/memories/summary-9000?tenant=acme")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert world.parts.verdict(world.erasure()).word == "partial"


@pytest.mark.requirement("R19", "R59", "R63", "R69", "R75", "R100")
async def test_the_quote_is_known_before_the_deletion_and_deleted_with_it(tmp_path: Path) -> None:
    """Propagation, not resurrection: a known derived record held it; deleting that is the end."""
    faults = Faults(ack="deleted", dangling_provenance="false")
    async with World(faults, store=SHORT, policy=executing(tmp_path)) as world:
        await filed(world)
        await world.write("note-1", "The night shift made a note of it", "S-9001", tenant="acme",
                          derived_from=["summary-9000"])  # fmt: skip
        await world.forget(tenant="acme", subject=SUBJECT)
        facts = world.erasure().snapshot["lineage"]
        fates = [(node["depth"], node["detector"], node["fate"]) for node in facts["nodes"]]
        assert fates == [(1, "containment", "cascade"), (2, "declared", "escalate")]
        await world.clock.advance(30.0)
        assert world.direct("GET", "/v1/memories/summary-9000?tenant=acme").status == 404
        assert world.direct("GET", "/v1/memories/bob-1?tenant=acme").status == 200
        outcomes = {s["name"]: s["outcome"] for s in world.erasure().surfaces}
        assert outcomes["record"] == "CLEAN" and outcomes["lineage"] == "LEAKING", "not one hop only"
        assert world.parts.verdict(world.erasure()).word == "unconfirmed"
        world.direct("DELETE", "/v1/memories/note-1?tenant=acme")
        await world.until(lambda: world.erasure().state is State.SETTLED)


@pytest.mark.requirement("R55", "R60", "R64", "R70")
async def test_a_template_ingested_again_brings_nobody_back() -> None:
    async with World(Faults(hash_rows=True), store=SHORT) as world:
        await world.write("record-4471", TEMPLATE, SUBJECT, tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject=SUBJECT)
        await world.until(lambda: world.erasure().state is State.SETTLED)
        for subject in (SUBJECT, "S-5000"):
            again = await world.write("fresh-4471", TEMPLATE, subject, tenant="acme")
            assert again.status == 409 and again.json["reason"] == "SCOPE_LAUNDERING", "caught at the write"
        other = await world.write("fresh-4471", "Something else altogether", SUBJECT, tenant="acme")
        assert other.status == 409 and other.json["reason"] == "ERASURE_ORDERING_VIOLATION"
        assert world.direct("GET", "/v1/memories/fresh-4471?tenant=acme").status == 404, "nothing was sent"
        assert world.sample("quietus_resurrections_total", store="memories", vector="reingest") == 3
        labels = {"store": "memories", "vector": "restated_content", "effect": "reject"}
        assert world.sample("quietus_laundering_attempts_total", **labels) == 2
        assert world.upstream.calls("POST", "/v1/forget") == 1, "no delete was repeated for it"
        assert world.erasure().state is State.SETTLED


@pytest.mark.requirement("R61")
async def test_what_was_ingested_past_the_sidecar_is_a_relapse() -> None:
    async with World(Faults(hash_rows=True), store=SHORT) as world:
        await world.write("record-4471", TEMPLATE, SUBJECT, tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject=SUBJECT)
        await world.until(lambda: world.erasure().state is State.SETTLED)
        past = {"key": "fresh-5000", "value": TEMPLATE, "tenant": "acme", "retention": {"subject": "S-5000"}}
        assert world.direct("POST", "/v1/memories", past).status == 201
        found = world.direct("POST", "/v1/recall", {"query": TEMPLATE, "subject": SUBJECT, "tenant": "acme"})
        assert b"fresh-5000" in found.body, "the embedding row gave the erased subject a new id"
        seen = await world.recall(TEMPLATE, tenant="acme")
        assert seen.keys == ["bob-1"], "screened out though the gate was open"
        await world.until(lambda: world.erasure().state is State.RELAPSED, limit=60.0)
        assert world.sample("quietus_resurrections_total", store="memories", vector="relapse") == 1
        assert (await world.recall("anything", tenant="acme", subject=SUBJECT)).status == 409


@pytest.mark.requirement("R46", "R79")
async def test_an_unknown_subject_is_no_claim() -> None:
    async with World(Faults(same_ack=True), store=SHORT) as world:
        await world.write("bob-1", BOB, "bob", tenant="acme")
        ack = await world.forget(tenant="acme", subject="S-0000", basis="ccpa_1798_105")
        assert ack.status == 202 and "verdict=unconfirmed" in (ack["Quietus-Erasure"] or "")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        erasure = world.erasure()
        assert erasure.dossier.basis == "ccpa_1798_105" and erasure.snapshot["witnesses"] == 0
        verdict = world.parts.verdict(erasure)
        assert verdict.word == "unconfirmed" and "a record found before the forget" in verdict.missing
        later = await world.write("late-1", "something new entirely", "S-0000", tenant="acme")
        assert later.status == 409, "a fence stands all the same"


@pytest.mark.requirement("R62", "R65", "R66", "R72")
async def test_compliant_only_when_it_names_every_surface_and_its_lineage_was_gone_through() -> None:
    """The four conditions of the document, taken away one by one."""
    said = {"by": "ops", "expires": "2099-01-01"}
    conditions = ("surfaces_complete", "write_path_audited")
    vouched = {"attestations": [{"condition": condition, **said} for condition in conditions]}
    for attested, scanned in ((True, True), (True, False), (False, True), (False, False)):
        store = {**SHORT, **(vouched if attested else {})}
        async with World(Faults(), store=store) as world:
            await world.write("record-4471", TEXT, SUBJECT, tenant="acme")
            await world.write("bob-1", BOB, "bob", tenant="acme")
            if scanned:
                await gone_through(world, "acme")
            await world.forget(tenant="acme", subject=SUBJECT)
            await world.until(lambda world=world: world.erasure().state is State.SETTLED)
            verdict = world.parts.verdict(world.erasure())
            assert verdict.word == ("compliant" if attested and scanned else "partial"), verdict.missing
            escalated = [e async for e in world.parts.erasures.events() if e.type.value == "escalated"]
            assert bool(escalated) is not (attested and scanned)
