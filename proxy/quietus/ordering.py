"""Placing and ending standing orders: legal holds, break-glass overrides, scopes quarantined by hand.

Each has an actor and a reason, stands in the ledger, and is undone by an act of its own. What shuts is known
to every replica before its act returns; what opens may be known to others a little later. An override ends
by itself, whatever becomes of whoever gave it: each replica counts its length on a clock that nobody sets,
from when it heard of it. One that reads of it as it starts takes what its wall clock says is left, if less.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

from quietus.acts import BadAct, stated
from quietus.barrier import BarrierUnreached, Sharing, anew
from quietus.collecting import Collecting
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, Event, EventType, scope_to_facts
from quietus.core.orders import MOST, Hold, Override
from quietus.core.scope import Scope, overlaps
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.erasures import Erasures
from quietus.intents import Intents
from quietus.ports import Conflict, LedgerError

LONGEST_OVERRIDE: Final = 24 * 3600.0
"""Seconds. Whoever needs more gives another, with another reason."""
EVERY: Final = 5.0
"""Seconds between two looks for holds whose date has passed."""


class NoSuchOrder(LookupError):
    """No hold, override or quarantine of that id stands."""


class Ordering:
    """The orders of people, on one ledger."""

    def __init__(
        self,
        erasures: Erasures,
        intents: Intents,
        wake: Callable[[str], object],
        new_id: Callable[[], str],
        collecting: Collecting,
        sharing: Sharing,
        patience: float,
    ) -> None:
        """`patience`: seconds for which the other replicas are waited for."""
        self._collecting = collecting
        self._erasures = erasures
        self._intents = intents
        self._wake = wake
        self._new_id = new_id
        self._sharing = sharing
        self._patience = patience
        self._ends: dict[str, float] = {}
        """The monotonic second at which each override is over."""
        self._unclaimed: set[str] = set()
        """Overrides that are ended, and of which not every replica is known to have heard it."""
        erasures.on_order(self._heard)

    # --- holds ---------------------------------------------------------------------------------

    async def hold(self, scope: Scope, exception: str, until: float, reason: str, actor: str) -> Hold:
        """Forbids to erase in a raw scope until a Unix second; the same again is the one that stands.

        Erasures in it that are under way stop: nothing is removed or judged, and their gates stay shut.
        Raises BadAct, LedgerError, and BarrierUnreached: then it stands, and is not known everywhere.
        """
        digested = self._erasures.keyring.pseudonymise(scope)
        wanted = Hold(
            self._name("ho"), digested, stated(exception), stated(reason, *_names(scope)), until,
            self._erasures.clock.now(), actor,
        )  # fmt: skip
        placed = await anew(self._erasures, lambda: self._place(wanted))
        await self._everywhere(placed.id)
        return placed

    async def _place(self, wanted: Hold) -> Hold:
        orders, now = self._erasures.gate.orders, self._erasures.clock.now()
        for hold in orders.holds.values():
            if replace(hold, id=wanted.id, placed_at=wanted.placed_at) == wanted:
                return hold
        if wanted.until <= now:
            raise BadAct("until: a hold has an end date, and it lies ahead")
        if len(orders.holds) >= MOST:
            raise BadAct(f"{MOST} holds stand already; lift one first")
        name = wanted.id
        facts: dict[str, Any] = {
            "hold": name, "scope": scope_to_facts(wanted.scope), "exception": wanted.exception,
            "reason": wanted.reason, "until": wanted.until,
        }  # fmt: skip
        # Of the gate: a forget that another replica is about to open does not know it, and is decided anew.
        drafts = [Draft(EventType.HELD, "", now, wanted.actor, facts, gate=True)]
        for erasure in self._erasures.all():
            if erasure.tombstoned and not erasure.held and overlaps(wanted.scope, erasure.predicate):
                drafts.append(Draft(EventType.HELD, erasure.id, now, wanted.actor, {"hold": name}))
        await self._erasures.append(drafts, epoch=self._epoch())
        return orders.holds[name]

    async def lift(self, hold: str, reason: str, actor: str) -> None:
        """Ends a hold; forgets that waited behind it begin. Raises NoSuchOrder, BadAct, LedgerError."""
        orders, now = self._erasures.gate.orders, self._erasures.clock.now()
        if hold not in orders.holds:
            raise NoSuchOrder("no hold of that id stands")
        others = [each for each in orders.holds.values() if each.id != hold]
        facts = {"hold": hold, "reason": stated(reason)}
        drafts = [Draft(EventType.HOLD_LIFTED, "", now, actor, facts)]
        freed = [
            erasure for erasure in self._erasures.all()
            if erasure.held and not any(overlaps(each.scope, erasure.predicate) for each in others)
        ]  # fmt: skip
        drafts += [Draft(EventType.HOLD_LIFTED, e.id, now, actor, facts) for e in freed]
        await self._erasures.append(drafts)
        for erasure in freed:
            self._wake(erasure.id)
        await self.resume()

    async def resume(self) -> list[Erasure]:
        """Takes up every deferred forget that no hold forbids any more. Raises LedgerError."""
        orders = self._erasures.gate.orders
        free = [each for each in orders.deferred.values() if not orders.holding(each.scope)]
        begun = [await self._intents.resume(each) for each in free]
        for erasure in begun:
            self._wake(erasure.id)
        return begun

    async def expire(self) -> None:
        """Lifts the holds whose date has passed. Raises LedgerError."""
        now = self._erasures.clock.now()
        for hold in [h for h in self._erasures.gate.orders.holds.values() if h.until <= now]:
            await self.lift(hold.id, "its end date has passed", "quietus")
        await self.resume()

    # --- overrides -----------------------------------------------------------------------------

    async def override(self, seconds: float, reason: str, actor: str, tenant: str | None = None) -> Override:
        """Lets recalls pass marked that erasures would have blocked. Raises BadAct, LedgerError."""
        if not 0 < seconds <= LONGEST_OVERRIDE:
            raise BadAct("for: an override lasts more than nothing and at most 24h")
        scope = Scope() if tenant is None else Scope(tenant=frozenset({tenant}))
        name, now = self._name("ov"), self._erasures.clock.now()
        facts = {
            "override": name, "effect": "annotate", "reason": stated(reason), "until": now + seconds,
            "scope": scope_to_facts(self._erasures.keyring.pseudonymise(scope)),
        }  # fmt: skip
        await self._erasures.append([Draft(EventType.OVERRIDDEN, "", now, actor, facts, gate=True)])
        return self._erasures.gate.orders.overrides[name]

    async def end_override(self, override: str, reason: str, actor: str) -> None:
        """Ends an override before its time. Raises NoSuchOrder, BadAct, LedgerError, and BarrierUnreached:
        then it is ended, and not known to be everywhere; the same again waits once more.
        """
        now, why = self._erasures.clock.now(), stated(reason)
        found = self._erasures.gate.orders.overrides.get(override)
        if found is None or (override not in self._unclaimed and not self._stands(found)):
            raise NoSuchOrder("no override of that id stands")
        if not found.ended:
            facts = {
                "override": override, "effect": found.effect, "reason": found.reason, "until": now,
                "scope": scope_to_facts(found.tenant), "ended": why,
            }  # fmt: skip
            await self._erasures.append([Draft(EventType.OVERRIDDEN, "", now, actor, facts, gate=True)])
        self._unclaimed.add(override)
        await self._everywhere(override)
        self._unclaimed.discard(override)

    def overriding(self, scope: Scope) -> Override | None:
        """The override that stands over a digested scope now. No jump of the wall clock prolongs it."""
        return self._erasures.gate.orders.overriding(scope, self._stands)

    def _stands(self, override: Override) -> bool:
        now = self._erasures.clock.monotonic()
        if override.id not in self._ends:  # it was read when the ledger was loaded
            left = min(override.until - self._erasures.clock.now(), override.until - override.begun_at)
            self._ends[override.id] = now + left
        return not override.ended and now < self._ends[override.id]

    def _heard(self, event: Event) -> None:
        if event.type is not EventType.OVERRIDDEN:
            return
        known = self._erasures.gate.orders.overrides
        self._ends = {name: end for name, end in self._ends.items() if name in known}
        self._unclaimed &= known.keys()
        length = event.facts["until"] - event.at
        self._ends[event.facts["override"]] = self._erasures.clock.monotonic() + length

    # --- quarantines by hand -------------------------------------------------------------------

    async def quarantine(self, scope: Scope, reason: str, actor: str) -> Erasure:
        """Shuts a raw scope as an unsettled erasure would, until it is lifted; the same again is the one
        that stands.

        Raises BadAct, LedgerError, and BarrierUnreached: then it stands, and is not known everywhere.
        """
        digested = self._erasures.keyring.pseudonymise(scope)
        placed = await self._shut(digested, stated(reason, *_names(scope)), actor)
        # Every replica gates on it, and what they had in flight there has come back.
        await self._everywhere(placed.id, placed)
        return placed

    async def _shut(self, scope: Scope, reason: str, actor: str) -> Erasure:
        for each in self._erasures.quarantines():
            if (each.predicate, each.dossier.reference, each.actor) == (scope, reason, actor):
                return each
        if len(self._erasures.quarantines()) >= MOST:
            raise BadAct(f"{MOST} quarantines stand already; lift one first")
        name = self._name("qu")
        facts = {
            "store": self._erasures.store,
            "predicate": scope_to_facts(scope),
            "terms": asdict(Terms()),
            "label": "quarantine",
            "reference": reason,
        }
        now = self._erasures.clock.now()
        await self._erasures.append([Draft(EventType.QUARANTINED, name, now, actor, facts, gate=True)])
        return self._erasures.gate.erasures[name]

    async def lift_quarantine(self, quarantine: str, reason: str, actor: str) -> None:
        """Opens it again. Raises NoSuchOrder, BadAct, LedgerError."""
        found = self._erasures.get(quarantine)
        if found is None or not found.by_hand or found.state is State.REFUSED:
            raise NoSuchOrder("no quarantine of that id stands")
        facts, now = {"reason": stated(reason)}, self._erasures.clock.now()
        await self._erasures.append(
            [Draft(EventType.QUARANTINE_LIFTED, quarantine, now, actor, facts, gate=True)]
        )

    # -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Looks for what has had its time until cancelled. A ledger that fails is looked at again."""
        while True:
            for override in self._erasures.gate.orders.overrides.values():
                self._stands(override)  # the time of one that was loaded runs from now, asked for or not
            with suppress(LedgerError, Conflict):
                await self.expire()
                await self._collecting.look()
            await self._erasures.clock.sleep(EVERY)

    async def _everywhere(self, name: str, shut: Erasure | None = None) -> None:
        """Waits until every replica holds to what was written. Raises BarrierUnreached."""
        try:
            if shut is not None:
                known = await self._sharing.reach(shut, self._patience)
            else:
                known = await self._sharing.know(self._erasures.number, self._patience)
        except LedgerError:
            known = False
        if not known:
            raise BarrierUnreached(
                f"{name} is in the ledger, and not every replica is known to hold to it yet: send the same "
                "again until it is answered"
            )

    def _epoch(self) -> int | None:
        return self._erasures.gate.epoch if self._erasures.shared is not None else None

    def _name(self, kind: str) -> str:
        return f"{kind}_{self._new_id().partition('_')[2]}"


def _names(scope: Scope) -> list[str]:
    subjects = scope.subject
    return [str(each) for each in subjects] if isinstance(subjects, frozenset) else []
