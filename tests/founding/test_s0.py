"""S0: 412 keys forgotten in 40 ms, recalled for 14 minutes and 52 seconds; and a digest that names them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest

from quietus.assembly import Bounds
from quietus.core.erasure import PolicyPhase, ReadPhase
from quietus.core.exchange import Reply, Request
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import Permit
from quietus.prober import ProbeLimits
from tests.world import World

KEYS = 412
ACK = 0.04
COMPACTION = 900.0
LEAK = 14 * 60 + 52.0
EARLIER = COMPACTION - LEAK
"""The compaction cycle began so long before, with somebody else's forget."""

ASKED = "contact details for "
BOB = "Bob prefers the early morning train to Basel on weekdays"
PROFILE = {"settling_interval": COMPACTION, "effectuation_bound": 2 * COMPACTION, "clean_rounds": 3}

NEEDS_LINEAGE = {
    "R27": "the digest's provenance is not tracked: it is found by its text, not enumerated at the forget",
}
"""What joins with lineage, and why it is not asserted here."""


def told(world: World) -> list[dict[str, Any]]:
    """What the store itself answers to the question, past the sidecar."""
    body = world.direct("POST", "/v1/recall", {"query": ASKED, "tenant": "acme", "top_k": 500}).body
    rows: list[dict[str, Any]] = json.loads(body)["results"]
    return [row for row in rows if "alice moreau" in row["value"].casefold()]


async def slow_ack(world: World) -> None:
    """The store takes its 40 ms."""

    async def hook(request: Request, _: Permit) -> None:
        if request.path == "/v1/forget":
            await world.clock.sleep(ACK)

    world.upstream.hooks.append(hook)


@asynccontextmanager
async def incident() -> AsyncIterator[World]:
    """The store of the incident, 412 keys of Alice's in it, just after her forget was acknowledged."""
    faults = Faults(lazy_index=COMPACTION, chunk_cache=LEAK)
    patient = Bounds(probes=ProbeLimits(per_second=0.5))  # the incident is long: one round a minute will do
    async with World(faults, store=PROFILE, bounds=patient) as world:
        for number in range(KEYS):
            text = f"Contact details for Alice Moreau, entry {number}: Quai Voltaire {number}"
            assert (await world.write(f"alice-{number}", text, "alice", tenant="acme")).status == 201
        await world.write("ben-1", "Ben kept his notes about the garden in a red book", "ben", tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        assert world.direct("POST", "/v1/forget", {"tenant": "acme", "subject": "ben"}).status == 200
        await world.clock.advance(EARLIER)
        await slow_ack(world)
        yield world


@pytest.mark.requirement("R14", "R15", "R16", "R18", "R20", "R30", "R36", "R121")
async def test_412_keys_acknowledged_in_40_ms_are_still_gated_at_892_seconds() -> None:
    async with incident() as world:
        ack = await world.forget(tenant="acme", subject="alice")
        assert (ack.status, ack.json) == (202, {"status": "erased", "keys": KEYS}), "the body is the store's"
        assert "state=settling" in (ack["Quietus-Erasure"] or "")
        assert "assurance=policy_only" in (ack["Quietus-Erasure"] or "")
        erasure = world.erasure()
        assert erasure.claim["count"] == KEYS and erasure.snapshot["witnesses"] == KEYS
        took = world.sample("quietus_forget_seconds_sum", phase="ack")
        assert took == pytest.approx(ACK, abs=1e-6), "exported"
        assert not erasure.may_assert_non_recallability, "a fast acknowledgement is evidence of nothing"
        assert world.direct("GET", "/v1/memories/alice-7?tenant=acme").status == 404, "gone from the primary"

        await world.clock.advance(LEAK - 0.1)
        assert len(told(world)) == KEYS, "the store leaks to the last second"
        wide = await world.recall(ASKED, tenant="acme", top_k=500)
        # Ben was forgotten past the sidecar, which therefore knows nothing of him.
        assert (wide.status, sorted(wide.keys)) == (200, ["ben-1", "bob-1"])
        assert wide["Quietus-Candidate-Set"] == "contaminated", "though all that is left is unrelated"
        own = await world.recall(ASKED, tenant="acme", subject="alice")
        assert own.status == 409 and own.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        await world.clock.advance(0.1)
        assert told(world) == [], "compacted 892 s after the acknowledgement"

        assert world.erasure().state is State.LEAKING
        own = await world.recall(ASKED, tenant="acme", subject="alice")
        assert own.status == 409 and own["Retry-After"], "still gated at 892 s: nothing was shown yet"
        assert {"recall", "recall-tenant"} <= world.erasure().leaked_surfaces
        assert "record" not in world.erasure().leaked_surfaces, "gone by key, recalled all the same"

        await world.until(lambda: world.erasure().state is State.SETTLED, step=10.0)
        settled = world.erasure()
        assert settled.settled_at is not None and settled.acknowledged_at is not None
        assert settled.settled_at - settled.acknowledged_at >= LEAK + COMPACTION, "an interval after the leak"
        exposure = settled.exposure_seconds
        assert exposure is not None and LEAK - 1.0 < exposure <= LEAK
        assert world.sample("quietus_exposure_seconds_bucket", le="880.0") == 0
        assert world.sample("quietus_exposure_seconds_bucket", le="892.0") == 1
        assert world.parts.verdict(settled).word == "partial", "models and backups are nobody's to vouch for"
        assert (await world.recall(ASKED, tenant="acme", subject="alice")).json["results"] == []


@pytest.mark.requirement("R19")
async def test_text_from_a_cache_that_knows_no_key_is_told_by_its_content() -> None:
    short = {"settling_interval": 10.0, "effectuation_bound": 2 * COMPACTION, "clean_rounds": 3}
    async with World(Faults(chunk_cache=LEAK), store=short) as world:
        text = "Contact details for Alice Moreau: Quai Voltaire 1, after six in the evening"
        await world.write("alice-1", text, "alice", tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject="alice")
        row = told(world)[0]
        assert row["key"].startswith("chunk-") and row["subject"] is None and row["value"] == text
        assert (await world.recall(ASKED, tenant="acme")).keys == ["bob-1"]
        await world.clock.advance(LEAK + 5.0)
        assert told(world) == []
        await world.until(lambda: world.erasure().state is State.SETTLED)


@pytest.mark.requirement("R7", "R32")
async def test_time_alone_settles_nothing() -> None:
    async with World(Faults(), store=PROFILE) as world:
        await world.write("alice-1", "Contact details for Alice Moreau: Quai 1", "alice", tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        await world.forget(tenant="acme", subject="alice")
        world.upstream.hooks.append(lambda request, permit: _unreadable(permit))
        await world.clock.advance(3 * COMPACTION)
        assert world.erasure().state is State.SETTLING and world.erasure().overdue
        assert (await world.recall(ASKED, tenant="acme", subject="alice")).status == 409


def _unreadable(permit: Permit) -> Reply | None:
    return Reply(503, (), b"") if str(permit.purpose) == "probe" else None


@pytest.mark.requirement("R21", "R22", "R37", "R38", "R17")
async def test_a_digest_under_another_subject_is_policy_correct_and_read_incorrect() -> None:
    short = {"settling_interval": 10.0, "effectuation_bound": 900.0, "clean_rounds": 3}
    async with World(Faults(service_digest=inf), store=short) as world:
        text = "Alice Moreau moved to 12 Quai Voltaire and can be rung after six"
        await world.write("alice-1", text, "alice", tenant="acme")
        await world.write("bob-1", BOB, "bob", tenant="acme")
        before = await world.recall("alice", tenant="acme")
        assert "digest-acme" in before.keys, "the digest of service:analytics repeats her words"
        await world.forget(tenant="acme", subject="alice")
        await world.clock.advance(60.0)
        digest = world.direct("GET", "/v1/memories/digest-acme?tenant=acme")
        assert b"service:analytics" in digest.body and text.encode() in digest.body
        wide = await world.recall("alice", tenant="acme")
        assert wide.keys == ["bob-1"] and b"Voltaire" not in wide.body
        assert wide["Quietus-Candidate-Set"] == "contaminated"
        one = await world.call("GET", "/v1/memories/digest-acme?tenant=acme")
        assert one.status == 409 and b"Voltaire" not in one.body
        await world.clock.advance(20.0)
        erasure = world.erasure()
        assert erasure.policy_phase is PolicyPhase.COMMITTED, "policy-correct"
        assert erasure.read_phase is ReadPhase.UNSETTLED and erasure.state is State.LEAKING, "read-incorrect"
        assert erasure.leaked_surfaces == {"recall-tenant", "lineage", "client"}
        assert erasure.may_assert_erasure and not erasure.may_assert_non_recallability
        labels = {"store": "memories", "surface": "recall-tenant"}
        assert world.sample("quietus_premature_assurance_total", **labels) > 0
        assert world.sample("quietus_contaminated_recalls_total", store="memories", effect="screen") > 0


@pytest.mark.requirement("R9", "R11")
async def test_erasure_is_per_subject_and_purpose_never_per_key() -> None:
    short = {"settling_interval": 10.0, "effectuation_bound": 60.0, "clean_rounds": 3}
    async with World(Faults(), store=short) as world:
        kept = "Alice Moreau owes eighty francs on invoice 7731 until March"
        gone = "Alice Moreau likes jazz records from the fifties very much"
        await world.write("alice-bill", kept, "alice", tenant="acme", purpose="billing")
        await world.write("alice-taste", gone, "alice", tenant="acme", purpose="marketing")
        await world.write("bob-1", BOB, "bob", tenant="acme", purpose="marketing")
        ack = await world.forget(tenant="acme", subject="alice", purposes=["marketing"])
        assert ack.status == 202
        billing = await world.recall("Alice", tenant="acme", subject="alice", purpose="billing")
        assert billing.status == 200 and billing.keys == ["alice-bill"]
        assert billing["Quietus-Decision"] is None, "retained on another basis: nothing concerns it"
        marketing = await world.recall("Alice", tenant="acme", subject="alice", purpose="marketing")
        assert marketing.status == 409
        wide = await world.recall("Alice", tenant="acme", subject="alice")
        assert wide.keys == ["alice-bill"]
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert (await world.write("alice-bill-2", "Invoice 7732 was paid", "alice", tenant="acme",
                                  purpose="billing")).status == 201  # fmt: skip
        by_key = await world.forget(tenant="acme", keys=["bob-1"], subject="bob")
        assert "reason=KEY_IS_NOT_ERASURE_UNIT" in (by_key["Quietus-Erasure"] or "")
        assert "verdict=partial" in (by_key["Quietus-Erasure"] or "")
