"""A forget that is repeated joins the erasure that it is inside: one upstream call, the first answer."""

from __future__ import annotations

import asyncio

import pytest

from quietus.acts import Acts
from quietus.core.states import State
from quietus.legacy.faults import Faults
from tests.gateway.scenes import Held, answering, forgets, lost, path, says, settle, short, turn, two

FORGET = path("/v1/forget")
TOKENS = Faults(ack="accepted", fresh_tokens=True, async_effect=5.0)


@pytest.mark.requirement("R122", "R131", "R144", "R147")
async def test_fifty_at_once_make_one_upstream_call() -> None:
    async with short(TOKENS) as world:
        await two(world)
        held = Held(FORGET)
        world.upstream.hooks.append(held)
        calls = [world.start("POST", "/v1/forget", {"subject": "alice"}) for _ in range(50)]
        await turn(world)
        held.gate.set()
        answers = [await world.finish(call) for call in calls]
        assert {(a.status, a.json["token"]) for a in answers} == {(202, "del_9f3a")}
        assert forgets(world) == 1 and len(list(world.parts.erasures.all())) == 1
        assert world.sample("quietus_forget_calls_total", store="memories", side="client") == 50
        assert world.sample("quietus_forget_calls_total", store="memories", side="upstream") == 1


@pytest.mark.requirement("R131", "R144")
async def test_a_repeat_later_gets_the_first_answer_and_resets_no_clock() -> None:
    async with short(TOKENS) as world:
        await two(world)
        await world.forget(subject="alice")
        bound = world.erasure().bound_at
        await world.clock.advance(4.0)
        again = await world.forget(subject="alice")
        assert again.status == 202 and again.json["token"] == "del_9f3a"
        assert world.erasure().bound_at == bound and forgets(world) == 1


@pytest.mark.requirement("R131")
async def test_a_contained_forget_joins_a_wider_one_does_not() -> None:
    async with short() as world:
        await two(world, tenant="acme")
        await world.forget(subject="alice", tenant="acme")
        await world.forget(subject="alice", tenant="acme", keys=["alice-key-1"])
        await world.forget(subject="alice", tenant="acme", purposes=["support"])
        assert len(list(world.parts.erasures.all())) == 1 and forgets(world) == 1
        await world.forget(subject="alice")
        assert len(list(world.parts.erasures.all())) == 2, "every tenant is more than one tenant"
        await world.forget(subject="bob", tenant="acme")
        assert len(list(world.parts.erasures.all())) == 3


async def test_joiners_of_an_unanswered_forget_wait_for_it() -> None:
    async with short(TOKENS) as world:
        await two(world)
        held = Held(FORGET)
        world.upstream.hooks.append(held)
        first = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        second = world.start("POST", "/v1/forget", {"subject": "alice"})
        await world.clock.advance(20.0)
        assert not first.done() and not second.done()
        held.gate.set()
        assert (await world.finish(first)).json == (await world.finish(second)).json


async def test_joiners_of_an_unclear_forget_get_504_with_its_id() -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(FORGET, lost(), lost()))
        held = Held(FORGET, after=True)
        world.upstream.hooks.append(held)
        first = world.start("POST", "/v1/forget", {"subject": "alice"})
        second = world.start("POST", "/v1/forget", {"subject": "alice"})
        answers = [await world.finish(first), await world.finish(second), await world.forget(subject="alice")]
        for answer in answers:
            assert answer.status == 504 and world.erasure().id in (answer["Quietus-Erasure"] or "")


async def test_a_forget_that_takes_too_long_is_504_and_goes_on() -> None:
    async with short() as world:
        await two(world)
        held = Held(FORGET)
        world.upstream.hooks.append(held)
        answer = await world.forget(subject="alice")
        assert answer.status == 504
        held.gate.set()
        await turn(world)
        assert world.erasure().state is State.SETTLING and forgets(world) == 1


@pytest.mark.requirement("R79")
async def test_settled_answers_as_settled_until_readmission() -> None:
    async with short(Faults(ack="accepted")) as world:
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        again = await world.forget(subject="alice")
        assert again.status == 200 and again.json["token"] == "del_9f3a"
        assert "state=settled;verdict=partial" in (again["Quietus-Erasure"] or "")
        assert "assurance=read_path" in (again["Quietus-Erasure"] or "")
        assert forgets(world) == 1
        acts = Acts(world.parts.erasures, world.parts.timetable.wake)
        await acts.readmit("alice", None, "asked to come back", "dpo")
        third = await world.forget(subject="alice")
        assert third.status in (202, 404) and len(list(world.parts.erasures.all())) == 2
        assert forgets(world) == 2


async def test_a_released_erasure_is_not_joined() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        acts = Acts(world.parts.erasures, world.parts.timetable.wake)
        await acts.release(world.erasure().id, "operator", "checked by hand")
        await world.clock.advance(1.0)
        assert await world.ledger.secret_names(world.erasure().id) == []
        await world.forget(subject="alice")
        assert len(list(world.parts.erasures.all())) == 2


@pytest.mark.requirement("R123", "R150")
async def test_prefer_wait_answers_when_it_is_settled() -> None:
    async with short() as world:
        await two(world)
        answer = await world.forget((("Prefer", "respond-async, wait=60"),), subject="alice")
        assert answer.status == 200 and "state=settled" in (answer["Quietus-Erasure"] or "")
        forward = next(r for _, r in world.upstream.sent if r.path == "/v1/forget")
        assert "prefer" not in {name.lower() for name, _ in forward.headers}


async def test_prefer_wait_is_bounded() -> None:
    async with short(store={"settling_interval": 500.0, "effectuation_bound": 1000.0}) as world:
        await two(world)
        before = world.clock.monotonic()
        answer = await world.forget((("Prefer", "wait=30"),), subject="alice")
        assert answer.status == 202
        assert 29.0 <= world.clock.monotonic() - before <= 31.0


async def test_strict_waits_transparent_acknowledges_as_the_store_did(tmp_path: object) -> None:
    async with short(policy="strict") as world:
        await two(world)
        answer = await world.forget(subject="alice")
        assert answer.status == 200 and world.erasure().state is State.SETTLED
    async with short() as world:
        world.parts.active.policy = world.parts.active.policy.model_copy(update={"ack": "transparent"})
        await two(world)
        answer = await world.forget(subject="alice")
        assert answer.status == 200 and "state=settling" in (answer["Quietus-Erasure"] or "")


@pytest.mark.requirement("R175", "R176", "R177")
@pytest.mark.parametrize("promise", ["hard_erasure", "dedup", "salience"])
async def test_a_store_that_says_when_it_is_done_is_waited_for(promise: str) -> None:
    async with short(store={"features": [promise, "completion_signal"]}) as world:
        await two(world)
        began = world.clock.monotonic()
        answer = await world.forget(subject="alice")
        assert answer.status == 200 and "state=settled" in (answer["Quietus-Erasure"] or "")
        assert world.clock.monotonic() - began >= 10.0, "the settling interval, and its clean rounds"
        for preferred, most in (("respond-async", 0.0), ("wait=3", 3.0)):
            written = await world.write(f"of-{most}", f"plants leeks on day {most} of May", f"carol-{most}")
            assert written.status == 201
            began = world.clock.monotonic()
            early = await world.forget((("Prefer", preferred),), subject=f"carol-{most}")
            assert early.status == 202 and world.clock.monotonic() - began == pytest.approx(most, abs=0.5)


@pytest.mark.requirement("R123", "R68", "R41")
async def test_the_status_of_an_erasure_is_told_to_whoever_holds_its_id() -> None:
    async with short() as world:
        await two(world)
        answer = await world.forget(subject="alice")
        link = (answer["Link"] or "").split(">")[0].lstrip("<")
        status = await world.call("GET", link)
        assert status.status == 200 and status.json["state"] == "settling" and status["Retry-After"]
        assert b"alice" not in status.body
        assert (await world.call("GET", "/.well-known/quietus/erasures/er_none")).status == 404
        assert world.upstream.calls("GET", link) == 0


async def test_an_ack_that_tells_of_others_is_not_passed_on() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        told = says(200, {"status": "erased", "neighbours": ["Alice Moreau keeps her spare key under the "
                                                             "third flower pot by the gate"]})
        world.upstream.hooks.append(answering(FORGET, told))
        answer = await world.forget(subject="bob")
        assert answer.status == 202 and b"flower" not in answer.body


@pytest.mark.requirement("R11", "R12")
async def test_a_forget_by_key_never_makes_its_subject_erased() -> None:
    async with short() as world:
        await two(world)
        answer = await world.forget(keys=["alice-key-1"], basis="gdpr_art17")
        assert "verdict=partial" in (answer["Quietus-Erasure"] or "")
        assert "KEY_IS_NOT_ERASURE_UNIT" in (answer["Quietus-Erasure"] or "")
        assert (await world.write("alice-key-3", "Alice takes up the cello", "alice")).status == 201
        recall = await world.recall("sister", subject="alice")
        assert recall.status == 200 and set(recall.keys) == {"alice-key-2", "alice-key-3"}
        assert (await world.call("GET", "/v1/memories/alice-key-1")).status == 409
        plain = await world.call("DELETE", "/v1/memories/alice-key-2")
        assert "KEY_IS_NOT" not in (plain["Quietus-Erasure"] or "") and plain.status == 202
        await world.until(lambda: all(e.state is State.SETTLED for e in world.parts.erasures.all()))
        assert (await world.recall("cello", subject="alice")).keys == ["alice-key-3"]


async def test_keys_with_their_subject_are_still_only_keys() -> None:
    async with short() as world:
        await two(world)
        answer = await world.forget(subject="alice", keys=["alice-key-1"])
        assert "KEY_IS_NOT_ERASURE_UNIT" in (answer["Quietus-Erasure"] or "")
        assert (await world.recall("sister", subject="alice")).keys == ["alice-key-2"]
        body = {"value": "Alice takes up the cello", "retention": {"subject": "alice"}}
        assert (await world.call("POST", "/v1/memories", body)).status == 201
        await asyncio.wait_for(settle(world), 30)
