"""Every metric family, declared once; counted on the registry that is passed in.

Labels are bounded: never a subject, a key, a scope or a token. Families with closed sets of label values
show all their series from the start, so that an alert on an increase sees the first one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from quietus.core.policy import Vector
from quietus.core.states import State
from quietus.core.verdict import Word

Kind = Literal["counter", "gauge", "histogram"]
CHILDREN_MAX: Final = 1000
"""Series of one family. Label values beyond that are counted as `other`."""
OTHER: Final = "other"

_FAST: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_CALL: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# A published incident leaked for 14 minutes and 52 seconds, 8 s short of a compaction: 892 has an edge.
_LONG: Final = (
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 840.0, 880.0, 892.0, 900.0, 960.0, 1200.0, 1800.0,
    3600.0, 7200.0, 14400.0, 43200.0, 86400.0, 604800.0,
)  # fmt: skip
_VECTORS: Final = tuple(v.value for v in Vector if v is not Vector.RACE)


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: name in full, kind, what it says, its labels, and which values are known beforehand."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The name without `quietus_` and `_total`: what code calls it."""
        return self.name.removeprefix("quietus_").removesuffix("_total")


def _counter(name: str, text: str, *labels: str, **closed: tuple[str, ...]) -> Family:
    return Family(f"quietus_{name}_total", "counter", text, labels, closed=closed)


def _gauge(name: str, text: str, *labels: str, **closed: tuple[str, ...]) -> Family:
    return Family(f"quietus_{name}", "gauge", text, labels, closed=closed)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Family:
    return Family(f"quietus_{name}", "histogram", text, labels, buckets)


_ALL: Final = (
    _counter("operations", "Calls by what was decided; mode says whether it was enforced or only observed.",
             "store", "wire", "operation", "effect", "rule", "mode"),
    _counter("premature_assurance", "Leaks seen after an acknowledgement that claimed completion.",
             "store", "surface"),
    _counter("contaminated_recalls", "Recalls that touched an unsettled erasure, by what was done with them.",
             "store", "effect", effect=("block", "screen", "annotate", "empty", "wait", "allow")),
    _counter("laundering_attempts", "Writes that would bring erased content back, refused or marked.",
             "store", "vector", "effect", vector=_VECTORS, effect=("reject", "annotate")),
    _counter("resurrections", "Erased content that came back.", "store", "vector",
             vector=("reingest", "race", "relapse", "readded_by_store")),
    _histogram("exposure_seconds", "From the acknowledgement to the last leak seen: a lower bound.", _LONG),
    _histogram("settling_seconds", "From the acknowledgement to settled.", _LONG),
    _gauge("erasures", "Erasures by state.", "store", "state", state=tuple(s.value for s in State)),
    _gauge("verdicts", "Erasures by verdict.", "store", "verdict", verdict=tuple(w.value for w in Word)),
    _gauge("oldest_unsettled_seconds", "Age of the oldest erasure that is not settled.", "store"),
    _gauge("overdue_erasures", "Unsettled erasures past their bound.", "store"),
    _gauge("due_erasures", "Unsettled erasures whose legal period ends within that time.", "store", "within",
           within=("7d", "3d", "1d", "0d")),
    _counter("probes", "Probes by what they showed.", "store", "surface", "outcome"),
    _gauge("probe_backlog", "Erasures whose next round is due and not begun.", "store"),
    _counter("forget_calls", "Forgets that clients asked for, and that the store was asked for.",
             "store", "side", side=("client", "upstream")),
    _counter("remedies", "Deletes of leaking records by the sidecar.", "store", "outcome",
             outcome=("done", "refused", "failed")),
    _counter("suppressed_reads", "Reads of a key that an unsettled erasure hides.", "store"),
    _counter("bystanders", "Records of others, looked for as a control.", "store", "outcome",
             outcome=("found", "missing")),
    _counter("unclassified", "Requests that no route of the profile describes.", "store", "wire"),
    _counter("unreadable_fields", "Fields of a request that could not be read, and so counted as unknown.",
             "store", "route"),
    _counter("bypass", "What went by: calls let through that a fault, or an overridden erasure, would have "
             "refused; unseen_record, unseen_derived: records that never passed the sidecar.",
             "store", "cause", cause=("ledger", "internal", "override", "unseen_record", "unseen_derived")),
    _gauge("bypass_round_timestamp_seconds",
           "When the by-pass probe last came to the end of the store; 0: it is off, or has not yet."),
    _gauge("gate_closed", "1 while the gate is shut for everything, by cause.", "cause",
           cause=("loading", "ledger", "keys", "epoch", "lease")),
    _histogram("overhead_seconds", "Time that the sidecar took for a call.", _FAST, "wire", "operation"),
    _histogram("upstream_seconds", "Time that the store took for a call.", _CALL, "wire", "operation"),
    _histogram("ledger_seconds", "Time of a ledger call.", _FAST, "method"),
    _gauge("ledger_full", "1 while the ledger's disk is full: only what shuts the gate is still written."),
    _gauge("ledger_reserve_bytes", "Set aside for that; 0 where there is no reserve, or it is spent."),
    _gauge("ledger_epoch", "Gate epoch of the ledger."),
    _gauge("replica_epoch", "Gate epoch that this process decides by."),
    _counter("violations", "Consistency violations.", "store", "cause",
             cause=("late_leak", "epoch_regression", "internal")),
    _counter("downgrades", "Verdicts that became weaker than what the store had claimed.", "store"),
    _counter("rewrite_loops", "Clients that wrote a suppressed key again.", "store"),
    _counter("admin_reviews",
             "Tokens of the admin API that Kubernetes was asked about; kept: its last answer held still; "
             "unavailable: nobody was let in.", "outcome",
             outcome=("allowed", "denied", "unauthenticated", "unavailable", "kept")),
    _counter("webhook_events", "Events posted to the webhook; left_out: nobody took it for a day.",
             "store", "outcome", outcome=("delivered", "failed", "left_out")),
    _histogram("wait_seconds", "Time that calls were held by a wait.", _CALL),
    _histogram("forget_seconds", "Time of the phases of a forget.", _CALL, "phase"),
    _histogram("detection_seconds", "From a write or relapse to its detection.", _LONG),
    _counter("reloads", "Changes of the profile or policy on disk, by whether they were taken over.",
             "outcome", outcome=("applied", "refused")),
    _gauge("reload_ok", "1 while the profile and policy on disk are those that hold; 0 after a refused one."),
    _gauge("reload_timestamp_seconds", "When the profile and policy that hold were read."),
    _gauge("certificate_expiry_timestamp_seconds", "When a certificate that is used expires.", "use"),
    _gauge("attestation_expiry_timestamp_seconds", "When an attestation of the profile expires.",
           "condition"),
    _gauge("build_info", "1; the version that runs.", "version"),
)  # fmt: skip

FAMILIES: Final[dict[str, Family]] = {family.name: family for family in _ALL}
_SHORT: Final[dict[str, Family]] = {family.short: family for family in _ALL}

_Child = Counter | Gauge | Histogram


class Metrics:
    """Counts on one registry for one store. Cheap to call: children are kept."""

    def __init__(self, registry: CollectorRegistry, store: str, version: str = "0") -> None:
        self.registry = registry
        self.store = store
        self._parents: dict[str, _Child] = {}
        self._children: dict[tuple[str, ...], _Child] = {}
        self._sizes: dict[str, int] = {}
        # The library's switch is for the whole process; `_created` doubles the series and says nothing here.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        for family in _ALL:
            self._parents[family.short] = self._make(family)
            self._announce(family)
        self.set("build_info", 1, version=version)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to a counter. `name` is without `quietus_` and `_total`."""
        child = self._child(name, "counter", labels)
        assert isinstance(child, Counter)
        child.inc(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Adds an observation to a histogram."""
        child = self._child(name, "histogram", labels)
        assert isinstance(child, Histogram)
        child.observe(value)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets a gauge."""
        child = self._child(name, "gauge", labels)
        assert isinstance(child, Gauge)
        child.set(value)

    def bypasses(self) -> dict[str, int]:
        """By cause, how many calls this process has let through undecided, or overridden."""
        family = FAMILIES["quietus_bypass_total"]
        return {
            sample.labels["cause"]: int(sample.value)
            for metric in self._parents[family.short].collect()
            for sample in metric.samples
            if sample.name == family.name and sample.value
        }

    def announce(self, name: str, **labels: str) -> None:
        """Shows a counter's series at 0, so that an alert on an increase sees the first one."""
        self._child(name, "counter", labels)

    def render(self) -> bytes:
        """The registry in Prometheus's text format."""
        return generate_latest(self.registry)

    def _make(self, family: Family) -> _Child:
        if family.kind == "counter":
            return Counter(family.name, family.help, family.labels, registry=self.registry)
        if family.kind == "gauge":
            return Gauge(family.name, family.help, family.labels, registry=self.registry)
        return Histogram(
            family.name, family.help, family.labels, registry=self.registry, buckets=family.buckets
        )

    def _announce(self, family: Family) -> None:
        own = [label for label in family.labels if label != "store"]
        if not set(own) <= family.closed.keys():
            return
        for values in itertools.product(*(family.closed[label] for label in own)):
            self._child(family.short, family.kind, dict(zip(own, values, strict=True)))

    def _child(self, name: str, kind: Kind, labels: Mapping[str, str]) -> _Child:
        key = (name, kind, *labels, *labels.values())
        found = self._children.get(key)
        if found is None:
            found = self._born(name, kind, labels)
            if self._sizes.get(name, 0) <= CHILDREN_MAX:
                self._children[key] = found
        return found

    def _born(self, name: str, kind: Kind, labels: Mapping[str, str]) -> _Child:
        family = _SHORT.get(name)
        if family is None or family.kind != kind:
            raise KeyError(f"no {kind} is called {name!r}; families stand in quietus.metrics")
        given = dict(labels, store=self.store) if "store" in family.labels else dict(labels)
        if set(given) != set(family.labels):
            raise KeyError(f"{name!r} has the labels {family.labels}, not {tuple(labels)}")
        self._sizes[name] = self._sizes.get(name, 0) + 1
        if self._sizes[name] > CHILDREN_MAX:
            given = {label: self.store if label == "store" else OTHER for label in family.labels}
        parent = self._parents[name]
        return parent.labels(**given) if family.labels else parent
