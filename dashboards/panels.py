"""What the dashboards show: panels with their questions, their queries and their units.

`ME` picks the sidecars that the variables at the top name, `STORE` those stores as well. Sidecars that share
a ledger each show all of its erasures: such gauges are the maximum over sidecars, never the sum.
"""

# ruff: noqa: E501 -- one query a line
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

ME = 'job=~"$job", instance=~"$instance"'
STORE = f'{ME}, store=~"$store"'
RATE = "[$__rate_interval]"

Kind = Literal["graph", "number"]


@dataclass(frozen=True)
class Panel:
    """One panel. `queries` are pairs of PromQL and legend."""

    title: str
    says: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: Kind = "graph"
    width: int = 12
    red_above: float | None = None
    """A number of this panel above it is shown red."""


@dataclass(frozen=True)
class Sheet:
    """One dashboard: rows of panels."""

    uid: str
    title: str
    says: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]
    tags: tuple[str, ...] = field(default=("quietus",))


def over(function: str, metric: str, by: str, labels: str = STORE, window: str = RATE, where: str = "") -> str:
    """`sum by (BY) (FUNCTION(METRIC{LABELS}[WINDOW]))`."""
    return f"sum by ({by}) ({function}({metric}{{{labels}{where}}}{window}))"


def most(metric: str, by: str, labels: str = STORE, where: str = "") -> str:
    """The maximum of a gauge over sidecars."""
    return f"max by ({by}) ({metric}{{{labels}{where}}})"


def quantile(share: float, metric: str, by: str = "", labels: str = ME) -> str:
    """A quantile of a histogram."""
    groups = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({groups}) (rate({metric}_bucket{{{labels}}}{RATE})))"


def spread(metric: str) -> tuple[tuple[str, str], ...]:
    """Median, 95th and 99th percentile."""
    return tuple((quantile(share, metric), f"p{share * 100:g}") for share in (0.5, 0.95, 0.99))


ASSURANCE = Sheet(
    "quietus-assurance",
    "Quietus / Erasure assurance",
    "For the privacy officer: which erasures are open, which are late, and what was seen of the erased.",
    (
        (
            "Now",
            (
                Panel("Unsettled", "Erasures whose scope is still shut: the store has acknowledged them, and "
                      "no evidence shows yet that nobody can recall the erased.",
                      ((f'sum({most("quietus_erasures", "store, state", where=", state=~`requested|settling|leaking|violation|relapsed`")})'.replace("`", '"'), "unsettled"),),
                      kind="number", width=4),
                Panel("Oldest unsettled", "How long the oldest unsettled erasure has been open.",
                      ((f'max({most("quietus_oldest_unsettled_seconds", "store")})', "age"),), "s", "number", 4),
                Panel("Overdue", "Unsettled past the store's own bound, without a leak being seen: somebody must "
                      "look why no evidence comes.",
                      ((f'sum({most("quietus_overdue_erasures", "store")})', "overdue"),), "short", "number", 4, 0),
                Panel("Due within 7 days", "Unsettled erasures whose legal period ends within seven days.",
                      ((f'sum({most("quietus_due_erasures", "store", where=", within=`7d`")})'.replace("`", '"'), "due"),),
                      "short", "number", 4, 0),
                Panel("Violations", "Erasures that leaked after the bound that the store had promised.",
                      ((f'sum({most("quietus_erasures", "store", where=", state=`violation`")})'.replace("`", '"'), "violations"),),
                      "short", "number", 4, 0),
                Panel("Verdict compliant", "Erasures that may be called compliant, of all.",
                      ((f'sum({most("quietus_verdicts", "store, verdict", where=", verdict=`compliant`")}) / clamp_min(sum({most("quietus_verdicts", "store, verdict")}), 1)'.replace("`", '"'), "share"),),
                      "percentunit", "number", 4),
            ),
        ),
        (
            "Erasures",
            (
                Panel("Erasures by state", "How many stand in each state. Settling and leaking are shut.",
                      ((most("quietus_erasures", "store, state"), "{{store}} {{state}}"),)),
                Panel("Erasures by verdict", "What may be claimed about them today.",
                      ((most("quietus_verdicts", "store, verdict"), "{{store}} {{verdict}}"),)),
                Panel("Legal dates", "Unsettled erasures whose legal period ends within each time.",
                      ((most("quietus_due_erasures", "store, within"), "{{store}} within {{within}}"),)),
                Panel("Time to settle", "From the store's acknowledgement to settled.",
                      spread("quietus_settling_seconds"), "s"),
            ),
        ),
        (
            "What was seen of the erased",
            (
                Panel("Exposure", "From the acknowledgement to the last leak seen: a lower bound, since only "
                      "what was recalled or probed is seen.", spread("quietus_exposure_seconds"), "s"),
                Panel("Premature assurance", "Leaks seen after an acknowledgement that claimed completion.",
                      ((over("increase", "quietus_premature_assurance_total", "store, surface"), "{{store}} {{surface}}"),)),
                Panel("Resurrections", "Erased content that came back after it was gone, by how.",
                      ((over("increase", "quietus_resurrections_total", "store, vector"), "{{store}} {{vector}}"),)),
                Panel("Laundering attempts", "Writes that would have brought erased content back, refused or marked.",
                      ((over("increase", "quietus_laundering_attempts_total", "store, vector, effect"),
                        "{{store}} {{vector}} {{effect}}"),)),
                Panel("Consistency violations", "Leaks after the bound, an epoch that went back, faults of ours.",
                      ((over("increase", "quietus_violations_total", "store, cause"), "{{store}} {{cause}}"),)),
                Panel("Recalls in doubt", "Recalls that touched an unsettled erasure, by what was done with them.",
                      ((over("increase", "quietus_contaminated_recalls_total", "store, effect"), "{{store}} {{effect}}"),)),
            ),
        ),
    ),
)  # fmt: skip

SIDECAR = Sheet(
    "quietus-sidecar",
    "Quietus / Sidecar",
    "For whoever is on call: traffic, refusals, what the sidecar costs, and whether it can still decide.",
    (
        (
            "Can it decide",
            (
                Panel("Gate shut", "1 while everything is refused, by cause. Look here first.",
                      ((most("quietus_gate_closed", "instance, cause", ME), "{{instance}} {{cause}}"),)),
                Panel("Blocked for", "Age of the oldest unsettled erasure: since when recalls in its scope are refused.",
                      ((most("quietus_oldest_unsettled_seconds", "store"), "{{store}}"),), "s"),
                Panel("Epoch lag", "Epochs that a replica is behind its ledger. Anything but 0 for long is a fault.",
                      ((f"max by (instance) (quietus_ledger_epoch{{{ME}}} - quietus_replica_epoch{{{ME}}})", "{{instance}}"),)),
                Panel("Ledger's disk", "Bytes that are set aside for what shuts the gate, and whether the disk is full: 1 is full.",
                      ((f"min by (instance) (quietus_ledger_reserve_bytes{{{ME}}})", "{{instance}} reserve"),
                       (f"max by (instance) (quietus_ledger_full{{{ME}}})", "{{instance}} full"))),
                Panel("By-passes", "Calls let through by a rule where a fault would have refused them, and records "
                      "of the store that never passed (unseen_…), where the by-pass probe is on.",
                      ((over("increase", "quietus_bypass_total", "store, cause"), "{{store}} {{cause}}"),)),
            ),
        ),
        (
            "Traffic",
            (
                Panel("Calls", "Calls a second by wire and operation.",
                      ((over("rate", "quietus_operations_total", "wire, operation"), "{{wire}} {{operation}}"),), "reqps"),
                Panel("Decisions", "Calls a second by what was decided, and whether it was enforced.",
                      ((over("rate", "quietus_operations_total", "effect, mode"), "{{effect}} ({{mode}})"),), "reqps"),
                Panel("Refused", "Share of calls that were refused and would have been answered without the sidecar.",
                      ((f'{over("rate", "quietus_operations_total", "store", where=", effect=~`block|reject|refuse`, mode=`enforce`")} / {over("rate", "quietus_operations_total", "store")}'.replace("`", '"'), "{{store}}"),),
                      "percentunit"),
                Panel("Refusals by rule", "Which rule of the policy refuses. The rule's name is in each answer too.",
                      ((over("rate", "quietus_operations_total", "rule", where=', effect=~"block|reject|refuse"'), "{{rule}}"),), "reqps"),
                Panel("Not understood", "Requests that no route of the profile describes, and fields that could not "
                      "be read: both make the sidecar careful. The profile wants work.",
                      ((over("rate", "quietus_unclassified_total", "store, wire"), "{{store}} {{wire}} no route"),
                       (over("rate", "quietus_unreadable_fields_total", "store, route"), "{{store}} {{route}} unreadable")), "reqps"),
                Panel("Held back", "Reads of keys that an unsettled erasure hides, and clients that write them again.",
                      ((over("rate", "quietus_suppressed_reads_total", "store"), "{{store}} suppressed"),
                       (over("rate", "quietus_rewrite_loops_total", "store"), "{{store}} rewritten")), "reqps"),
            ),
        ),
        (
            "Time",
            (
                Panel("Own overhead", "Time that the sidecar took for a call, without the store.",
                      ((quantile(0.5, "quietus_overhead_seconds", "wire, operation"), "{{wire}} {{operation}} p50"),
                       (quantile(0.99, "quietus_overhead_seconds", "wire, operation"), "{{wire}} {{operation}} p99")), "s"),
                Panel("Store", "Time that the store took for a call.",
                      ((quantile(0.5, "quietus_upstream_seconds", "wire, operation"), "{{wire}} {{operation}} p50"),
                       (quantile(0.99, "quietus_upstream_seconds", "wire, operation"), "{{wire}} {{operation}} p99")), "s"),
                Panel("Ledger", "Time of a call to the ledger. A forget waits for it, a recall does not.",
                      ((quantile(0.99, "quietus_ledger_seconds", "method"), "{{method}} p99"),), "s"),
                Panel("Forgets and waits", "Time of a forget by phase, and time that calls were held.",
                      ((quantile(0.95, "quietus_forget_seconds", "phase"), "{{phase}} p95"),
                       (quantile(0.95, "quietus_wait_seconds"), "held p95")), "s"),
            ),
        ),
        (
            "Work and documents",
            (
                Panel("Probes", "Probes a second by what they showed.",
                      ((over("rate", "quietus_probes_total", "store, outcome"), "{{store}} {{outcome}}"),), "reqps"),
                Panel("Probe backlog", "Erasures whose next round is due and not begun.",
                      ((most("quietus_probe_backlog", "store"), "{{store}}"),)),
                Panel("Reloads", "Changes of profile or policy on disk, and whether what is there holds.",
                      ((over("increase", "quietus_reloads_total", "outcome", ME), "{{outcome}}"),
                       (f"min by (instance) (quietus_reload_ok{{{ME}}})", "{{instance}} holds"))),
                Panel("Since the last reload", "Age of the profile and policy that hold.",
                      ((f"time() - max by (instance) (quietus_reload_timestamp_seconds{{{ME}}})", "{{instance}}"),), "s"),
                Panel("Expiring", "Time until a certificate, or an attestation of the profile, ends.",
                      ((f"min by (use) (quietus_certificate_expiry_timestamp_seconds{{{ME}}}) - time()", "certificate {{use}}"),
                       (f"min by (condition) (quietus_attestation_expiry_timestamp_seconds{{{ME}}}) - time()", "attestation {{condition}}")), "s"),
                Panel("Events delivered", "Events sent to the address that the settings name.",
                      ((over("increase", "quietus_webhook_events_total", "outcome"), "{{outcome}}"),)),
                Panel("Since the last by-pass round", "Time since the by-pass probe came to the end of the store. "
                      "Nothing: it is off, or has seen nothing yet.",
                      ((f"time() - max by (instance) (quietus_bypass_round_timestamp_seconds{{{ME}}} > 0)", "{{instance}}"),), "s"),
                Panel("Who is let in", "Tokens of the admin API that Kubernetes was asked about, where it decides.",
                      ((over("increase", "quietus_admin_reviews_total", "outcome", ME), "{{outcome}}"),)),
                Panel("Versions", "Which version runs, and in how many sidecars.", ((f"count by (version) (quietus_build_info{{{ME}}})", "{{version}}"),)),
            ),
        ),
    ),
)  # fmt: skip

HONESTY = Sheet(
    "quietus-honesty",
    "Quietus / Store honesty",
    "How this store behaves: what it says when it is asked to forget, and what it still tells afterwards.",
    (
        (
            "What it claims and what it does",
            (
                Panel("Settling", "From its acknowledgement until nothing could be found any more.",
                      spread("quietus_settling_seconds"), "s"),
                Panel("Exposure", "From its acknowledgement to the last leak seen.",
                      spread("quietus_exposure_seconds"), "s"),
                Panel("Leaking surfaces", "Where the erased was still found, by surface.",
                      ((over("increase", "quietus_probes_total", "store, surface", where=', outcome="LEAKING"'), "{{store}} {{surface}}"),)),
                Panel("Premature assurance", "How often it had claimed completion and was then seen to leak.",
                      ((over("increase", "quietus_premature_assurance_total", "store, surface"), "{{store}} {{surface}}"),)),
                Panel("Verdicts downgraded", "Verdicts that became weaker than what the store had claimed.",
                      ((over("increase", "quietus_downgrades_total", "store"), "{{store}}"),)),
                Panel("Resurrections", "What came back, by how.",
                      ((over("increase", "quietus_resurrections_total", "store, vector"), "{{store}} {{vector}}"),)),
            ),
        ),
        (
            "What it costs to be sure",
            (
                Panel("Probes by surface", "Probes a second, by surface and what they showed.",
                      ((over("rate", "quietus_probes_total", "store, surface, outcome"), "{{store}} {{surface}} {{outcome}}"),), "reqps"),
                Panel("Forgets asked for and sent", "Forgets of clients beside those that the store was asked for; "
                      "their ratio is what retries cost without a sidecar.",
                      ((over("increase", "quietus_forget_calls_total", "store, side"), "{{store}} {{side}}"),)),
                Panel("Remedies", "Deletes of leaking records by the sidecar.",
                      ((over("increase", "quietus_remedies_total", "store, outcome"), "{{store}} {{outcome}}"),)),
                Panel("Bystanders", "Records of others, looked for as a control: one that is missing means that the "
                      "store deletes too much.",
                      ((over("increase", "quietus_bystanders_total", "store, outcome"), "{{store}} {{outcome}}"),)),
                Panel("Detection", "From a write or relapse to its detection.", spread("quietus_detection_seconds"), "s"),
                Panel("Store under load", "Time that the store took, by operation.",
                      ((quantile(0.95, "quietus_upstream_seconds", "operation"), "{{operation}} p95"),), "s"),
            ),
        ),
    ),
)  # fmt: skip

SHEETS = (ASSURANCE, SIDECAR, HONESTY)
