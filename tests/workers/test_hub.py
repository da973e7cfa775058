"""One ledger shared by the processes of one sidecar: what a server would promise, and what ends with it."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from quietus.core.events import Draft, EventType
from quietus.ledger.memory import MemoryLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.ports import Conflict, LedgerError, LedgerRefused, LedgerUnavailable, Mark, Unlisted
from quietus.workers import hub as hubs
from quietus.workers.hub import Hub
from quietus.workers.hub_ledger import HubLedger
from quietus.workers.line import Line, LineBroken
from tests.ledger.lined import LinedLedger


def draft(erasure: str, kind: EventType = EventType.LEAKED, **facts: Any) -> Draft:
    return Draft(kind, erasure, at=1700000000.0, facts=facts)


def mark(n: int) -> Mark:
    return Mark("text", n.to_bytes(16, "big"))


async def test_who_loads_slowly_misses_nothing_that_is_written_meanwhile(tmp_path: Path) -> None:
    hub = Hub(SqliteLedger(tmp_path / "l.db"))
    own, worker = HubLedger(hub), LinedLedger(hub)
    await own.open()
    await own.join("own", 5.0)
    begun = await worker.open()  # it reads the ledger now, and joins later
    for n in range(5):
        await own.append([draft("e")], marks=[("e", mark(n))])
        await own.renew("own", n + 1)
    entries = await worker.follow(begun.number, begun.hash)
    assert [(e.event.number, e.marks) for e in entries] == [(n + 1, (("e", mark(n)),)) for n in range(5)]
    await worker.close()
    await own.close()


async def test_who_is_far_behind_follows_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "KEPT", 3)
    hub = Hub(SqliteLedger(tmp_path / "l.db"))
    own, slow = HubLedger(hub), HubLedger(hub)
    await own.open()
    begun = await slow.open()
    for n in range(10):
        await own.append([draft("e")], marks=[("e", mark(n))])
    entries = await slow.follow(begun.number, begun.hash)
    assert [e.event.number for e in entries] == list(range(1, 11))
    assert set().union(*(e.marks for e in entries)) == {("e", mark(n)) for n in range(10)}
    assert await slow.follow(10, entries[-1].event.hash) == []
    with pytest.raises(LedgerRefused, match="chain is broken"):
        await slow.follow(2, entries[0].event.hash)
    await slow.close()
    await own.close()


async def test_what_everybody_has_read_is_not_kept(tmp_path: Path) -> None:
    hub = Hub(SqliteLedger(tmp_path / "l.db"))
    one, two = HubLedger(hub), HubLedger(hub)
    for ledger, name in ((one, "one"), (two, "two")):
        await ledger.open()
        await ledger.join(name, 5.0)
    for _ in range(20):
        await one.append([draft("e")])
    assert len(hub._past.entries) == 20
    await one.renew("one", 20)
    await two.renew("two", 15)
    assert len(hub._past.entries) == 5
    await two.close()
    assert not hub._past.entries
    await one.close()


async def test_who_was_expelled_is_told_and_writes_no_more(tmp_path: Path) -> None:
    hub = Hub(SqliteLedger(tmp_path / "l.db"))
    told: list[str] = []
    one, two = HubLedger(hub), HubLedger(hub, lambda: told.append("two"))
    for ledger, name in ((one, "one"), (two, "two")):
        await ledger.open()
        await ledger.join(name, 5.0)
    await two.append([draft("e", EventType.REQUESTED)])
    with pytest.raises(Conflict):
        await one.append([draft("e", EventType.CLEAN)])
    beat = {m.session: m.beat for m in (await one.renew("one", 1)).members}["two"]
    assert not await one.expel("two", beat + 1) and told == []
    assert await one.expel("two", beat) and told == ["two"]
    with pytest.raises(Unlisted):
        await two.append([draft("e", EventType.CLEAN)])
    assert await one.claim("one", "e") == 2
    await one.append([draft("e", EventType.CLEAN)])
    await one.close()
    await two.close()


async def test_a_worker_whose_supervisor_is_gone_hears_that_of_everything_it_asks() -> None:
    hub = Hub(MemoryLedger())
    worker = LinedLedger(hub)
    await worker.open()
    waiting = asyncio.ensure_future(worker.append([draft("e")]))
    await worker._far_end.end()  # the supervisor dies with the question under way
    with pytest.raises(LineBroken):
        await waiting
    for ask in (worker.head, worker.key_ids, lambda: worker.follow(0, "")):
        with pytest.raises(LedgerUnavailable):
            await ask()
    await worker._near.end()


async def test_a_fault_of_ours_at_one_end_is_an_error_at_the_other() -> None:
    async def broken() -> None:
        raise ZeroDivisionError("with words that must not travel")

    ends = socket.socketpair()
    one, two = Line({"broken": broken}), Line()
    await one.begin(ends[0])
    await two.begin(ends[1])
    with pytest.raises(LedgerError, match="a fault of ours: ZeroDivisionError"):
        await two.ask("broken")
    with pytest.raises(LedgerError, match="a fault of ours: KeyError"):
        await two.ask("no such question")
    await two.end()
    await one.broken.wait()
    await one.end()
