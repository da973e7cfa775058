"""What follows from a trial's findings: which conditions hold, and what a profile may say of the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from quietus.core.trial import Lag, lag_of
from quietus.core.trial_findings import JUDGES, Finding, Observed

ENOUGH: Final = 10
"""Canaries below which a trial passes no condition."""
MARGIN: Final = 1.5
"""By how much a settling interval exceeds the longest lag that was measured."""
LEAST: Final = 5
"""Seconds; the shortest settling interval that is ever proposed."""

UNTRUE: Final = ("never_gone", "unanswered", "comes_back", "partial_delete", "unsteady", "agents_see_more",
                 "read_revives", "answer_cache", "others_repeat", "lands_late", "epoch_behind")  # fmt: skip
"""Findings with any of which an acknowledgement is no fact of the read path."""
INHERITS: Final = ("inherits", "restated_returns")
HARM: Final = ("bystanders_lost", "siblings_lost", "merges")
"""Findings of what a forget or a write does to records that nobody named."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What a trial found."""

    findings: Mapping[str, Finding]
    lags: Mapping[str, Lag]
    conditions: tuple[str, ...]
    """What was shown to hold: exemptions may rest on these."""
    store: Mapping[str, Any]
    """What the profile's `store:` block may say."""
    complete: bool
    """Every surface was proven and read, and no record was left behind."""
    unproven: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def conclude_trial(seen: Observed) -> Conclusion:
    """Everything that follows from a trial."""
    lags = {name: lag for name in seen.kinds if (lag := lag_of(seen.cases, name)) is not None}
    findings = {finding.name: finding for judge in JUDGES if (finding := judge(seen, lags))}
    proven = set().union(*(case.proven for case in seen.cases)) if seen.cases else set()
    unread = tuple(sorted({name for case in seen.cases for name in case.unread}))
    unproven = tuple(name for name in seen.kinds if name not in proven)
    complete = not unproven and not unread and not seen.left
    conditions = _conditions(seen, lags, findings) if complete else ()
    return Conclusion(
        findings, lags, conditions, _store(seen, lags, findings, conditions), complete, unproven, unread
    )


def contradicted(declared: Mapping[str, Any], conclusion: Conclusion) -> tuple[str, ...]:
    """In what a profile's `store:` block promises more than the trial has seen."""
    found = []
    measured = conclusion.store
    longest = max((lag.max for lag in conclusion.lags.values()), default=0.0)
    if declared["erasure_model"] != "async" and "synchronous_transactional" not in conclusion.conditions:
        found.append("erasure_model: synchronous_transactional was not shown")
    if declared["settling_interval"] < longest:
        found.append(f"settling_interval is shorter than the longest lag, {longest:.1f} s")
    if any(lag.never for lag in conclusion.lags.values()):
        found.append("it was still told when the trial ended: no settling_interval is long enough")
    for name in ("keeps_queries", "write_path_reads_derived"):
        if declared[name] is False and measured.get(name) is True:
            found.append(f"{name} is true, and the profile says false")
    return tuple(found)


def _conditions(seen: Observed, lags: Mapping[str, Lag], findings: Mapping[str, Finding]) -> tuple[str, ...]:
    def none_of(*names: str) -> bool:
        return not any(findings[name].found for name in names)

    held = []
    enough = len(seen.cases) >= ENOUGH and bool(lags)
    at_once = enough and all(lag.leaked == 0 and lag.cases >= ENOUGH for lag in lags.values())
    if at_once and none_of(*UNTRUE, *HARM):
        # Seen from outside these are one: what is acknowledged is gone for every reader at once.
        held += ["synchronous_transactional", "single_writer"]
        if findings["expired_told"].found is False:
            # An erasure and an expiry share one tombstone: then what has expired is told no longer, either.
            held.append("same_tombstone_index")
        if findings["inherits"].found is False and findings["restated_returns"].found is False:
            held.append("sync_purge")
    if enough and findings["inherits"].found is False and findings["restated_returns"].found is False:
        held.append("no_derived_reads")
    if findings["keeps_queries"].found is False:
        held.append("keeps_no_queries")
    if findings["expired_told"].found is False:
        held.append("expiry_purges")
    return tuple(held)


def _store(
    seen: Observed, lags: Mapping[str, Lag], findings: Mapping[str, Finding], conditions: tuple[str, ...]
) -> dict[str, Any]:
    synchronous = "synchronous_transactional" in conditions
    lines: dict[str, Any] = {"erasure_model": "synchronous_transactional" if synchronous else "async"}
    longest = max([lag.max for lag in lags.values()] + [findings["comes_back"].seconds or 0.0], default=0.0)
    if lags and not any(lag.never for lag in lags.values()):
        interval = max(ceil(longest * MARGIN), LEAST)
        lines["settling_interval"] = f"{interval}s"
        lines["effectuation_bound"] = f"{max(interval * 2, 30)}s"
    for key, names in (("write_path_reads_derived", INHERITS), ("keeps_queries", ("keeps_queries",))):
        found = [findings[name].found for name in names]
        # What was not told is not spoken of: the profile's own word stays.
        if any(found) or None not in found:
            lines[key] = any(found)
    return lines
