"""docs/your-own-store.md, run as it stands: from nothing to a passing trial of the legacy store."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from tests.documented import run

SECRETS = ("alice", "moreau", "voltaire", "acme", "bob", "train", "where does")


@pytest.mark.timeout(300)
def test_from_nothing_to_a_passing_trial(tmp_path: Path) -> None:
    ran = run("your-own-store.md", tmp_path, 240)
    assert ran.code == 0, ran.out[-4000:]

    draft = (tmp_path / "mine.yaml").read_text()
    assert draft.count("# guess:") > 50 and "kind: unprobeable" in draft

    calls = tmp_path / "calls.jsonl"
    assert stat.S_IMODE(calls.stat().st_mode) == 0o600
    recorded = calls.read_text().lower()
    assert not [word for word in SECRETS if word in recorded]

    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["pairs"], found["failed"]) == (6, 0)
    names = ("operation", "route", "items", "rows_taken_out")
    told = [tuple(each[name] for name in names) for each in found["found"]]
    assert told[0][:2] == ("write", "write") and told[2][:2] == ("recall", "recall")
    assert told[3][:2] == ("recall", "list") and told[3][2] == told[3][3] == 2
    assert told[4] == ("read", "read", 1, 0) and told[5][0] == "forget"
    scopes = [each["scope"] for each in found["found"]]
    # Alice is the same in her write and in the forget, and not Bob; nobody can say who she is.
    assert scopes[0]["subject"] == scopes[5]["subject"] != scopes[1]["subject"]
    assert all(re.fullmatch(r"v\d+", scope["tenant"][0]) for scope in scopes)

    trial = json.loads((tmp_path / "trial.json").read_text())
    assert trial["profile"]
