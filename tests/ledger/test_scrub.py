"""Destroyed secrets are gone from every file, not only from the tables."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from quietus.core.events import Draft, EventType
from quietus.keys import Keyring, SealBroken
from quietus.ledger import scrub
from quietus.ledger.sqlite import SqliteLedger
from quietus.ports import LedgerUnavailable, Mark


def traces(folder: Path, planted: list[bytes]) -> list[bytes]:
    """Which of the planted bytes are in any file of the folder."""
    everything = b"\n".join(item.read_bytes() for item in folder.rglob("*") if item.is_file())
    return [needle for needle in planted if needle in everything]


async def open_ledger(path: Path) -> SqliteLedger:
    ledger = SqliteLedger(path)
    await ledger.open()
    return ledger


@pytest.mark.requirement("R205")
@pytest.mark.timeout(180)
async def test_no_trace_is_left_whatever_the_tree_went_through(tmp_path: Path) -> None:
    """The sizes and the order are such that SQLite's own `secure_delete` leaves copies behind."""
    rng = random.Random(1)
    ledger = await open_ledger(tmp_path / "l.db")
    live: dict[str, list[bytes]] = {}
    dead: list[bytes] = []
    for number in range(400):
        erasure = f"er_{rng.getrandbits(64):016x}"
        secrets = []
        for name in ("key", "request", "witness"):
            planted = b"PLANT%08d%s" % (number, name.encode())
            secrets.append((erasure, name, planted + rng.randbytes(rng.choice((61, 300, 900, 9000)))))
            live.setdefault(erasure, []).append(planted)
        await ledger.append([Draft(EventType.ROUND, erasure)], secrets=secrets)
        if rng.random() < 0.5:
            gone = rng.choice(sorted(live))
            await ledger.destroy_secrets(gone)
            dead += live.pop(gone)
    assert traces(tmp_path, dead) == []
    assert len(traces(tmp_path, [planted for found in live.values() for planted in found])) == 3 * len(live)
    for erasure in sorted(live):
        await ledger.destroy_secrets(erasure)
        dead += live.pop(erasure)
    assert traces(tmp_path, dead) == []
    await ledger.close()
    assert traces(tmp_path, dead) == []


async def test_a_copy_that_a_rebalancing_left_is_found_and_rewritten(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    await ledger.append([Draft(EventType.ROUND, "e")], secrets=[("e", "key", b"PLANTED-" * 8)])
    other = sqlite3.connect(tmp_path / "l.db")
    other.execute("PRAGMA secure_delete = OFF")
    other.execute("CREATE TABLE stale (copy)")
    other.execute("INSERT INTO stale SELECT sealed FROM secrets")
    other.execute("DELETE FROM stale")
    other.commit()
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    await ledger.destroy_secrets("e")
    assert traces(tmp_path, [b"PLANTED-"]) == []
    assert (await ledger.head()).number == 1
    await ledger.close()


@pytest.mark.requirement("R205")
async def test_marks_that_are_taken_back_are_gone_with_the_journal(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    await ledger.append([Draft(EventType.ROUND, "e")], marks=[("e", Mark("text", b"PLANTED-DIGEST-1"))])
    assert traces(tmp_path, [b"PLANTED-DIGEST-1"])
    await ledger.append([Draft(EventType.REFUSED, "e")], unmark=["e"])
    await ledger.close()
    assert traces(tmp_path, [b"PLANTED-DIGEST-1"]) == []


async def test_a_reader_that_keeps_the_journal_is_told_and_the_next_call_completes(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    await ledger.append([Draft(EventType.ROUND, "e")], secrets=[("e", "key", b"PLANTED-" * 8)])
    reader = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM secrets").fetchone()
    with pytest.raises(LedgerUnavailable, match="reader keeps the ledger's journal"):
        await ledger.destroy_secrets("e")
    assert await ledger.secret("e", "key") is None
    reader.close()
    await ledger.destroy_secrets("e")
    assert traces(tmp_path, [b"PLANTED-"]) == []
    await ledger.close()


async def test_a_destruction_that_was_cut_short_is_completed_at_opening(tmp_path: Path) -> None:
    ledger = await open_ledger(tmp_path / "l.db")
    await ledger.append([Draft(EventType.ROUND, "e")], secrets=[("e", "key", b"PLANTED-" * 8)])
    await ledger.close()
    # As a crash leaves it between the removal and the look whether it is gone.
    other = sqlite3.connect(tmp_path / "l.db")
    other.execute("PRAGMA secure_delete = OFF")
    other.execute("DELETE FROM secrets")
    other.execute("UPDATE ledger SET to_scrub = 1")
    other.commit()
    other.close()
    assert traces(tmp_path, [b"PLANTED-"])
    ledger = await open_ledger(tmp_path / "l.db")
    assert traces(tmp_path, [b"PLANTED-"]) == []
    await ledger.close()


async def test_without_its_key_what_was_sealed_stays_shut(tmp_path: Path) -> None:
    keyring = Keyring.fresh()
    key, wrapped = keyring.new_erasure_key()
    sealed = key.seal("witness", b"two sentences verbatim")
    ledger = await open_ledger(tmp_path / "l.db")
    secrets = [("e", "key", wrapped), ("e", "witness", sealed)]
    await ledger.append([Draft(EventType.ROUND, "e")], secrets=secrets)
    assert traces(tmp_path, [b"verbatim"]) == []
    assert traces(tmp_path, [wrapped[13:29]])
    kept = await ledger.secret("e", "key")
    assert kept is not None
    assert keyring.unwrap(kept).open("witness", sealed) == b"two sentences verbatim"
    await ledger.destroy_secrets("e")
    assert traces(tmp_path, scrub.probes([wrapped, sealed])) == []
    with pytest.raises(SealBroken):
        keyring.new_erasure_key()[0].open("witness", sealed)
    await ledger.close()


def test_a_part_that_spans_two_windows_is_found(tmp_path: Path) -> None:
    needle = b"0123456789abcdef"
    for start in range(-20, 4):
        path = tmp_path / "file"
        path.write_bytes(bytes((1 << 20) + start) + needle + bytes(100))
        with path.open("rb") as file:
            assert scrub.contains(file.fileno(), [b"x" * 16, needle]), start
            assert not scrub.contains(file.fileno(), [b"x" * 16])
            assert not scrub.contains(file.fileno(), [])


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 61, 5000])
def test_probes_cover_the_ends_and_are_never_empty(size: int) -> None:
    sealed = random.Random(size).randbytes(size)
    found = scrub.probes([sealed])
    assert all(0 < len(part) <= scrub.PROBE and part in sealed for part in found)
    assert len(found) <= scrub.PROBES
    assert not size or (sealed.startswith(found[0]) and sealed.endswith(found[-1]))
