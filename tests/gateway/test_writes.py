"""Writes that would bring the erased back, routes that nobody described, purposes, tenants."""

from __future__ import annotations

import pytest

from quietus.acts import Acts
from quietus.core.states import State
from quietus.legacy.faults import Faults
from tests.gateway.scenes import (
    ALICE,
    ALSO_ALICE,
    BOB,
    CAROL,
    Held,
    World,
    answering,
    forgets,
    lost,
    path,
    reborn,
    says,
    settle,
    short,
    turn,
    two,
)

WRITE = path("/v1/memories", purpose="client")


@pytest.mark.requirement("R136", "R141", "R181", "R185", "R187")
async def test_an_erased_subject_writes_again_only_when_let_in() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        answer = await world.write("alice-key-3", "something new", "alice")
        assert answer.status == 409 and answer.json["reason"] == "ERASURE_ORDERING_VIOLATION"
        assert world.direct("GET", "/v1/memories/alice-key-3").status == 404
        await settle(world)
        answer = await world.write("alice-key-3", "something new", "alice")
        assert answer.status == 409 and answer.json["reason"] == "ERASURE_ORDERING_VIOLATION"
        assert answer["Retry-After"] is None
        acts = Acts(world.parts.erasures, world.parts.timetable.wake)
        await acts.readmit("alice", None, "asked to come back", "dpo")
        assert (await world.write("alice-key-3", "something new", "alice")).status == 201
        assert (await world.recall("something", subject="alice")).keys == ["alice-key-3"]
        assert (await world.write("alice-key-4", ALICE, "alice")).status == 409, "not the old, though"
        await world.clock.advance(8000.0)
        assert world.erasure().state is State.SETTLED, "the patrol takes the new for the new"


@pytest.mark.requirement("R124", "R148")
async def test_a_record_of_the_erased_is_not_moved_to_somebody_else_while_it_is_there() -> None:
    async with short() as world:
        for key, text, who in (("n-1", ALICE, "alice"), ("n-2", ALSO_ALICE, "alice"), ("n-3", BOB, "bob")):
            assert (await world.write(key, text, who)).status == 201

        async def move(key: str) -> tuple[int, object]:
            answer = await world.call("POST", "/v1/memories", {"key": key, "retention": {"subject": "bob"}})
            return answer.status, answer.json.get("reason")

        before = await move("n-1")
        assert before[0] == 400, "the store's own answer: nobody was forgotten"
        await world.forget(subject="alice")
        assert await move("n-1") == (409, "SCOPE_LAUNDERING")
        assert (await move("n-3"))[0] == 400
        batch = [{"key": "n-4", "value": CAROL}, {"key": "n-2"}]
        answer = await world.call("POST", "/v1/memories", {
            "memories": [{**each, "retention": {"subject": "bob"}} for each in batch],
        })  # fmt: skip
        assert answer.status == 409 and answer.json["rows"] == [1]
        assert world.sample("quietus_laundering_attempts_total", store="memories",
                            vector="derived_subject", effect="reject") == 2
        taken = await world.write("n-1", "Bob rows on Sundays", "bob")
        assert taken.status == 201, "another record under the same key is nobody's but his"
        assert (await move("n-1"))[0] == 400
        await settle(world)
        assert (await move("n-2"))[0] == 400, "there is nothing left to move"


async def test_whoever_was_let_in_again_may_touch_their_record_after_a_restart_too() -> None:
    async with short() as world:
        assert (await world.write("n-1", ALICE, "alice")).status == 201
        await world.forget(subject="alice")
        await Acts(world.parts.erasures, world.parts.timetable.wake).readmit("alice", None, "back", "dpo")
        assert world.erasure().unsettled
    async with await reborn(world) as again:
        body = {"key": "n-1", "retention": {"subject": "alice"}}
        answer = await again.call("POST", "/v1/memories", body)
        assert answer.status == 400, "the store's own answer to a write without content"


async def test_readmission_on_settled_is_a_policy() -> None:
    async with short() as world:
        active = world.parts.active
        active.policy = active.policy.model_copy(update={"readmission": "on_settled"})
        await two(world)
        await world.forget(subject="alice")
        assert (await world.write("alice-key-3", "something new", "alice")).status == 409
        await settle(world)
        await turn(world)
        assert world.erasure().readmitted
        assert (await world.write("alice-key-3", "something new", "alice")).status == 201


@pytest.mark.requirement("R128", "R129", "R137", "R141", "R153", "R156")
async def test_a_quarantined_path_takes_no_writes_and_its_neighbours_do() -> None:
    async with short() as world:
        await world.write("k1", ALICE, "alice", scope="tenant/session:42")
        await world.write("k2", BOB, "bob", scope="tenant/session:420")
        assert (await world.forget(scope="tenant/session:42/")).status == 202
        for scope in ("tenant/session:42", "tenant/session:42/summaries", "tenant/session:42/"):
            answer = await world.write("new", "a summary of what was said", "bob", scope=scope)
            assert answer.status == 409 and answer.json["reason"] == "SCOPE_LAUNDERING", scope
            assert answer["Retry-After"]
        assert world.sample("quietus_laundering_attempts_total", store="memories",
                            vector="quarantined_path", effect="reject") == 3
        assert (await world.write("new", "a summary", "bob", scope="tenant/session:420")).status == 201
        assert (await world.recall("key", scope="tenant/session:42")).status == 409
        assert (await world.recall("key", scope="tenant/session:42/deep")).status == 409
        assert set((await world.recall("key", scope="tenant/session:420")).keys) == {"k2", "new"}
        wider = await world.recall("key", scope="tenant")
        assert set(wider.keys) == {"k2", "new"} and wider["Quietus-Candidate-Set"] == "contaminated"
        await settle(world)
        assert (await world.write("n2", "another day", "bob", scope="tenant/session:42")).status == 201


@pytest.mark.requirement("R136")
async def test_restating_and_deriving_are_laundering_in_every_scope_of_the_tenant() -> None:
    async with short() as world:
        await two(world, tenant="acme")
        await world.forget(subject="alice", tenant="acme")
        for key, value, more in (
            ("s1", ALICE, {}),
            ("s2", f"Summary of the week. {ALSO_ALICE}. Nothing else.", {"scope": "fresh/place"}),
            ("s3", "unrelated words altogether", {"derived_from": ["alice-key-1"]}),
        ):
            answer = await world.write(key, value, "bob", tenant="acme", **more)
            assert answer.status == 409 and answer.json["reason"] == "SCOPE_LAUNDERING", key
        assert (await world.write("s1", ALICE, "bob", tenant="globex")).status == 201, "another tenant's"
        assert (await world.write("s4", "the tomatoes want water", "bob", tenant="acme")).status == 201


async def test_a_batch_with_one_bad_row_is_refused_whole() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        good = {"key": "g1", "value": "fine", "retention": {"subject": "bob"}}
        bad = {"key": "g2", "value": ALICE, "retention": {"subject": "bob"}}
        erased = {"key": "g3", "value": "new", "retention": {"subject": "alice"}}
        for rows in ([good, bad], [good, erased]):
            answer = await world.call("POST", "/v1/memories", {"memories": rows})
            assert answer.status == 409
        assert world.direct("GET", "/v1/memories/g1").status == 404
        assert (await world.call("POST", "/v1/memories", {"memories": [good]})).status == 201


async def test_a_write_by_key_that_names_no_subject_does_not_touch_the_erased() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        answer = await world.call("POST", "/v1/memories", {"key": "alice-key-1", "value": "overwritten"})
        assert answer.status == 409


@pytest.mark.parametrize("how", ["lost", "5xx", "queued"])
async def test_a_write_of_unknown_outcome_delays_settling_not_the_forget(how: str) -> None:
    faults = Faults(queued_ingest=40.0) if how == "queued" else Faults()
    async with short(faults) as world:
        await world.write("bobs-key-1", BOB, "bob")
        await world.clock.advance(50.0)
        if how != "queued":
            world.upstream.hooks.append(answering(WRITE, lost() if how == "lost" else says(500, {})))
        answer = await world.write("alice-key-9", ALICE, "alice")
        assert answer.status == {"lost": 504, "5xx": 500, "queued": 202}[how]
        await world.clock.advance(1.0)
        assert (await world.forget(subject="alice")).status in (202, 404)
        assert world.erasure().undrained
        await world.clock.advance(30.0)
        assert world.erasure().state is State.SETTLING, "past the interval and three rounds"
        await settle(world)
        assert world.direct("GET", "/v1/memories/alice-key-9").status == 404
        if how == "queued":
            kinds = [e async for e in world.parts.erasures.events() if e.type == "write_closed"]
            assert kinds[0].facts["cause"] == "removed"
        assert forgets(world) == 1


async def test_a_write_that_gets_lost_while_the_forget_waits_delays_settling_too() -> None:
    async with short() as world:
        await two(world)
        held = Held(WRITE)
        world.upstream.hooks += [held, answering(WRITE, lost())]
        body = {"key": "alice-key-3", "value": "late", "retention": {"subject": "alice"}}
        write = world.start("POST", "/v1/memories", body)
        await turn(world)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        held.gate.set()
        assert (await world.finish(write)).status == 504
        assert (await world.finish(forget)).status == 202
        await world.clock.advance(2.0)
        assert world.erasure().undrained
        await world.clock.advance(30.0)
        assert world.erasure().state is State.SETTLING


@pytest.mark.requirement("R3", "R204")
async def test_unmapped_routes_are_counted_and_screened_by_content() -> None:
    async with short(Faults(history=True)) as world:
        await two(world)
        plain = await world.call("GET", "/v1/memories/alice-key-1/history")
        assert plain.status == 200 and b"flower" in plain.body
        await world.forget(subject="alice")
        assert (await world.call("GET", "/v1/memories/alice-key-1/history")).status == 409
        assert (await world.call("GET", "/v1/memories/bobs-key-1/history")).status == 200
        world.upstream.hooks.append(answering(path("/v1/blob"), says(200, b"\x00\xff", "image/png")))
        assert (await world.call("GET", "/v1/blob")).status == 502
        assert world.sample("quietus_unclassified_total", store="memories", wire="http") == 4
        shapes = [s["shape"] for s in world.parts.shapes.listed()]
        assert "GET /v1/memories/{}/{}" in shapes and not any("alice" in str(s) for s in shapes)
        assert (await world.call("GET", "/healthz")).status == 200
        assert world.sample("quietus_operations_total", store="memories", wire="http", operation="ignore",
                            effect="allow", rule="otherwise", mode="enforce") == 1
    async with short(policy="strict") as world:
        assert (await world.call("GET", "/v1/memories/x/history")).status == 403
        assert world.upstream.sent == []


@pytest.mark.requirement("R9", "R10", "R11")
async def test_one_purpose_is_erased_and_the_other_goes_on() -> None:
    async with short() as world:
        await world.write("a-marketing", ALICE, "alice", purpose="marketing")
        await world.write("a-support", ALSO_ALICE, "alice", purpose="support")
        await world.write("bobs-key-1", BOB, "bob", purpose="marketing")
        await world.forget(subject="alice", purposes=["marketing"])
        assert (await world.recall("key", subject="alice", purpose="marketing")).status == 409
        kept = await world.recall("sister", subject="alice", purpose="support")
        assert kept.keys == ["a-support"] and kept["Quietus-Decision"] is None
        both = await world.recall("sister", subject="alice")
        assert both.keys == ["a-support"] and both["Quietus-Candidate-Set"] == "contaminated"
        assert (await world.write("a-s2", "a new ticket", "alice", purpose="support")).status == 201
        assert (await world.write("a-m2", "a new lead", "alice", purpose="marketing")).status == 409
        await settle(world)
        assert world.direct("GET", "/v1/memories/a-support").status == 200, "no remedy touched it"
        assert (await world.recall("sister", subject="alice", purpose="support")).status == 200
        assert (await world.write("a-m2", "a new lead", "alice", purpose="marketing")).status == 409


async def test_a_tenants_erasure_leaves_other_tenants_alone() -> None:
    async with short() as world:
        for tenant in ("acme", "globex"):
            await world.write("the-same-key", f"{ALICE} of {tenant}", "alice", tenant=tenant)
        await world.forget(subject="alice", tenant="acme")
        there = await world.recall("spare key", tenant="globex", subject="alice")
        assert there.keys == ["the-same-key"] and there["Quietus-Decision"] is None
        assert (await world.recall("spare key", tenant="acme", subject="alice")).status == 409
        everywhere = await world.recall("spare key")
        assert [r["tenant"] for r in everywhere.json["results"]] == ["globex"]
        assert (await world.write("n", "something new", "alice", tenant="globex")).status == 201
        await settle(world)
        assert world.direct("GET", "/v1/memories/the-same-key?tenant=globex").status == 200


async def _write(world: World, value: str, subject: str) -> str:
    """A memory whose key the store chooses."""
    body = {"value": value, "retention": {"subject": subject}}
    answer = await world.call("POST", "/v1/memories", body)
    assert answer.status == 201
    return str(answer.json["key"])


async def test_an_id_that_the_store_gives_again_is_its_new_owners() -> None:
    async with short(Faults(id_reuse=True)) as world:
        first = await _write(world, ALICE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(subject="alice")
        await settle(world)
        second = await _write(world, CAROL, "carol")
        assert second == first, "the store has given it again"
        assert world.direct("GET", f"/v1/memories/{first}").status == 200, "no remedy touched it"
        assert first in (await world.recall("tomatoes", subject="carol")).keys
        await world.clock.advance(8000.0)
        assert world.erasure().state is State.SETTLED
