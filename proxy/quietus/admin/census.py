"""Counts of erasures by state and verdict, kept as they change: a scrape does not walk every erasure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.events import Event
from quietus.core.states import State
from quietus.core.verdict import Verdict, Word
from quietus.erasures import Erasures
from quietus.metrics import Metrics
from quietus.views import due_at

WITHIN: Final = {"7d": 7 * 86400.0, "3d": 3 * 86400.0, "1d": 86400.0, "0d": 0.0}
CAUSES: Final = ("loading", "ledger", "keys", "epoch")


class Census:
    """Knows the state and verdict of each erasure, and which are unsettled."""

    def __init__(self, erasures: Erasures, verdict: Callable[[Erasure], Verdict]) -> None:
        self._erasures = erasures
        self._verdict = verdict
        self._known: dict[str, tuple[State, Word]] = {}
        self._states: Counter[State] = Counter()
        self._verdicts: Counter[Word] = Counter()
        self._unsettled: dict[str, None] = {}
        self._counted = False
        erasures.listen(self._changed)

    def verdict_of(self, erasure: str) -> Word:
        """The verdict of an erasure as it was counted last."""
        self._count()
        return self._known[erasure][1]

    def unsettled(self) -> Iterable[Erasure]:
        """The unsettled erasures, oldest first."""
        self._count()
        found = (self._erasures.get(name) for name in list(self._unsettled))
        return [erasure for erasure in found if erasure is not None]

    def show(self, metrics: Metrics, backlog: int) -> None:
        """Sets every gauge that is about erasures."""
        self._count()
        now = self._erasures.clock.now()
        for state in State:
            metrics.set("erasures", self._states[state], state=state.value)
        for word in Word:
            metrics.set("verdicts", self._verdicts[word], verdict=word.value)
        open_ = list(self.unsettled())
        oldest = min((erasure.requested_at for erasure in open_), default=now)
        metrics.set("oldest_unsettled_seconds", max(0.0, now - oldest))
        metrics.set("overdue_erasures", sum(erasure.overdue for erasure in open_))
        for name, seconds in WITHIN.items():
            metrics.set("due_erasures", sum(due_at(e) <= now + seconds for e in open_), within=name)
        metrics.set("probe_backlog", backlog)
        closed = self._erasures.closed_cause
        for cause in {*CAUSES, *([closed] if closed else [])}:
            metrics.set("gate_closed", cause == closed, cause=cause)
        metrics.set("ledger_epoch", self._erasures.gate.epoch)
        metrics.set("replica_epoch", self._erasures.gate.epoch)

    def _count(self) -> None:
        # Once, when the ledger has been read: until then its erasures come without being told of.
        if not self._counted and self._erasures.loaded:
            self._counted = True
            for erasure in self._erasures.all():
                self._enter(erasure)

    def _changed(self, erasure: Erasure, _event: Event) -> None:
        self._enter(erasure)

    def _enter(self, erasure: Erasure) -> None:
        before = self._known.get(erasure.id)
        if before is not None:
            self._states[before[0]] -= 1
            self._verdicts[before[1]] -= 1
        now = self._known[erasure.id] = (erasure.state, self._verdict(erasure).word)
        self._states[now[0]] += 1
        self._verdicts[now[1]] += 1
        if erasure.unsettled:
            self._unsettled.setdefault(erasure.id)
        else:
            self._unsettled.pop(erasure.id, None)
