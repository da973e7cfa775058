"""What a report says of the erasures of a time: counted from the admin API's views alone."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

_UNSEEN: Final = frozenset({"UNPROBED", "OUT_OF_SCOPE", "INCONCLUSIVE"})


@dataclass(frozen=True, slots=True)
class Spread:
    """How seconds lie: none of it is known of nothing."""

    count: int
    median: float | None
    p95: float | None
    most: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of any number of values."""
        ordered = sorted(values)
        if not ordered:
            return cls(0, None, None, None)
        last = ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * 95 // 100) - 1))]
        return cls(len(ordered), statistics.median(ordered), last, ordered[-1])

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {"count": self.count, "median": self.median, "p95": self.p95, "most": self.most}


def summed(views: Sequence[dict[str, Any]], since: str, until: str) -> dict[str, Any]:
    """The report on these erasures, as JSON. Times are seconds."""
    settled = [_between(v["acknowledged_at"], v["settled_at"]) for v in views
               if v["acknowledged_at"] and v["settled_at"]]  # fmt: skip
    exposed = [float(v["exposure_seconds"]) for v in views if v["exposure_seconds"] is not None]
    unseen: Counter[tuple[str, str]] = Counter()
    leaking: Counter[str] = Counter()
    for view in views:
        for surface in view["surfaces"]:
            if surface["outcome"] in _UNSEEN:
                unseen[surface["name"], surface["outcome"]] += 1
            elif surface["outcome"] == "LEAKING":
                leaking[surface["name"]] += 1
    late = [v for v in views if _late(v, until)]
    return {
        "since": since,
        "until": until,
        "erasures": len(views),
        "states": dict(sorted(Counter(v["state"] for v in views).items())),
        "verdicts": dict(sorted(Counter(v["verdict"] for v in views).items())),
        "bases": dict(sorted(Counter(v["basis"] or "none given" for v in views).items())),
        "seconds_to_settle": Spread.of(settled).told(),
        "seconds_exposed": Spread.of(exposed).told(),
        "recalled_after_acknowledgement": len(exposed),
        "past_their_legal_date": [v["id"] for v in late],
        "open": [{name: v[name] for name in ("id", "state", "due_at", "why")} for v in views if _open(v)],
        "leaking_now": dict(leaking.most_common()),
        "not_checked": [{"surface": name, "outcome": outcome, "erasures": count}
                        for (name, outcome), count in sorted(unseen.items())],
        "missing_for_compliant": dict(Counter(
            text for v in views for text in v["missing_for_compliant"]).most_common()),
        "released_by_people": sum(v["state"] == "released" for v in views),
        "held": sum(bool(v["held"]) for v in views),
        "suppressed": sum(bool(v["suppressed"]) for v in views),
    }  # fmt: skip


def _open(view: dict[str, Any]) -> bool:
    return view["read_phase"] != "settled" and view["state"] not in ("refused", "released")


def _between(start: str, end: str) -> float:
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def _late(view: dict[str, Any], until: str) -> bool:
    done = view["settled_at"] if view["state"] == "settled" else None
    return datetime.fromisoformat(done or until) > datetime.fromisoformat(view["due_at"])
