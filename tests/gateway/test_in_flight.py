"""Recalls that are under way while a forget lands: decided when they leave, not only when they come."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from quietus.arrivals import Arrivals
from quietus.core.exchange import Request
from quietus.core.states import State
from quietus.flights import Flights
from quietus.legacy.faults import Faults
from quietus.ports import Permit
from tests.gateway.scenes import (
    ALICE,
    Held,
    World,
    answering,
    in_pieces,
    path,
    says,
    settle,
    short,
    turn,
    two,
)
from tests.world import Seen, taken

LAGGING = Faults(lazy_index=8.0)
SSE = (("Accept", "text/event-stream"),)
RECALL = path("/v1/recall", purpose="client")


def slow(world: World, seed: int, most: float) -> None:
    """Clients' recalls are answered at once by the store, and arrive some time later."""
    chance = random.Random(seed)

    async def after(request: Request, permit: Permit) -> None:
        if RECALL(request, permit):
            await world.clock.sleep(chance.random() * most)

    hook = Held(lambda r, p: False)
    hook.after = after  # type: ignore[assignment]
    world.upstream.hooks.append(hook)


async def fifty(world: World, most: float) -> tuple[list[tuple[float, Seen]], float]:
    """Fifty recalls around a forget: (when each was released, what it said), and when the fence stood."""
    await two(world)
    slow(world, 3, most)
    calls = []
    chance = random.Random(5)
    released: list[tuple[float, Seen]] = []

    async def one(number: int) -> None:
        await world.clock.sleep(chance.random() * 2.0)
        scope = [{}, {"subject": "alice"}, {"subject": "bob"}][number % 3]
        headers = SSE if number % 5 == 0 else ()
        task = world.start("POST", "/v1/recall", {"query": "spare key", **scope}, headers)
        answer = await task
        seen = await taken(answer)
        released.append((world.clock.monotonic(), seen))

    calls = [asyncio.ensure_future(one(number)) for number in range(50)]
    await world.clock.advance(1.0)
    forget = world.start("POST", "/v1/forget", {"subject": "alice"})
    await turn(world)
    fence = world.clock.monotonic()
    await world.clock.advance(most + 60.0)
    await asyncio.gather(*calls)
    await world.finish(forget)
    return released, fence


def leaks(released: list[tuple[float, Seen]], fence: float) -> int:
    return sum(1 for at, seen in released if at > fence and b"flower pot" in seen.body)


@pytest.mark.parametrize("most", [5.0, 40.0], ids=["while unsettled", "past settled"])
@pytest.mark.requirement("R17", "R40", "R203")
async def test_fifty_recalls_around_a_forget_release_nothing_after_the_fence(most: float) -> None:
    async with short(LAGGING) as world:
        released, fence = await fifty(world, most)
        assert len(released) == 50
        assert leaks(released, fence) == 0
        assert any(b"flower pot" in seen.body for at, seen in released) or most > 10
        if most > 10:
            assert world.erasure().state is State.SETTLED, "some were released after it"


async def test_the_same_without_the_check_at_release_finds_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flights, "fence", lambda *_: None)
    monkeypatch.setattr(Arrivals, "blocked", lambda *_: False)
    monkeypatch.setattr(Arrivals, "_concerned", lambda self, flight: flight.concerned)
    async with short(LAGGING) as world:
        released, fence = await fifty(world, 5.0)
        assert leaks(released, fence) > 0


@pytest.mark.requirement("R17", "R40")
@pytest.mark.parametrize("scope", [{"subject": "alice"}, {}], ids=["inside", "wider"])
async def test_begun_before_the_fence_and_released_after_settled(scope: dict[str, str]) -> None:
    async with short() as world:
        await two(world)
        held = Held(RECALL, after=True)
        world.upstream.hooks.append(held)
        call = world.start("POST", "/v1/recall", {"query": "spare key", **scope})
        await turn(world)
        assert held.waiting == 1
        await world.forget(subject="alice")
        await settle(world)
        held.gate.set()
        answer = await world.finish(call)
        if scope:
            assert answer.status == 409 and b"flower" not in answer.body
        else:
            assert answer.keys == ["bobs-key-1"]
            assert answer["Quietus-Candidate-Set"] == "contaminated"


async def test_what_names_nobody_and_is_older_than_the_forget_is_held_back_even_after_settled() -> None:
    async with short() as world:
        await two(world)
        row = {"key": "never-seen", "value": "paraphrase: the spare key hides below pottery", "score": 1}
        held = Held(RECALL)
        world.upstream.hooks += [held, answering(RECALL, says(200, {"results": [row]}))]
        call = world.start("POST", "/v1/recall", {"query": "spare key"})
        await turn(world)
        await world.forget(subject="alice")
        await settle(world)
        held.gate.set()
        assert (await world.finish(call)).keys == []


async def test_bobs_recall_under_way_is_not_held_up() -> None:
    async with short() as world:
        await two(world)
        held = Held(RECALL, after=True)
        world.upstream.hooks.append(held)
        call = world.start("POST", "/v1/recall", {"query": "train", "subject": "bob"})
        await turn(world)
        await world.forget(subject="alice")
        held.gate.set()
        answer = await world.finish(call)
        assert answer.keys == ["bobs-key-1"] and answer["Quietus-Decision"] is None


@pytest.mark.requirement("R203")
async def test_a_stream_without_an_erasure_is_relayed_as_it_came() -> None:
    async with short() as world:
        await two(world)
        in_pieces(world, 1.0)
        direct = world.direct("POST", "/v1/recall", {"query": "spare key"})
        assert direct.body
        answer = await (world.start("POST", "/v1/recall", {"query": "spare key"}, SSE))
        parts = []

        async def read() -> None:
            async for part in answer.body:  # type: ignore[union-attr]
                parts.append(part)

        reading = asyncio.ensure_future(read())
        await world.clock.advance(1.5)
        assert len(parts) == 1, "nothing is buffered"
        await world.clock.advance(10.0)
        await reading
        answer.done()
        assert b"".join(parts).count(b"data:") == 4 and ALICE.encode() in b"".join(parts)
        assert dict(answer.headers)["Content-Type"] == "text/event-stream"


@pytest.mark.requirement("R203")
@pytest.mark.parametrize("scope", [{}, {"subject": "alice"}], ids=["wider", "inside"])
async def test_a_fence_breaks_off_a_stream_that_is_being_written(scope: dict[str, str]) -> None:
    async with short() as world:
        await two(world)
        in_pieces(world, 2.0)
        answer = await world.start("POST", "/v1/recall", {"query": "spare key", **scope}, SSE)
        reading = asyncio.ensure_future(taken(answer))
        await world.clock.advance(1.0)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        assert answer.overtaken.is_set(), "the listener aborts at once"
        await world.clock.advance(3.0)
        seen = await reading
        assert seen.broken and b"flower" not in seen.body
        assert (await world.finish(forget)).status == 202, "the aborted answer was waited for, and no longer"


@pytest.mark.requirement("R203", "R34")
async def test_a_stream_begun_while_unsettled_is_screened_event_by_event() -> None:
    async with short(LAGGING) as world:
        await two(world)
        await world.forget(subject="alice")
        in_pieces(world, 0.0)
        answer = await world.recall("spare key", SSE)
        assert not answer.broken and answer["Quietus-Candidate-Set"] == "contaminated"
        assert b"flower" not in answer.body and b"morning train" in answer.body
        assert b"event: done" in answer.body


async def _streamed(pieces: list[bytes], kind: tuple[tuple[str, str], ...] = ()) -> Seen:
    """What of a stream leaves while Alice's erasure is unsettled."""
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        reply = says(200, b"".join(pieces), "text/event-stream")
        reply = type(reply)(200, (*reply.headers, *kind), reply.body)
        world.upstream.hooks.append(answering(RECALL, reply))
        in_pieces(world, 0.0)
        return await world.recall("spare key", SSE)


def _event(**row: str) -> bytes:
    return b"data: " + json.dumps(row).encode() + b"\n\n"


BOBS = {"key": "bobs-key-1", "subject": "bob"}


@pytest.mark.parametrize("parts", [2, 4, 8, 13])
async def test_a_sentence_spread_over_events_is_found(parts: int) -> None:
    words = ALICE.split()
    size = -(-len(words) // parts)
    cut = [" ".join(words[n : n + size]) for n in range(0, len(words), size)]
    seen = await _streamed([_event(**BOBS, value=piece) for piece in [*cut, BOBS["key"]]])
    assert b"spare" not in seen.body or b"flower" not in seen.body
    assert sum(word.encode() in seen.body for word in words if len(word) > 4) <= 2


@pytest.mark.parametrize(
    "event",
    [
        b": " + ALICE.encode() + b"\n\n",
        b"id: alice-key-1\ndata: {}\n\n",
        b"event: " + ALICE.encode() + b"\ndata: {}\n\n",
        b"data: " + ALICE.encode() + b"\n\n",
        b"data: Alice Moreau keeps her spare key under\r\ndata: the third flower pot by the gate\r\n\r\n",
        b"data:{\"a\": {\"alice-key-1\": 1}}\r\r",
    ],
    ids=["comment", "id", "event name", "text", "two data lines", "object key"],
)
async def test_every_part_of_an_event_is_screened(event: bytes) -> None:
    seen = await _streamed([event, _event(**BOBS, value="the morning train")])
    assert b"flower" not in seen.body and b"alice" not in seen.body
    assert b"morning train" in seen.body


async def test_a_compressed_stream_cannot_be_screened() -> None:
    seen = await _streamed([b"\x1f\x8b whatever"], (("Content-Encoding", "gzip"),))
    assert seen.status == 502 and seen.json["type"].endswith("unscreenable")
