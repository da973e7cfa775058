"""The rows of the fail matrix that are the ledger's: full, failing, read-only, damaged disks."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quietus.core.events import Draft, Event, EventType
from quietus.ledger.faults import meaning
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain
from quietus.ports import LedgerError, LedgerFull, LedgerRefused, LedgerUnavailable, LedgerUncertain, Mark

BIG = {"x": "y" * 20_000}


async def fill(ledger: SqliteLedger, rounds: int = 1000) -> list[Event]:
    """Appends until the ledger cannot take any more; the last append must have failed whole."""
    acked: list[Event] = []
    with pytest.raises(LedgerUnavailable, match="disk is full; nothing was written: free some space"):
        for number in range(rounds):
            acked += await ledger.append(
                [Draft(EventType.ROUND, f"e{number}", facts=BIG)],
                marks=[(f"e{number}", Mark("text", bytes(16)))],
            )
    return acked


async def check_usable_when_full(ledger: SqliteLedger, acked: list[Event]) -> None:
    assert acked
    assert (await ledger.head()).number == len(acked)
    assert [event async for event in ledger.events()] == acked
    assert len([marked async for marked in ledger.marks()]) == len(acked)
    with pytest.raises(LedgerUnavailable, match="full"):
        await ledger.append([Draft(EventType.ROUND, "e", facts=BIG)])


async def test_a_ledger_at_its_size_limit_reads_on_and_loses_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", max_bytes=1 << 20)
    await ledger.open()
    acked = await fill(ledger)
    await check_usable_when_full(ledger, acked)
    await ledger.close()
    larger = SqliteLedger(tmp_path / "l.db", max_bytes=1 << 21)
    assert (await larger.open()).number == len(acked)
    assert (await larger.append([Draft(EventType.ROUND, "e", facts=BIG)]))[0].number == len(acked) + 1
    await larger.close()
    assert verify_chain(tmp_path / "l.db").ok


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(where)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


async def test_a_full_disk_is_a_passing_fault(small_disk: Path, tmp_path: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    ledger = SqliteLedger(small_disk / "l.db", head_file=small_disk / "head.json")
    await ledger.open()
    acked = await fill(ledger)
    await check_usable_when_full(ledger, acked)
    ballast.unlink()
    [event] = await ledger.append([Draft(EventType.ROUND, "e", facts=BIG)])
    assert event.number == len(acked) + 1
    await ledger.close()
    assert verify_chain(small_disk / "l.db").events == len(acked) + 1


async def test_a_full_disk_at_opening_is_told(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes((2 << 20) - 12288))
    with pytest.raises(LedgerUnavailable, match="disk .*is full"):
        await SqliteLedger(small_disk / "l.db").open()


@pytest.fixture
def nobody() -> Iterator[Path]:
    """A folder of our own that loses its rights with us; as root, by becoming somebody else."""
    where = Path(tempfile.mkdtemp(prefix="quietus-ledger-"))
    yield where
    if os.getuid() == 0:
        os.seteuid(0)
    shutil.rmtree(where)


def become_ordinary() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


async def test_a_read_only_file_is_refused_with_what_to_do(nobody: Path) -> None:
    path = nobody / "l.db"
    ledger = SqliteLedger(path)
    await ledger.open()
    await ledger.append([Draft(EventType.ROUND, "e")])
    await ledger.close()
    if os.geteuid() == 0:
        for item in (nobody, path, nobody / "l.db.lock"):
            os.chown(item, 65534, 65534)
    become_ordinary()
    path.chmod(0o400)
    with pytest.raises(LedgerUnavailable, match="writable for Quietus"):
        await SqliteLedger(path).open()
    assert verify_chain(path).ok
    nobody.chmod(0o500)
    assert verify_chain(path).ok, "a closed ledger can be checked where nothing can be written"
    (nobody / "l.db.lock").chmod(0o400)
    with pytest.raises(LedgerRefused, match="writable for Quietus"):
        await SqliteLedger(path).open()
    path.chmod(0o000)
    with pytest.raises(LedgerError):
        verify_chain(path)


async def test_flipped_bytes_are_refused_or_change_nothing(tmp_path: Path) -> None:
    """No byte of the file can be altered so that other events or marks are read."""
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    await ledger.open()
    for number in range(40):
        erasure = f"e{number % 5}"
        marks = [(erasure, Mark("text", bytes([number]) * 16))]
        await ledger.append(
            [Draft(EventType.ROUND, erasure, 1.5, facts={"n": number}, gate=True)], marks=marks
        )
    truth = [event async for event in ledger.events()], [marked async for marked in ledger.marks()]
    await ledger.close()
    whole = path.read_bytes()
    rng = random.Random(20)
    used = [place for place, byte in enumerate(whole) if byte]
    refused = 0
    for place in rng.sample(used, 400):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        for leftover in ("-wal", "-shm"):
            path.with_name(path.name + leftover).unlink(missing_ok=True)
        try:
            sound = verify_chain(path).ok
        except LedgerUnavailable:
            sound = False
        refused += not sound
        reader = SqliteLedger(path)
        try:
            await reader.open()
            found = [event async for event in reader.events()], [marked async for marked in reader.marks()]
            assert found == truth or (found[0] == truth[0] and not sound), place
        except LedgerError as error:
            assert "restore" in str(error) or "upgrade" in str(error) or "path" in str(error), error
        finally:
            await reader.close()
    assert refused > 200


async def test_events_of_a_ledger_with_a_gap_are_refused_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    await ledger.open()
    await ledger.append([Draft(EventType.ROUND, f"e{number % 2}") for number in range(10)])
    other = sqlite3.connect(path)
    other.execute("DELETE FROM events WHERE number = 5")
    other.commit()
    with pytest.raises(LedgerRefused, match="event 5 is missing"):
        _ = [event async for event in ledger.events()]
    with pytest.raises(LedgerRefused, match="event 5 is missing"):
        _ = [event async for event in ledger.events(after=5)]
    with pytest.raises(LedgerRefused, match="event 5 is missing"):
        _ = [event async for event in ledger.events(erasure="e1")]
    other.execute("DELETE FROM events WHERE number = 10")
    other.execute("UPDATE events SET actor = 'x' WHERE number = 9")
    other.commit()
    other.close()
    with pytest.raises(LedgerRefused, match="event 9 does not match its hash"):
        _ = [event async for event in ledger.events(after=8)]
    with pytest.raises(LedgerRefused, match="event 10 is missing"):
        _ = [event async for event in ledger.events(after=9)]
    await ledger.close()


@pytest.mark.parametrize(
    ("code", "kind", "poisons"),
    [
        (sqlite3.SQLITE_FULL, LedgerFull, False),
        (sqlite3.SQLITE_BUSY, LedgerUnavailable, False),
        (sqlite3.SQLITE_READONLY, LedgerUnavailable, False),
        (sqlite3.SQLITE_IOERR | (4 << 8), LedgerUncertain, True),  # a sync that failed
        (sqlite3.SQLITE_IOERR | (3 << 8), LedgerUncertain, True),  # a write that failed
        (sqlite3.SQLITE_CORRUPT, LedgerRefused, True),
        (sqlite3.SQLITE_NOTADB, LedgerRefused, True),
        (None, LedgerRefused, True),  # bytes that are no text
    ],
)
def test_what_an_error_means(code: int | None, kind: type[LedgerError], poisons: bool) -> None:
    error = sqlite3.OperationalError("Could not decode to UTF-8 column 'facts' with text 'alice'")
    if code is not None:
        error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_X"
    fault, found = meaning(error)
    assert (type(fault), found) == (kind, poisons)
    assert "alice" not in str(fault)
