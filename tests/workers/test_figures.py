"""What several processes have counted, on one page."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from quietus.metrics import Metrics
from quietus.workers.figures import counts_of, listed, page, told


def process() -> Metrics:
    return Metrics(CollectorRegistry(), "memories")


def sent(metrics: Metrics) -> list[Any]:
    """As it comes out of a line."""
    found: list[Any] = json.loads(json.dumps(told(metrics.registry)))
    return found


def value(text: bytes, series: str) -> float:
    return next(float(s.rpartition(" ")[2]) for s in text.decode().splitlines() if s.startswith(series + " "))


def test_one_process_looks_as_it_does_alone() -> None:
    metrics = process()
    metrics.count("suppressed_reads", 3)
    metrics.observe("exposure_seconds", 892.0)
    metrics.set("oldest_unsettled_seconds", 17.5)
    assert page([sent(metrics)]) == generate_latest(metrics.registry)


def test_counts_are_added_and_gauges_are_not() -> None:
    one, two = process(), process()
    for metrics, number in ((one, 2), (two, 5)):
        metrics.count("suppressed_reads", number)
        metrics.observe("exposure_seconds", 100.0 * number)
        metrics.set("overdue_erasures", 1)
        metrics.set("replica_epoch", number)
    one.set("gate_closed", 1, cause="lease")
    two.set("gate_closed", 0, cause="lease")
    text = page([sent(one), sent(two)])
    assert value(text, 'quietus_suppressed_reads_total{store="memories"}') == 7
    assert value(text, "quietus_exposure_seconds_sum") == 700.0
    assert value(text, "quietus_exposure_seconds_count") == 2
    assert value(text, 'quietus_overdue_erasures{store="memories"}') == 1, "they tell of the same ledger"
    assert value(text, "quietus_replica_epoch") == 2, "how far the slower one is"
    assert value(text, 'quietus_gate_closed{cause="lease"}') == 1, "what is shut in one is shut"


def test_what_a_lost_process_has_counted_stays() -> None:
    lost, left = process(), process()
    lost.count("suppressed_reads", 2)
    lost.set("overdue_erasures", 9)
    left.count("suppressed_reads", 1)
    kept = counts_of([sent(lost)])
    kept = counts_of([kept, sent(lost)])  # another one of its place, lost too
    text = page([sent(left), kept])
    assert value(text, 'quietus_suppressed_reads_total{store="memories"}') == 5
    assert value(text, 'quietus_overdue_erasures{store="memories"}') == 0


def test_rows_that_say_the_same_are_one() -> None:
    rows = [{"route": "recall", "count": 2}, {"route": "write", "count": 4}, {"count": 3, "route": "recall"}]
    assert listed(rows, 10) == [{"route": "recall", "count": 5}, {"route": "write", "count": 4}]
    assert listed(rows, 1) == [{"route": "recall", "count": 5}]
