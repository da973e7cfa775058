"""Lineage at rest and what it covers: kept over a restart, scanned, bounded; and where it is not whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quietus.assembly import Bounds
from quietus.core.screening import Screener
from quietus.core.states import State
from quietus.ledger.lineage_file import LineageFile
from quietus.legacy.faults import Faults
from quietus.ports import LineageFault
from quietus.scan import CannotScan, Reach, Scan, Seen
from quietus.views import erasure_view
from tests.gateway.scenes import BOB, SHORT, kill, profiled, short
from tests.gateway.test_lineage import KEEPS, SUMMARY, family, lineage
from tests.world import World

ATTESTED: dict[str, Any] = {
    **SHORT,
    "attestations": [{"condition": name, "by": "ops", "expires": "2099-01-01"}
                     for name in ("surfaces_complete", "write_path_audited")],
}


def scan(world: World, tenant: str | None = None, told: Callable[[Seen], None] = lambda seen: None) -> Scan:
    """A scan of the world's store."""
    parts = world.parts
    return Scan(parts.prober, parts.owners, parts.lineage, world.clock, Reach(tenant), told)


async def scanned(world: World, tenant: str | None = None) -> Seen:
    """The outcome of one."""
    return await moved(world, scan(world, tenant).run())


async def moved(world: World, work: Any) -> Any:
    """Waits for work that waits for its turn, moving the clock."""
    import asyncio

    task = asyncio.ensure_future(work)
    await world.clock.settle()
    while not task.done():
        waking = world.clock.next_waking
        assert waking is not None
        await world.clock.advance(max(waking - world.clock.monotonic(), 0.0))
    return task.result()


async def test_lineage_outlives_the_process_and_holds_nothing_raw(tmp_path: Path) -> None:
    where = tmp_path / "lineage.db"
    async with short(KEEPS, lineage=LineageFile(where)) as world:
        await world.parts.lineage.load()
        await family(world)
        await world.parts.lineage.close()
        await kill(world)
    await world.ledger.close()
    raw = where.read_bytes()
    for text in (b"source-1", b"summary-1", b"alice", b"Quai Voltaire", b"team"):
        assert text not in raw
    again = short(
        upstream=world.upstream, ledger=world.ledger, keyring=world.keyring, clock=world.clock, seed=2,
        lineage=LineageFile(where),
    )  # fmt: skip
    async with again:
        await again.parts.lineage.load()
        assert len(again.parts.lineage.records) == 4
        await again.forget(subject="alice")
        assert again.erasure().snapshot["lineage"]["descendants"] == 2
        await again.parts.lineage.close()


async def test_a_file_of_other_keys_is_emptied_and_one_of_something_else_refused(tmp_path: Path) -> None:
    where = tmp_path / "lineage.db"
    for _ in range(2):
        async with short(KEEPS, lineage=LineageFile(where)) as world:
            await world.parts.lineage.load()
            assert len(world.parts.lineage.records) == 0, "its digests match nothing any more"
            await family(world)
            await world.parts.lineage.close()
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("PRAGMA application_id = 7")
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    async with short(KEEPS, lineage=LineageFile(other)) as world:
        with pytest.raises(LineageFault, match="move it away"):
            await world.parts.lineage.load()


async def test_what_settled_is_let_go_of(tmp_path: Path) -> None:
    where = tmp_path / "lineage.db"
    async with short(Faults(), lineage=LineageFile(where)) as world:
        await world.parts.lineage.load()
        await family(world)
        await world.parts.lineage.write()
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        assert len(world.parts.lineage.records) == 1, "only the bystander's is left"
        await world.parts.lineage.write()
        connection = sqlite3.connect(where)
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (1,)
        connection.close()
        await world.parts.lineage.close()


@pytest.mark.requirement("R65", "R98")
async def test_compliant_is_reached_when_every_condition_has_its_evidence() -> None:
    async with short(Faults(), store=ATTESTED) as world:
        await family(world, tenant="acme")
        seen = await scanned(world, "acme")
        assert seen.complete and seen.records == 4 and seen.derived == 2 and seen.dangling == 0
        await world.forget(tenant="acme", subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        verdict = world.parts.verdict(world.erasure())
        assert (verdict.word, verdict.missing) == ("compliant", ())
        assert {"record", "list", "recall", "recall-tenant", "lineage"} <= set(verdict.through)
        view = erasure_view(world.erasure(), verdict=verdict, now=world.clock.now())
        assert view["reconstruction_paths_severed"] is True and view["effective_non_recoverability"] is True


async def test_without_a_scan_of_its_tenant_lineage_is_missing_for_compliant() -> None:
    async with short(Faults(), store=ATTESTED) as world:
        await family(world, tenant="acme")
        await scanned(world, "zenith")
        await world.forget(tenant="acme", subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        verdict = world.parts.verdict(world.erasure())
        assert (verdict.word, verdict.missing) == ("partial", ("lineage of derived records",))
        assert "no scan" in lineage(world)["gap"]


async def test_what_is_let_go_at_the_bound_caps_the_verdict() -> None:
    async with short(Faults(), store=ATTESTED, bounds=Bounds(lineage_records=6)) as world:
        await family(world, tenant="acme")
        assert (await scanned(world)).complete
        for number in range(4):
            await world.write(f"more-{number}", f"Note number {number} of the week", "carol", tenant="acme")
        assert len(world.parts.lineage.records) == 6
        await world.forget(tenant="acme", subject="alice")
        facts = world.erasure().snapshot["lineage"]
        assert facts["evicted"] == 2 and not facts["complete"] and "bound" in facts["gap"]
        assert facts["descendants"] == 2, "what is derived stays longest"
        assert (await scanned(world)).complete is False, "a scan cannot hold them either"


async def test_a_process_that_ended_unclean_says_what_may_be_missing(tmp_path: Path) -> None:
    where = tmp_path / "lineage.db"
    async with short(KEEPS, lineage=LineageFile(where)) as world:
        await world.parts.lineage.load()
        await family(world)
        await scanned(world)
        assert world.parts.lineage.coverage().complete
        await kill(world)
    await world.ledger.close()
    again = short(
        upstream=world.upstream, ledger=world.ledger, keyring=world.keyring, clock=world.clock, seed=2,
        lineage=LineageFile(where),
    )  # fmt: skip
    async with again:
        await again.parts.lineage.load()
        coverage = again.parts.lineage.coverage()
        assert not coverage.complete and "without writing down" in coverage.gap
        await again.clock.advance(1.0)
        await scanned(again)
        assert again.parts.lineage.coverage().complete


async def test_a_scan_that_is_broken_off_goes_on_where_it_was(tmp_path: Path) -> None:
    async with short(Faults(), lineage=LineageFile(tmp_path / "l.db")) as world:
        await world.parts.lineage.load()
        for number in range(250):
            world.direct("POST", "/v1/memories", {
                "key": f"old-{number}", "value": f"Entry {number} of somebody's diary",
                "retention": {"subject": f"s{number % 9}"}})  # fmt: skip

        def stop(seen: Seen) -> None:
            if seen.pages == 2:
                raise CannotScan("the power failed")

        with pytest.raises(CannotScan):
            await moved(world, scan(world, told=stop).run())
        assert not world.parts.lineage.coverage().complete
        asked = world.upstream.calls("GET", "/v1/memories")
        seen = await scanned(world)
        assert seen.complete and (seen.pages, seen.records) == (3, 250)
        assert world.upstream.calls("GET", "/v1/memories") == asked + 1, "the last page alone"
        anew = await moved(world, scan(world).run(resume=False))
        assert anew.pages == 3
        await world.parts.lineage.close()


async def test_a_scan_in_another_process_is_taken_in(tmp_path: Path) -> None:
    where = tmp_path / "l.db"
    async with short(Faults(), lineage=LineageFile(where)) as world:
        await world.parts.lineage.load()
        old = {"key": "source-1", "value": "An old note about the flat", "retention": {"subject": "alice"}}
        made = {"key": "summary-1", "value": "Something made of it", "derived_from": ["source-1"]}
        for body in (old, made):
            world.direct("POST", "/v1/memories", body)
        await world.write("bobs-key-1", BOB, "bob")
        await world.parts.lineage.write()
        other = short(upstream=world.upstream, keyring=world.keyring, clock=world.clock, seed=3,
                      lineage=LineageFile(where))  # fmt: skip
        await other.parts.lineage.load(serving=False)
        assert (await scanned(other)).complete
        await other.parts.lineage.close()
        await world.parts.lineage.refresh()
        assert world.parts.lineage.coverage().complete and len(world.parts.lineage.records) == 3
        born = [record.born for record in world.parts.lineage.records]
        await world.forget(subject="alice")
        assert world.erasure().snapshot["lineage"]["descendants"] == 1 and sorted(born) == [0, 0, 0]
        await world.parts.lineage.close()


async def test_a_store_without_a_listing_cannot_be_scanned() -> None:
    async with short(Faults(), profile=profiled(controls=None)) as world:
        with pytest.raises(CannotScan, match="controls"):
            await moved(world, scan(world).run())


@pytest.mark.requirement("R64")
async def test_a_store_restored_from_a_backup_is_cleared_of_what_was_erased_once_each() -> None:
    async with short(Faults(restart_resurrection=True)) as world:
        await family(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.SETTLED)
        world.legacy.restart()
        assert world.direct("GET", "/v1/memories/source-1").status == 200, "the backup knows nothing of it"
        parts = world.parts
        screener = Screener(parts.erasures.gate, world.keyring.pseudonym, world.keyring.digest)
        again = Scan(parts.prober, parts.owners, parts.lineage, world.clock, Reach(),
                     gate=parts.erasures.gate, screener=screener)  # fmt: skip
        seen = await moved(world, again.run(resume=False))
        assert world.direct("GET", "/v1/memories/source-1").status == 404
        assert world.direct("GET", "/v1/memories/summary-1").status == 404, "it quotes the erased"
        assert world.direct("GET", "/v1/memories/bobs-key-1").status == 200
        assert seen.removed == 2 and list(seen.returned) == [world.erasure().id]
        assert world.upstream.calls("DELETE", "/v1/memories/source-1") == 1
        assert SUMMARY.encode() not in world.direct("GET", "/v1/memories").body
