"""The decision counts over a restart: what was counted is counted still, sealed, bounded, and never fatal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quietus.decided import KINDS_MAX, Decided, Tally
from quietus.decided_kept import EVERY, DecidedKept
from quietus.keys import Keyring
from quietus.ledger.counts_file import CountsFile
from tests.gateway.scenes import short
from tests.gateway.test_decided import LAGGING, day
from tests.world import World


def kept(world: World, where: Path) -> DecidedKept:
    parts = world.parts
    return DecidedKept(parts.gateway.decided, parts.shapes, parts.erasures, world.log, CountsFile(where))


def counted(world: World) -> Any:
    """What `GET /v1/decisions` is made of, in an order of its own."""
    said = json.loads(json.dumps(world.parts.gateway.decided.listed()))
    said["calls"].sort(key=json.dumps)
    return said, world.parts.gateway.decided.since, world.parts.shapes.listed()


@pytest.mark.requirement("R196")
async def test_counts_go_on_where_they_were(tmp_path: Path) -> None:
    where = tmp_path / "ledger.decisions"
    async with short(LAGGING) as world:
        await kept(world, where).load()
        assert ("decisions_begun_anew", {"cause": "missing"}) in world.log.lines
        await day(world)
        before = counted(world)
        await kept(world, where).write()
    assert where.stat().st_mode & 0o777 == 0o600
    raw = where.read_bytes()
    for word in (b"acme", b"globex", b"recall", b"alice"):
        assert word not in raw
    async with World(keyring=world.keyring, clock=world.clock, upstream=world.upstream) as again:
        await kept(again, where).load()
        assert counted(again) == before
        await again.recall("the train", tenant="acme", subject="bob")  # of its kind there was none yet
        await again.recall("the train", tenant="acme", subject="bob")
        counts = sum(one["count"] for one in before[0]["calls"])
        assert again.parts.gateway.decided.tally().count == counts + 2


async def test_counts_that_cannot_be_read_are_told_and_begun_anew(tmp_path: Path) -> None:
    where = tmp_path / "ledger.decisions"
    async with short(LAGGING) as world:
        await day(world)
        await kept(world, where).write()
    whole = where.read_bytes()
    (tmp_path / "folder").mkdir()
    for spoilt, place, cause in (
        (whole[:-1] + bytes([whole[-1] ^ 1]), where, "damaged_or_of_other_keys"),
        (whole[:20], where, "damaged_or_of_other_keys"), (b"", where, "damaged_or_of_other_keys"),
        (None, tmp_path / "folder", "unreadable"),
    ):
        if spoilt is not None:
            place.write_bytes(spoilt)
        async with World(keyring=world.keyring) as again:
            await kept(again, place).load()
            assert ("decisions_begun_anew", {"cause": cause}) in again.log.lines
            assert again.parts.gateway.decided.tally().count == 0
            await again.recall("tea")
            await kept(again, where).write()
        async with World(keyring=world.keyring) as third:
            await kept(third, where).load()
            assert third.parts.gateway.decided.tally().count == 1
    where.write_bytes(whole)
    async with World(keyring=Keyring.fresh()) as other:
        await kept(other, where).load()
        assert ("decisions_begun_anew", {"cause": "damaged_or_of_other_keys"}) in other.log.lines


async def test_a_tenant_that_is_named_like_somebody_erased_is_not_written(tmp_path: Path) -> None:
    where = tmp_path / "ledger.decisions"
    async with short(LAGGING) as world:
        for tenant in ("alice", "acme"):
            await world.write("k1", "tea at five", "alice", tenant=tenant)
            await world.recall("tea", tenant=tenant)
        await world.forget(subject="alice", tenant="alice")
        before = world.parts.gateway.decided.tally()
        assert before.names == {"alice", "acme"}
        await kept(world, where).write()
    async with World(keyring=world.keyring) as again:
        await kept(again, where).load()
        after = again.parts.gateway.decided.tally()
    assert (after.names, after.count) == ({"acme"}, before.count)


async def test_only_what_is_new_is_written_and_a_fault_is_told_once(tmp_path: Path) -> None:
    where = tmp_path / "gone" / "ledger.decisions"
    async with World() as world:
        keeping = kept(world, where)
        for _ in range(2):
            await keeping.write()
        assert world.log.lines.count(("decisions_not_written", {"cause": "disk"})) == 1
        where.parent.mkdir()
        await keeping.write()
        first = where.stat().st_mtime_ns
        await keeping.write()
        assert where.stat().st_mtime_ns == first
        await world.recall("tea")
        await keeping.write()
        assert where.stat().st_mtime_ns > first


async def test_what_is_read_back_keeps_to_the_bound() -> None:
    said = {"operation": "recall", "principal": "", "tenant": [], "purpose": [], "failure": None,
            "rule": "otherwise", "effect": "allow", "mode": "enforce", "overridden": False, "count": 2,
            "cases": [{"erasure": "none", "state": None, "subject": None, "write": []}]}  # fmt: skip
    calls = [{**said, "route": f"r{number}"} for number in range(KINDS_MAX)]
    counts = {"calls": calls, "unreadable": [], "faulty": [], "left_out": 3}
    async with World() as world:
        decided: Decided = world.parts.gateway.decided
        decided.go_on(Tally.read(5.0, counts))
        assert (decided.kinds, decided.since) == (KINDS_MAX, 5.0)
        await world.recall("tea")
        assert decided.tally().left_out == 4, "a kind that is new is counted with the others"
        assert decided.tally().count == 2 * KINDS_MAX
    assert EVERY <= 10
