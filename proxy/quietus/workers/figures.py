"""What several processes have counted, as one page of metrics.

Counts and histograms are added up; of a gauge the largest holds, since all tell of the same ledger and what
is shut in one is shut. What a lost worker had counted stays counted: a sum that shrank would look like a
restart, and be counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_Labels = tuple[tuple[str, str], ...]
_HOW: Final[dict[str, Callable[[float, float], float]]] = {
    "quietus_replica_epoch": min,  # how far the one is that is behind
    "quietus_probe_backlog": float.__add__,
}


def told(registry: CollectorRegistry) -> list[list[Any]]:
    """Everything in a registry, as it goes over a line."""
    return [
        [family.name, family.documentation, family.type,
         [[sample.name, sample.labels, sample.value] for sample in family.samples]]
        for family in registry.collect()
    ]  # fmt: skip


def page(processes: Iterable[list[list[Any]]]) -> bytes:
    """All of them in Prometheus's text format."""
    return generate_latest(_Page(_added(processes)))


def counts_of(processes: Iterable[list[list[Any]]]) -> list[list[Any]]:
    """The sums of what was counted, without gauges: those go with their process."""
    families = ([family for family in each if family[2] != "gauge"] for each in processes)
    return told(_Page(_added(families)))


def listed(rows: Iterable[dict[str, Any]], most: int) -> list[Any]:
    """Rows that say the same but for their `count`, added up; the most frequent first, so many at most."""
    counts: dict[str, tuple[dict[str, Any], int]] = {}
    for row in rows:
        told_apart = {name: value for name, value in row.items() if name != "count"}
        name = json.dumps(told_apart, sort_keys=True)
        counts[name] = told_apart, counts.get(name, ({}, 0))[1] + row["count"]
    found = sorted(counts.values(), key=lambda each: each[1], reverse=True)
    return [{**told_apart, "count": count} for told_apart, count in found[:most]]


class _Page(CollectorRegistry):
    def __init__(self, families: Mapping[str, Metric]) -> None:
        super().__init__(auto_describe=False)
        self.register(_Families(families))


class _Families(Collector):
    def __init__(self, families: Mapping[str, Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Each of them."""
        yield from self._families.values()


def _added(processes: Iterable[list[list[Any]]]) -> dict[str, Metric]:
    texts: dict[str, tuple[str, str]] = {}
    values: dict[str, dict[tuple[str, _Labels], float]] = {}
    for families in processes:
        for name, text, kind, samples in families:
            texts.setdefault(name, (text, kind))
            how = _HOW.get(name, max if kind == "gauge" else float.__add__)
            known = values.setdefault(name, {})
            for sample, labels, value in samples:
                place = (sample, tuple(labels.items()))
                known[place] = how(known[place], float(value)) if place in known else float(value)
    found = {}
    for name, (text, kind) in texts.items():
        found[name] = metric = Metric(name, text, kind)
        for (sample, labels), value in values[name].items():
            metric.add_sample(sample, dict(labels), value)
    return found
