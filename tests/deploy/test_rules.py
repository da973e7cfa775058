"""Each alert fires when it should and stays silent when it should, by promtool; each has its page."""

# ruff: noqa: E501 -- one alert a line reads like the table that it is
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.metrics import FAMILIES
from tests.deploy.tooling import ROOT, run, tool

RULES = ROOT / "dashboards" / "rules" / "quietus.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
GROUPS = yaml.safe_load(RULES.read_text())["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"] if "alert" in rule}
FOREIGN = {"up", "kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes",
           "apiserver_admission_webhook_rejection_count",
           "quietus_injector_certificate_expiry_timestamp_seconds"}  # fmt: skip
"""Not the sidecar's own."""

ME = 'job="quietus", instance="a"'
STORE = f'{ME}, store="memories"'
Series = dict[str, str]
CALLS = f"quietus_operations_total{{{STORE}, effect="
BLOCKED, ALLOWED = f'{CALLS}"block", mode="enforce"}}', f'{CALLS}"allow", mode="enforce"}}'
WATCHED = f'quietus_operations_total{{{STORE}, effect="block", mode="observe"}}'


def calls(blocked: str, allowed: str) -> Series:
    return {BLOCKED: blocked, ALLOWED: allowed}


def gauge(name: str, more: str = STORE) -> str:
    return f"quietus_{name}{{{more}}}"


FIRES: dict[str, tuple[Series, str]] = {
    "QuietusGateOpen": ({gauge("bypass_total", f'{STORE}, cause="ledger"'): "0x5 1x30"}, "8m"),
    "QuietusReplicaBehind": ({gauge("ledger_epoch", ME): "5x30", gauge("replica_epoch", ME): "4x30"}, "5m"),
    "QuietusLedgerClosed": ({gauge("gate_closed", f'{ME}, cause="lease"'): "1x30"}, "5m"),
    "QuietusLedgerFull": ({gauge("ledger_full", ME): "0x2 1x30"}, "10m"),
    "QuietusKeysMismatched": ({gauge("gate_closed", f'{ME}, cause="keys"'): "1x30"}, "1m"),
    "QuietusRefusalsBurning": (calls("0+3x90", "0+10x90"), "80m"),
    "QuietusProbesDead": ({gauge("probe_backlog"): "2x60", gauge("probes_total", f'{STORE}, outcome="CLEAN"'): "7x60"},
                          "40m"),
    "QuietusDown": ({'up{job="quietus", instance="a"}': "0x30"}, "10m"),
    "QuietusAbsent": ({}, "30m"),
    "QuietusPrematureAssurance": ({gauge("premature_assurance_total", f'{STORE}, surface="search"'): "0x5 1x30"}, "20m"),
    "QuietusViolation": ({gauge("erasures", f'{STORE}, state="violation"'): "1x30"}, "5m"),
    "QuietusErasureOverdue": ({gauge("overdue_erasures"): "1x30"}, "10m"),
    "QuietusErasureDueIn7Days": ({gauge("due_erasures", f'{STORE}, within="7d"'): "2x30",
                                  gauge("due_erasures", f'{STORE}, within="3d"'): "1x30"}, "10m"),
    "QuietusErasureDueIn3Days": ({gauge("due_erasures", f'{STORE}, within="3d"'): "1x30"}, "10m"),
    "QuietusResurrection": ({gauge("resurrections_total", f'{STORE}, vector="relapse"'): "0x5 1x30"}, "20m"),
    "QuietusLaunderingSpike": ({gauge("laundering_attempts_total", f'{STORE}, vector="restated_content"'): "0x5 0+5x30"},
                               "20m"),
    "QuietusBypass": ({gauge("bypass_total", f'{STORE}, cause="override"'): "0x5 1x30"}, "20m"),
    "QuietusUnclassified": ({gauge("unclassified_total", f'{STORE}, wire="http"'): "0+10x60"}, "30m"),
    "QuietusReloadFailed": ({gauge("reload_ok", ME): "1x5 0x30"}, "20m"),
    "QuietusAttestationExpiring": ({gauge("attestation_expiry_timestamp_seconds", f'{ME}, condition="sync_purge"'):
                                    "1000000x30"}, "5m"),
    "QuietusCertificateExpiring": ({gauge("certificate_expiry_timestamp_seconds", f'{ME}, use="http_listener"'):
                                    "600000x30"}, "5m"),
    "QuietusLedgerDiskFilling": ({f'kubelet_volume_stats_{kind}_bytes{{namespace="q", '
                                  f'persistentvolumeclaim="agent-ledger"}}': f"{size}x30"
                                  for kind, size in (("available", 5), ("capacity", 100))}, "20m"),
    "QuietusWebhookFailing": ({'apiserver_admission_webhook_rejection_count{name="inject.quietus.io", '
                               'error_type="calling_webhook_error"}': "0+1x30"}, "20m"),
    "QuietusEventsNotDelivered": ({gauge("webhook_events_total", f'{STORE}, outcome="failed"'): "0x5 1x30"}, "20m"),
    "QuietusRefusalsElevated": (calls("0+1x200", "0+20x200"), "190m"),
}  # fmt: skip
"""What makes each alert fire, and by when."""
HEALTHY: Series = {
    'up{job="quietus", instance="a"}': "1x500",
    gauge("build_info", f'{ME}, version="1"'): "1x500",
    **calls("0+1x500", "0+2000x500"),
    WATCHED: "0+900x500",
    **{
        gauge("bypass_total", f'{STORE}, cause="{cause}"'): "3x500"
        for cause in ("ledger", "internal", "override", "unseen_record")
    },
    gauge("bypass_total", f'{STORE}, cause="unseen_derived"'): "0+1x500",
    **{
        gauge("gate_closed", f'{ME}, cause="{cause}"'): "0x500"
        for cause in ("ledger", "epoch", "lease", "keys")
    },
    gauge("gate_closed", f'{ME}, cause="loading"'): "1x1 0x500",
    gauge("ledger_full", ME): "0x500",
    gauge("ledger_epoch", ME): "0+1x500",
    gauge("replica_epoch", ME): "0+1x500",
    gauge("probe_backlog"): "2x500",
    gauge("probes_total", f'{STORE}, outcome="CLEAN"'): "0+1x500",
    gauge("premature_assurance_total", f'{STORE}, surface="search"'): "4x500",
    gauge("erasures", f'{STORE}, state="violation"'): "0x500",
    gauge("erasures", f'{STORE}, state="leaking"'): "9x500",
    gauge("overdue_erasures"): "0x500",
    gauge("due_erasures", f'{STORE}, within="7d"'): "0x500",
    gauge("due_erasures", f'{STORE}, within="3d"'): "0x500",
    gauge("resurrections_total", f'{STORE}, vector="relapse"'): "2x500",
    gauge("laundering_attempts_total", f'{STORE}, vector="restated_content"'): "0+0.1x500",
    gauge("unclassified_total", f'{STORE}, wire="http"'): "0+1x500",
    gauge("reload_ok", ME): "1x500",
    gauge("attestation_expiry_timestamp_seconds", f'{ME}, condition="sync_purge"'): "9000000x500",
    gauge("certificate_expiry_timestamp_seconds", f'{ME}, use="http_listener"'): "9000000x500",
    'kubelet_volume_stats_available_bytes{namespace="q", persistentvolumeclaim="agent-ledger"}': "50x500",
    'kubelet_volume_stats_capacity_bytes{namespace="q", persistentvolumeclaim="agent-ledger"}': "100x500",
    'kubelet_volume_stats_available_bytes{namespace="q", persistentvolumeclaim="other"}': "1x500",
    'kubelet_volume_stats_capacity_bytes{namespace="q", persistentvolumeclaim="other"}': "100x500",
    'apiserver_admission_webhook_rejection_count{name="inject.quietus.io", error_type="no_error"}': "0+1x500",
    gauge("webhook_events_total", f'{STORE}, outcome="delivered"'): "0+1x500",
    gauge("webhook_events_total", f'{STORE}, outcome="failed"'): "1x500",
}
"""A day on which everything is as it should be: recalls are refused now and then, and observed ones count not."""


def tried(tests: list[dict[str, Any]], folder: Path) -> tuple[int, str]:
    """What promtool says of tests of the rules."""
    source = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    file = folder / "rules.test.json"
    file.write_text(json.dumps(source))
    code, out, err = run(tool("promtool"), "test", "rules", file)
    return code, out + err


def told(name: str, series: Series, expressions: list[dict[str, Any]]) -> dict[str, Any]:
    """One test, as promtool reads it."""
    given = [{"series": each, "values": values} for each, values in series.items()]
    return {"name": name, "interval": "1m", "input_series": given, "promql_expr_test": expressions}


def firing(alert: str, at: str, fires: bool) -> dict[str, Any]:
    expression = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) > bool 0'
    return {
        "expr": expression,
        "eval_time": at,
        "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
    }


def test_rules_are_well_formed() -> None:
    code, out, err = run(tool("promtool"), "check", "rules", "--lint=all", RULES)
    assert code == 0, out + err


@pytest.mark.requirement("R201")
@pytest.mark.timeout(120)
def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    tests = [told(alert, series, [firing(alert, at, True)]) for alert, (series, at) in FIRES.items()]
    code, out = tried(tests, tmp_path)
    assert code == 0, out
    # The same tests with the opposite expectation all fail: it is the alerts that decide.
    tests = [told(alert, series, [firing(alert, at, False)]) for alert, (series, at) in FIRES.items()]
    code, out = tried(tests, tmp_path)
    assert code != 0
    assert out.count("exp:") >= len(FIRES), out


@pytest.mark.requirement("R200", "R201")
@pytest.mark.timeout(120)
def test_records_that_never_passed_are_a_ticket_and_wake_nobody(tmp_path: Path) -> None:
    series = {gauge("bypass_total", f'{STORE}, cause="unseen_record"'): "0x5 1x30"}
    expected = [firing("QuietusBypass", "20m", True), firing("QuietusGateOpen", "8m", False)]
    code, out = tried([told("unseen", series, expected)], tmp_path)
    assert code == 0, out


@pytest.mark.requirement("R201")
@pytest.mark.timeout(120)
def test_nothing_fires_on_a_day_as_it_should_be(tmp_path: Path) -> None:
    silent = [
        {"expr": 'ALERTS{alertstate="firing"}', "eval_time": at, "exp_samples": []}
        for at in ("3m", "15m", "45m", "90m", "400m", "490m")
    ]
    code, out = tried([told("healthy", HEALTHY, silent)], tmp_path)
    assert code == 0, out
    named = set(re.findall(r"[a-z_:]+(?=\{)", " ".join(HEALTHY)))
    assert {name for rule in ALERTS.values() for name in families(rule["expr"])} - named <= {
        "quietus_injector_certificate_expiry_timestamp_seconds"
    }, "an alert's metric is not part of that day"


def test_every_alert_is_tried() -> None:
    assert set(FIRES) == set(ALERTS)


def families(expression: str) -> set[str]:
    """The metrics that an expression reads, without those of recording rules."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\bby\s*\([^)]*\)", "", expression)
    return set(re.findall(r"\b(?:quietus|kubelet|apiserver)_[a-z0-9_]+|\bup\b", bare))


@pytest.mark.requirement("R201")
def test_rules_read_only_metrics_that_exist() -> None:
    for group in GROUPS:
        for rule in group["rules"]:
            unknown = families(rule["expr"]) - FAMILIES.keys() - FOREIGN
            assert not unknown, rule


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_says_what_it_needs(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"docs/runbooks/{alert}.md"
    page = (RUNBOOKS / f"{alert}.md").read_text()
    for part in ("## Meaning", "## Impact", "## Diagnosis", "## What to do", "## Who decides"):
        assert part in page, part
    assert "```sh" in page, "the exact command is missing"
    assert f"severity: {rule['labels']['severity']}" in page


def test_no_page_without_an_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("Quietus*.md")} == set(ALERTS)
