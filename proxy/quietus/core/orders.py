"""Standing orders of people: legal holds, forgets that wait behind one, and break-glass overrides.

They are folded from the ledger's events that belong to no erasure. Few stand at a time (`MOST`), so that
a look-up walks them. A hold says that a law or a dispute forbids to erase; an override lets recalls through
that an erasure would have blocked, and ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from quietus.core.events import Event, EventType, scope_from_facts
from quietus.core.scope import Scope, Wild, overlaps

MOST: Final = 1000
"""Holds at one time, and overrides that are remembered: the newest."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A scope in which nothing may be erased. Times are Unix seconds; atoms are digested."""

    id: str
    scope: Scope
    exception: str
    """The ground: a law and its article."""
    reason: str
    until: float
    placed_at: float
    actor: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """A forget that was refused because of a hold, and is taken up when it ends."""

    erasure: str
    """The id that the erasure will have; what it needs in clear is sealed under that erasure's key."""
    scope: Scope
    asked_at: float
    actor: str
    facts: dict[str, object]
    """Those of the intent that will be written."""


@dataclass(frozen=True, slots=True)
class Override:
    """Recalls that an erasure would have blocked pass, marked, until then."""

    id: str
    effect: str
    tenant: Scope
    reason: str
    actor: str
    begun_at: float
    until: float
    ended: bool = False
    """Somebody has ended it before its time: it stands no more, whatever a clock says."""

    def during(self, start: float, end: float) -> bool:
        """Whether it stood at any time between two Unix seconds."""
        return self.begun_at <= end and start < self.until


class Orders:
    """The orders that stand. Changed by `apply` alone."""

    def __init__(self) -> None:
        self.holds: dict[str, Hold] = {}
        self.deferred: dict[str, Deferred] = {}
        self.overrides: dict[str, Override] = {}
        """Ended ones too: they stand in receipts."""

    def apply(self, event: Event) -> None:
        """Folds one event in; one that is no order changes nothing."""
        facts = event.facts
        if event.type is EventType.HELD:
            self.holds[facts["hold"]] = Hold(
                facts["hold"], scope_from_facts(facts["scope"]), facts["exception"], facts["reason"],
                facts["until"], event.at, event.actor,
            )  # fmt: skip
        elif event.type is EventType.HOLD_LIFTED:
            self.holds.pop(facts["hold"], None)
        elif event.type is EventType.DEFERRED:
            scope = scope_from_facts(facts["intent"]["predicate"])
            self.deferred[facts["as"]] = Deferred(
                facts["as"], scope, event.at, event.actor, dict(facts["intent"])
            )
        elif event.type is EventType.OVERRIDDEN:
            self._override(event)

    def _override(self, event: Event) -> None:
        facts = event.facts
        if facts["override"] not in self.overrides and len(self.overrides) >= MOST:
            self.overrides.pop(next(iter(self.overrides)))
        begun = self.overrides.get(facts["override"])
        self.overrides[facts["override"]] = Override(
            facts["override"], facts["effect"], scope_from_facts(facts["scope"]), facts["reason"],
            event.actor if begun is None else begun.actor, event.at if begun is None else begun.begun_at,
            facts["until"], "ended" in facts,
        )  # fmt: skip

    def holding(self, scope: Scope) -> list[Hold]:
        """The holds that touch a scope. One whose date has passed holds until it is lifted."""
        return [hold for hold in self.holds.values() if overlaps(hold.scope, scope)]

    def waiting(self, scope: Scope) -> Deferred | None:
        """The refused forget of exactly this predicate, if there is one."""
        return next((each for each in self.deferred.values() if each.scope == scope), None)

    def overriding(self, scope: Scope, stands: Callable[[Override], bool]) -> Override | None:
        """The newest override over a call's tenant of which `stands` says that its time is not over."""
        if not self.overrides:
            return None
        for override in reversed(self.overrides.values()):
            if not override.ended and _reaches(override.tenant, scope) and stands(override):
                return override
        return None

    def overridden(self, predicate: Scope, now: float) -> bool:
        """Whether recalls of some of an erasure's scope are let through now."""
        return any(o.during(now, now) and overlaps(o.tenant, predicate) for o in self.overrides.values())


def _reaches(where: Scope, scope: Scope) -> bool:
    # An override of one tenant lets nothing of another through, nor a call that may reach another.
    if isinstance(where.tenant, Wild):
        return True
    return not isinstance(scope.tenant, Wild) and scope.tenant <= where.tenant
