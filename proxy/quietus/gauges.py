"""What dashboards show of the erasures, published every few seconds without holding up a call."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from quietus.assembly import Parts
from quietus.core.states import State

EVERY = 5.0
"""Seconds between two publications."""
_CHUNK = 500
_MONTH = 30 * 86400.0
_WITHIN = (("7d", 7), ("3d", 3), ("1d", 1), ("0d", 0))


class Gauge(Protocol):
    """Where gauges are set."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets the series of these labels."""


async def publish(parts: Parts, metrics: Gauge) -> None:
    """Publishes once."""
    now = parts.erasures.clock.now()
    states: Counter[str] = Counter({state.value: 0 for state in State})
    verdicts: Counter[str] = Counter(compliant=0, partial=0, unconfirmed=0)
    due: Counter[str] = Counter({name: 0 for name, _ in _WITHIN})
    oldest = 0.0
    overdue = 0
    for place, erasure in enumerate(list(parts.erasures.all())):
        states[erasure.state.value] += 1
        verdicts[parts.verdict(erasure).word.value] += 1
        if erasure.unsettled:
            oldest = max(oldest, now - erasure.requested_at)
            overdue += erasure.overdue
            left = erasure.requested_at + _MONTH - now
            for name, days in _WITHIN:
                due[name] += left <= days * 86400.0
        if place % _CHUNK == _CHUNK - 1:
            await parts.erasures.clock.sleep(0)
    for state, count in states.items():
        metrics.set("erasures", count, state=state)
    for verdict, count in verdicts.items():
        metrics.set("verdicts", count, verdict=verdict)
    for within, count in due.items():
        metrics.set("due_erasures", count, within=within)
    metrics.set("oldest_unsettled_seconds", oldest)
    metrics.set("overdue_erasures", overdue)
    metrics.set("probe_backlog", parts.timetable.backlog)
    metrics.set("replica_epoch", parts.erasures.gate.epoch)
    metrics.set("ledger_epoch", parts.erasures.gate.epoch)
    for cause in ("loading", "ledger", "keys", "epoch"):
        metrics.set("gate_closed", float(parts.erasures.closed_cause == cause), cause=cause)


async def keep_publishing(parts: Parts, metrics: Gauge) -> None:
    """Publishes until cancelled."""
    while True:
        await publish(parts, metrics)
        await parts.erasures.clock.sleep(EVERY)
