"""An erasure: the fold of its events, and what is due next from that alone.

`advance` is total: late evidence changes facts and never fails. Two facts are kept apart and never
derived from each other: the policy phase (the store acknowledged) and the read phase (probes have
shown that nobody recalls).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from quietus.core.dossier import Dossier, dossier_of
from quietus.core.events import Event, EventType, scope_from_facts
from quietus.core.replacing import replacer
from quietus.core.scope import Scope
from quietus.core.states import TOMBSTONED, UNSETTLED, Happening, State, step
from quietus.core.terms import Terms


class PolicyPhase(StrEnum):
    """What the store has acknowledged."""

    NONE = "none"
    COMMITTED = "committed"


class ReadPhase(StrEnum):
    """What probes have shown."""

    UNSETTLED = "unsettled"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure as its events say. Times are Unix seconds; `version` is its newest event."""

    id: str
    store: str
    predicate: Scope
    """Digested: no raw identifier is in it."""
    terms: Terms
    epoch: int
    """Number of the event that shut the gate."""
    version: int
    base_version: int
    """Its newest event that is not a probe round: what CLEAN is compared with and set on."""
    requested_at: float
    bound_at: float
    state: State = State.REQUESTED
    dossier: Dossier = Dossier()
    actor: str = ""
    policy_phase: PolicyPhase = PolicyPhase.NONE
    acknowledged_at: float | None = None
    claim: Mapping[str, Any] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    """Digests of the store's tokens; the token itself is sealed."""
    store_epoch: int | None = None
    read_epoch: int | None = None
    settled_at: float | None = None
    settled_once: bool = False
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    snapshotted: bool = False
    forwards: int = 0
    answered: bool = False
    """The store's answer to the newest forward is known."""
    unclear: bool = False
    clean_streak: int = 0
    streak_base: int = 0
    surfaces: tuple[Mapping[str, Any], ...] = ()
    first_leak_at: float | None = None
    last_leak_at: float | None = None
    leaked_surfaces: frozenset[str] = frozenset()
    remedies: int = 0
    client_calls: int = 1
    overdue: bool = False
    held: bool = False
    readmitted_at: float | None = None
    readmission_allows_old: bool = False
    undrained: Mapping[str, float] = field(default_factory=dict)
    """Writes whose outcome is unknown, with the Unix second after which each counts as over."""
    compacted: bool = False
    """A completion signal for this epoch arrived: it stands for the settling interval."""
    escalated: bool = False
    watch_ended: bool = False
    collected: bool = False
    """Its tombstone is gone, as the policy says."""
    label: str = "predicate"

    @property
    def unsettled(self) -> bool:
        """Whether the restriction on its scope holds."""
        return self.state in UNSETTLED

    @property
    def tombstoned(self) -> bool:
        """Whether its ids and content are still screened for."""
        return self.unsettled or (self.state in TOMBSTONED and not self.collected)

    @property
    def read_phase(self) -> ReadPhase:
        """Settled only by CLEAN, and only until a relapse."""
        return ReadPhase.SETTLED if self.state is State.SETTLED else ReadPhase.UNSETTLED

    @property
    def by_hand(self) -> bool:
        """Whether it is no erasure but a scope that people have quarantined: shut until they lift it."""
        return self.label == "quarantine"

    @property
    def readmitted(self) -> bool:
        """Whether its subject was let in again since."""
        return self.readmitted_at is not None

    @property
    def primary_leaks(self) -> bool:
        """Whether the last round saw the record itself."""
        return any(s.get("kind") == "primary" and s.get("outcome") == "LEAKING" for s in self.surfaces)

    @property
    def may_assert_erasure(self) -> bool:
        """The policy fact: the store acknowledged, and does not still hold the record itself."""
        return self.policy_phase is PolicyPhase.COMMITTED and not self.primary_leaks

    @property
    def may_assert_non_recallability(self) -> bool:
        """The read fact; it always goes with the surfaces through which it was shown."""
        if self.store_epoch is not None and (self.read_epoch or 0) < self.store_epoch and not self.compacted:
            return False
        return self.state is State.SETTLED

    def before(self, born: int) -> bool:
        """Whether a record written at that gate epoch is newer than this erasure; 0: nobody knows when."""
        return born > self.epoch

    @property
    def exposure_seconds(self) -> float | None:
        """From acknowledgement to the last leak seen: a lower bound."""
        if self.acknowledged_at is None or self.last_leak_at is None:
            return None
        return max(0.0, self.last_leak_at - self.acknowledged_at)


replace: Final = replacer(Erasure)
_HAPPENINGS: Final = {EventType(h.value): h for h in Happening}


def advance(erasure: Erasure | None, event: Event) -> Erasure:
    """The erasure after `event`. Raises ValueError when its first event is not REQUESTED."""
    if erasure is None:
        if event.type in (EventType.REQUESTED, EventType.QUARANTINED):
            return _requested(event)
        raise ValueError(f"event {event.number}: {event.type.value} before the erasure was requested")
    change = _CHANGES.get(event.type)
    changed = change(erasure, event) if change else erasure
    if (happening := _HAPPENINGS.get(event.type)) is not None:
        changed = _step(changed, happening, event)
    calm = event.type in (EventType.ROUND, EventType.OVERDUE, EventType.ESCALATED)
    return replace(changed, version=event.number, base_version=erasure.base_version if calm else event.number)


def _requested(event: Event) -> Erasure:
    facts = event.facts
    terms = Terms(**facts["terms"])
    return Erasure(
        id=event.erasure,
        store=facts["store"],
        predicate=scope_from_facts(facts["predicate"]),
        terms=terms,
        epoch=event.number,
        version=event.number,
        base_version=event.number,
        requested_at=event.at,
        bound_at=event.at + terms.effectuation_bound,
        dossier=dossier_of(facts),
        actor=event.actor,
        label=facts.get("label", "predicate"),
        undrained=dict(facts.get("undrained", {})),
    )


def _step(erasure: Erasure, happening: Happening, event: Event) -> Erasure:
    before = erasure.state
    state = step(before, happening)
    changed = replace(erasure, state=state)
    if happening is Happening.CLEAN and state is State.SETTLED and before is not State.SETTLED:
        return replace(changed, settled_at=event.at, settled_once=True, overdue=False)
    if happening is Happening.RETRIED or (before is State.SETTLED and state is State.RELAPSED):
        bound_at = event.at + erasure.terms.effectuation_bound
        return replace(changed, bound_at=bound_at, settled_at=None, overdue=False)
    return changed


def _restart(erasure: Erasure) -> Erasure:
    return replace(erasure, clean_streak=0, streak_base=0, compacted=False)


def _acknowledged(erasure: Erasure, event: Event) -> Erasure:
    facts = event.facts
    first = erasure.acknowledged_at is None
    raised = facts.get("epoch") is not None and facts["epoch"] != erasure.store_epoch
    return replace(
        erasure,
        policy_phase=PolicyPhase.COMMITTED,
        acknowledged_at=event.at if first else erasure.acknowledged_at,
        claim=facts.get("claim", {}) if first else erasure.claim,
        tokens=tuple(dict.fromkeys((*erasure.tokens, *filter(None, [facts.get("token")])))),
        store_epoch=max(filter(None, (facts.get("epoch"), erasure.store_epoch)), default=facts.get("epoch")),
        answered=True,
        unclear=False,
        compacted=erasure.compacted and not (first or raised),  # a signal from before says nothing of this
    )


def _signalled(erasure: Erasure, event: Event) -> Erasure:
    epoch = event.facts.get("epoch")
    older = epoch is not None and erasure.store_epoch is not None and epoch < erasure.store_epoch
    return erasure if older else replace(erasure, compacted=True)


def _leaked(erasure: Erasure, event: Event) -> Erasure:
    seen_at = event.facts.get("seen_at", event.at)  # it is noted later than it was met
    return replace(
        _restart(erasure),
        first_leak_at=erasure.first_leak_at if erasure.first_leak_at is not None else seen_at,
        last_leak_at=max(seen_at, erasure.last_leak_at or seen_at),
        leaked_surfaces=erasure.leaked_surfaces | frozenset(event.facts.get("surfaces", ())),
    )


def _restarted(erasure: Erasure, event: Event) -> Erasure:
    if not erasure.unsettled:
        return erasure
    harder = event.facts.get("terms")
    terms = erasure.terms if harder is None else erasure.terms.stricter(Terms(**harder))
    return replace(_restart(erasure), terms=terms)


def _round(erasure: Erasure, event: Event) -> Erasure:
    facts = event.facts
    surfaces = tuple(facts.get("surfaces", ()))
    read_epoch = facts.get("read_epoch", erasure.read_epoch)
    if facts.get("outcome") != "clean" or not facts.get("counted"):
        return replace(erasure, surfaces=surfaces, clean_streak=0, read_epoch=read_epoch)
    return replace(
        erasure,
        surfaces=surfaces,
        clean_streak=erasure.clean_streak + 1 if erasure.streak_base == erasure.base_version else 1,
        streak_base=erasure.base_version,
        read_epoch=read_epoch,
    )


def _undrained(erasure: Erasure, event: Event) -> Erasure:
    write = event.facts["write"]
    held = {name: until for name, until in erasure.undrained.items() if name != write}
    if event.type is EventType.WRITE_OPENED:
        held[write] = float(event.facts["until"])
    return replace(_restart(erasure), undrained=held)


_CHANGES: Final[dict[EventType, Callable[[Erasure, Event], Erasure]]] = {
    EventType.ACCEPTED: _acknowledged,
    EventType.UNCLEAR: lambda e, _: replace(e, unclear=True, answered=False),
    EventType.REFUSED: lambda e, _: replace(e, answered=True),
    EventType.LEAKED: _leaked,
    EventType.LEAKED_LATE: _leaked,
    EventType.ROUND: _round,
    EventType.WRITE_OPENED: _undrained,
    EventType.WRITE_CLOSED: _undrained,
    EventType.SNAPSHOTTED: lambda e, ev: replace(e, snapshotted=True, snapshot=dict(ev.facts)),
    EventType.FORWARDED: lambda e, _: replace(_restart(e), forwards=e.forwards + 1, answered=False),
    EventType.REMEDIED: lambda e, ev: replace(_restart(e), remedies=e.remedies + ev.facts.get("count", 1)),
    EventType.RESTARTED: _restarted,
    EventType.RETRIED: lambda e, _: _restart(e),
    EventType.OVERDUE: lambda e, _: replace(e, overdue=True),
    EventType.READMITTED: lambda e, ev: replace(
        e, readmitted_at=ev.at, readmission_allows_old=bool(ev.facts.get("allows_old"))
    ),
    EventType.SIGNALLED: _signalled,
    EventType.ESCALATED: lambda e, _: replace(e, escalated=True),
    EventType.EXTENDED: lambda e, _: replace(e, dossier=e.dossier.longer()),
    EventType.QUARANTINE_LIFTED: lambda e, _: replace(e, state=State.REFUSED) if e.by_hand else e,
    EventType.HELD: lambda e, _: replace(_restart(e), held=True),
    EventType.HOLD_LIFTED: lambda e, _: replace(_restart(e), held=False),
    EventType.COLLECTED: lambda e, _: replace(e, collected=True),
    EventType.WATCH_ENDED: lambda e, _: replace(e, watch_ended=True),
}
