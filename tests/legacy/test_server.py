"""The store on a real socket, on a clock that only the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession

from quietus.legacy.faults import Faults
from quietus.legacy.server import serving
from quietus.legacy.store import LegacyStore
from tests.legacy.conversation import ALICE
from tests.virtual_clock import VirtualClock

MEMORY = {"tenant": "acme", "key": "a/1", "value": ALICE, "retention": {"subject": "alice"}}


async def until(holds: Callable[[], Any]) -> None:
    """Gives way until something on another task has come true."""
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what comes true sets no event
            await asyncio.sleep(0)


async def test_whole_conversation_and_receipts() -> None:
    store = LegacyStore(VirtualClock())
    async with serving(store) as served, ClientSession(served.url) as client:
        async with client.post("/v1/memories", json=MEMORY) as reply:
            assert reply.status == 201 and await reply.json() == {"key": "a/1", "status": "stored"}
        async with client.get(f"{served.url}/v1/memories/a%2F1") as reply:
            assert reply.status == 200 and (await reply.json())["value"] == ALICE
        async with client.delete("/v1/memories/none") as reply:
            assert reply.status == 404
        async with client.head("/healthz") as reply:
            assert reply.status == 200
        async with client.get("/elsewhere") as reply:
            assert reply.status == 404 and (await reply.json())["error"] == "no_such_route"
        async with client.put("/v1/recall") as reply:
            assert reply.status == 405
    assert served.receipts[0] == "POST /v1/memories" and len(served.receipts) == 6
    assert served.receipts[1] == "GET /v1/memories/a%2F1", "the path as it came"


async def test_acknowledgement_takes_40_ms_when_asked() -> None:
    clock = VirtualClock()
    store = LegacyStore(clock, faults=Faults(latency=0.04))
    async with serving(store) as served, ClientSession(served.url) as client:
        async with client.post("/v1/memories", json=MEMORY):
            pass
        waiting = asyncio.ensure_future(client.post("/v1/forget", json={"subject": "alice"}))
        await until(lambda: clock.sleepers)
        await clock.advance(0.039)
        assert not waiting.done()
        await clock.advance(0.001)
        async with await waiting as reply:
            assert await reply.json() == {"status": "erased", "keys": 1}
    assert clock.monotonic() == pytest.approx(0.04)


async def test_events_come_one_by_one() -> None:
    clock = VirtualClock()
    store = LegacyStore(clock, faults=Faults(event_gap=1))
    for number in range(2):
        store.put(f"memory {number}", key=f"m{number}")
    async with serving(store) as served, ClientSession(served.url) as client:
        ask = {"query": "memory"}
        async with client.post("/v1/recall", json=ask, headers={"Accept": "text/event-stream"}) as reply:
            assert reply.content_type == "text/event-stream"
            for expected in (b'data: {"key":"m0"', b'data: {"key":"m1"', b"event: done"):
                assert (await reply.content.readuntil(b"\n\n")).startswith(expected)
                if expected != b"event: done":
                    await until(lambda: clock.sleepers)
                    await clock.advance(1)
            assert await reply.content.read() == b""


@pytest.mark.parametrize("mode", ["done", "undone"])
async def test_lost_answer_is_a_dropped_connection(mode: Any) -> None:
    store = LegacyStore(VirtualClock(), faults=Faults(lost_answer=mode))
    store.put(ALICE, key="a1", subject="alice")
    async with serving(store) as served, ClientSession(served.url) as client:
        with pytest.raises(ClientError):
            await client.post("/v1/forget", json={"subject": "alice"})
        assert store.calls["forget"] == 1
        async with client.get("/v1/memories/a1") as reply:
            assert reply.status == (404 if mode == "done" else 200)
        async with client.post("/v1/forget", json={"subject": "alice"}) as reply:
            assert reply.status == (404 if mode == "done" else 200)


async def test_lost_answer_may_hang() -> None:
    clock = VirtualClock()
    store = LegacyStore(clock, faults=Faults(lost_answer="done", hang=60))
    store.put(ALICE, key="a1", subject="alice")
    async with serving(store) as served, ClientSession(served.url) as client:
        waiting = asyncio.ensure_future(client.post("/v1/forget", json={"subject": "alice"}))
        await until(lambda: clock.sleepers)
        await clock.advance(59)
        assert not waiting.done() and not store.holds("Voltaire")
        await clock.advance(1)
        with pytest.raises(ClientError):
            await waiting


async def test_restart_over_the_wire_where_it_is_allowed() -> None:
    for controls in (True, False):
        store = LegacyStore(VirtualClock(), faults=Faults(restart_resurrection=True))
        store.put(ALICE, key="a1", subject="alice")
        async with serving(store, controls=controls) as served, ClientSession(served.url) as client:
            async with client.post("/v1/forget", json={"subject": "alice"}) as reply:
                assert reply.status == 200
            async with client.post("/_legacy/restart") as reply:
                assert reply.status == (204 if controls else 404)
            async with client.get("/v1/memories/a1") as reply:
                assert reply.status == (200 if controls else 404)


async def test_gzip_answers_and_refuses_encoded_requests() -> None:
    store = LegacyStore(VirtualClock(), faults=Faults(gzip=True))
    async with serving(store) as served, ClientSession(served.url) as client:
        async with client.get("/v1/epoch") as reply:
            assert reply.headers["Content-Encoding"] == "gzip" and await reply.json() == {"read_epoch": 0}
        async with client.post("/v1/recall", data=b"{}", headers={"Content-Encoding": "gzip"}) as reply:
            assert reply.status == 415


async def test_body_has_a_limit() -> None:
    async with serving(LegacyStore(VirtualClock())) as served, ClientSession(served.url) as client:
        async with client.post("/v1/recall", data=b" " * (4 * 1024 * 1024 + 1)) as reply:
            assert reply.status == 413


async def test_closing_twice_is_fine() -> None:
    async with serving(LegacyStore(VirtualClock())) as served:
        await served.close()
    await served.close()
