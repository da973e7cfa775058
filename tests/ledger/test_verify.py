"""`quietus ledger verify`: every alteration is found, at its event, in live and dead ledgers."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quietus.cli import app
from quietus.core.events import Draft, Event, EventType
from quietus.ledger.chain import Row, extend, fault_of, genesis, link, prepare
from quietus.ledger.files import write_head
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain, verify_events
from quietus.ports import Head, LedgerUnavailable, Mark

ENTRIES = 200


def chain_of(entries: int) -> tuple[Head, list[Row]]:
    """A chain without a ledger."""
    first = Head("incarnation", 0, genesis("incarnation", ["k"]).hex(), 0)
    kinds = list(EventType)
    drafts = [
        Draft(
            kinds[n % len(kinds)],
            f"er_{n % 9}",
            n + 0.5,
            "operator",
            {"n": n, "s": ["a", {"b": None}]},
            n % 3 == 0,
        )
        for n in range(entries)
    ]
    return extend(first, prepare(drafts, None, (), (), ()).drafts)


def first_fault(rows: list[Row], head: Head) -> str | None:
    """What is wrong first in a whole chain that should end at `head`."""
    previous = genesis("incarnation", ["k"])
    for place, row in enumerate(rows, 1):
        if fault := fault_of(previous, place, row):
            return fault
        previous = row.hash
    return None if previous.hex() == head.hash else "the end is missing"


@pytest.mark.requirement("R206")
def test_every_flipped_bit_swap_drop_repetition_and_cut_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    head, rows = chain_of(ENTRIES)
    assert first_fault(rows, head) is None
    tried = 0
    for place, row in enumerate(rows):
        previous = rows[place - 1].hash if place else genesis("incarnation", ["k"])
        for altered in alterations(row):
            assert fault_of(previous, place + 1, altered), altered
            tried += 1
    for place in range(ENTRIES):
        dropped = rows[:place] + rows[place + 1 :]
        assert first_fault(dropped, head)
        renumbered = [row._replace(number=n) for n, row in enumerate(dropped, 1)]
        assert first_fault(renumbered, head)
        assert first_fault(rows[: place + 1] + rows[place:], head)
        assert first_fault(rows[:place], head)
        for other in range(place + 1, ENTRIES):
            swapped = list(rows)
            swapped[place], swapped[other] = rows[other], rows[place]
            assert fault_of(rows[place - 1].hash if place else b"", place + 1, swapped[place])
            tried += 1
        tried += 4
    with capsys.disabled():
        print(f"\n{tried} alterations of a chain of {ENTRIES} events: each found")
    assert tried > 190_000


def alterations(row: Row) -> list[Row]:
    """The row with each bit of each column flipped: texts, hash, and numbers as they are stored."""
    found = [row._replace(actor=row.actor + '","at":0.5')]
    (bits,) = struct.unpack(">Q", struct.pack(">d", row.at))
    for bit in range(64):
        (at,) = struct.unpack(">d", struct.pack(">Q", bits ^ 1 << bit))
        found.append(row._replace(at=at))
        found.append(row._replace(number=row.number ^ 1 << bit))
        found.append(row._replace(gate=row.gate ^ 1 << bit))
    for name in ("type", "erasure", "actor", "facts", "hash"):
        value = getattr(row, name)
        raw = value if isinstance(value, bytes) else value.encode()
        for bit in range(len(raw) * 8):
            flipped = bytearray(raw)
            flipped[bit // 8] ^= 1 << (bit % 8)
            new = bytes(flipped) if isinstance(value, bytes) else flipped.decode("latin-1")
            found.append(row._replace(**{name: new}))
    return found


def test_an_event_cannot_be_rewritten_with_a_matching_hash_without_its_follower_telling() -> None:
    head, rows = chain_of(5)
    forged = rows[2]._replace(actor="somebody")
    forged = forged._replace(hash=link(rows[1].hash, forged))
    assert first_fault([*rows[:2], forged, *rows[3:]], head) == "event 4 does not match its hash"


async def make(path: Path, head_file: Path | None = None) -> SqliteLedger:
    ledger = SqliteLedger(path, head_file=head_file)
    await ledger.open()
    await ledger.bind_keys(frozenset({"hmac-1"}))
    for number in range(10):
        erasure = f"e{number % 3}"
        await ledger.append(
            [Draft(EventType.ROUND, erasure, facts={"n": number}, gate=number == 4)],
            marks=[(erasure, Mark("text", bytes([number, 2]) * 8)), ("shared", Mark("text", bytes(16)))],
        )
    await ledger.append([Draft(EventType.REFUSED, "e1")], unmark=["e1"])
    return ledger


async def test_a_live_and_a_closed_ledger_verify(tmp_path: Path) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    ledger = await make(path, head_file)
    live = verify_chain(path, head_file=head_file)
    assert live.ok
    assert (live.events, live.marks, live.head) == (11, 17, await ledger.head())
    appends = [asyncio.ensure_future(ledger.append([Draft(EventType.ROUND, "e0")])) for _ in range(200)]
    while not all(append.done() for append in appends):
        assert (await asyncio.to_thread(verify_chain, path)).ok
    await ledger.close()
    assert verify_chain(path, head_file=head_file).events == 211


@pytest.mark.parametrize(
    ("damage", "at"),
    [
        ("UPDATE events SET facts = replace(facts, '6', '7') WHERE number = 7", 7),
        ("UPDATE events SET type = 'clean' WHERE number = 3", 3),
        ("UPDATE events SET gate = 0 WHERE number = 5", 5),
        ("UPDATE events SET hash = zeroblob(32) WHERE number = 2", 2),
        ("UPDATE events SET facts = '{\"n\":0' WHERE number = 1", 1),
        ("DELETE FROM events WHERE number = 4", 4),
        ("DELETE FROM events WHERE number = 11", None),
        ("UPDATE ledger SET key_ids = '[\"hmac-2\"]'", 1),
        ("UPDATE ledger SET incarnation = 'x'", 1),
        ("UPDATE ledger SET gate_epoch = 0", None),
        ("UPDATE ledger SET number = 99", None),
        ("DELETE FROM marks WHERE erasure = 'e0' AND number = 7", 7),
        ("DELETE FROM marks WHERE erasure = 'e2'", 3),
        ("UPDATE marks SET digest = zeroblob(16) WHERE erasure = 'e0' AND number = 4", 4),
        ("UPDATE marks SET erasure = 'e9' WHERE erasure = 'e0' AND number = 4", 4),
        ("INSERT INTO marks VALUES ('e1', 'text', zeroblob(16), 2)", 2),
        ("DELETE FROM ledger", None),
    ],
)
async def test_the_first_bad_event_is_named(tmp_path: Path, damage: str, at: int | None) -> None:
    await (await make(tmp_path / "l.db")).close()
    connection = sqlite3.connect(tmp_path / "l.db")
    connection.execute(damage)
    connection.commit()
    connection.close()
    report = verify_chain(tmp_path / "l.db")
    assert not report.ok
    assert report.at == at, report.fault
    assert report.head is None
    assert at is None or "marks" in damage or report.events == at - 1


async def test_a_ledger_that_is_older_than_its_head_file_does_not_verify(tmp_path: Path) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    ledger = await make(path, head_file)
    head = await ledger.head()
    await ledger.close()
    write_head(head_file, replace(head, number=head.number + 1))
    assert verify_chain(path).ok
    assert "rolled back" in str(verify_chain(path, head_file=head_file).fault)
    write_head(head_file, replace(head, hash="00" * 32))
    assert "rewritten" in str(verify_chain(path, head_file=head_file).fault)


def test_what_is_no_ledger_is_told(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="no ledger at"):
        verify_chain(tmp_path / "none.db")
    (tmp_path / "empty.db").touch()
    assert "no ledger was ever in it" in str(verify_chain(tmp_path / "empty.db").fault)
    (tmp_path / "text.db").write_text("remember the milk\n" * 100)
    assert not verify_chain(tmp_path / "text.db").ok
    assert list(tmp_path.glob("*-wal")) == []


async def test_an_export_is_checked_without_the_ledger(tmp_path: Path) -> None:
    ledger = await make(tmp_path / "l.db")
    events: list[Event] = [event async for event in ledger.events()]
    head = await ledger.head()
    await ledger.close()
    keys = ["hmac-1"]
    assert verify_events(events, head.incarnation, keys).head == head
    assert verify_events([], head.incarnation, keys).events == 0
    assert verify_events(events, head.incarnation, ["hmac-2"]).at == 1
    assert verify_events(events, "other", keys).at == 1
    assert verify_events(events[1:], head.incarnation, keys).at == 1
    assert verify_events([*events[:4], *events[5:]], head.incarnation, keys).at == 5
    forged = [*events[:6], replace(events[6], actor="somebody"), *events[7:]]
    assert verify_events(forged, head.incarnation, keys).at == 7


COPY = "INSERT INTO events SELECT number + 1000, type, erasure, at, actor, facts, gate, hash FROM events "
SWAP = (
    "UPDATE events SET number = -1 WHERE number = {a}", "UPDATE events SET number = {a} WHERE number = {b}",
    "UPDATE events SET number = {b} WHERE number = -1",
)  # fmt: skip


def damages(rng: random.Random) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Ways to damage a file, each a few times: a name, statements, and the event that is then wrong first."""
    for _ in range(3):
        at = rng.randrange(2, ENTRIES - 1)
        later = f"UPDATE events SET number = -number WHERE number > {at}"
        back = "UPDATE events SET number = 1 - number WHERE number < 0"
        for column in ("type", "erasure", "actor", "facts"):
            flipped = f"CAST({column} || 'x' AS TEXT)" if column != "facts" else "replace(facts, ':', ': ')"
            yield f"{column} flipped", (f"UPDATE events SET {column} = {flipped} WHERE number = {at}",), at
        byte = rng.randrange(32)
        flip = f"substr(hash, 1, {byte}) || X'00' || substr(hash, {byte} + 2)"
        yield "hash flipped", (f"UPDATE events SET hash = CAST({flip} AS BLOB) WHERE number = {at}",), at
        yield "gate flipped", (f"UPDATE events SET gate = 1 - gate WHERE number = {at}",), at
        yield "swapped", tuple(text.format(a=at, b=at + 1) for text in SWAP), at
        yield "dropped", (f"DELETE FROM events WHERE number = {at}",), at
        yield "duplicated", (later, back, f"{COPY} WHERE number = {at}",
                             f"UPDATE events SET number = {at} + 1 WHERE number = {at} + 1000"), at + 1
        yield "cut", (f"DELETE FROM events WHERE number > {at}",), 0


@pytest.mark.requirement("R206")
async def test_the_command_finds_each_kind_of_damage_in_the_file(tmp_path: Path) -> None:
    """All alterations are tried on the rows above; here some of each kind, in a file, through the command."""
    whole = tmp_path / "whole.db"
    ledger = SqliteLedger(whole)
    await ledger.open()
    await ledger.bind_keys(frozenset({"hmac-1"}))
    for number in range(ENTRIES):
        facts = {"n": number, "s": ["a", {"b": None}]}
        await ledger.append([Draft(EventType.ROUND, f"e{number % 9}", number + 0.5, facts=facts)])
    await ledger.close()
    assert await asyncio.to_thread(said, whole) == (0, None)
    kinds: Counter[str] = Counter()
    for name, statements, at in damages(random.Random(200)):
        path = tmp_path / "damaged.db"
        path.write_bytes(whole.read_bytes())
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
        assert await asyncio.to_thread(said, path) == (1, at or None), (name, at)
        kinds[name] += 1
    assert set(kinds.values()) == {3} and len(kinds) == 10


def said(path: Path) -> tuple[int, int | None]:
    """The exit code of `quietus ledger verify`, and the event that it names."""
    result = CliRunner().invoke(app, ["ledger", "verify", str(path), "--json"])
    return result.exit_code, json.loads(result.stdout).get("at")
