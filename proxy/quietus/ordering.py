"""Placing and ending standing orders: legal holds, break-glass overrides, scopes quarantined by hand.

Each has an actor and a reason, stands in the ledger, and is undone by an act of its own. An override ends by
itself, whatever becomes of whoever gave it: by the wall clock, and at the latest by this process's own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from quietus.acts import BadAct, stated
from quietus.collecting import Collecting
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType, scope_to_facts
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
    ) -> None:
        self._collecting = collecting
        self._erasures = erasures
        self._intents = intents
        self._wake = wake
        self._new_id = new_id
        self._ends: dict[str, float] = {}

    # --- holds ---------------------------------------------------------------------------------

    async def hold(self, scope: Scope, exception: str, until: float, reason: str, actor: str) -> Hold:
        """Forbids to erase in a raw scope until a Unix second. Raises BadAct, LedgerError.

        Erasures in it that are under way stop: nothing is removed or judged, and their gates stay shut.
        """
        orders, now = self._erasures.gate.orders, self._erasures.clock.now()
        if until <= now:
            raise BadAct("until: a hold has an end date, and it lies ahead")
        if len(orders.holds) >= MOST:
            raise BadAct(f"{MOST} holds stand already; lift one first")
        digested = self._erasures.keyring.pseudonymise(scope)
        name = self._name("ho")
        facts: dict[str, Any] = {
            "hold": name, "scope": scope_to_facts(digested), "exception": stated(exception),
            "reason": stated(reason, *_names(scope)), "until": until,
        }  # fmt: skip
        drafts = [Draft(EventType.HELD, "", now, actor, facts)]
        for erasure in self._erasures.all():
            if erasure.tombstoned and not erasure.held and overlaps(digested, erasure.predicate):
                drafts.append(Draft(EventType.HELD, erasure.id, now, actor, {"hold": name}))
        await self._erasures.append(drafts)
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
        """Ends an override before its time. Raises NoSuchOrder, BadAct, LedgerError."""
        now = self._erasures.clock.now()
        found = self._erasures.gate.orders.overrides.get(override)
        if found is None or found.until <= now:
            raise NoSuchOrder("no override of that id stands")
        facts = {
            "override": override, "effect": found.effect, "reason": found.reason, "until": now,
            "scope": scope_to_facts(found.tenant), "ended": stated(reason),
        }  # fmt: skip
        await self._erasures.append([Draft(EventType.OVERRIDDEN, "", now, actor, facts, gate=True)])

    def overriding(self, scope: Scope) -> Override | None:
        """The override that stands over a digested scope now. No jump of the wall clock prolongs it."""
        orders = self._erasures.gate.orders
        if not orders.overrides:
            return None
        wall, now = self._erasures.clock.now(), self._erasures.clock.monotonic()
        found = orders.overriding(scope, wall)
        if found is None:
            return None
        if len(self._ends) > MOST:
            self._ends.clear()
        end = self._ends.setdefault(found.id, now + found.until - wall)
        return found if now < end else None

    # --- quarantines by hand -------------------------------------------------------------------

    async def quarantine(self, scope: Scope, reason: str, actor: str) -> Erasure:
        """Shuts a raw scope as an unsettled erasure would, until it is lifted. Raises BadAct, LedgerError."""
        if len(self._erasures.quarantines()) >= MOST:
            raise BadAct(f"{MOST} quarantines stand already; lift one first")
        name = self._name("qu")
        facts = {
            "store": self._erasures.store,
            "predicate": scope_to_facts(self._erasures.keyring.pseudonymise(scope)),
            "terms": asdict(Terms()),
            "label": "quarantine",
            "reference": stated(reason, *_names(scope)),
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
            with suppress(LedgerError, Conflict):
                await self.expire()
                await self._collecting.look()
            await self._erasures.clock.sleep(EVERY)

    def _name(self, kind: str) -> str:
        return f"{kind}_{self._new_id().partition('_')[2]}"


def _names(scope: Scope) -> list[str]:
    subjects = scope.subject
    return [str(each) for each in subjects] if isinstance(subjects, frozenset) else []
