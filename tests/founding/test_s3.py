"""S3: a scope is forgotten, accepted and not done: residue, a laundered summary, fresh tokens, false 404s."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quietus.assembly import Bounds
from quietus.core.due import pace
from quietus.core.exchange import Reply
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.prober import ProbeLimits
from tests.world import World

SCOPE = "tenant:acme/session:42"
SUMMARIES = f"{SCOPE}/summaries"
BOUND = 30.0
POLL = 0.25
STORM = 4.2
"""Calls that the agents of the incident made for one forget, on average."""

PLAN = "The launch of the heron project was moved to the ninth of October in secret"
NOTE = "Nadia will ring the printers about the leaflets before noon on Tuesday"
BOB = "Bob prefers the early morning train to Basel on weekdays"
PROFILE = {"settling_interval": 10.0, "effectuation_bound": BOUND, "clean_rounds": 3}
LYING = Faults(ack="accepted", async_effect=20.0, fresh_tokens=True, swallow_prefix=60.0)


async def session(world: World) -> None:
    """Two records in the session, one in a sibling whose name begins the same, one of somebody else."""
    await world.write("s42-plan", PLAN, scope=SCOPE)
    await world.write("s42-note", NOTE, scope=f"{SCOPE}/notes")
    await world.write("s420-a", "The kettle in the kitchen needs a new plug", scope="tenant:acme/session:420")
    await world.write("bob-1", BOB, "bob", scope="tenant:acme/session:7")


def patient(faults: Faults = LYING, **store: Any) -> World:
    return World(faults, store={**PROFILE, **store}, bounds=Bounds(probes=ProbeLimits(per_second=20.0)))


@pytest.mark.requirement("R122", "R123", "R127", "R131", "R144", "R147")
async def test_the_retry_storm_of_4_2_calls_becomes_1_0() -> None:
    # The incident itself: each retry is a new predicate with a new token, and the clock starts again.
    alone = patient()
    alone.direct("POST", "/v1/memories", {"key": "s42-plan", "value": PLAN, "scope": SCOPE})
    told = [json.loads(alone.direct("POST", "/v1/forget", {"scope": SCOPE}).body) for _ in range(2)]
    assert [one["token"] for one in told] == ["del_9f3a", "del_b7c1"]

    async with patient() as world:
        await session(world)
        calls = 0
        for retries in (5, 4, 4, 4, 4):  # 4.2 on average
            answers = [await world.forget(scope=SCOPE) for _ in range(retries)]
            calls += retries
            accepted = {"status": "accepted", "token": "del_9f3a", "effectuation": "async"}
            assert [(a.status, a.json) for a in answers] == [(202, accepted)] * retries
            assert len({(a["Quietus-Erasure"] or "").split(";")[0] for a in answers}) == 1
        inner = await world.forget(scope=f"{SCOPE}/notes")
        assert inner.json["token"] == "del_9f3a", "a contained scope joins too"
        assert calls / 5 == STORM
        assert world.upstream.calls("POST", "/v1/forget") == 1
        client = world.sample("quietus_forget_calls_total", store="memories", side="client")
        upstream = world.sample("quietus_forget_calls_total", store="memories", side="upstream")
        assert (client, upstream) == (calls + 1, 1.0), "one logical erasure, attempts counted apart"
        link = (answers[0]["Link"] or "").split(">")[0].lstrip("<")
        status = await world.call("GET", link)
        assert status.json["state"] in ("settling", "leaking") and status["Retry-After"]
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert world.upstream.calls("POST", "/v1/forget") == 1


@pytest.mark.requirement("R124", "R128", "R130", "R136", "R141", "R143", "R153", "R156")
async def test_a_summary_cannot_launder_what_was_forgotten() -> None:
    async with patient() as world:
        await session(world)
        await world.forget(scope=SCOPE)
        into = await world.write("sum-1", "A quiet session.", scope=SUMMARIES)
        assert into.status == 409 and into.json["reason"] == "SCOPE_LAUNDERING"
        elsewhere = await world.write("sum-2", f"Summary. {PLAN}.", scope="tenant:acme/reports")
        assert elsewhere.status == 409 and elsewhere.json["reason"] == "SCOPE_LAUNDERING", "it restates"
        fine = await world.write("sum-3", "The weather report for the week", scope="tenant:acme/reports")
        assert fine.status == 201, "neither below nor restating"
        sibling = await world.write("s420-b", "The kettle was mended", scope="tenant:acme/session:420")
        assert sibling.status == 201, "session:42 does not cover session:420"
        slash = await world.write("sum-4", "A quiet session.", scope=f"{SCOPE}/")
        assert slash.status == 409, "a trailing slash changes nothing"
        assert b"sum-" not in world.direct("GET", f"/v1/memories?scope={SUMMARIES}").body
        for vector, count in (("quarantined_path", 2), ("restated_content", 1)):
            labels = {"store": "memories", "vector": vector, "effect": "reject"}
            assert world.sample("quietus_laundering_attempts_total", **labels) == count

        read = await world.recall("the heron project", scope=SCOPE)
        assert read.status == 409 and read.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        wide = await world.recall("the heron project", scope="tenant:acme")
        assert wide.status == 200 and b"heron" not in wide.body and "bob-1" in wide.keys
        assert wide["Quietus-Candidate-Set"] == "contaminated"
        after = await world.recall("kettle", scope="tenant:acme/session:420")
        assert after.status == 200 and after["Quietus-Decision"] is None, "unrelated reads go on"


@pytest.mark.requirement("R145", "R149", "R151", "R155")
async def test_residue_after_the_bound_of_30_s_is_a_violation() -> None:
    faults = Faults(ack="accepted", async_effect=1e6)
    async with patient(faults) as world:
        await session(world)
        await world.forget(scope=SCOPE)
        await world.clock.advance(BOUND - 1.0)
        shut = await world.recall("heron", scope=SCOPE)
        assert shut.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED" and shut["Retry-After"]
        assert world.erasure().state is State.LEAKING
        await world.clock.advance(5.0)
        assert world.erasure().state is State.VIOLATION
        shut = await world.recall("heron", scope=SCOPE)
        assert shut.status == 409 and shut.json["reason"] == "FORGET_EFFECTUATION_TIMEOUT"
        assert shut["Retry-After"] is None, "an explicit fault, not a transient one"
        write = await world.write("sum-1", "Quiet.", scope=SUMMARIES)
        assert write.status == 409 and write.json["reason"] == "SCOPE_LAUNDERING", "and no derivation"
        assert world.sample("quietus_violations_total", store="memories", cause="late_leak") == 1


@pytest.mark.requirement("R7", "R155")
async def test_a_bound_that_passes_without_evidence_is_overdue_and_stays_shut() -> None:
    async with patient(Faults(ack="accepted")) as world:
        await session(world)
        await world.forget(scope=SCOPE)
        unread = Reply(503, (), b"")
        world.upstream.hooks.append(lambda _, permit: unread if str(permit.purpose) == "probe" else None)
        await world.clock.advance(10 * BOUND)
        assert world.erasure().state is State.SETTLING and world.erasure().overdue
        assert (await world.recall("heron", scope=SCOPE)).status == 409


@pytest.mark.requirement("R137", "R142")
async def test_only_an_empty_scope_lifts_it_and_the_poll_begins_at_a_quarter_second() -> None:
    async with patient(Faults(ack="accepted", async_effect=20.0)) as world:
        await session(world)
        began = world.clock.monotonic()
        await world.forget(scope=SCOPE)
        erasure = world.erasure()
        assert erasure.terms.effectuation_bound == BOUND and erasure.bound_at - erasure.requested_at == BOUND
        progress = world.parts.timetable.standing[erasure.id]
        progress.rounds = 0
        assert pace(erasure, progress, 1.0, 0.5) - 1.0 == POLL
        # What the token never matched: a record that got into the scope past the sidecar.
        past = {"key": "s42-late", "value": "Written after acceptance", "scope": SCOPE}
        assert world.direct("POST", "/v1/memories", past).status == 201
        await world.clock.advance(9.0)
        assert world.erasure().state is State.LEAKING
        deletes = world.upstream.calls("DELETE", "/v1/memories/s42-late")
        assert 0 < deletes <= 3, "listed, not remembered; removed, and not in a loop"
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert world.clock.monotonic() - began >= PROFILE["settling_interval"]
        assert b"s42-late" not in world.direct("GET", f"/v1/memories?scope={SCOPE}").body
        assert (await world.recall("heron", scope=SCOPE)).json["results"] == []


@pytest.mark.requirement("R132", "R141")
async def test_404_for_a_key_written_after_the_forget_never_looks_like_a_lost_write() -> None:
    async with patient() as world:
        await session(world)
        past = {"key": "s42-new", "value": "Written later", "scope": SUMMARIES}
        await world.forget(scope=SCOPE)
        assert world.direct("POST", "/v1/memories", past).status == 201
        assert world.direct("GET", "/v1/memories/s42-new").status == 404, "the prefix swallowed it"
        write = await world.write("s42-new", "Written later", scope=SUMMARIES)
        assert write.status == 409 and write["Retry-After"], "refused before it could be swallowed"
        listed = await world.call("GET", f"/v1/memories?scope={SUMMARIES}")
        assert listed.status == 409 and listed.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        plain = await world.call("GET", "/v1/memories/s42-new")
        assert plain.status == 409 and plain["Retry-After"], "hidden, not lost"
        assert plain.json["type"] == "urn:quietus:problem:suppressed-by-erasure"
