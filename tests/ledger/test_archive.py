"""Backups: taken under load, put back as they were, refused when older than what is known, completed."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quietus.acts import Acts
from quietus.cli import app
from quietus.core.events import Draft, EventType
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.erasures import Erasures
from quietus.keys import Keyring
from quietus.ledger.archive import back_up, restore
from quietus.ledger.files import lock
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain
from quietus.ports import LedgerRefused
from quietus.views import event_view
from tests.admin.desk import Desk, WatchedClock

RUN = CliRunner()


async def desk(path: Path, keyring: Keyring, head_file: Path | None = None) -> Desk:
    clock = WatchedClock()
    erasures = Erasures(SqliteLedger(path, head_file=head_file), keyring, clock, "memories")
    await erasures.load()
    return Desk(erasures, clock)


def state(of: Desk) -> dict[str, Any]:
    return {e.id: (e.state, e.predicate, e.dossier.basis) for e in of.erasures.all()}


async def test_a_backup_under_load_is_one_moment_and_verifies(tmp_path: Path) -> None:
    keyring = Keyring.fresh()
    live = await desk(tmp_path / "ledger.db", keyring)
    for _ in range(50):
        await live.erasure(State.SETTLING, subject="alice")
    for _ in range(8):  # more pages than one step copies
        await live.event("er_001", EventType.ROUND, outcome="clean", filler="x" * 400_000)
    going = True

    async def write() -> int:
        count = 0
        while going:
            await live.event("er_001", EventType.ROUND, outcome="clean", counted=True, surfaces=[])
            count += 1
        return count

    writer = asyncio.ensure_future(write())
    steps: list[int] = []
    report = await asyncio.to_thread(
        back_up, tmp_path / "ledger.db", tmp_path / "copy.db", progress=lambda done, of: steps.append(done)
    )
    going = False
    assert steps == sorted(steps), "a write did not make it begin again"
    assert await writer > 0
    assert report.ok and report.events >= 100
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    assert not (tmp_path / "copy.db.part").exists()
    with pytest.raises(LedgerRefused, match="exists"):
        back_up(tmp_path / "ledger.db", tmp_path / "copy.db")
    head = (await live.erasures.ledger.head()).number
    assert report.events <= head
    await live.erasures.ledger.close()


async def test_a_restored_ledger_is_the_same_and_the_replaced_one_is_kept(tmp_path: Path) -> None:
    keyring, where = Keyring.fresh(), tmp_path / "ledger.db"
    first = await desk(where, keyring)
    for each in (State.SETTLED, State.LEAKING, State.REFUSED):
        await first.erasure(each, subject=f"s-{each.value}")
    before = state(first)
    await first.erasures.ledger.close()
    back_up(where, tmp_path / "copy.db")
    where.write_bytes(b"lost")
    head, aside = restore(tmp_path / "copy.db", where)
    assert aside is not None and aside.read_bytes() == b"lost"
    again = await desk(where, keyring)
    assert state(again) == before and head.number == again.erasures.number
    await again.erasures.ledger.close()
    assert verify_chain(where).ok


async def test_an_older_backup_is_refused_until_it_is_accepted(tmp_path: Path) -> None:
    keyring, where, mark = Keyring.fresh(), tmp_path / "ledger.db", tmp_path / "head"
    first = await desk(where, keyring, mark)
    await first.erasure(State.SETTLING, subject="alice")
    await asyncio.to_thread(back_up, where, tmp_path / "copy.db")
    await first.erasure(State.SETTLING, subject="bob")
    archive = tmp_path / "audit.jsonl"
    lines = [json.dumps(event_view(event)) for event in await first.events()]
    archive.write_text("\n".join(lines) + "\n")  # noqa: ASYNC240
    await first.erasures.ledger.close()
    with pytest.raises(LedgerRefused, match="would be recalled"):
        restore(tmp_path / "copy.db", where, head_file=mark)
    command = ["ledger", "restore", str(tmp_path / "copy.db"), "--ledger", str(where),
               "--head-file", str(mark)]  # fmt: skip
    refused = RUN.invoke(app, [*command, "--yes"])
    assert refused.exit_code == 1 and "--accept-older" in refused.output
    assert RUN.invoke(app, command, input="n\n").exit_code == 1
    done = await asyncio.to_thread(
        RUN.invoke, app, [*command, "--yes", "--accept-older", "--events", str(archive), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["appended"] == 2
    again = await desk(where, keyring, mark)
    assert [e.state for e in again.erasures.all()] == [State.SETTLING, State.SETTLING]
    named = keyring.pseudonymise(Scope(subject=frozenset({"bob"})))
    assert len(again.erasures.gate.of_subject(named)) == 1
    changed = await Acts(again.erasures, lambda _: None).release("er_002", "eve", "cannot be probed")
    assert changed.state is State.RELEASED
    await again.erasures.ledger.close()
    assert verify_chain(where, head_file=mark).ok


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: lines[:-2] + lines[-1:],
        lambda lines: [*lines[:-1], "{}"],
        lambda lines: [*lines[:-1], "nonsense"],
        lambda lines: [*lines[:-1], lines[-1].replace('"number"', '"nummer"')],
    ],
)
async def test_an_archive_with_a_gap_or_a_foreign_line_is_refused(tmp_path: Path, spoil: Any) -> None:
    keyring, where = Keyring.fresh(), tmp_path / "ledger.db"
    first = await desk(where, keyring)
    await first.erasure(State.REQUESTED, subject="alice")
    await asyncio.to_thread(back_up, where, tmp_path / "copy.db")
    await first.erasure(State.SETTLED, subject="bob")
    lines = spoil([json.dumps(event_view(event)) for event in await first.events()])
    archive = tmp_path / "audit.jsonl"
    archive.write_text("\n".join(lines))  # noqa: ASYNC240
    await first.erasures.ledger.close()
    command = ["ledger", "restore", str(tmp_path / "copy.db"), "--ledger", str(where), "--yes"]
    found = await asyncio.to_thread(RUN.invoke, app, [*command, "--events", str(archive)])
    assert found.exit_code == 1 and "archive" in found.output


async def test_a_ledger_in_use_is_not_replaced_and_a_damaged_backup_is_not_put_back(tmp_path: Path) -> None:
    keyring, where = Keyring.fresh(), tmp_path / "ledger.db"
    first = await desk(where, keyring)
    await first.erasure(State.SETTLING, subject="alice")
    await asyncio.to_thread(back_up, where, tmp_path / "copy.db")
    with pytest.raises(LedgerRefused, match="in use"):
        restore(tmp_path / "copy.db", where)
    await first.erasures.ledger.close()
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        copy.execute("UPDATE events SET actor = 'somebody' WHERE number = 1")
    before = where.read_bytes()  # noqa: ASYNC240
    with pytest.raises(LedgerRefused, match="verify"):
        restore(tmp_path / "copy.db", where)
    assert where.read_bytes() == before  # noqa: ASYNC240
    os.close(lock(where))


async def test_without_secrets_nothing_sealed_is_in_the_copy(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"
    first = await desk(where, Keyring.fresh())
    await first.erasure(State.SETTLING, subject="alice")
    key = first.erasures.new_key("er_001")
    sealed = first.erasures.seal("er_001", "predicate", b"alice of the third floor")
    draft = Draft(EventType.VERIFY_ASKED, "er_001")
    await first.erasures.append([draft], secrets=[key, sealed])
    await first.erasures.ledger.close()
    for name, secrets in (("with.db", True), ("without.db", False)):
        back_up(where, tmp_path / name, secrets=secrets)
        assert (sealed[2] in (tmp_path / name).read_bytes()) is secrets  # noqa: ASYNC240


def test_migrate_says_which_schema_it_is_and_refuses_a_newer_one(tmp_path: Path) -> None:
    where = tmp_path / "ledger.db"

    async def make() -> None:
        ledger = SqliteLedger(where)
        await ledger.open()
        await ledger.close()

    asyncio.run(make())
    found = RUN.invoke(app, ["ledger", "migrate", "--ledger", str(where), "--json"])
    assert found.exit_code == 0 and json.loads(found.output)["migrated"] is False
    with sqlite3.connect(where) as newer:
        newer.execute("PRAGMA user_version = 99")
    found = RUN.invoke(app, ["ledger", "migrate", "--ledger", str(where)])
    assert found.exit_code == 1 and "newer" in found.output
    assert RUN.invoke(app, ["ledger", "migrate", "--ledger", str(tmp_path / "none")]).exit_code == 1
