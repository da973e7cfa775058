"""`quietus scan` beside a running sidecar: what was there before is known, and what came back is removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quietus.cli import app
from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, request
from tests.e2e.stores import Served

OLD = "Alice Moreau keeps spare key number %d under the flower pot by the gate"


def scan(sidecar: Quietus, *more: str) -> tuple[int, dict[str, Any]]:
    """The exit code and what it says."""
    config = str(sidecar.folder / "quietus.json")
    result = CliRunner().invoke(app, ["scan", "--config", config, "--rate", "200", "--json", *more])
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, found


@pytest.mark.timeout(180)
def test_scan_beside_a_running_sidecar_and_reapply_after_a_restore(tmp_path: Path) -> None:
    store = Served(Faults())
    for number in range(3):
        store.store.put(OLD % number, key=f"old-key-{number}", subject="alice")
    store.store.put("Summary: keys are outside", key="summary-1", subject="team", derived_from=("old-key-0",))
    store.store.put("Bob takes the early train", key="bobs-key", subject="bob")
    sidecar = Quietus(tmp_path, store.url, "memory-tool")
    try:
        sidecar.start()
        code, seen = scan(sidecar)
        assert (code, seen["complete"], seen["records"], seen["derived"]) == (0, True, 5, 1)
        assert seen["coverage"] == {"with_subject_percent": 100, "with_sources_percent": 20, "limits": []}

        raw = (tmp_path / "ledger.lineage.db").read_bytes()
        assert b"alice" not in raw and b"old-key" not in raw and b"flower" not in raw
        answer = request("POST", f"{sidecar.data}/v1/forget", {"subject": "alice"})
        assert answer.status == 202
        erasure = answer.headers["quietus-erasure"].split(";")[0].strip('"')
        assert sidecar.office(f"/v1/erasures/{erasure}")["lineage"]["descendants"] in (0, 1)
        sidecar.stop()
        store.store.put(OLD % 1, key="old-key-1", subject="alice")  # the backup that knows of no forget
        code, seen = scan(sidecar, "--reapply")
        assert (code, seen["returned"], seen["removed"]) == (0, {erasure: 1}, 1)
        assert not store.store.holds("spare key number 1")
        assert store.store.holds("Bob takes the early train")
    finally:
        if sidecar.process is not None:
            sidecar.stop()
        store.close()
