"""On faults of ours, of the store's, of the request's: closed, told apart, and never a hole."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.acts import Acts
from quietus.core.events import EventType
from quietus.core.policy import Policy
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import UpstreamError
from tests.gateway.scenes import ALICE, answering, events, forgets, settle, short, two


@pytest.mark.parametrize("cause", ["ledger", "epoch", "loading"])
@pytest.mark.requirement("R202", "R157")
async def test_a_shut_gate_lets_nothing_through(cause: str) -> None:
    async with short() as world:
        await two(world)
        sent = len(world.upstream.sent)
        world.parts.erasures.closed_cause = cause
        for answer in (
            await world.recall("train", subject="bob"),
            await world.call("GET", "/v1/memories/bobs-key-1"),
            await world.write("n", "new", "bob"),
            await world.forget(subject="alice"),
            await world.call("GET", "/v1/memories/bobs-key-1/history"),
        ):
            assert answer.status == 503 and answer.json["type"].endswith("ledger-unavailable")
            assert answer["Retry-After"]
        assert len(world.upstream.sent) == sent
        assert (await world.call("GET", "/healthz")).status == 200, "what is free of memories passes"


async def test_a_fault_of_ours_is_closed_and_of_a_known_shape() -> None:
    async with short() as world:
        await two(world)

        def broken(*_: object) -> Any:
            raise RuntimeError("a bug")

        world.parts.gateway._arrivals._releaser.judge = broken  # type: ignore[method-assign]
        assert (await world.recall("train")).status == 200
        await world.forget(subject="alice")
        answer = await world.recall("train")
        assert answer.status == 500 and answer.json["type"].endswith("internal")
        assert len(world.parts.flights) == 0, "no flight is left open"
        assert any(event == "internal_error" for event, _ in world.log.lines)


@pytest.mark.parametrize(
    ("error", "recall", "write"),
    [(UpstreamError("x", sent=False), 502, 502), (UpstreamError("x", sent=True), 502, 504)],
    ids=["not sent", "sent"],
)
async def test_a_store_that_gives_no_answer(error: UpstreamError, recall: int, write: int) -> None:
    async with short() as world:
        world.upstream.hooks.append(answering(lambda r, p: True, error, error))
        answer = await world.recall("x")
        assert answer.status == recall and answer["Retry-After"]
        answer = await world.write("n", "new", "bob")
        assert answer.status == write
        name = "outcome-unknown" if write == 504 else "upstream-unavailable"
        assert answer.json["type"].endswith(name)
        assert len(world.parts.flights) == 0


HOSTILE = [
    (b'{"query":"x","query":"y"}', 400),
    (b'{"query":NaN}', 400),
    (b"\xef\xbb\xbf{}", 400),
    (b"\xff\xfe{\x00}\x00", 400),
    (b"[" * 100_000, 400),
    (b'{"query":"x","subject":["a"]}', 400),
    (b'{"query":"x","subject":{"a":1}}', 400),
    (b'{"query":"x","subject":"a\\u0000"}', 400),
    (b"{", 400),
]


@pytest.mark.parametrize(("body", "status"), HOSTILE, ids=range(len(HOSTILE)))
async def test_requests_that_could_mean_two_things(body: bytes, status: int) -> None:
    async with short() as world:
        answer = await world.call("POST", "/v1/recall", body)
        assert answer.status == status and answer["Content-Type"] == "application/problem+json"
        assert world.upstream.sent == []


@pytest.mark.parametrize(
    "predicate",
    [
        {},
        {"tenant": "acme"},
        {"keys": []},
        {"subject": ""},
        {"purposes": ["a"]},
        {"subject": "a", "keys": []},
    ],
    ids=str,
)
async def test_forgets_that_nobody_could_verify(predicate: dict[str, Any]) -> None:
    async with short() as world:
        answer = await world.forget(**predicate)
        assert answer.status in (400, 422) and world.upstream.sent == []
        assert list(world.parts.erasures.all()) == []
        if answer.status == 422:
            assert answer.json["reason"] == "ERASURE_AUDIT"


async def test_strict_blocks_wider_recalls_and_leaves_others_alone() -> None:
    async with short(Faults(lazy_index=1000.0), policy="strict",
                     store={"settling_interval": 500.0, "effectuation_bound": 1200.0}) as world:
        await two(world)
        await world.forget((("Prefer", "wait=1"),), subject="alice")
        assert (await world.recall("train")).status == 409
        assert (await world.recall("train", subject="bob")).keys == ["bobs-key-1"]
        assert (await world.call("GET", "/v1/memories/bobs-key-1")).status == 200


async def test_waiting_recalls_wait_until_settled_and_no_longer_than_allowed() -> None:
    for interval, status in ((10.0, 200), (500.0, 409)):
        async with short(store={"settling_interval": interval, "effectuation_bound": 1200.0}) as world:
            policy = world.parts.active.policy
            document = policy.model_dump(by_alias=True)
            for rule in document["rules"]:
                if rule["name"] == "recall-in-erased-scope":
                    rule["effect"] = "wait"
            world.parts.active.policy = Policy.model_validate(document)
            await two(world)
            await world.forget(subject="alice")
            answer = await world.recall("spare key", subject="alice")
            assert answer.status == status
            if status == 200:
                assert world.erasure().state is State.SETTLED and answer.keys == []


async def test_released_lifts_the_restriction_and_keeps_the_tombstone() -> None:
    async with short(Faults(lazy_index=1000.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        await Acts(world.parts.erasures, world.parts.timetable.wake).release(
            world.erasure().id, "op", "by hand"
        )
        answer = await world.recall("spare key", subject="alice")
        assert answer.status == 200 and answer.keys == []
        assert (await world.write("n", ALICE, "bob")).status == 409
        assert world.parts.verdict(world.erasure()).word == "unconfirmed"
        await world.clock.advance(5.0)
        sent = len(world.upstream.sent)
        await world.clock.advance(500.0)
        assert len(world.upstream.sent) == sent, "probes stop"


async def test_conditional_headers_do_not_hide_what_must_be_screened() -> None:
    async with short() as world:
        await two(world)
        headers = (("If-None-Match", "x"), ("Range", "bytes=0-9"))
        await world.call("GET", "/v1/memories", headers=headers)
        assert dict(world.upstream.sent[-1][1].headers)["Range"]
        await world.forget(subject="alice")
        await world.call("GET", "/v1/memories", headers=headers)
        sent = next(r for p, r in reversed(world.upstream.sent) if p == "client")
        assert not {"If-None-Match", "Range"} & set(dict(sent.headers))


@pytest.mark.requirement("R42")
async def test_each_state_is_a_version_with_its_event() -> None:
    async with short() as world:
        await two(world)
        seen = []
        world.parts.erasures.listen(lambda erasure, event: seen.append((erasure.version, event.number)))
        await world.forget(subject="alice")
        await settle(world)
        assert all(version == number for version, number in seen)
        assert len(seen) == len(await events(world)) and forgets(world) == 1


async def test_clean_is_set_on_the_version_that_was_judged() -> None:
    """A late leak between the last round and CLEAN wins."""
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        real = world.ledger.append
        raced = []

        async def append(drafts: Any, **more: Any) -> Any:
            if drafts[0].type == "clean" and not raced:
                raced.append(True)
                told = type(drafts[0])(EventType.ESCALATED, drafts[0].erasure, drafts[0].at)
                await world.parts.erasures.append([told])
            return await real(drafts, **more)

        world.ledger.append = append  # type: ignore[method-assign]
        await settle(world)
        kinds = await events(world)
        assert raced and kinds.count("clean") == 1
        assert kinds.index("escalated") < kinds.index("clean")
