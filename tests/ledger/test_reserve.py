"""A full disk: what shuts the gate is still written, out of a reserve; anything else waits for room."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from quietus.admin.figures import OwnFigures
from quietus.admin.health import build_probes
from quietus.core.events import Draft, EventType
from quietus.core.states import State
from quietus.gauges import publish
from quietus.ledger.chain import RESTRICTING
from quietus.ledger.reserve import Reserve
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain
from quietus.ports import LedgerFull
from tests.gateway.scenes import forgets, two
from tests.harness.failing_disk import Disk
from tests.ledger.forget_on_disk import ended, life
from tests.world import World

RESERVE = 256 << 10
DISK = 1 << 20


def used(folder: Path) -> int:
    """Bytes that the files of a folder take, the journal's index apart, which SQLite does not write."""
    return sum(
        max(p.stat().st_size, p.stat().st_blocks * 512) for p in folder.iterdir() if p.suffix != ".db-shm"
    )


def small(folder: Path, size: int = DISK) -> Disk:
    """A disk with room for so many bytes."""
    disk = Disk()
    disk.room = lambda: size - used(folder)
    return disk


async def fill(ledger: SqliteLedger) -> int:
    """Appends what restricts nothing until it is refused; how many there were."""
    for number in range(10_000):
        try:
            await ledger.append([Draft(EventType.ROUND, f"e{number}", facts={"x": "y" * 5000})])
        except LedgerFull:
            return number
    raise AssertionError("it never was full")


def no_room(monkeypatch: pytest.MonkeyPatch, free: Callable[[], int]) -> None:
    """The file system says how much is free; a small disk of ours is not one of its own."""
    monkeypatch.setattr("quietus.ledger.reserve._free", lambda folder: free())


async def test_on_a_full_disk_what_shuts_the_gate_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small(tmp_path)
    no_room(monkeypatch, lambda: DISK - used(tmp_path))
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path, reserve_bytes=RESERVE, connect=disk.connect)
    await ledger.open()
    reserve = tmp_path / "l.db.reserve"
    assert (ledger.full, ledger.reserve_bytes) == (False, RESERVE)
    assert reserve.stat().st_blocks * 512 >= RESERVE
    assert reserve.stat().st_mode & 0o777 == 0o600
    written = await fill(ledger)
    assert written > 20
    assert (ledger.full, ledger.reserve_bytes, reserve.exists()) == (True, RESERVE, True)
    for number, kind in enumerate(sorted(RESTRICTING), 1):
        [event] = await ledger.append([Draft(kind, f"r{number}", gate=True)])
        assert event.number == written + number
        assert (ledger.full, ledger.reserve_bytes, reserve.exists()) == (True, 0, False)
        with pytest.raises(LedgerFull, match="free some space"):  # the room is not theirs
            await ledger.append([Draft(EventType.ROUND, "e")])
    # A restart on the full disk: still only what restricts.
    await ledger.close()
    again = SqliteLedger(path, reserve_bytes=RESERVE, connect=disk.connect)
    await again.open()
    assert (again.full, again.reserve_bytes) == (True, 0)
    with pytest.raises(LedgerFull):
        await again.append([Draft(EventType.ROUND, "e")])
    # There is room again: the reserve first, then anything.
    disk.room = lambda: 1 << 30
    no_room(monkeypatch, lambda: 2 * RESERVE - 1)
    await again.head()
    assert again.full, "not for as much as the next write would take back"
    no_room(monkeypatch, lambda: 2 * RESERVE)
    await again.head()
    assert (again.full, again.reserve_bytes) == (False, RESERVE)
    await again.append([Draft(EventType.ROUND, "e")])
    await again.close()
    assert verify_chain(path).ok


async def test_in_one_commit_only_those_that_restrict_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    disk = small(tmp_path)
    no_room(monkeypatch, lambda: DISK - used(tmp_path))
    ledger = SqliteLedger(tmp_path / "l.db", reserve_bytes=RESERVE, connect=disk.connect)
    await ledger.open()
    written = await fill(ledger)
    kinds = [EventType.ROUND, EventType.LEAKED, EventType.CLEAN, EventType.QUARANTINED]
    big = {"x": "y" * 5000}
    found = await asyncio.gather(
        *(ledger.append([Draft(kind, "e", facts=big)]) for kind in kinds), return_exceptions=True
    )
    assert [isinstance(one, LedgerFull) for one in found] == [True, False, True, False]
    assert [e.number async for e in ledger.events(after=written)] == [written + 1, written + 2]
    await ledger.close()


@pytest.mark.requirement("R119", "R186")
async def test_a_forget_on_a_full_disk_shuts_the_gate_and_is_sent_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small(tmp_path)
    no_room(monkeypatch, lambda: DISK - used(tmp_path))
    world = life(tmp_path, disk, reserve_bytes=RESERVE)
    async with world:
        await two(world)
        assert isinstance(world.ledger, SqliteLedger)
        assert await _ready(world) == (200, "ready")
        await fill(world.ledger)
        assert await _ready(world) == (503, "full")
        refused = await world.forget(subject="alice")
        assert refused.status == 503
        assert refused["Quietus-Erasure"], "it is recorded, and can be asked for"
        assert (world.erasure().state, forgets(world)) == (State.REQUESTED, 0), "not forwarded"
        assert (await world.recall("flower pot", subject="alice")).status == 409
        assert (await world.recall("train", subject="bob")).status == 200
        await publish(world.parts, world.metrics)
        assert world.sample("quietus_ledger_full") == 1.0
        assert world.sample("quietus_ledger_reserve_bytes") == 0.0
        disk.room = None
        no_room(monkeypatch, lambda: 1 << 30)
        await world.until(lambda: world.erasure().state is State.SETTLED, 200.0)
        assert forgets(world) == 1
        assert await _ready(world) == (200, "ready")
        await publish(world.parts, world.metrics)
        assert world.sample("quietus_ledger_reserve_bytes") == RESERVE
    await ended()
    await world.ledger.close()


async def test_a_leak_on_a_full_disk_shuts_the_gate_of_what_had_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small(tmp_path, 4 << 20)
    no_room(monkeypatch, lambda: (4 << 20) - used(tmp_path))
    world = life(tmp_path, disk, reserve_bytes=RESERVE)
    async with world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED, 60.0)
        assert isinstance(world.ledger, SqliteLedger)
        await fill(world.ledger)
        row = {"key": "alice-key-1", "value": "Alice keeps her spare key", "retention": {"subject": "alice"}}
        assert world.direct("POST", "/v1/memories", row).status == 201
        await world.recall("spare key", subject="alice")
        await world.until(lambda: world.erasure().state is State.RELAPSED, 60.0)
        assert (await world.recall("spare key", subject="alice")).status == 409
    await ended()
    await world.ledger.close()


async def _ready(world: World) -> tuple[int, str]:
    probes = build_probes(world.parts.erasures, OwnFigures(world.parts, world.metrics))
    async with TestClient(TestServer(probes)) as client:
        answer = await client.get("/readyz")
        return answer.status, (await answer.json())["status"]


def test_without_a_size_there_is_no_reserve(tmp_path: Path) -> None:
    none = Reserve(tmp_path / "l.db", 0)
    none.keep()
    assert (none.held, none.spent, none.give_up(), list(tmp_path.iterdir())) == (False, False, False, [])


def test_a_reserve_that_is_too_small_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "l.db.reserve").write_bytes(b"x" * 100)
    reserve = Reserve(tmp_path / "l.db", RESERVE)
    reserve.keep()
    assert reserve.held
    assert os.stat(tmp_path / "l.db.reserve").st_blocks * 512 >= RESERVE
    again = Reserve(tmp_path / "l.db", RESERVE)
    again.keep()
    assert again.held, "one that is there is taken as it is"
    assert again.give_up()
    assert (again.spent, list(tmp_path.iterdir())) == (True, [])
