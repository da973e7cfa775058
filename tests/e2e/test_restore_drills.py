"""What is lost or wrong with a ledger, as a table: what the gate does, and what is said.

docs/ledger.md has the same table; each row of it is played here, with `quietus serve` as users run it.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quietus.ledger.sqlite import SqliteLedger
from tests.e2e.process import ROOT, Quietus, request
from tests.ledger.forget_on_disk import ended, life
from tests.ledger.test_reserve import DISK, RESERVE, _ready, fill, no_room, small, two, used

TABLE = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", re.MULTILINE)
STARTING = 120.0


def documented() -> dict[str, tuple[str, str, str]]:
    """The rows of the table: the gate, what is said, what to do."""
    page = (ROOT / "docs" / "ledger.md").read_text().partition("## What happens when something is wrong")[2]
    rows = [match.groups() for match in TABLE.finditer(page)]
    return {name: (gate, said, todo) for name, gate, said, todo in rows if name != "what"}


ROWS = documented()


def without(folder: Path, *names: str) -> None:
    for name in names:
        for path in folder.glob(name):
            path.unlink()


def older(folder: Path) -> None:
    without(folder, "ledger.db*")
    shutil.copy(folder / "before.db", folder / "ledger.db")


def other_keys(folder: Path) -> None:
    without(folder, "*.keys.json", "keys.json")
    shutil.copy(folder / "other" / "keys.json", folder / "keys.json")


def change(statement: str) -> Callable[[Path], None]:
    def work(folder: Path) -> None:
        with sqlite3.connect(folder / "ledger.db") as ledger:
            ledger.execute(statement)
        ledger.close()

    return work


SHUT: dict[str, Callable[[Path], None]] = {
    "ledger lost, head file there": lambda folder: without(folder, "ledger.db*"),
    "ledger older than its head": older,
    "keys lost": lambda folder: without(folder, "keys.json"),
    "keys of another ledger": other_keys,
    "a newer schema": change("PRAGMA user_version = 99"),
    "an event altered, missing or swapped": change(
        "UPDATE events SET actor = 'somebody' WHERE number = 2"
    ),
}
OPEN = "ledger lost, no head file, keys there"
FULL = "disk full"


def settings(folder: Path) -> dict[str, object]:
    return {
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "head_file": str(folder / "head" / "ledger.head")},
        "keys": {"file": str(folder / "keys.json")},
    }


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose sidecar has taken a forget, a backup from before it, and the keys of another."""
    from quietus.legacy.faults import parse_faults
    from tests.e2e.stores import Served

    folder = tmp_path_factory.mktemp("drills") / "sidecar"
    (folder / "head").mkdir(parents=True)
    (folder / "other").mkdir()
    store = Served(parse_faults(["lazy_index=600"]))
    sidecar = Quietus(folder, store.url, "memory-tool", settings(folder))
    other = Quietus(folder / "other", store.url, "memory-tool", settings(folder / "other"))
    (folder / "other" / "head").mkdir()
    try:
        sidecar.start()
        body = {"key": "a1", "value": "Alice lives at 14 Quai Voltaire", "retention": {"subject": "alice"}}
        assert sidecar.call("POST", "/v1/memories", body).status == 201
        other_body = {**body, "key": "b1", "retention": {"subject": "bob"}}
        assert sidecar.call("POST", "/v1/memories", other_body).status == 201
        assert sidecar.call("POST", "/v1/forget", {"subject": "bob"}).status == 202
        backup = [sys.executable, "-m", "quietus.cli", "ledger", "backup", str(folder / "before.db")]
        run = cli(folder, *backup[3:], "--config", str(folder / "quietus.json"))
        assert run.returncode == 0, run.stderr
        assert sidecar.call("POST", "/v1/forget", {"subject": "alice"}).status == 202
        sidecar.stop()
        other.start()
        other.stop()
    finally:
        store.close()
    return folder


def cli(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One command of the real process."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "proxy"), "NO_COLOR": "1", "COLUMNS": "400"}
    code = "import sys; from quietus.cli import main; sys.argv[0] = 'quietus'; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, env=env, text=True, capture_output=True,
        timeout=STARTING, check=False,
    )  # fmt: skip


def copy(template: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "sidecar"
    shutil.copytree(template, folder)
    config = (folder / "quietus.json").read_text().replace(str(template), str(folder))
    (folder / "quietus.json").write_text(config)
    return folder


def test_every_row_of_the_table_is_played() -> None:
    assert set(ROWS) == {*SHUT, OPEN, FULL}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("row", SHUT)
def test_what_would_open_the_gate_does_not_start(row: str, template: Path, tmp_path: Path) -> None:
    gate, said, todo = ROWS[row]
    folder = copy(template, tmp_path)
    SHUT[row](folder)
    run = cli(folder, "serve", "--config", str(folder / "quietus.json"))
    assert run.returncode == 2, run.stderr
    assert gate.startswith("shut") and "alice" not in run.stderr
    for words in re.findall(r"`([^`]+)`", said):
        assert words in run.stderr, (row, words, run.stderr)
    assert re.findall(r"`([^`]+)`", said) and todo


@pytest.mark.timeout(240)
def test_only_a_head_file_notices_a_ledger_that_is_gone(template: Path, tmp_path: Path) -> None:
    from quietus.legacy.faults import parse_faults
    from tests.e2e.stores import Served

    gate, _, _ = ROWS[OPEN]
    assert gate.startswith("starts")
    folder = copy(template, tmp_path)
    without(folder, "ledger.db*")
    store = Served(parse_faults(["lazy_index=600"]))
    changed = {**settings(folder), "ledger": {"url": f"sqlite:///{folder}/ledger.db"}}
    sidecar = Quietus(folder, store.url, "memory-tool", changed)
    try:
        sidecar.start()
        assert request("POST", f"{sidecar.data}/v1/recall", {"query": "x", "subject": "alice"}).status == 200
        assert sidecar.erasures() == []
    finally:
        if sidecar.process is not None:
            sidecar.stop()
        store.close()


async def test_on_a_full_disk_the_gate_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, said, _ = ROWS[FULL]
    disk = small(tmp_path)
    no_room(monkeypatch, lambda: DISK - used(tmp_path))
    world = life(tmp_path, disk, reserve_bytes=RESERVE)
    async with world:
        await two(world)
        assert isinstance(world.ledger, SqliteLedger)
        await fill(world.ledger)
        refused = await world.forget(subject="alice")
        assert refused.status == 503 and refused.json["type"].endswith(":ledger-unavailable")
        assert (await world.recall("flower pot", subject="alice")).status == 409
        assert (await world.recall("train", subject="bob")).status == 200
        status, word = await _ready(world)
        assert "holds" in gate and "503" in said and (status, word) == (503, "full")
    await ended()
    await world.ledger.close()
