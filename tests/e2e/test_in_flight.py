"""Fifty recalls are in flight when a forget lands: none of them brings the erased back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.held import Held
from tests.e2e.process import Quietus, shipped

SECRET = b"Elm Street"


@pytest.fixture
def store() -> Iterator[Held]:
    held = Held()
    yield held
    held.close()


def _sidecar(tmp_path: Path, store: Held, arm: str = "") -> Quietus:
    profile = shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="60s")
    settings = {"limits": {"probe_rate_per_second": 500}}
    return Quietus(tmp_path, store.url, str(profile), settings, arm=arm).start()


async def _recall(
    session: aiohttp.ClientSession, url: str, door: str, stream: bool, subject: str | None
) -> tuple[int, bytes, bool]:
    """(status, what was received, whether it came to its proper end)"""
    headers = {"X-Door": door, **({"Accept": "text/event-stream"} if stream else {})}
    body = {"query": "elm street", **({"subject": subject} if subject else {})}
    received = b""
    try:
        async with session.post(f"{url}/v1/recall", json=body, headers=headers) as answer:
            async for piece in answer.content.iter_any():
                received += piece
            return answer.status, received, True
    except aiohttp.ClientError:
        return 0, received, False


async def _fifty(sidecar: Quietus, store: Held, streams: bool = True) -> list[tuple[int, bytes, bool]]:
    """Fifty recalls before the fence; half are let go after the acknowledgement, half after SETTLED."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        plans = [
            (("soon", "late")[i % 2], streams and i % 3 == 0, ("alice", None)[i // 2 % 2])
            for i in range(50)
        ]
        tasks = [
            asyncio.ensure_future(_recall(session, sidecar.data, door, stream, subject))
            for door, stream, subject in plans
        ]
        while sum(store.arrived.values()) < 50:
            await asyncio.sleep(0)
        async with session.post(f"{sidecar.data}/v1/forget", json={"subject": "alice"}) as forget:
            assert forget.status == 202
        store.open("soon")
        store.clean()
        await asyncio.to_thread(sidecar.until, "settled")
        store.open("late")
        return list(await asyncio.gather(*tasks))


@pytest.mark.timeout(120)
@pytest.mark.requirement("R34", "R83", "R126", "R203")
async def test_nothing_of_the_erased_is_released_after_the_fence(tmp_path: Path, store: Held) -> None:
    sidecar = _sidecar(tmp_path, store)
    try:
        answers = await _fifty(sidecar, store)
        assert len(answers) == 50
        assert [a for a in answers if SECRET in a[1]] == []
        refused = [a for a in answers if a[0] == 409]
        broken = [a for a in answers if not a[2]]
        whole = [a for a in answers if a[0] == 200 and a[2]]
        assert len(refused) + len(broken) + len(whole) == 50
        assert refused and broken
        assert all(b"Bob likes" in a[1] for a in whole)
        assert store.forgets == 1
    finally:
        assert sidecar.stop() == 0


@pytest.mark.timeout(120)
async def test_without_the_check_at_release_the_same_fifty_leak(tmp_path: Path, store: Held) -> None:
    sidecar = _sidecar(tmp_path, store, arm="unsafe:release")
    try:
        # Streams are left out: unwarned, they would keep the barrier from ever being reached.
        answers = await _fifty(sidecar, store, streams=False)
        assert len([a for a in answers if SECRET in a[1]]) > 0
    finally:
        sidecar.stop()
