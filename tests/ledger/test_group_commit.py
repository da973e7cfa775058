"""Appends that wait together share a commit, and one that fails takes no other with it but its group."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from quietus.core.events import Draft, EventType
from quietus.ledger import sqlite
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain
from quietus.ports import Conflict, LedgerUnavailable, Mark


def commits(journal: Path) -> int:
    """Commits in a journal: its frames that say how large the database is after them."""
    data = journal.read_bytes()
    page_size = int.from_bytes(data[8:12], "big")
    frames = range(32, len(data), 24 + page_size)
    return sum(int.from_bytes(data[start + 4 : start + 8], "big") != 0 for start in frames)


async def open_ledger(path: Path) -> SqliteLedger:
    ledger = SqliteLedger(path)
    await ledger.open()
    return ledger


async def test_waiting_appends_share_commits(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    before = commits(tmp_path / "l.db-wal")
    await asyncio.gather(*(ledger.append([Draft(EventType.ROUND, f"e{n}")]) for n in range(200)))
    assert 1 <= commits(tmp_path / "l.db-wal") - before <= 20
    assert (await ledger.head()).number == 200
    await ledger.close()


async def test_appends_one_after_the_other_are_each_committed(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    before = commits(tmp_path / "l.db-wal")
    for _ in range(10):
        await ledger.append([Draft(EventType.ROUND, "e")])
    assert commits(tmp_path / "l.db-wal") - before == 10
    await ledger.close()


async def test_each_append_of_a_group_is_judged_after_those_before_it(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    outcomes = await asyncio.gather(
        ledger.append([Draft(EventType.REQUESTED, "e")], expect=("e", 0)),
        ledger.append([Draft(EventType.CLEAN, "e")], expect=("e", 0), marks=[("e", Mark("text", bytes(16)))]),
        ledger.append([Draft(EventType.ACCEPTED, "e")], expect=("e", 1)),
        ledger.append([Draft(EventType.ROUND, "other")]),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [list, Conflict, list, list]
    assert [event.type async for event in ledger.events()] == [
        EventType.REQUESTED,
        EventType.ACCEPTED,
        EventType.ROUND,
    ]
    await ledger.close()
    assert verify_chain(tmp_path / "l.db").ok


async def test_too_many_waiting_appends_are_refused_and_the_rest_are_written(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    outcomes = await asyncio.gather(
        *(ledger.append([Draft(EventType.ROUND, "e")]) for _ in range(sqlite.WAITING + 10)),
        return_exceptions=True,
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert len(refused) == 10
    assert all(isinstance(outcome, LedgerUnavailable) for outcome in refused)
    assert (await ledger.head()).number == sqlite.WAITING
    await ledger.close()


async def test_after_a_failed_write_nothing_is_trusted_until_it_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = await open_ledger(path)
    acked = [(await ledger.append([Draft(EventType.ROUND, f"e{n}")]))[0] for n in range(5)]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A file may not grow past where the journal is now: its next write fails as on a broken disk.
    size = path.with_name("l.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        outcomes = await asyncio.gather(
            *(ledger.append([Draft(EventType.ROUND, "x")]) for _ in range(3)), return_exceptions=True
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert all(isinstance(outcome, LedgerUnavailable) for outcome in outcomes)
    assert "check the disk, then restart" in str(outcomes[0])
    for call in (ledger.head, ledger.key_ids):
        with pytest.raises(LedgerUnavailable, match="restart"):
            await call()
    with pytest.raises(LedgerUnavailable, match="restart"):
        await ledger.append([Draft(EventType.ROUND, "y")])
    await ledger.close()

    assert verify_chain(path).ok
    again = await open_ledger(path)
    assert [event async for event in again.events()][:5] == acked
    await again.append([Draft(EventType.ROUND, "z")])
    await again.close()
