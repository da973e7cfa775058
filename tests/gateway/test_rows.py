"""Requirement rows that no other file shows on the assembled parts."""

from __future__ import annotations

import asyncio

import pytest

from quietus.assembly import Bounds
from quietus.core.events import EventType
from quietus.core.operations import Operation
from quietus.core.scope import ANY
from quietus.gauges import publish
from quietus.legacy.faults import Faults
from quietus.profiles.loader import load_profile
from tests.gateway.scenes import ALICE, BOB, events, settle, short, two
from tests.world import World


@pytest.mark.requirement("R13")
async def test_the_four_calls_of_the_canonical_tool_go_through_and_are_understood() -> None:
    async with World() as world:
        calls = {
            Operation.WRITE: ("POST", "/v1/memories", {"key": "k1", "value": BOB, "retention": {
                "subject": "bob", "purpose": "support", "ttl": 60}}),
            Operation.READ: ("GET", "/v1/memories/k1", None),
            Operation.RECALL: ("POST", "/v1/recall", {"query": "tea", "subject": "bob"}),
            Operation.FORGET: ("POST", "/v1/forget", {"subject": "bob"}),
        }  # fmt: skip
        for operation, (method, path, body) in calls.items():
            world.upstream.sent.clear()
            assert (await world.call(method, path, body)).status < 300
            purpose, sent = next(pair for pair in world.upstream.sent if pair[0] == "client")
            assert (sent.method, sent.target) == (method, path)
            reading = load_profile("memory-tool").read(sent)
            assert reading.call.operation is operation
            wanted = ANY if operation is Operation.READ else frozenset({"bob"})
            assert reading.call.scope.subject == wanted
            assert purpose == "client"


@pytest.mark.requirement("R33")
async def test_the_strict_policy_refuses_every_recall_that_touches_and_says_why() -> None:
    async with World(policy="strict") as world:
        await two(world)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await world.until(lambda: world.parts.gateway is not None and bool(list(world.parts.erasures.all())))
        for scope in ({"subject": "alice"}, {}):
            refused = await world.recall("flower pot", **scope)
            assert refused.status == 409
            assert refused.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert (await world.recall("tea", subject="bob")).status == 200
        await world.finish(forget, limit=4000.0)


@pytest.mark.requirement("R57")
async def test_acknowledged_and_still_recallable_is_one_metric_by_age() -> None:
    async with World(Faults(lazy_index=900.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state == "leaking")
        await world.clock.advance(300.0)
        task = asyncio.ensure_future(publish(world.parts, world.metrics))
        await world.clock.advance(1.0)
        await task
        assert world.sample("quietus_erasures", store="memories", state="leaking") == 1
        assert world.sample("quietus_oldest_unsettled_seconds", store="memories") >= 300
        assert world.sample("quietus_premature_assurance_total", store="memories", surface="recall") >= 1


@pytest.mark.requirement("R66", "R71")
async def test_a_store_whose_surfaces_nobody_vouches_for_ends_partial_and_is_escalated() -> None:
    async with World() as world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state == "settled")
        await world.clock.advance(1.0)
        erasure = world.erasure()
        assert world.parts.verdict(erasure).word == "partial"
        assert erasure.escalated
        told = [e async for e in world.parts.erasures.events(erasure.id) if e.type is EventType.ESCALATED]
        assert len(told) == 1
        assert any("attestation" in missing for missing in told[0].facts["missing"])
        assert world.sample("quietus_downgrades_total", store="memories") == 1


@pytest.mark.requirement("R152")
async def test_an_acknowledgement_is_kept_with_token_scope_and_bound() -> None:
    async with World(Faults(ack="accepted")) as world:
        await two(world)
        answer = await world.forget(subject="alice")
        erasure = world.erasure()
        token = answer.json["token"]
        assert erasure.tokens == (world.keyring.pseudonym("token", token).hex(),)
        assert erasure.predicate.subject == frozenset({world.keyring.pseudonym("subject", "alice")})
        assert erasure.bound_at - erasure.requested_at == erasure.terms.effectuation_bound == 1800.0


@pytest.mark.requirement("R189")
async def test_writes_and_forgets_of_one_subject_have_one_order() -> None:
    """Twenty writes race a forget: each is before it, and gone, or after it, and refused."""
    async with World() as world:
        await two(world)
        row = {"value": "Alice collects lighthouse stamps", "retention": {"subject": "alice"}}
        racing = [world.start("POST", "/v1/memories", {"key": f"race-{i}", **row}) for i in range(10)]
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        racing += [world.start("POST", "/v1/memories", {"key": f"late-{i}", **row}) for i in range(10)]
        seen = [await world.finish(task) for task in racing]
        assert (await world.finish(forget)).status == 202
        assert {answer.status for answer in seen} <= {201, 409}
        refused = [a for a in seen if a.status == 409]
        assert all(a.json["reason"] == "ERASURE_ORDERING_VIOLATION" for a in refused)
        assert world.upstream.calls("POST", "/v1/forget") == 1
        assert world.legacy.holds("Alice collects lighthouse stamps") in ([], (), set(), frozenset())
        assert world.legacy.holds(ALICE) in ([], (), set(), frozenset())


@pytest.mark.requirement("R135", "R120")
@pytest.mark.case(19)
async def test_a_stale_replica_is_met_when_every_server_is_asked() -> None:
    """Three servers behind one address, one of them stale: no round is clean before it has caught up."""
    store = {"settling_interval": 60.0, "effectuation_bound": 3000.0}
    async with World(Faults(stale_replica=400.0), bounds=Bounds(replicas=3), store=store) as world:
        await two(world)
        await world.forget(subject="alice")
        acked = world.clock.monotonic()
        await world.until(lambda: world.erasure().state == "settled")
        assert world.erasure().leaked_surfaces
        assert world.clock.monotonic() - acked >= 400.0


@pytest.mark.requirement("R17", "R36")
async def test_a_tenant_that_is_named_like_its_person_is_no_leak() -> None:
    async with short() as world:
        for key, text, who in (("n-1", ALICE, "alice"), ("n-2", BOB, "bob")):
            assert (await world.write(key, text, who, tenant="alice")).status == 201
        await world.forget(tenant="alice", subject="alice")
        wide = await world.recall("train", tenant="alice")
        assert wide.keys == ["n-2"] and wide["Quietus-Candidate-Set"] == "contaminated"
        await settle(world)
        assert "leaked" not in await events(world)
        told = world.direct("POST", "/v1/recall", {"query": "train", "tenant": "alice"})
        assert b'"tenant":"alice"' in told.body.replace(b" ", b""), "the control: its rows do say so"
