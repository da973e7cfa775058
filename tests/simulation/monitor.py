"""The judge of the ledger: nothing is settled before its time, and what is settled is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.events import Event
from quietus.legacy.store import LegacyStore
from tests.simulation.judge import Judge
from tests.simulation.plan import INTERVAL, ROUNDS, Plan
from tests.simulation.rows import split, tokens_of
from tests.simulation.truth import Erased, Truth, Where
from tests.simulation.virtual import Time

QUIET: Final = frozenset({"round", "overdue", "escalated"})
DISTURBS: Final = frozenset(
    {"accepted", "leaked", "leaked_late", "remedied", "write_opened", "write_closed", "forwarded", "retried",
     "hold_lifted"}
)  # fmt: skip
LAGS: Final = frozenset(
    {"lazy_index", "chunk_cache", "service_digest", "query_cache", "late_rewrite", "queued_ingest",
     "async_effect", "negative_ack", "stale_replica", "stale_export", "stale_salience", "stale_dedup",
     "stale_centroid", "swallow_prefix"}
)  # fmt: skip
HIDDEN: Final = frozenset({"late_rewrite", "queued_ingest", "swallow_prefix", "soft_ttl"})
"""Faults whose lateness no probe sees."""
LIES: Final = frozenset(
    {"hash_rows", "restart_resurrection", "read_repair", "probe_liar", "case_sensitive_forget"}
)
"""Faults against which no probe and no interval can help."""


def visible(plan: Plan) -> bool:
    """Whether whatever the store still serves can be seen by whoever asks."""
    return not set(plan.faults) & (LIES | HIDDEN)


def declared(plan: Plan) -> bool:
    """Whether the store keeps what its profile says: what it does late is done within the interval."""
    return not set(plan.faults) & LIES and all(
        value < INTERVAL - 1 for name, value in plan.faults.items() if name in LAGS
    )


@dataclass
class _Standing:
    step: int
    disturbed: float
    streak: int = 0
    signalled: bool = False
    ripe: bool = False
    settled: bool = False


@dataclass
class Monitor:
    """Reads every event as it becomes durable."""

    time: Time
    store: LegacyStore
    judge: Judge
    plan: Plan
    started: float = 0.0
    """Since when the process runs: it begins its intervals again."""
    standing: dict[str, _Standing] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    ripe: Callable[[str], None] = lambda _: None
    """Told when an erasure has had its clean rounds for the first time."""
    network_blind: Callable[[], bool] = lambda: False

    def committed(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.erasure:
                self._take(event, event.type.value)

    def _take(self, event: Event, kind: str) -> None:
        now = self.time.elapsed
        self.counts[kind] += 1
        if kind == "requested":
            step = int(event.actor.removeprefix("step-"))
            self.standing[event.erasure] = _Standing(step, now)
            if self.judge.durable.setdefault(step, Counter())["requested"]:
                self.judge.find("once", step, "one forget became two erasures", event.erasure)
            self._absorbed(event.erasure, step)
            self.judge.truth.durable(event)
        mine = self.standing[event.erasure]
        self.judge.durable[mine.step][kind] += 1
        self.judge.held.setdefault(event.erasure, Counter())[kind] += 1
        if kind in ("requested", "snapshotted"):
            self._met(event, kind, mine)
        if kind == "clean":
            self._clean(event, mine, now)
        elif kind == "round":
            counted = event.facts["outcome"] == "clean" and event.facts["counted"]
            mine.streak = mine.streak + 1 if counted else 0
            if counted:
                self._interval(event, mine, now, "a round counts")
            if mine.streak >= ROUNDS and not mine.ripe:
                mine.ripe = True
                self.ripe(event.erasure)
        elif kind not in QUIET:
            mine.streak = 0
        if kind in DISTURBS:
            mine.disturbed = now
            mine.signalled = mine.signalled and kind in ("accepted", "retried")
        mine.signalled = mine.signalled or kind == "signalled"
        if kind in ("leaked", "leaked_late"):
            mine.settled = False

    def _absorbed(self, name: str, step: int) -> None:
        truth = self.judge.truth
        new = Where.of(truth.steps[step])
        for old in truth.erased.values():
            if old.where.contains(new) and not old.readmitted and not old.over:
                self.judge.find("absorbed", step, f"a repeat of {old.id} became an erasure of its own", name)

    def _met(self, event: Event, kind: str, mine: _Standing) -> None:
        """What a snapshot can have met: the records that lay there before it and after it, to be seen."""
        name, judge = event.erasure, self.judge
        there = rows_of(self.store, Where.of(judge.truth.steps[mine.step]))
        if kind == "requested":
            judge.before[name] = (there, self.network_blind())
            return
        before, blind = judge.before.get(name, ({}, True))
        both = before.keys() & there.keys()
        judge.truth.erased[name].seen &= both
        if not blind and not self.network_blind() and visible(self.plan):
            judge.there[name] = {token for token in both if there[token]}
        if event.facts["witnesses"] and not {"recall", "recall-tenant"} <= event.facts["proven"].keys():
            judge.truth.erased[name].whole = False  # it was gone before its probes could be proven

    def _clean(self, event: Event, mine: _Standing, now: float) -> None:
        if mine.streak < ROUNDS:
            says = f"settled after {mine.streak} clean rounds since the last event"
            self.judge.find("rounds", mine.step, says, event.erasure)
        self._interval(event, mine, now, "settled")
        mine.settled = True
        mine.streak = 0
        if visible(self.plan):
            self._true(event.erasure, mine, "when it was settled")

    def _interval(self, event: Event, mine: _Standing, now: float, what: str) -> None:
        since = max(mine.disturbed, self.started)
        if not mine.signalled and now < since + INTERVAL - 0.001:
            says = f"{what} {now - since:.2f} s after the last disturbance"
            self.judge.find("interval", mine.step, says, event.erasure)

    def at_the_end(self) -> None:
        """Whatever is settled when all is over must be true then."""
        for name, mine in self.standing.items():
            if mine.settled and declared(self.plan):
                self._true(name, mine, "at the end")

    def _true(self, name: str, mine: _Standing, when: str) -> None:
        erased = self.judge.truth.erased.get(name)
        if erased is None or erased.readmitted or mine.signalled:
            return
        self.store.tick()
        for token in held(self.store, erased):
            # A store that is slower than its profile says is seen through by probes for what a snapshot met.
            if token not in erased.seen and not declared(self.plan):
                continue
            if self._answerable(token) and self.judge.truth.tells_of(token, erased):
                self.judge.find("untrue", mine.step, f"the store still serves {token} {when}", name)
                return

    def _answerable(self, token: str) -> bool:
        """A write that a dead process sent, nobody can know of."""
        return not any(w.orphan for w in self.judge.truth.carried.get(token, ()))


def rows_of(store: LegacyStore, where: Where) -> dict[str, bool]:
    """Tokens in the rows of a scope that the store shows, and whether the row has no time to live."""
    world: Any = store._world
    return {
        token: record.expires_at is None
        for record in world.rows.values()
        if where.has(record.tenant, record.subject, record.key, split(record.scope))
        and not world.expired(record)
        for token in tokens_of(record.value)
    }


def held(store: LegacyStore, erased: Erased) -> list[str]:
    """Tokens of the erased in the store's own rows and index, where it still shows them: what has expired in
    between is recalled by nobody.
    """
    world: Any = store._world
    found = []
    for record in (*world.rows.values(), *world.index.values()):
        place = (record.tenant, record.subject, record.key, split(record.scope))
        if not world.expired(record) and erased.where.has(*place):
            found += sorted(tokens_of(record.value))
    return found


def copied(store: LegacyStore, erased: Erased, truth: Truth) -> bool:
    """Whether a record of somebody else says what was erased, or names it as its source: a leak until people
    see to it.
    """
    world: Any = store._world
    kin = truth.kin_of(erased)
    return any(
        (
            any(truth.tells_of(t, erased) or truth.alike(t, erased) for t in tokens_of(record.value))
            or not kin.isdisjoint(record.derived_from)
        )
        and not erased.where.has(record.tenant, record.subject, record.key, split(record.scope))
        for record in world.rows.values()
    )
