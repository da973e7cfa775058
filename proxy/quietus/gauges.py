"""What dashboards show of the erasures, published every few seconds without holding up a call."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from quietus.assembly import Parts
from quietus.core.erasure import Erasure
from quietus.core.events import Event
from quietus.core.states import State
from quietus.judging import attested
from quietus.profiles.profile import Profile
from quietus.recording import Log

EVERY = 5.0
"""Seconds between two publications."""
_CHUNK = 500
_WITHIN = (("7d", 7), ("3d", 3), ("1d", 1), ("0d", 0))


class Gauge(Protocol):
    """Where gauges are set."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets the series of these labels."""


class Words:
    """The state and the verdict of all erasures, told anew only where something has changed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rests_on: tuple[Profile, frozenset[str], frozenset[str]] | None = None
        self._known: dict[str, tuple[str, str] | None] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}

    def begin(self, now: float) -> None:
        """A new look: an attestation or an override may have expired, or another profile been read."""
        profile, orders = self._parts.active.profile, self._parts.erasures.gate.orders
        standing = frozenset(o.id for o in orders.overrides.values() if o.during(now, now))
        rests_on = (profile, attested(profile, now), standing)
        if rests_on != self._rests_on:
            self._rests_on = rests_on
            self._known.clear()

    def changed(self, erasure: Erasure, event: Event) -> None:
        """To be told of each change of an erasure."""
        self._known.pop(erasure.id, None)

    def of(self, name: str) -> tuple[str, str] | None:
        """The state of one erasure and the word on it; None for a scope that people have quarantined."""
        if name not in self._known:
            erasure = self._parts.erasures.get(name)
            if erasure is None or not erasure.version:
                return None  # not written yet, or withdrawn meanwhile
            pair = (erasure.state.value, self._parts.verdict(erasure).word.value)
            # Nearly all have one of a few pairs: they are kept once.
            self._known[name] = None if erasure.by_hand else self._pairs.setdefault(pair, pair)
        return self._known[name]


async def publish(parts: Parts, metrics: Gauge, words: Words | None = None) -> None:
    """Publishes once."""
    words = words or Words(parts)
    now = parts.erasures.clock.now()
    states: Counter[str] = Counter({state.value: 0 for state in State})
    verdicts: Counter[str] = Counter(compliant=0, partial=0, unconfirmed=0)
    due: Counter[str] = Counter({name: 0 for name, _ in _WITHIN})
    oldest = 0.0
    words.begin(now)
    overdue = 0
    for place, name in enumerate(list(parts.erasures.shelf)):
        if (found := words.of(name)) is not None:
            states[found[0]] += 1
            verdicts[found[1]] += 1
        if place % _CHUNK == _CHUNK - 1:
            await parts.erasures.clock.sleep(0)
    for place, erasure in enumerate(parts.erasures.shelf.awake()):
        if erasure.unsettled and not erasure.by_hand:
            oldest = max(oldest, now - erasure.requested_at)
            overdue += erasure.overdue
            left = erasure.dossier.due_at(erasure.requested_at) - now
            for within, days in _WITHIN:
                due[within] += left <= days * 86400.0
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
    metrics.set("ledger_full", float(parts.erasures.ledger.full))
    metrics.set("ledger_reserve_bytes", parts.erasures.ledger.reserve_bytes)
    metrics.set("ledger_epoch", parts.erasures.gate.epoch)
    for cause in ("loading", "ledger", "keys", "epoch", "lease"):
        metrics.set("gate_closed", float(parts.erasures.closed_cause == cause), cause=cause)


async def keep_publishing(parts: Parts, metrics: Gauge, log: Log) -> None:
    """Publishes until cancelled; tells the log when the ledger's disk is full, and when it no longer is."""
    words = Words(parts)
    parts.erasures.listen(words.changed)
    full = False
    while True:
        if parts.erasures.ledger.full is not full:
            full = not full
            if full:
                log.error("ledger_full", bytes=parts.erasures.ledger.reserve_bytes)
            else:
                log.info("ledger_has_room", bytes=parts.erasures.ledger.reserve_bytes)
        await publish(parts, metrics, words)
        await parts.erasures.clock.sleep(EVERY)
