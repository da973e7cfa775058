"""What leaves: every scalar and key of every answer is looked at, and nobody else's rows are missing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quietus.core.exchange import Reply, Request
from quietus.core.states import State
from quietus.legacy.faults import FOUNDING, Faults
from quietus.ports import Permit
from tests.gateway.scenes import (
    ALICE,
    ALSO_ALICE,
    BOB,
    CAROL,
    World,
    answering,
    kill,
    path,
    reborn,
    says,
    settle,
    short,
    two,
)

LAGGING = Faults(lazy_index=9.0)
RECALL = path("/v1/recall", purpose="client")


def row(key: str, value: str, subject: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if subject is None else {"subject": subject}
    return {"key": key, "value": value, **named, **more}


@pytest.mark.requirement("R17", "R34", "R36", "R40", "R41", "R35", "R146", "R156")
async def test_inside_is_refused_wider_is_screened_and_marked_others_are_untouched() -> None:
    async with short(LAGGING) as world:
        await two(world)
        await world.forget(subject="alice")
        assert b"flower" in world.direct("POST", "/v1/recall", {"query": "spare key"}).body
        inside = await world.recall("spare key", subject="alice")
        assert inside.status == 409 and inside["Retry-After"]
        assert inside.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert inside.json["rule"] == "recall-in-erased-scope" and inside.json["erasure_epoch"]
        assert inside.json["subject"][0].startswith("hmac:") and b"alice" not in inside.body
        assert 'reason=ERASURE_EPOCH_NOT_SETTLED' in (inside["Quietus-Decision"] or "")
        wider = await world.recall("spare key")
        assert wider.keys == ["bobs-key-1"] and wider["Quietus-Candidate-Set"] == "contaminated"
        assert wider["Quietus-Dropped"] is None and wider["Quietus-Erasure"] is None
        other = await world.recall("train", subject="bob")
        assert other.body == world.direct("POST", "/v1/recall", {"query": "train", "subject": "bob"}).body
        assert other["Quietus-Decision"] is None


async def test_all_overlapping_answers_are_marked_alike() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        nothing_dropped = await world.recall("train")
        world.upstream.hooks.append(answering(RECALL, says(200, {"results": [row("alice-key-1", ALICE)]})))
        dropped = await world.recall("train")
        marks = [h for h in nothing_dropped.headers if h[0].startswith("Quietus")]
        assert marks == [h for h in dropped.headers if h[0].startswith("Quietus")]
        assert nothing_dropped.body == world.direct("POST", "/v1/recall", {"query": "train"}).body


async def test_disclosing_policies_tell_trusted_callers_more() -> None:
    async with short(LAGGING) as world:
        await two(world)
        active = world.parts.active
        active.policy = active.policy.model_copy(update={"disclose": True})
        await world.forget(subject="alice")
        wider = await world.recall("spare key")
        assert wider["Quietus-Dropped"] == "2" and world.erasure().id in (wider["Quietus-Erasure"] or "")
        assert (await world.recall("x", subject="alice")).json["erasures"] == [world.erasure().id]


ERASED_ROWS = {
    "subject": row("new-id-99", "something else", "alice"),
    "key": row("alice-key-1", "something else"),
    "text": row("chunk-1", ALICE),
    "sentence in a longer text": row("digest", f"Weekly: {ALICE}. And more.", "service:analytics"),
    "in an unknown member": row("bobs-key-2", "x", "bob", note={"deep": [ALICE]}),
    "key of an object": row("bobs-key-2", "x", "bob", extra={ALICE: 1}),
    "derived": row("bobs-key-2", "a summary", "bob", derived_from=["alice-key-1"]),
    "id in a scalar": row("bobs-key-2", "x", "bob", see="alice-key-2"),
    "dangling provenance": row("bobs-key-2", "x", "bob", provenance_resolved=False),
    "unattributed": row("chunk-2", "a paraphrase of who knows whom"),
    "another case": row("bobs-key-2", ALICE.upper(), "bob"),
}


@pytest.mark.parametrize("what", ERASED_ROWS)
@pytest.mark.requirement("R19", "R83")
async def test_rows_that_must_not_leave(what: str) -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        rows = [row("bobs-key-1", BOB, "bob"), ERASED_ROWS[what], row("carols-key", CAROL, "carol")]
        world.upstream.hooks.append(answering(RECALL, says(200, {"results": rows, "next": None})))
        answer = await world.recall("anything")
        assert answer.keys == ["bobs-key-1", "carols-key"]
        assert answer.json["next"] is None


@pytest.mark.parametrize(
    "what", ["text", "sentence in a longer text", "in an unknown member", "key", "subject"]
)
async def test_tombstones_screen_after_settled(what: str) -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        rows = [row("bobs-key-1", BOB, "bob"), ERASED_ROWS[what]]
        world.upstream.hooks.append(answering(RECALL, says(200, {"results": rows})))
        answer = await world.recall("anything")
        assert answer.keys == ["bobs-key-1"]


@pytest.mark.parametrize(
    "document",
    [
        {"results": [], "trace": ALICE},
        {"results": [], ALICE: 1},
        {"results": [], "error": {"causes": ["alice-key-1"]}},
        {"results": [], "for": "alice"},
    ],
    ids=["scalar", "object key", "erased id", "erased subject"],
)
async def test_a_hit_outside_the_rows_refuses_the_answer(document: dict[str, Any]) -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        world.upstream.hooks.append(answering(RECALL, says(200, document), says(200, document)))
        answer = await world.recall("anything")
        assert answer.status == 409 and answer.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert b"flower" not in answer.body
        await settle(world)
        world.upstream.hooks.append(answering(RECALL, says(200, document)))
        answer = await world.recall("anything")
        assert answer.status == 409 and answer.json["reason"] == "INCOMPLETE_ERASURE"


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_error_bodies_are_screened_too(status: int) -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        world.upstream.hooks.append(answering(RECALL, says(status, {"error": f"near: {ALICE}"})))
        assert (await world.recall("anything")).status == 409


async def test_answers_to_writes_are_screened_too() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        told = says(201, {"key": "n", "status": "stored", "similar": [ALSO_ALICE]})
        world.upstream.hooks.append(answering(path("/v1/memories", purpose="client"), told))
        answer = await world.write("n", "unrelated", "bob")
        assert answer.status == 409 and b"sister" not in answer.body


@pytest.mark.parametrize(
    "reply",
    [says(200, b"{not json"), says(200, {"rows": []}), says(200, b"\xff\xfe"), says(200, [])],
    ids=["no json", "no items path", "no text", "another shape"],
)
async def test_what_cannot_be_read_cannot_be_shown_to_be_free(reply: Reply) -> None:
    async with short() as world:
        await two(world)
        world.upstream.hooks.append(answering(RECALL, reply, reply))
        assert (await world.recall("x")).body == reply.body, "where nothing is erased it goes through"
        await world.forget(subject="alice")
        answer = await world.recall("x")
        assert answer.status == 502 and answer.json["type"].endswith("unscreenable")


@pytest.mark.requirement("R18", "R83")
async def test_reads_by_key() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        assert (await world.call("GET", "/v1/memories/alice-key-1")).status == 409
        bob = await world.call("GET", "/v1/memories/bobs-key-1")
        assert bob.json["value"] == BOB and bob["Quietus-Decision"] is None
        assert (await world.call("GET", "/v1/memories?subject=bob")).keys == ["bobs-key-1"]
        assert (await world.call("GET", "/v1/memories")).keys == ["bobs-key-1"]
        assert (await world.call("GET", "/v1/export")).status == 200


async def test_an_export_that_quotes_the_erased_is_refused() -> None:
    async with short(Faults(stale_export=1000.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        assert (await world.call("GET", "/v1/export")).status == 409
        await settle(world)
        assert (await world.call("GET", "/v1/export")).status == 409


def anonymous(world: World) -> None:
    """Clients' recalls come back without subjects, as a store does that is asked for vectors only."""

    def hook(request: Request, permit: Permit) -> Reply | None:
        if not RECALL(request, permit):
            return None
        reply = world.legacy.handle(request)
        rows = [{"key": r["key"]} for r in json.loads(reply.body)["results"]]
        return says(200, {"results": rows})

    world.upstream.hooks.append(hook)


async def test_rows_that_name_nobody_are_attributed_by_what_traffic_told() -> None:
    async with short(LAGGING) as world:
        await two(world)
        await world.forget(subject="alice")
        anonymous(world)
        before = len(world.upstream.sent)
        assert (await world.recall("spare key")).keys == ["bobs-key-1"]
        assert len(world.upstream.sent) == before, "nobody has to be asked"


async def test_after_a_restart_the_store_is_asked_whose_they_are() -> None:
    world = short(Faults(lazy_index=300.0), store={"settling_interval": 600.0, "effectuation_bound": 1300.0})
    await world.__aenter__()
    await two(world)
    await world.forget(subject="alice")
    await kill(world)
    async with await reborn(world) as again:
        anonymous(again)
        assert (await again.recall("spare key")).keys == ["bobs-key-1"]
        before = len([1 for purpose, _ in again.upstream.sent if purpose == "probe"])
        assert (await again.recall("spare key")).keys == ["bobs-key-1"]
        after = len([1 for purpose, _ in again.upstream.sent if purpose == "probe"])
        assert after == before, "what was learned is not asked again"


@pytest.mark.requirement("R8", "R21", "R38")
async def test_the_first_founding_scenario_leaks_nothing() -> None:
    async with World(FOUNDING) as world:
        await world.write("k1", ALICE, "alice", tenant="acme", purpose="support")
        await world.write("k2", BOB, "bob", tenant="acme")
        await world.forget(subject="alice", tenant="acme")
        for _ in range(5):
            direct = world.direct("POST", "/v1/recall", {"query": "spare key", "tenant": "acme"})
            assert b"flower pot" in direct.body, "the store itself goes on telling"
            answer = await world.recall("spare key", tenant="acme")
            assert b"flower pot" not in answer.body and "k2" in answer.keys
            await world.clock.advance(200.0)
        assert world.erasure().state is not State.SETTLED
        assert world.sample("quietus_contaminated_recalls_total", store="memories", effect="screen") == 5
