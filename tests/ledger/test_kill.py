"""Nothing that was acknowledged is lost: processes killed at any moment, journals cut at any byte."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import quietus
from quietus.core.events import Draft, EventType
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain

WRITER = Path(__file__).with_name("crash_writer.py")
KILLS = 25


def write_and_kill(path: Path, head_file: Path, lines: int) -> list[list[str]]:
    """Lets a writer say so many lines, kills it, and returns all that it had said."""
    environment = {**os.environ, "PYTHONPATH": str(Path(quietus.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, str(WRITER), str(path), str(head_file)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        said += writer.stdout.readlines()
    return [line.split() for line in said if line.endswith("\n")]


@pytest.mark.timeout(180)
async def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    rng = random.Random(206)
    acked: dict[int, str] = {}
    destroyed: set[str] = set()
    for turn in range(KILLS):
        for line in write_and_kill(path, head_file, rng.randrange(1, 40)):
            if line[0] == "acked":
                acked[int(line[1])] = line[2]
            elif line[0] == "destroyed":
                destroyed.add(line[1])
        report = verify_chain(path, head_file=head_file)  # of the dead ledger, as it was left
        assert report.ok, (turn, report)
        ledger = SqliteLedger(path, head_file=head_file)
        head = await ledger.open()
        assert head.number >= max(acked, default=0)
        events = {event.number: event async for event in ledger.events()}
        assert sorted(events) == list(range(1, head.number + 1))
        assert all(events[number].facts["name"] == name for number, name in acked.items())
        # All of an append is there, or none of it: each event has its mark, and its secret until destroyed.
        marks = {mark.kind async for _, mark in ledger.marks()}
        assert marks == {event.facts["name"] for event in events.values()}
        for event in events.values():
            secret = await ledger.secret(event.erasure, event.facts["name"])
            may_be_gone = event.erasure.endswith("0")
            assert secret == event.facts["name"].encode() or (secret is None and may_be_gone)
            assert secret is None or event.erasure not in destroyed
        await ledger.close()
    assert len(acked) > KILLS


async def test_a_journal_cut_anywhere_leaves_whole_appends(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    await ledger.open()
    journal = tmp_path / "l.db-wal"
    ends = {}
    for _ in range(6):
        events = await ledger.append([Draft(EventType.ROUND, "e", facts={"x": "y" * 500}) for _ in range(4)])
        ends[os.path.getsize(journal)] = events[-1].number
    shutil.copy(path, tmp_path / "copy.db")
    whole = journal.read_bytes()
    await ledger.close()
    rng = random.Random(5)
    cuts = sorted({*ends, *range(min(ends), len(whole) + 1, 1536)})
    for cut in cuts:
        # What was being written when the power went is cut off, or is anything at all.
        for tail in (b"", rng.randbytes(min(4096, len(whole) - cut))):
            (tmp_path / "cut.db").write_bytes((tmp_path / "copy.db").read_bytes())
            (tmp_path / "cut.db-wal").write_bytes(whole[:cut] + tail)
            (tmp_path / "cut.db-shm").unlink(missing_ok=True)
            report = verify_chain(tmp_path / "cut.db")
            assert report.ok, (cut, report)
            assert report.events == max(number for end, number in ends.items() if end <= cut), cut


@pytest.mark.parametrize("lines", [1])
async def test_a_killed_holder_leaves_no_lock(tmp_path: Path, lines: int) -> None:
    assert write_and_kill(tmp_path / "l.db", tmp_path / "head.json", lines)[0][0] == "open"
    ledger = SqliteLedger(tmp_path / "l.db", head_file=tmp_path / "head.json")
    await ledger.open()
    await ledger.close()
