"""What clients do over and over: a hidden key is no lost one, a loop is counted, guessing is slowed down."""

from __future__ import annotations

import pytest

from quietus.repeats import LOOP, REFUSALS
from tests.gateway.scenes import ALICE, BOB, World, settle, short, two


def _count(world: World, name: str) -> float:
    return world.sample(f"quietus_{name}_total", store="memories") or 0.0


@pytest.mark.requirement("R132")
async def test_a_key_that_was_written_beside_an_open_erasure_is_hidden_and_not_lost() -> None:
    async with short() as world:
        await world.write("k1", ALICE, "alice", scope="tenant/session:42")
        await world.write("k2", BOB, "bob", scope="tenant/other")
        await world.forget(scope="tenant/session:42")
        assert (await world.call("GET", "/v1/memories/k3")).status == 404, "nobody ever wrote that one"
        assert (await world.write("k3", "a new note", "bob", scope="tenant/session:42/notes")).status == 409
        hidden = await world.call("GET", "/v1/memories/k3")
        assert hidden.status == 409 and hidden["Retry-After"]
        assert hidden.json["type"] == "urn:quietus:problem:suppressed-by-erasure"
        assert hidden.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert _count(world, "suppressed_reads") == 1
        assert (await world.call("GET", "/v1/memories/k2")).status == 200
        await settle(world)
        assert (await world.call("GET", "/v1/memories/k3")).status == 404, "settled: it is not there"


async def test_a_key_that_its_writer_forgot_is_gone() -> None:
    async with short() as world:
        await world.write("k1", ALICE, "alice", scope="tenant/session:42")
        await world.forget(scope="tenant/session:42")
        await world.write("k3", "a new note", "bob", scope="tenant/session:42")
        await world.call("DELETE", "/v1/memories/k3")
        gone = await world.call("GET", "/v1/memories/k3")
        assert "suppressed" not in str(gone.json.get("type", ""))


@pytest.mark.requirement("R133")
async def test_a_key_that_is_written_again_and_again_is_a_loop_and_counts_once() -> None:
    async with short() as world:
        await world.write("k1", ALICE, "alice", scope="tenant/session:42")
        await world.forget(scope="tenant/session:42")
        for turn in range(2 * LOOP + 2):
            assert _count(world, "rewrite_loops") == (1 if turn > LOOP else 0)
            await world.write("k3", "a new note", "bob", scope="tenant/session:42")
        await world.write("k4", "another note", "bob", scope="tenant/session:42")
        assert _count(world, "rewrite_loops") == 1


@pytest.mark.requirement("R70")
async def test_a_restated_text_is_detected_at_its_write_and_the_time_is_told() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        assert (await world.write("k3", ALICE, "bob")).status == 409
        assert world.sample("quietus_detection_seconds_count") == 1
        assert (await world.write("k4", "the tomatoes want water", "bob")).status == 201
        assert world.sample("quietus_detection_seconds_count") == 1


async def test_guessing_is_slowed_down_for_the_one_who_guesses() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        body = {"key": "g", "value": ALICE, "retention": {"subject": "bob"}}
        for _ in range(REFUSALS):
            assert (await world.call("POST", "/v1/memories", body)).status == 409
        harmless = {"key": "h", "value": "the tomatoes want water", "retention": {"subject": "bob"}}
        for each in (body, harmless):
            slowed = await world.call("POST", "/v1/memories", each)
            assert slowed.status == 429 and slowed["Retry-After"], "whatever is said, it tells nothing"
        assert (await world.recall("tomatoes", subject="bob")).status == 200, "reading goes on"
        await world.clock.advance(2.0)
        assert (await world.call("POST", "/v1/memories", harmless)).status == 201


@pytest.mark.requirement("R204")
@pytest.mark.parametrize("body", [{"note": [ALICE]}, {"a": {"b": f"In short: {ALICE} And more."}}, ALICE])
async def test_what_no_route_describes_brings_nothing_back(body: object) -> None:
    async with short() as world:
        await two(world)
        assert (await world.call("POST", "/v1/import", body)).status == 404, "nothing is erased yet"
        await world.forget(subject="alice")
        await settle(world)
        sent = len(world.upstream.sent)
        refused = await world.call("POST", "/v1/import", body)
        assert refused.status == 409 and len(world.upstream.sent) == sent
        assert ALICE.encode() not in refused.body
        assert (await world.call("POST", "/v1/import", {"note": BOB})).status == 404, "it went to the store"
        assert (await world.call("GET", "/v1/import")).status == 404
