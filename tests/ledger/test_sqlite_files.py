"""The SQLite ledger's files: who may read them, who holds them, and what is refused at opening."""

# ruff: noqa: ASYNC240 - a test may block its own loop

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import quietus
from quietus.core.events import Draft, EventType
from quietus.ledger.files import read_head, write_head
from quietus.ledger.sqlite import SqliteLedger
from quietus.ports import Head, LedgerRefused, LedgerUnavailable


async def fill(path: Path, events: int = 3, head_file: Path | None = None) -> Head:
    """A ledger with so many more events, closed again."""
    ledger = SqliteLedger(path, head_file=head_file)
    await ledger.open()
    for number in range(events):
        await ledger.append([Draft(EventType.ROUND, f"e{number}", facts={"n": number}, gate=number % 2 == 0)])
    head = await ledger.head()
    await ledger.close()
    return head


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("loose_umask")
async def test_all_files_are_for_their_owner_only(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", head_file=tmp_path / "head.json")
    await ledger.open()
    await ledger.append([Draft(EventType.ROUND, "e1")])
    names = {"l.db", "l.db-wal", "l.db-shm", "l.db.lock", "head.json"}
    assert {item.name for item in tmp_path.iterdir()} == names
    assert {stat.S_IMODE(item.stat().st_mode) for item in tmp_path.iterdir()} == {0o600}
    await ledger.close()
    (tmp_path / "l.db").chmod(0o644)
    await fill(tmp_path / "l.db", head_file=tmp_path / "head.json")
    assert stat.S_IMODE((tmp_path / "l.db").stat().st_mode) == 0o600


async def test_a_second_ledger_on_the_file_is_refused_and_names_the_holder(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    await ledger.open()
    with pytest.raises(LedgerRefused, match=rf"in use by another process \(pid {os.getpid()}\)"):
        await SqliteLedger(tmp_path / "l.db").open()
    (tmp_path / "link.db").symlink_to(tmp_path / "l.db")
    with pytest.raises(LedgerRefused, match="in use"):
        await SqliteLedger(tmp_path / "link.db").open()
    await ledger.append([Draft(EventType.ROUND, "e1")])
    await ledger.close()
    assert (await fill(tmp_path / "l.db", 0)).number == 1


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    hold = (
        "import asyncio, sys\n"
        "from quietus.ledger.sqlite import SqliteLedger\n"
        "async def main():\n"
        "    ledger = SqliteLedger(sys.argv[1])\n"
        "    await ledger.open()\n"
        "    print('open', flush=True)\n"
        "    sys.stdin.read()\n"
        "    await ledger.close()\n"
        "asyncio.run(main())\n"
    )
    source = Path(quietus.__file__).parents[1]
    command = [sys.executable, "-c", hold, str(tmp_path / "l.db")]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        second = subprocess.run(
            command, env=environment, input="", capture_output=True, text=True, check=False
        )
        assert second.returncode != 0
        assert f"in use by another process (pid {holder.pid})" in second.stderr
        holder.communicate()
    third = subprocess.run(command, env=environment, input="", capture_output=True, text=True, check=False)
    assert third.returncode == 0, third.stderr


async def test_a_missing_folder_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LedgerRefused, match="make its folder"):
        await SqliteLedger(tmp_path / "none" / "l.db").open()


@pytest.mark.parametrize("schema", [2, 99])
async def test_a_newer_schema_is_refused_and_nothing_is_changed(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "l.db"
    await fill(path)
    edit(path, f"PRAGMA user_version = {schema}", "PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    with pytest.raises(LedgerRefused, match=rf"schema {schema} and this Quietus knows 1.*upgrade"):
        await SqliteLedger(path).open()
    assert path.read_bytes() == before


async def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    edit(other, "CREATE TABLE notes (text)")
    text = tmp_path / "text.db"
    text.write_text("remember the milk\n" * 100)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(LedgerRefused):
            await SqliteLedger(path).open()
        assert path.read_bytes() == before


async def test_an_empty_file_is_a_new_ledger(tmp_path: Path) -> None:
    (tmp_path / "l.db").touch()
    assert (await fill(tmp_path / "l.db")).number == 3


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM events WHERE number = 3",
        "DELETE FROM events",
        "UPDATE events SET hash = zeroblob(32) WHERE number = 3",
        "UPDATE ledger SET number = 2",
        "UPDATE ledger SET hash = zeroblob(32)",
        "UPDATE ledger SET gate_epoch = 1",
        "UPDATE ledger SET key_ids = 'x'",
        "DELETE FROM ledger",
        "DROP TABLE ledger",
    ],
)
async def test_a_head_that_is_not_where_the_events_end_is_refused(tmp_path: Path, damage: str) -> None:
    await fill(tmp_path / "l.db")
    edit(tmp_path / "l.db", damage)
    with pytest.raises(LedgerRefused):
        await SqliteLedger(tmp_path / "l.db").open()


@pytest.mark.requirement("R206")
async def test_a_ledger_that_was_rolled_back_is_refused(tmp_path: Path) -> None:
    path, head = tmp_path / "l.db", tmp_path / "elsewhere.json"
    await fill(path, 3, head)
    backup = path.read_bytes()
    await fill(path, 2, head)
    path.write_bytes(backup)
    with pytest.raises(LedgerRefused, match="ends at event 3 and was at event 5 .* rolled back"):
        await SqliteLedger(path, head_file=head).open()
    path.unlink()
    with pytest.raises(LedgerRefused, match="had 5 events: restore"):
        await SqliteLedger(path, head_file=head).open()
    assert not path.exists(), "a ledger that is missing must not be replaced by an empty one"
    path.touch()
    with pytest.raises(LedgerRefused, match="had 5 events: restore"):
        await SqliteLedger(path, head_file=head).open()


async def test_another_history_of_the_same_length_is_refused(tmp_path: Path) -> None:
    path, head = tmp_path / "l.db", tmp_path / "head.json"
    await fill(path, 3, head)
    backup = path.read_bytes()
    await fill(path, 1, head)
    path.write_bytes(backup)
    ledger = SqliteLedger(path)  # somebody went on from the backup without the head file
    await ledger.open()
    await ledger.append([Draft(EventType.ROUND, "fork"), Draft(EventType.ROUND, "fork")])
    await ledger.close()
    with pytest.raises(LedgerRefused, match="rewritten"):
        await SqliteLedger(path, head_file=head).open()


async def test_a_head_file_of_another_ledger_is_refused(tmp_path: Path) -> None:
    await fill(tmp_path / "a.db", 1, tmp_path / "head.json")
    await fill(tmp_path / "b.db", 9)
    with pytest.raises(LedgerRefused, match="another ledger"):
        await SqliteLedger(tmp_path / "b.db", head_file=tmp_path / "head.json").open()


async def test_a_crash_between_commit_and_head_file_is_no_rollback(tmp_path: Path) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    older = await fill(path, 2, head_file)
    newer = await fill(path, 2, head_file)
    write_head(head_file, older)
    assert await fill(path, 0, head_file) == newer
    assert read_head(head_file) == newer, "opening brings it up to date"


async def test_a_head_file_that_went_missing_is_refused_until_it_is_given_up(tmp_path: Path) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    await fill(path, 1)
    await fill(path, 1, head_file)  # a head file may be added later
    head_file.unlink()
    with pytest.raises(LedgerRefused, match="missing: put it back"):
        await SqliteLedger(path, head_file=head_file).open()
    await fill(path, 0)  # started once without
    assert (await fill(path, 1, head_file)).number == 3


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"number": 1}', "\xff", '{"incarnation":1,"number":"x"}']
)
async def test_a_damaged_head_file_is_refused(tmp_path: Path, text: str) -> None:
    path, head_file = tmp_path / "l.db", tmp_path / "head.json"
    await fill(path, 1, head_file)
    head_file.write_bytes(text.encode("latin-1"))
    with pytest.raises(LedgerRefused, match="damaged"):
        await SqliteLedger(path, head_file=head_file).open()


async def test_the_head_file_is_current_when_an_append_returns(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", head_file=tmp_path / "head.json")
    await ledger.open()
    for _ in range(3):
        await ledger.append([Draft(EventType.ROUND, "e1", gate=True)])
        assert read_head(tmp_path / "head.json") == await ledger.head()
    assert set(json.loads((tmp_path / "head.json").read_text())) == {
        "incarnation",
        "number",
        "hash",
        "gate_epoch",
    }
    await ledger.close()


async def test_a_head_file_that_cannot_be_written_is_told_and_loses_no_event(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    with pytest.raises(LedgerRefused, match="cannot be written"):
        await SqliteLedger(tmp_path / "l.db", head_file=folder / "head.json").open()
    folder.mkdir()
    ledger = SqliteLedger(tmp_path / "l.db", head_file=folder / "head.json")
    await ledger.open()
    folder.rename(tmp_path / "gone")
    await ledger.append([Draft(EventType.ROUND, "e1")])
    assert ledger.head_file_fault is not None
    (tmp_path / "gone").rename(folder)
    await ledger.append([Draft(EventType.ROUND, "e1")])
    assert ledger.head_file_fault is None
    assert read_head(folder / "head.json") == await ledger.head()
    await ledger.close()


async def test_a_file_that_is_removed_or_replaced_in_use_is_noticed(tmp_path: Path) -> None:
    for replace in (False, True):
        path = tmp_path / f"{replace}.db"
        ledger = SqliteLedger(path)
        await ledger.open()
        path.rename(tmp_path / "moved.db")
        if replace:
            path.write_bytes((tmp_path / "moved.db").read_bytes())
        with pytest.raises(LedgerUnavailable, match="removed or replaced"):
            await ledger.head()
        with pytest.raises(LedgerUnavailable, match="removed or replaced"):
            await ledger.append([Draft(EventType.ROUND, "e1")])
        await ledger.close()
