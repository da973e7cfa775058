"""A forget's order: durable intent, fence, drain, snapshot, drain, forward, answer."""

from __future__ import annotations

import asyncio

import pytest

from quietus.core.erasure import PolicyPhase, ReadPhase
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import LedgerUnavailable
from tests.gateway.scenes import (
    ALICE,
    Held,
    answering,
    events,
    forgets,
    lost,
    path,
    says,
    settle,
    short,
    turn,
    two,
)

FORGET = path("/v1/forget")


@pytest.mark.requirement("R39", "R119", "R125", "R126", "R186")
async def test_intent_snapshot_and_forward_are_durable_before_the_store_is_asked() -> None:
    seen: list[list[str]] = []
    async with short() as world:
        await two(world)

        async def look(request: object, permit: object) -> None:
            if FORGET(request, permit):  # type: ignore[arg-type]
                seen.append(await events(world))

        world.upstream.hooks.append(look)
        answer = await world.forget(subject="alice")
        assert seen == [["requested", "snapshotted", "forwarded"]]
        assert await events(world) == ["requested", "snapshotted", "forwarded", "accepted"]
        assert answer.status == 202
        order = [p for p, r in world.upstream.sent if p == "probe" or r.path == "/v1/forget"]
        assert order.index("client") > 5, "the snapshot comes before the forward"


@pytest.mark.requirement("R4", "R6", "R14", "R28", "R29", "R30", "R45", "R48", "R49", "R121", "R127")
async def test_acknowledgement_is_a_claim_and_says_nothing_of_reading() -> None:
    async with short(Faults(ack="accepted")) as world:
        await two(world)
        answer = await world.forget(subject="alice")
        assert answer.status == 202
        assert answer.json == {"status": "accepted", "token": "del_9f3a", "effectuation": "async"}
        assert "state=settling;verdict=unconfirmed" in (answer["Quietus-Erasure"] or "")
        assert "assurance=policy_only" in (answer["Quietus-Erasure"] or "")
        erasure = world.erasure()
        assert erasure.policy_phase is PolicyPhase.COMMITTED
        assert erasure.read_phase is ReadPhase.UNSETTLED
        assert erasure.may_assert_erasure and not erasure.may_assert_non_recallability
        assert erasure.claim["status"] == "accepted"
        assert b"del_9f3a" not in repr([e.facts async for e in world.parts.erasures.events()]).encode()


@pytest.mark.requirement("R136", "R181")
async def test_a_write_in_flight_is_drained_before_the_forward() -> None:
    async with short() as world:
        await two(world)
        held = Held(path("/v1/memories", purpose="client"))
        world.upstream.hooks.append(held)
        body = {"key": "alice-key-3", "value": "late", "retention": {"subject": "alice"}}
        write = world.start("POST", "/v1/memories", body)
        await turn(world)
        assert held.waiting == 1
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        assert await events(world) == ["requested"], "the fence stands, nothing was forwarded"
        assert forgets(world) == 0
        held.gate.set()
        late = await world.finish(write)
        assert late.status == 409 and late.json["reason"] == "ERASURE_ORDERING_VIOLATION"
        assert (await world.finish(forget)).status == 202
        assert world.direct("GET", "/v1/memories/alice-key-3").status == 404


@pytest.mark.requirement("R126")
async def test_unreachable_barrier_is_503_and_the_reconciler_goes_on() -> None:
    async with short() as world:
        await two(world)
        held = Held(path("/v1/memories", purpose="client"))
        world.upstream.hooks.append(held)
        body = {"key": "alice-key-3", "value": "late", "retention": {"subject": "alice"}}
        write = world.start("POST", "/v1/memories", body)
        await turn(world)
        answer = await world.forget(subject="alice")
        assert answer.status == 503 and answer.json["type"].endswith("barrier-unreachable")
        assert world.erasure().id in (answer["Quietus-Erasure"] or "")
        assert forgets(world) == 0 and world.erasure().state is State.REQUESTED
        assert (await world.recall("key", subject="alice")).status == 409, "the fence stays"
        held.gate.set()
        await world.finish(write)
        await world.until(lambda: world.erasure().state is State.SETTLING)
        assert forgets(world) == 1


async def test_barrier_after_the_snapshot_is_not_forgotten_when_it_is_driven_again() -> None:
    async with short() as world:
        await two(world)
        probes = Held(path("/v1/memories/alice-key-1", purpose="probe"))
        world.upstream.hooks.append(probes)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        # A wide write slips in while the snapshot is taken, and does not come back.
        held = Held(path("/v1/memories", purpose="client"))
        world.upstream.hooks.append(held)
        write = world.start("POST", "/v1/memories", {"key": "nobodys", "value": "no subject is named"})
        await turn(world)
        assert held.waiting == 1
        probes.gate.set()
        assert (await world.finish(forget)).status == 503
        assert "snapshotted" in await events(world)
        await world.clock.advance(3.0)
        assert forgets(world) == 0, "driven again, it still waits for the write"
        held.gate.set()
        await world.finish(write)
        await world.until(lambda: world.erasure().state is not State.REQUESTED)
        assert forgets(world) == 1


@pytest.mark.requirement("R43")
async def test_a_refused_forget_lifts_the_fence_and_takes_back_its_marks() -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(FORGET, says(403, {"error": "no"})))
        answer = await world.forget(subject="alice")
        assert answer.status == 403 and answer.json == {"error": "no"}
        erasure = world.erasure()
        assert erasure.state is State.REFUSED and erasure.policy_phase is PolicyPhase.NONE
        assert (await world.recall("spare key", subject="alice")).keys[0] == "alice-key-1"
        assert (await world.write("alice-key-3", "something new", "alice")).status == 201
        assert [mark async for mark in world.ledger.marks()] == []
        await world.clock.advance(1.0)
        assert await world.ledger.secret_names(erasure.id) == []
        assert (await world.forget(subject="alice")).status == 202, "a new forget is a new erasure"
        assert world.erasure().id != erasure.id


@pytest.mark.parametrize("how", ["lost", "5xx", "too-late"])
@pytest.mark.requirement("R43", "R144", "R147")
async def test_an_unclear_forget_stays_fenced_and_is_sent_again_without_credentials(how: str) -> None:
    async with short() as world:
        await two(world)
        first = {"lost": lost(), "5xx": says(500, {"error": "x"}), "too-late": lost()}[how]
        world.upstream.hooks.append(answering(FORGET, first, says(503, {})))
        secret = (("Authorization", "Bearer of-the-client"), ("Idempotency-Key", "once"), ("Cookie", "c=1"))
        answer = await world.forget(secret, subject="alice")
        assert answer.status == 504 and answer["Retry-After"]
        assert world.erasure().id in (answer["Quietus-Erasure"] or "")
        assert world.erasure().state is State.REQUESTED
        assert world.erasure().policy_phase is PolicyPhase.NONE
        assert (await world.recall("spare key", subject="alice")).status == 409
        await world.until(lambda: world.erasure().state is State.SETTLING)
        (sent,) = [(p, r) for p, r in world.upstream.sent if r.path == "/v1/forget"]
        assert sent[0] == "forget"
        names = {name.lower() for name, _ in sent[1].headers}
        assert "idempotency-key" in names and not names & {"authorization", "cookie"}
        assert (await events(world)).count("forwarded") == 3
        assert await world.parts.erasures.unseal(world.erasure().id, "request") == b""
        await settle(world)


async def test_a_refusal_after_an_unclear_forward_is_unclear() -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(FORGET, lost(), says(403, {})))
        assert (await world.forget(subject="alice")).status == 504
        await world.until(lambda: world.erasure().forwards >= 2)
        await turn(world)
        assert "refused" not in await events(world)
        assert world.erasure().unsettled
        await world.until(lambda: world.erasure().answered)


async def test_resends_back_off_and_a_clients_repeat_does_not_hasten_them() -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(FORGET, *[lost() for _ in range(1000)]))
        await world.forget(subject="alice")
        for _ in range(10):
            assert (await world.forget(subject="alice")).status == 504
        assert world.erasure().forwards == 1
        await world.clock.advance(600.0)
        assert 5 < world.erasure().forwards < 40


@pytest.mark.requirement("R79")
async def test_not_found_is_accepted_and_answered_as_the_store_did() -> None:
    async with short() as world:
        await world.write("bobs-key-1", "Bob was here", "bob")
        answer = await world.forget(subject="nobody-known")
        assert answer.status == 404 and answer["Quietus-Erasure"]
        assert world.erasure().state is State.SETTLING
        assert world.erasure().claim["status"] == "not_found"
        await settle(world)
        assert world.parts.verdict(world.erasure()).word == "unconfirmed"
        assert (await world.write("n", "hello there", "nobody-known")).status == 409


async def test_a_queued_forget_is_accepted() -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(FORGET, says(202, {"status": "queued", "token": "t"})))
        assert (await world.forget(subject="alice")).status == 202
        assert world.erasure().state is State.SETTLING


@pytest.mark.requirement("R202")
async def test_without_a_ledger_nothing_is_forwarded() -> None:
    async with short() as world:
        await two(world)

        async def broken(*_: object, **__: object) -> None:
            raise LedgerUnavailable("the disk is full")

        world.ledger.append = broken  # type: ignore[method-assign,assignment]
        answer = await world.forget(subject="alice")
        assert answer.status == 503 and answer.json["type"].endswith("ledger-unavailable")
        assert forgets(world) == 0


async def test_a_client_that_goes_away_does_not_cancel_its_forget() -> None:
    async with short() as world:
        await two(world)
        held = Held(FORGET)
        world.upstream.hooks.append(held)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        forget.cancel()
        await asyncio.gather(forget, return_exceptions=True)
        held.gate.set()
        await turn(world)
        assert world.erasure().state is State.SETTLING and forgets(world) == 1
        assert ALICE.encode() not in world.direct("GET", "/v1/memories?subject=alice").body
