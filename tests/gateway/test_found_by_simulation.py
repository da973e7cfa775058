"""What the simulator found, each as a scene of its own."""

from __future__ import annotations

import asyncio

import pytest

from quietus.core.exchange import Request
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import LedgerUnavailable, Permit, UpstreamError
from tests.gateway.scenes import ALICE, ALSO_ALICE, BOB, CAROL, Held, events, path, settle, short, turn, two

SSE = (("Accept", "text/event-stream"),)


async def test_a_writer_who_hangs_up_does_not_hold_up_forgets() -> None:
    async with short() as world:
        held = Held(path("/v1/memories"), after=True)
        world.upstream.hooks.append(held)
        writing = world.start("POST", "/v1/memories", {"value": ALICE, "retention": {"subject": "alice"}})
        await turn(world)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        held.gate.set()
        world.upstream.hooks.clear()
        await turn(world)
        assert len(world.parts.flights) == 0, "nobody writes that answer, so nobody would have closed it"
        assert (await world.forget(subject="alice")).status == 202


async def test_no_remedy_takes_the_record_of_another_who_said_the_same() -> None:
    async with short(Faults(idle_ack=True)) as world:
        await world.write("bobs-key-1", BOB, "bob", scope="team/notes")
        await world.write("alice-key-1", BOB, "alice", scope="team/notes")
        await world.forget(scope="team/notes", subject="alice")
        await world.clock.advance(40.0)
        assert world.erasure().state is State.LEAKING
        deletes = {r.target.partition("?")[0] for _, r in world.upstream.sent if r.method == "DELETE"}
        assert deletes == {"/v1/memories/alice-key-1"}, "bob's own record is not the sidecar's to delete"


@pytest.mark.requirement("R144")
async def test_a_repeated_forget_is_told_that_the_ledger_is_away() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        world.ledger.fault = LedgerUnavailable("away")  # type: ignore[attr-defined]
        seen = await world.forget(subject="alice")
        assert (seen.status, seen.json["type"]) == (503, "urn:quietus:problem:ledger-unavailable")


async def test_what_lies_in_no_path_is_no_part_of_a_path() -> None:
    async with short() as world:
        await world.write("alice-key-1", ALICE, "alice", scope="team/notes")
        await world.write("alice-key-2", ALSO_ALICE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        await world.forget(scope="team/notes")
        await settle(world)
        assert not {"leaked", "leaked_late", "remedied"} & set(await events(world))
        assert world.direct("GET", "/v1/memories/alice-key-2").status == 200


async def test_a_stream_keeps_what_another_tenant_had_erased() -> None:
    async with short() as world:
        await world.write("alice-key-1", ALICE, "alice", tenant="one")
        await world.write("carol-key-1", ALICE, "carol", tenant="two")
        await world.write("bobs-key-1", BOB, "bob", tenant="two")
        await world.forget(subject="alice", tenant="one")
        seen = await world.recall("spare key", (("Accept", "text/event-stream"),), tenant="two")
        assert b"carol-key-1" in seen.body and b"bobs-key-1" in seen.body


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
async def test_no_jump_of_the_wall_clock_moves_a_write_that_may_still_land(jump: float) -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(_no_answer)
        await world.write("alice-key-3", ALICE, "alice")
        world.upstream.hooks.clear()
        await world.forget(subject="alice")
        world.clock.jump(jump)
        await world.clock.advance(50.0)
        assert world.erasure().undrained, "a minute is its bound"
        await world.clock.advance(50.0)
        assert world.erasure().state is State.SETTLED


def _no_answer(request: Request, _: Permit) -> None:
    if request.method == "POST" and request.path == "/v1/memories":
        raise UpstreamError("no answer", sent=True)


async def test_a_surface_whose_last_control_is_gone_gets_a_canary() -> None:
    async with short() as world:
        await world.write("alice-key-1", ALICE, "alice", scope="team/notes")
        await world.write("bobs-key-1", BOB, "bob", scope="team/plans")
        await world.write("carol-key-1", CAROL, "carol")
        await world.forget(subject="alice")
        assert world.direct("DELETE", "/v1/memories/bobs-key-1").status == 200
        await settle(world)  # nobody else lies in any path: only a canary can show that the path is read


async def test_an_event_that_was_held_is_looked_at_again_when_it_leaves() -> None:
    async with short() as world:
        await world.write("alice-key-1", ALICE, "alice")
        await world.write("bobs-key-1", BOB, "bob")
        await world.write("bobs-key-2", ALICE, "bob")
        await world.forget(subject="carol")  # so that streams are screened at all
        answer = await world.start("POST", "/v1/recall", {"query": "train", "subject": "bob"}, SSE)
        events_ = answer.body.__aiter__()  # type: ignore[union-attr]
        first = await anext(events_)
        assert b"bobs-key-1" in first or b"bobs-key-2" in first
        await world.forget(subject="alice")
        rest = b"".join([piece async for piece in events_])
        assert ALICE.encode() not in rest, "what its snapshot has found is screened for from then on"
