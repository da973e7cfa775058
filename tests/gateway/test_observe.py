"""Observe mode changes nothing, and says what would have happened."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quietus.assembly import Bounds
from quietus.core.exchange import Reply, Request
from quietus.core.states import State
from quietus.gateway import GatewayLimits
from quietus.legacy.faults import Faults
from tests.gateway.scenes import ALICE, answering, in_pieces, lost, path, says, short, two
from tests.world import taken

LAGGING = Faults(lazy_index=100.0)
SSE = (("Accept", "text/event-stream"),)


@pytest.mark.requirement("R193", "R196", "R10")
async def test_everything_goes_through_as_it_came_and_is_counted() -> None:
    async with short(LAGGING, policy="observe") as world:
        await two(world)
        answer = await world.forget((("Prefer", "wait=9"),), subject="alice")
        assert answer.status == 200 and answer["Quietus-Erasure"] is None
        assert answer.body == b'{"status":"erased","keys":2}'
        recall = await world.recall("spare key", subject="alice")
        assert recall.status == 200 and b"flower" in recall.body and recall["Quietus-Decision"] is None
        assert recall.body == world.direct("POST", "/v1/recall", {"query": "spare key",
                                                                  "subject": "alice"}).body
        stream = await world.recall("spare key", SSE)
        assert b"flower" in stream.body and not stream.broken
        assert (await world.write("alice-key-3", ALICE, "alice")).status == 201
        assert (await world.call("GET", "/v1/export", headers=(("If-None-Match", "x"),))).status == 200
        export = world.upstream.sent[-1][1]
        assert dict(export.headers)["If-None-Match"] == "x"
        assert world.sample("quietus_operations_total", store="memories", wire="http", operation="recall",
                            effect="block", rule="recall-in-erased-scope", mode="observe") == 1
        assert {purpose for purpose, _ in world.upstream.sent} == {"client"}, "nobody is probed"
        await world.until(lambda: world.erasure().state is State.RELEASED)
        assert {purpose for purpose, _ in world.upstream.sent} == {"client"}


@pytest.mark.requirement("R193", "R196")
async def test_a_stream_under_way_is_not_broken_off() -> None:
    async with short(LAGGING, policy="observe") as world:
        await two(world)
        in_pieces(world, 1.0)
        answer = await world.start("POST", "/v1/recall", {"query": "spare key"}, SSE)
        reading = asyncio.ensure_future(taken(answer))
        await world.clock.advance(0.5)
        await world.forget(subject="alice")
        await world.clock.advance(10.0)
        seen = await reading
        assert not seen.broken and b"flower" in seen.body


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=80),
    target=st.sampled_from(
        ["/v1/recall", "/v1/forget", "/v1/memories", "/v1/memories/%zz", "//x", "/a/../b", "/?q=1&q=2"]
    ),
    method=st.sampled_from(["GET", "POST", "DELETE", "PUT", "PATCH"]),
    back=st.binary(max_size=80),
    status=st.sampled_from([200, 204, 302, 404, 500]),
)
@pytest.mark.parametrize("policy", ["observe"])
@pytest.mark.requirement("R193", "R196")
async def test_bytes_in_are_bytes_out(
    policy: str, body: bytes, target: str, method: str, back: bytes, status: int
) -> None:
    headers = (("Content-Type", "text/odd"), ("X-A", "1"), ("X-A", "2"), ("Prefer", "x"), ("Range", "a=0-1"))
    reply = Reply(status, (("X-B", "1"), ("X-B", "2"), ("Content-Type", "application/json")), back)
    got: list[Request] = []

    def hook(request: Request, permit: object) -> Reply:
        got.append(request)
        return reply

    async with short(policy=policy) as world:
        world.upstream.hooks.append(hook)
        answer = await world.call(method, target, body, headers)
        assert (answer.status, answer.headers, answer.body) == (status, reply.headers, back)
        assert len(got) == 1 and (got[0].method, got[0].target, got[0].body) == (method, target, body)
        assert [h for h in got[0].headers if h[0] != "Host"][-5:] == list(headers)


@pytest.mark.requirement("R193")
async def test_without_an_erasure_enforcing_changes_no_byte_either() -> None:
    async with short() as world:
        await two(world)
        kind = ("Content-Type", "application/json")
        odd = Reply(200, (kind, ("X-B", "1")), b'{ "results" : [ ] ,"x":1.50}')
        world.upstream.hooks.append(answering(path("/v1/recall"), odd))
        answer = await world.recall("x")
        assert (answer.headers, answer.body) == (odd.headers, odd.body)


async def test_an_answer_too_large_to_hold_passes_where_nothing_is_erased() -> None:
    async with short(bounds=Bounds(gateway=GatewayLimits(response_bytes=1000))) as world:
        await two(world)
        big = says(200, {"results": [], "padding": "x" * 5000})
        world.upstream.hooks.append(answering(path("/v1/recall"), big, big))
        assert (await world.recall("x")).body == big.body
        world.upstream.hooks.append(answering(path("/v1/recall"), big))
        await world.forget(subject="nobody-here")
        world.upstream.hooks[0] = answering(path("/v1/recall", purpose="client"), big)
        assert (await world.recall("x")).status == 502


async def test_the_store_is_down() -> None:
    async with short(policy="observe") as world:
        world.upstream.hooks.append(answering(lambda r, p: True, *[lost()] * 4))
        assert (await world.recall("x")).status == 502
        assert (await world.call("POST", "/v1/recall", b"{")).status == 502
        assert (await world.write("k", "v", "alice")).status == 504
        assert (await world.forget(subject="alice")).status == 504
        assert list(world.parts.erasures.all()) == []
