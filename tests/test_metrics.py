"""Metrics: every family of the contract, bounded labels, nothing else."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from quietus.metrics import CHILDREN_MAX, FAMILIES, Metrics


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> Metrics:
    return Metrics(registry, "memories", "1.2")


CONTRACT = {
    "quietus_operations_total": {"store", "wire", "operation", "effect", "rule", "mode"},
    "quietus_premature_assurance_total": {"store", "surface"},
    "quietus_contaminated_recalls_total": {"store", "effect"},
    "quietus_laundering_attempts_total": {"store", "vector", "effect"},
    "quietus_resurrections_total": {"store", "vector"},
    "quietus_exposure_seconds": set(),
    "quietus_settling_seconds": set(),
    "quietus_erasures": {"store", "state"},
    "quietus_verdicts": {"store", "verdict"},
    "quietus_oldest_unsettled_seconds": {"store"},
    "quietus_overdue_erasures": {"store"},
    "quietus_due_erasures": {"store", "within"},
    "quietus_probes_total": {"store", "surface", "outcome"},
    "quietus_probe_backlog": {"store"},
    "quietus_forget_calls_total": {"store", "side"},
    "quietus_remedies_total": {"store", "outcome"},
    "quietus_suppressed_reads_total": {"store"},
    "quietus_bystanders_total": {"store", "outcome"},
    "quietus_unclassified_total": {"store", "wire"},
    "quietus_unreadable_fields_total": {"store", "route"},
    "quietus_bypass_total": {"store", "cause"},
    "quietus_bypass_round_timestamp_seconds": set(),
    "quietus_admin_reviews_total": {"outcome"},
    "quietus_gate_closed": {"cause"},
    "quietus_overhead_seconds": {"wire", "operation"},
    "quietus_upstream_seconds": {"wire", "operation"},
    "quietus_ledger_seconds": {"method"},
    "quietus_ledger_epoch": set(),
    "quietus_replica_epoch": set(),
    "quietus_violations_total": {"store", "cause"},
    "quietus_downgrades_total": {"store"},
    "quietus_rewrite_loops_total": {"store"},
    "quietus_ledger_full": set(),
    "quietus_ledger_reserve_bytes": set(),
    "quietus_webhook_events_total": {"store", "outcome"},
    "quietus_wait_seconds": set(),
    "quietus_forget_seconds": {"phase"},
    "quietus_detection_seconds": set(),
    "quietus_build_info": {"version"},
    "quietus_reloads_total": {"outcome"},
    "quietus_reload_ok": set(),
    "quietus_reload_timestamp_seconds": set(),
    "quietus_certificate_expiry_timestamp_seconds": {"use"},
    "quietus_attestation_expiry_timestamp_seconds": {"condition"},
}


def test_the_families_are_the_contracts() -> None:
    assert {name: set(family.labels) for name, family in FAMILIES.items()} == CONTRACT


@pytest.mark.requirement("R20")
@pytest.mark.parametrize("name", ["quietus_exposure_seconds", "quietus_settling_seconds"])
def test_exposure_resolves_892_seconds(name: str) -> None:
    buckets = FAMILIES[name].buckets
    assert buckets[0] <= 1.0
    assert buckets[-1] >= 3600.0
    below = max(edge for edge in buckets if edge < 892.0)
    above = min(edge for edge in buckets if edge > 892.0)
    assert 892.0 in buckets
    assert below > 870.0
    assert above <= 900.0


def test_store_is_added_where_the_family_has_it(metrics: Metrics, registry: CollectorRegistry) -> None:
    metrics.count("forget_calls", side="client")
    metrics.observe("ledger_seconds", 0.002, method="append")
    metrics.set("erasures", 3, state="settling")
    labels = {"store": "memories", "side": "client"}
    assert registry.get_sample_value("quietus_forget_calls_total", labels) == 1
    assert registry.get_sample_value("quietus_ledger_seconds_count", {"method": "append"}) == 1
    assert registry.get_sample_value("quietus_erasures", {"store": "memories", "state": "settling"}) == 3
    assert registry.get_sample_value("quietus_build_info", {"version": "1.2"}) == 1


@pytest.mark.requirement("R199")
def test_closed_families_show_their_series_from_the_start(registry: CollectorRegistry) -> None:
    text = Metrics(registry, "memories").render().decode()
    for line in (
        'quietus_erasures{state="violation",store="memories"} 0.0',
        'quietus_resurrections_total{store="memories",vector="relapse"} 0.0',
        'quietus_laundering_attempts_total{effect="reject",store="memories",vector="restated_content"} 0.0',
        'quietus_gate_closed{cause="ledger"} 0.0',
    ):
        assert line in text, line


@pytest.mark.parametrize(
    ("name", "labels"),
    [("nothing", {}), ("erasures", {"state": "settled"}), ("forget_calls", {}),
     ("forget_calls", {"side": "client", "subject": "alice"})],
)  # fmt: skip
def test_unknown_families_and_labels_are_refused(metrics: Metrics, name: str, labels: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        metrics.count(name, **labels)


@pytest.mark.requirement("R198")
def test_series_are_bounded(metrics: Metrics, registry: CollectorRegistry) -> None:
    for number in range(CHILDREN_MAX + 50):
        metrics.count("unreadable_fields", route=f"r{number}")
    text = metrics.render().decode()
    assert text.count("quietus_unreadable_fields_total{") <= CHILDREN_MAX + 1
    labels = {"store": "memories", "route": "other"}
    assert (registry.get_sample_value("quietus_unreadable_fields_total", labels) or 0) >= 50
