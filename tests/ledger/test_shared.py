"""What a ledger on a server promises to several replicas, on Valkey and PostgreSQL alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from redis import asyncio as client

from quietus.core.events import Draft, EventType
from quietus.ledger.postgresql_settings import faults as postgresql_faults
from quietus.ledger.shared import SharedServerLedger
from quietus.ledger.valkey import ValkeyEngine
from quietus.ledger.valkey_settings import faults as valkey_faults
from quietus.ports import Conflict, LedgerBehind, LedgerRefused, LedgerUnavailable, Mark, Unlisted
from tests.harness.servers import Postgresql, Valkey

Make = Callable[[], SharedServerLedger]
TEXT = Mark("text", b"t" * 16)


def draft(erasure: str, kind: EventType = EventType.ROUND, gate: bool = False, **facts: Any) -> Draft:
    return Draft(kind, erasure, at=1700000000.0, facts=facts, gate=gate)


@pytest.fixture
async def both(make_shared: Make) -> AsyncIterator[tuple[SharedServerLedger, SharedServerLedger]]:
    """Two replicas' views of one ledger, both in the roster."""
    one, two = make_shared(), make_shared()
    for ledger, session in ((one, "one"), (two, "two")):
        await ledger.open()
        await ledger.join(session, 1.0)
    yield one, two
    await one.close()
    await two.close()


async def test_what_one_writes_the_other_follows_with_its_marks(both: Any) -> None:
    one, two = both
    head = await two.head()
    two.news.clear()
    await one.append([draft("e1", EventType.REQUESTED, gate=True)], marks=[("e1", TEXT)])
    await asyncio.wait_for(two.news.wait(), 30)
    await one.append([draft("e1"), draft("e1", EventType.REFUSED)], unmark=["e1"])
    entries = await two.follow(0, head.hash)
    assert [entry.event.number for entry in entries] == [1, 2, 3]
    assert entries[2].unmark == ("e1",) and entries[1].unmark == ()
    assert [e.event for e in entries] == [event async for event in one.events()]
    assert await two.follow(3, entries[2].event.hash) == []
    with pytest.raises(LedgerRefused, match="chain is broken"):
        await two.follow(1, entries[1].event.hash)


async def test_racing_replicas_write_one_chain(both: Any) -> None:
    one, two = both
    outcomes = await asyncio.gather(
        *(ledger.append([draft(f"{n}", EventType.LEAKED)]) for n in range(40) for ledger in both),
    )
    assert sorted(event.number for events in outcomes for event in events) == list(range(1, 81))
    assert len([event async for event in two.events()]) == 80, "and it verifies"
    only = await asyncio.gather(
        *(
            ledger.append([draft("x", EventType.LEAKED, gate=True)], epoch=0)
            for ledger in both
            for _ in range(5)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, list) for outcome in only) == 1
    assert sum(isinstance(outcome, Conflict) for outcome in only) == 9
    assert await one.head() == await two.head()


@pytest.mark.requirement("R189")
async def test_work_is_one_replicas_and_what_the_one_before_writes_late_is_refused(both: Any) -> None:
    one, two = both
    await one.append([draft("e1", EventType.REQUESTED, gate=True)], expect=("e1", 0))
    assert await one.claim("one", "e1") == 1, "who asks for an erasure works on it"
    assert await two.claim("two", "e1") == 0
    with pytest.raises(Conflict, match="another replica works on this"):
        await two.append([draft("e1", EventType.FORWARDED)])
    await two.append([draft("e1", EventType.LEAKED)])  # what was seen is written by anybody
    await one.append([draft("e1", EventType.FORWARDED)])

    muster = await two.renew("two", 3)
    beat = {member.session: member.beat for member in muster.members}["one"]
    await one.renew("one", 3, (1,))
    assert not await two.expel("one", beat), "it has lived on"
    members = {member.session: member for member in (await two.renew("two", 3)).members}
    assert (members["one"].number, members["one"].undrained, members["one"].seconds) == (3, (1,), 1.0)
    assert await two.expel("one", members["one"].beat)

    for late in (EventType.CLEAN, EventType.LEAKED):
        with pytest.raises(Unlisted):
            await one.append([draft("e1", late)])
    with pytest.raises(Unlisted):
        await one.renew("one", 3)
    with pytest.raises(Unlisted):
        await one.claim("one", "e2")
    assert await two.claim("two", "e1") == 2
    await one.join("again", 1.0)
    assert await one.claim("again", "e1") == 0
    with pytest.raises(Conflict):
        await one.append([draft("e1", EventType.CLEAN)])
    await two.append([draft("e1", EventType.CLEAN)])
    await two.leave("two")
    assert await one.claim("again", "e1") == 3


async def test_the_roster_is_the_same_for_all(both: Any) -> None:
    one, two = both
    assert {member.session for member in (await one.renew("one", 0)).members} == {"one", "two"}
    muster = await two.renew("two", 0)
    assert muster.life and muster.life == muster.settled_life
    await two.leave("two")
    assert [member.session for member in (await one.renew("one", 0)).members] == ["one"]


async def test_a_head_file_remembers_what_the_server_forgot(
    valkey: Valkey, tmp_path: Path
) -> None:
    def made() -> SharedServerLedger:
        engine = ValkeyEngine(valkey.url, name="forgetful")
        return SharedServerLedger(engine, head_file=tmp_path / "head.json")

    ledger = made()
    await ledger.open()
    await ledger.append([draft("e1")])
    server = client.Redis.from_url(valkey.url)
    await server.flushdb()
    with pytest.raises(LedgerRefused, match="gone from its server"):
        await ledger.head()
    with pytest.raises(LedgerRefused, match="gone from its server"):
        await ledger.append([draft("e1")])
    await ledger.close()
    with pytest.raises(LedgerRefused, match="belongs to another ledger"):
        await made().open()
    await server.aclose()


async def test_another_ledger_in_its_place_is_not_believed(valkey: Valkey) -> None:
    ledger = SharedServerLedger(ValkeyEngine(valkey.url, name="replaced"))
    await ledger.open()
    server = client.Redis.from_url(valkey.url)
    await server.hset("{replaced}:ledger", "incarnation", "another")
    with pytest.raises(LedgerBehind, match="another ledger"):
        await ledger.head()
    await ledger.close()
    await server.aclose()


async def test_events_that_a_server_evicted_are_missed(valkey: Valkey) -> None:
    ledger = SharedServerLedger(ValkeyEngine(valkey.url, name="evicted"))
    await ledger.open()
    await ledger.append([draft("e1")])
    server = client.Redis.from_url(valkey.url)
    await server.delete("{evicted}:events")
    with pytest.raises(LedgerRefused, match="ends at event 0"):
        await ledger.head()
    await ledger.close()
    with pytest.raises(LedgerRefused):
        await SharedServerLedger(ValkeyEngine(valkey.url, name="evicted")).open()
    await server.aclose()


SOUND = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"}


@pytest.mark.parametrize(
    ("config", "info", "says"),
    [
        ({}, {"role": "master"}, None),
        ({"maxmemory-policy": "allkeys-lru"}, {"role": "master"}, "noeviction"),
        ({"appendonly": "no"}, {"role": "master"}, "appendonly to yes"),
        ({"appendfsync": "everysec"}, {"role": "master"}, "appendfsync to always"),
        ({}, {"role": "slave"}, "primary"),
        ({}, {"role": "master", "connected_slaves": 1}, "min-replicas-to-write"),
        ({"min-replicas-to-write": "1"}, {"role": "master", "connected_slaves": 1}, None),
        ({}, {"role": "master", "aof_last_write_status": "err"}, "room on its disk"),
    ],
)
def test_settings_of_valkey_that_may_lose_what_was_acknowledged(
    config: dict[str, str], info: dict[str, Any], says: str | None
) -> None:
    found = valkey_faults(SOUND | config, info)
    assert (says is None and not found) or (says is not None and says in found[0])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("on", "on", "on", "", False, 0), None),
        (("off", "on", "on", "", False, 0), "fsync"),
        (("on", "off", "on", "", False, 0), "full_page_writes"),
        (("on", "on", "off", "", False, 0), "synchronous_commit"),
        (("on", "on", "local", "", False, 0), "synchronous_commit"),
        (("on", "on", "on", "", True, 0), "primary"),
        (("on", "on", "on", "", False, 1), "synchronous_standby_names"),
        (("on", "on", "on", "one", False, 1), None),
    ],
)
def test_settings_of_postgresql_that_may_lose_what_was_acknowledged(row: Any, says: str | None) -> None:
    found = postgresql_faults(row)
    assert (says is None and not found) or (says is not None and says in found[0])


async def test_settings_are_asked_of_the_server_itself_while_it_runs(
    valkey: Valkey, postgresql: Postgresql
) -> None:
    ledger = SharedServerLedger(ValkeyEngine(valkey.url, name="settings"))
    await ledger.open()
    await ledger.verify()
    server = client.Redis.from_url(valkey.url)
    await server.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(LedgerRefused, match="noeviction"):
            await ledger.verify()
        with pytest.raises(LedgerRefused, match="noeviction"):
            await SharedServerLedger(ValkeyEngine(valkey.url, name="settings")).open()
    finally:
        await server.config_set("maxmemory-policy", "noeviction")
        await server.aclose()
    await ledger.verify()
    await ledger.close()


async def test_a_server_that_is_away_is_unavailable_and_comes_back(tmp_path: Path) -> None:
    server = Valkey()
    try:
        ledger = SharedServerLedger(ValkeyEngine(server.start().url))
        await ledger.open()
        await ledger.append([draft("e1")])
        life = (await ledger.join("one", 1.0)).life
        server.kill()
        for call in (ledger.head, lambda: ledger.append([draft("e1")])):
            with pytest.raises(LedgerUnavailable):
                await call()
        server.start()
        assert (await ledger.head()).number == 1, "what was acknowledged is there"
        muster = await ledger.renew("one", 1)
        assert muster.life != life == muster.settled_life, "a member may be missing after this"
        await ledger.close()
    finally:
        server.stop()


async def test_a_ledger_that_a_newer_quietus_has_finalised_is_refused(make_served: Make) -> None:
    ledger = make_served()
    await ledger.open()
    engine: Any = ledger._engine
    if isinstance(engine, ValkeyEngine):
        await engine._client.hset(engine._key("ledger"), mapping={"schema": 7, "floor": 1})
        await ledger.head()  # one of the version before goes on while the newer one only adds
        await engine._client.hset(engine._key("ledger"), "floor", 7)
    else:
        connection = await asyncpg.connect(engine._url)
        await connection.execute(engine._sql("UPDATE {q}.ledger SET schema = 7"))
        await ledger.head()
        await connection.execute(engine._sql("UPDATE {q}.ledger SET floor = 7"))
        await connection.close()
    with pytest.raises(LedgerRefused, match="upgrade"):
        await ledger.head()
    await ledger.close()
    with pytest.raises(LedgerRefused, match="upgrade"):
        await make_served().open()
