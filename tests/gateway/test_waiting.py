"""Calls that a policy lets wait: they pass when what they touched is settled, never for having waited."""

from __future__ import annotations

import json

import pytest

from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.waiting import BYTES_MAX
from tests.gateway.scenes import ALICE, Held, World, path, settle, short, turn, two
from tests.harness.policies import RECALLS_WAIT, RESTATED, WRITES_WAIT, changed

JSON = (("Content-Type", "application/json"),)
LIMIT = 120.0
"""Seconds that a call may wait (`timeouts.wait`)."""


def writes(world: World) -> int:
    return world.upstream.calls("POST", "/v1/memories")


@pytest.mark.requirement("R167", "R170")
async def test_a_near_duplicate_by_somebody_else_is_held_until_nothing_stale_can_be_read() -> None:
    async with short(Faults(dedup_merge=True, stale_dedup=8.0), policy=WRITES_WAIT) as world:
        await two(world)
        await world.forget(subject="alice")
        before, began = writes(world), world.clock.monotonic()
        written = world.start(
            "POST", "/v1/memories", {"key": "b9", "value": ALICE, "retention": {"subject": "bob"}}
        )
        await world.clock.advance(8.0)
        assert not written.done() and writes(world) == before, "the store has not seen it"
        answer = await world.finish(written)
        assert answer.status == 201 and writes(world) == before + 1
        assert world.erasure().state is State.SETTLED and "merged_with" not in answer.json
        waited = world.clock.monotonic() - began
        assert world.sample("quietus_wait_seconds_sum") == pytest.approx(waited)


@pytest.mark.requirement("R167")
async def test_what_is_settled_too_late_is_rejected_when_the_time_is_used_up() -> None:
    late = {"settling_interval": 500.0, "effectuation_bound": 1000.0}
    async with short(store=late, policy=WRITES_WAIT) as world:
        await two(world)
        await world.forget(subject="alice")
        before, began = writes(world), world.clock.monotonic()
        answer = await world.write("b9", ALICE, "bob")
        assert (answer.status, answer.json["reason"]) == (409, "SCOPE_LAUNDERING")
        assert world.clock.monotonic() - began == pytest.approx(LIMIT, abs=1.0) and writes(world) == before


async def test_what_never_has_to_be_waited_for_is_not_waited_for() -> None:
    always = changed({"when": RESTATED, "effect": "delay"})
    async with short(policy=always) as world:
        await two(world)
        assert (await world.write("c1", "the tomatoes want water", "carol")).status == 201
        await world.forget(subject="alice")
        await settle(world)
        began = world.clock.monotonic()
        assert (await world.write("b9", ALICE, "bob")).status == 409, "settled, and still not to be said"
        assert world.clock.monotonic() == began


async def test_a_recall_waits_and_then_tells_of_nobody() -> None:
    async with short(Faults(lazy_index=8.0), policy=RECALLS_WAIT) as world:
        await two(world)
        assert (await world.recall("spare key", subject="alice")).keys == ["alice-key-1", "alice-key-2"]
        await world.forget(subject="alice")
        answer = await world.recall("spare key", subject="alice")
        assert (answer.status, answer.keys) == (200, []) and world.erasure().state is State.SETTLED
    late = {"settling_interval": 500.0, "effectuation_bound": 1000.0}
    async with short(store=late, policy=RECALLS_WAIT) as world:
        await two(world)
        await world.forget(subject="alice")
        answer = await world.recall("spare key", subject="alice")
        assert (answer.status, answer.json["reason"]) == (409, "ERASURE_EPOCH_NOT_SETTLED")
        assert answer["Retry-After"] and (answer["Quietus-Decision"] or "").startswith("block;")


@pytest.mark.requirement("R34")
async def test_an_answer_that_a_forget_overtakes_does_not_pass_where_recalls_wait() -> None:
    recalled = path("/v1/recall", purpose="client")
    async with short(Faults(lazy_index=8.0), policy=RECALLS_WAIT) as world:
        await two(world)
        held = Held(recalled, after=True)
        world.upstream.hooks.append(held)
        asked = world.start("POST", "/v1/recall", {"query": "spare key", "subject": "alice"})
        await turn(world)
        assert held.waiting == 1
        await world.forget(subject="alice")
        held.gate.set()
        answer = await world.finish(asked)
        assert answer.status == 409 and b"flower pot" not in answer.body


async def test_there_is_room_for_so_many_and_the_next_is_refused_at_once() -> None:
    lazy = {"settling_interval": 60.0, "effectuation_bound": 110.0}
    async with short(store=lazy, policy=WRITES_WAIT) as world:
        await two(world)
        await world.forget(subject="alice")
        body = json.dumps({"key": "b9", "value": ALICE, "retention": {"subject": "bob"}}).encode()
        large = body.ljust(BYTES_MAX // 16 - 4096)
        held = [world.start("POST", "/v1/memories", large, JSON) for _ in range(16)]
        await turn(world)
        assert not any(task.done() for task in held)
        again = await world.call("POST", "/v1/memories", large, JSON)
        assert (again.status, again.json["reason"]) == (409, "SCOPE_LAUNDERING")
        assert not any(task.done() for task in held)
        small = world.start("POST", "/v1/memories", body, JSON)
        await turn(world)
        assert not small.done(), "there is still room for this one"
        assert [(await world.finish(task)).status for task in (*held, small)] == [201] * 17
        assert (await world.call("POST", "/v1/memories", large, JSON)).status == 201, "the room is free again"


async def test_a_client_that_goes_away_waits_no_longer_and_leaves_its_room() -> None:
    lazy = {"settling_interval": 60.0, "effectuation_bound": 110.0}
    async with short(store=lazy, policy=WRITES_WAIT) as world:
        await two(world)
        await world.forget(subject="alice")
        before = writes(world)
        body = json.dumps({"key": "b9", "value": ALICE, "retention": {"subject": "bob"}}).encode()
        large = body.ljust(BYTES_MAX // 16 - 4096)
        held = [world.start("POST", "/v1/memories", large, JSON) for _ in range(16)]
        await turn(world)
        for task in held:
            task.cancel()
        await turn(world)
        again = world.start("POST", "/v1/memories", large, JSON)
        await turn(world)
        assert not again.done(), "their room is free"
        assert (await world.finish(again)).status == 201
        assert writes(world) == before + 1, "nobody's write is sent who has gone"
