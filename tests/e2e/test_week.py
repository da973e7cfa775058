"""docs/week.md, run as it stands, in virtual time: from observing to a receipt, with an incident between."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.documented import run
from tests.e2e.week import Week


@pytest.mark.timeout(600)
def test_a_week(tmp_path: Path) -> None:
    shims, folder, here = tmp_path / "shims", tmp_path / "week", Path.cwd()
    shims.mkdir()
    folder.mkdir()
    week = Week(shims)
    try:
        ran = run("week.md", folder, 540, first=shims)
    finally:
        week.close()
        os.chdir(here)
    assert ran.code == 0, ran.out[-6000:]
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["result"]["state"] == "settled"
    assert "erased and back: 1; removed: 1" in ran.out
    assert "complete: 2 records" in ran.out, "nobody else's record went"
    assert len(receipt["overrides"]) == 1, "it stood while this erasure was open"
    keys = json.loads((folder / "public.json").read_text())
    assert receipt["signature"]["key"] in json.dumps(keys)
    assert "# Erasures since 2026-01-01" in (folder / "report.md").read_text()
    monday = json.loads((folder / "monday.json").read_text())
    assert monday["policy"] == "observe" and any(call["mode"] == "observe" for call in monday["calls"])
    kept = b"".join(path.read_bytes() for path in folder.glob("ledger.db*"))
    assert b"alice" not in kept and b"flower pot" not in kept and b"lighthouse" not in kept
