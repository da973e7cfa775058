"""Recorded decisions held against a policy: what would become of the calls, by route, rule and tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quietus.core.operations import Operation
from quietus.core.policy import Effect, Mode, Policy
from quietus.core.replaying import Faced, Said, asked, read

_RECALLS: Final = (Operation.READ, Operation.RECALL)
ANYBODY: Final = "(none named)"


class NotRecorded(ValueError):
    """A file that holds no recorded decisions; the message quotes nothing of it."""


class Recorded:
    """One or several records of decisions, added up."""

    def __init__(self, records: Iterable[Any]) -> None:
        """Raises NotRecorded."""
        self.calls: list[tuple[Faced, Said, bool, int]] = []
        self.since: list[str] = []
        self.unreadable: Counter[tuple[str, str]] = Counter()
        self.faulty: Counter[str] = Counter()
        self.unmapped: Counter[str] = Counter()
        self.left_out = 0
        for record in records:
            try:
                self._add(record)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise NotRecorded("it holds no decisions as `quietus policy record` writes them") from None

    def _add(self, record: Mapping[str, Any]) -> None:
        for one in record["calls"]:
            said = Said(str(one["rule"]), Effect(one["effect"]), Mode(one["mode"]))
            self.calls.append((read(one), said, bool(one["overridden"]), int(one["count"])))
        for one in record["unreadable"]:
            self.unreadable[str(one["route"]), str(one["field"])] += int(one["count"])
        for one in record["faulty"]:
            self.faulty[str(one["problem"])] += int(one["count"])
        for one in record["unmapped"]:
            self.unmapped[str(one["shape"])] += int(one["count"])
        self.left_out += int(record["left_out"])
        self.since.append(str(record["since"]))

    @property
    def count(self) -> int:
        """How many calls were decided."""
        return sum(count for *_, count in self.calls)


def difference(recorded: Recorded, policy: Policy) -> dict[str, Any]:
    """What another policy would have done otherwise, as JSON. What people had overridden is left out."""
    changes: Counter[tuple[str, str, str, Said, Said]] = Counter()
    overridden = 0
    for call, before, by_people, count in recorded.calls:
        if by_people:
            overridden += count
            continue
        after = asked(call, policy)
        if after.shown != before.shown:
            for tenant in sorted(call.tenant) or [ANYBODY]:
                changes[call.operation.value, call.route, tenant, before, after] += count
    rows = [
        {"operation": operation, "route": route, "tenant": tenant, "before": _said(before),
         "after": _said(after), "count": count}
        for (operation, route, tenant, before, after), count in changes.most_common()
    ]  # fmt: skip
    return {
        "policy": policy.name, "since": recorded.since, "calls": recorded.count,
        "changed": sum(each["count"] for each in rows), "overridden": overridden,
        "left_out": recorded.left_out,
        "by_route": _by(rows, lambda row: row["route"]),
        "by_rule": _by(rows, lambda row: row["after"]["rule"]),
        "by_tenant": _by(rows, lambda row: row["tenant"]),
        "changes": rows,
    }  # fmt: skip


def observed(recorded: Recorded, policy: Policy) -> dict[str, Any]:
    """What this policy would have refused or changed, were it enforced, as JSON."""
    refused: Counter[tuple[str, str, str, str]] = Counter()
    screened = overlapping = recalls = 0
    for call, _, _, count in recorded.calls:
        said = asked(call, policy)
        if call.operation in _RECALLS:
            recalls += count
            overlapping += count if any(state is not None for _, state, _, _ in call.cases) else 0
        if said.refuses:
            for tenant in sorted(call.tenant) or [ANYBODY]:
                refused[call.route, said.rule, tenant, call.operation.value] += count
        elif said.effect in (Effect.SCREEN, Effect.ANNOTATE, Effect.EMPTY):
            screened += count
    rows = [
        {"operation": operation, "route": route, "rule": rule, "tenant": tenant, "count": count}
        for (route, rule, tenant, operation), count in refused.most_common()
    ]
    return {
        "policy": policy.name, "since": recorded.since, "calls": recorded.count,
        "would_refuse": sum(each["count"] for each in rows), "would_screen_or_mark": screened,
        "recalls": recalls, "recalls_that_overlap_an_unsettled_erasure": overlapping,
        "by_route": _by(rows, lambda row: row["route"]),
        "by_rule": _by(rows, lambda row: row["rule"]),
        "by_tenant": _by(rows, lambda row: row["tenant"]),
        "refusals": rows,
        "would_refuse_as_unreadable": dict(recorded.faulty.most_common()),
        "unmapped": dict(recorded.unmapped.most_common()),
        "unreadable_fields": [
            {"route": route, "field": name, "count": count}
            for (route, name), count in recorded.unreadable.most_common()
        ],
        "left_out": recorded.left_out,
    }  # fmt: skip


def enforced(policy: Policy) -> Policy:
    """The policy with nothing in it that is only observed."""
    rules = [rule.model_copy(update={"mode": None}) for rule in policy.rules]
    return policy.model_copy(update={"mode": Mode.ENFORCE, "rules": rules})


def _said(said: Said) -> dict[str, str]:
    return {"rule": said.rule, "effect": said.effect.value, "mode": said.mode.value}


def _by(rows: list[dict[str, Any]], name: Callable[[dict[str, Any]], str]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        found[name(row)] += row["count"]
    return dict(found.most_common())
