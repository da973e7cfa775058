"""The by-pass probe: what never passed is counted, once, and what did pass never is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from quietus.assembly import Bounds
from quietus.bypass import BypassProbe
from quietus.core.exchange import Reply, Request
from quietus.ledger.lineage_file import LineageFile
from quietus.legacy.faults import Faults
from quietus.settings import BypassSettings, ReachSettings
from tests.gateway.scenes import short
from tests.gateway.test_lineage_kept import moved, scanned
from tests.world import JSON, World

HOUR = 3600.0


class Two:
    """Sharing, as with one replica more."""

    live = 2


def probe(world: World, sharing: Any = None, **wanted: Any) -> BypassProbe:
    parts = world.parts
    settings = BypassSettings(every="1h", **wanted)
    sharing = sharing or parts.sharing
    return BypassProbe(
        parts.prober, parts.owners, parts.erasures, sharing, world.metrics, world.log, settings
    )


async def rounds(world: World, found: BypassProbe, count: int = 1) -> None:
    for _ in range(count):
        await moved(world, found.look())
        await world.clock.advance(HOUR)


def past(world: World, key: str, **more: Any) -> None:
    """Writes a record to the store itself."""
    world.legacy.put(f"{key} likes long walks along the river", key=key, subject=f"subject-{key}", **more)


def counted(world: World, cause: str = "unseen_record") -> float:
    return world.sample("quietus_bypass_total", store="memories", cause=cause)


def told(world: World, event: str) -> list[dict[str, Any]]:
    return [facts for name, facts in world.log.lines if name == event]


@pytest.mark.requirement("R200", "R55")
async def test_a_record_that_never_passed_is_counted_once() -> None:
    async with World() as world:
        past(world, "there-before")
        await world.write("passed-001", "Bob takes the early train", "bob")
        found = probe(world)
        await rounds(world, found)
        past(world, "gone-past-001")
        await rounds(world, found)
        assert counted(world) == 0, "its write may still have been on its way"
        await world.write("passed-002", "Bob takes the late train", "bob")
        await rounds(world, found)
        assert counted(world) == 1
        await rounds(world, found, 3)
        assert counted(world) == 1
        assert told(world, "records_never_passed") == [{"cause": "unseen_record", "count": 1}]
        assert world.sample("quietus_bypass_round_timestamp_seconds") > 0
        assert "gone-past" not in str(world.log.lines) and "subject-" not in str(world.log.lines)


@pytest.mark.requirement("R200")
async def test_after_a_scan_the_first_round_counts(tmp_path: Path) -> None:
    async with World(lineage=LineageFile(tmp_path / "lineage.db")) as world:
        past(world, "there-before")
        await world.parts.lineage.load()
        await scanned(world)
        past(world, "gone-past-001")
        await rounds(world, probe(world), 2)
        assert counted(world) == 1
        await world.parts.lineage.close()


@pytest.mark.requirement("R200")
@pytest.mark.parametrize("policy", ["observe", "default", "strict"])
async def test_what_passed_is_known_whatever_the_policy(policy: str) -> None:
    async with World(policy=policy) as world:
        found = probe(world)
        await rounds(world, found)
        for number in range(3):
            await world.write(f"passed-{number:03}", f"Bob is at stop {number} of his long round", "bob")
        await world.call("DELETE", "/v1/memories/passed-001")
        await rounds(world, found, 3)
        assert counted(world) == 0
        past(world, "gone-past-001")
        await rounds(world, found, 2)
        assert counted(world) == 1


async def test_whoever_writes_while_it_looks_is_not_accused() -> None:
    """A write whose answer is on its way when the record is seen already."""
    async with World() as world:
        found = probe(world)
        await rounds(world, found)
        let_go = asyncio.Event()

        class Slow:
            def __call__(self, request: Request, permit: Any) -> None:
                return None

            async def after(self, request: Request, permit: Any) -> None:
                if request.method == "POST":
                    await let_go.wait()

        world.upstream.hooks.append(Slow())
        body = {"key": "on-its-way", "value": "Bob is late", "retention": {"subject": "bob"}}
        writing = world.start("POST", "/v1/memories", body)
        await world.clock.settle()
        assert world.legacy.holds("Bob is late")
        await moved(world, found.look())
        let_go.set()
        await world.finish(writing)
        await rounds(world, found, 3)
        assert counted(world) == 0


async def test_what_an_erasure_looks_for_is_not_a_by_pass() -> None:
    """Leaks, what comes back and canaries have counters of their own."""
    async with short(Faults(lazy_index=600.0)) as world:
        await world.write("alice-0001", "Alice hides keys under the flower pot", "alice")
        await world.write("bob-000001", "Bob takes the early train", "bob")
        found = probe(world)
        await rounds(world, found)
        assert (await world.forget(subject="alice")).status == 202
        await rounds(world, found, 2)
        world.legacy.put("Alice hides keys under the flower pot", key="alice-0002", subject="alice")
        await rounds(world, found, 4)
        assert counted(world) == counted(world, "unseen_derived") == 0


async def test_what_the_store_derives_is_told_apart() -> None:
    async with World() as world:
        await world.write("passed-001", "Bob takes the early train", "bob")
        found = probe(world)
        await rounds(world, found)
        past(world, "summary-01", derived_from=("passed-001",))
        await rounds(world, found, 2)
        assert (counted(world), counted(world, "unseen_derived")) == (0, 1)


async def test_a_record_of_nobody_is_counted_once_too() -> None:
    async with World() as world:
        found = probe(world)
        await rounds(world, found)
        world.legacy.put("the boiler is serviced in May", key="nobodys-01")
        await rounds(world, found, 5)
        assert counted(world) == 1


async def test_a_look_reads_so_many_pages_and_the_next_goes_on() -> None:
    async with World() as world:
        for number in range(250):
            past(world, f"record-{number:04}")
        found = probe(world, pages_max=1)
        before = len(world.upstream.sent)
        await moved(world, found.look())
        assert len(world.upstream.sent) - before == 1
        assert world.sample("quietus_bypass_round_timestamp_seconds") == 0
        await rounds(world, found, 2)
        assert world.sample("quietus_bypass_round_timestamp_seconds") > 0
        past(world, "record-0999")
        await rounds(world, found, 6)
        assert counted(world) == 1


async def test_where_it_cannot_tell_it_stands_aside() -> None:
    async with World(bounds=Bounds(lineage_records=8)) as world:
        other = probe(world, sharing=Two())
        past(world, "gone-past-001")
        await rounds(world, other, 3)
        assert told(world, "bypass_probe_blind") == [{"cause": "replicas"}]
        found = probe(world)
        await rounds(world, found)
        for number in range(20):
            await world.write(f"passed-{number:03}", f"Bob is at stop {number} of his long round", "bob")
        await rounds(world, found, 3)
        assert counted(world) == 0, "what the lineage let go did pass"
        assert {"cause": "lineage_full"} in told(world, "bypass_probe_blind")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (Reply(500, (JSON,), b"{}"), "listing_unreadable"),
        (Reply(200, (JSON,), b"[]"), "listing_unreadable"),
        (None, "store_unreachable"),
    ],
)
async def test_a_store_that_does_not_answer_is_asked_again(answer: Reply | None, cause: str) -> None:
    from quietus.ports import UpstreamError

    async with World() as world:
        found = probe(world)
        await rounds(world, found)

        def fails(request: Request, permit: Any) -> Reply | None:
            if answer is None:
                raise UpstreamError("gone", sent=False)
            return answer

        world.upstream.hooks.append(fails)
        past(world, "gone-past-001")
        await rounds(world, found, 2)
        assert told(world, "bypass_probe_blind") == [{"cause": cause}]
        world.upstream.hooks.clear()
        await rounds(world, found, 2)
        assert counted(world) == 1


async def test_it_goes_on_by_itself() -> None:
    async with World() as world:
        running = asyncio.ensure_future(probe(world).run())
        await world.clock.advance(1)
        past(world, "gone-past-001")
        await world.until(lambda: counted(world) == 1, limit=3 * HOUR, step=600)
        running.cancel()


ROW = {"ids": ["x-1"], "documents": ["Carol sails on Sundays"], "metadatas": [{"user_id": "carol"}]}
PLACE = "/api/v2/tenants/t/databases/d/collections/0000aaaa-1111-2222-3333-444444444444"


@pytest.mark.requirement("R200")
async def test_chroma_is_looked_through_where_the_settings_say() -> None:
    """A record is known by its path as well, which only the address of a listing tells."""
    rows: dict[str, Any] = {"ids": [], "documents": [], "metadatas": [], "embeddings": None}

    def chroma(request: Request, permit: Any) -> Reply:
        if request.path.endswith("/add"):
            given = json.loads(request.body)
            for name in ("ids", "documents", "metadatas"):
                rows[name] += given[name]
            return Reply(201, (JSON,), b"{}")
        return Reply(200, (JSON,), json.dumps(rows).encode())

    async with World(profile="chroma") as world:
        world.upstream.hooks.append(chroma)
        values = {"tenant": "t", "database": "d", "collection_id": PLACE.rpartition("/")[2]}
        path = f"d/{values['collection_id']}"
        found = probe(world, reach=(ReachSettings(tenant="t", path=path, values=values),))
        await rounds(world, found)
        assert (await world.call("POST", f"{PLACE}/add", {**ROW, "embeddings": [[1, 0]]})).status == 201
        await rounds(world, found, 3)
        assert counted(world) == 0
        for name, value in (("ids", "y-1"), ("documents", "Dave rows"), ("metadatas", {"user_id": "dave"})):
            rows[name].append(value)
        await rounds(world, found, 2)
        assert counted(world) == 1
        blind = probe(world)
        await rounds(world, blind)
        assert told(world, "bypass_probe_blind") == [{"cause": "listing_wants_values"}]
