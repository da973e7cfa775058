"""`quietus policy diff` and `observed` from files: words, JSON, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quietus.cli import app

ROOT = Path(__file__).resolve().parents[1]


def call(count: int, tenant: str, **more: Any) -> dict[str, Any]:
    case = {"erasure": "inside", "state": "settling", "subject": None, "write": []}
    alone = {"erasure": "none", "state": None, "subject": None, "write": []}
    return {"operation": "recall", "route": "search", "tenant": [tenant], "principal": "p", "purpose": [],
            "failure": None, "cases": [alone, case], "rule": "recall-in-erased-scope", "effect": "block",
            "mode": "observe", "overridden": False, "count": count, **more}  # fmt: skip


def record(folder: Path, name: str, *calls: dict[str, Any]) -> str:
    told = {"since": "2027-03-01T00:00:00Z", "policy": "observe", "calls": list(calls), "faulty": [],
            "left_out": 0, "unmapped": [{"shape": "GET /odd/{}", "count": 3}],
            "unreadable": [{"route": "search", "field": "path", "count": 2}]}  # fmt: skip
    path = folder / name
    path.write_text(json.dumps(told))
    return str(path)


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["policy", *words])


def test_records_of_two_days_are_added_up(tmp_path: Path) -> None:
    first, second = record(tmp_path, "1.json", call(5, "acme")), record(tmp_path, "2.json", call(2, "globex"))
    days = ["--from", first, "--from", second]
    seen = run("observed", *days)
    assert seen.exit_code == 0 and "would have refused 7 of 7 calls" in seen.output
    assert "GET /odd/{}  6" in seen.output and "search: path  4" in seen.output
    found = json.loads(run("observed", *days, "--json").output)
    assert found["by_tenant"] == {"acme": 5, "globex": 2} and found["by_route"] == {"search": 7}
    assert found["recalls_that_overlap_an_unsettled_erasure"] == 7
    changed = run("diff", "default", *days, "--json")
    assert changed.exit_code == 1 and json.loads(changed.output)["changed"] == 7
    assert run("diff", "observe", *days).exit_code == 0
    told = run("diff", "default", *days).output
    assert "7 of 7 calls would be decided otherwise" in told and "(observed)" in told


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"calls": [{}]}'])
def test_what_is_no_record_is_a_usage_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    assert run("diff", "default", "--from", str(tmp_path / "x.json")).exit_code == 2
    assert run("diff", "no-such-policy", "--from", record(tmp_path, "1.json")).exit_code == 2


@pytest.mark.requirement("R196")
def test_the_policy_for_one_tenant_in_the_documentation_does_what_it_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "policies.md").read_text()
    rules = re.findall(r"```yaml\n(rules:.*?)```", page, re.DOTALL)[-1]
    policy = tmp_path / "acme.yaml"
    policy.write_text(f"apiVersion: quietus/v1\nkind: Policy\nname: acme-first\n{rules}")
    days = ["--from", record(tmp_path, "1.json", call(5, "acme"), call(2, "globex"))]
    found = json.loads(run("diff", str(policy), *days, "--json").output)
    assert found["by_tenant"] == {"acme": 5} and found["by_rule"] == {"acme-recall-inside": 5}
