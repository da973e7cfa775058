"""Tombstones that a policy no longer keeps: never by age alone, and never while anything is open.

A tombstone goes when its erasure has been settled for as long as `tombstones.retain` says, its watch has
ended, no hold stands on it, and the last look found every blocking surface clean. What it recognised is
recognised no more from then on, which is why the policy names its ground for keeping it so long.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.policy import Mode, Policy
from quietus.core.policy import seconds as seconds_of
from quietus.core.states import State
from quietus.core.verdict import Outcome
from quietus.erasures import Erasures

EVERY: Final = 3600.0
"""Seconds between two looks."""
AT_ONCE: Final = 200
"""Tombstones that one look takes away; the rest waits for the next."""
_DOUBT: Final = frozenset({Outcome.LEAKING.value, Outcome.INCONCLUSIVE.value})


class Collecting:
    """Takes tombstones away that have had their time."""

    def __init__(self, erasures: Erasures, policy: Callable[[], Policy]) -> None:
        self._erasures = erasures
        self._policy = policy
        self._next = float("-inf")

    async def look(self) -> int:
        """Takes away what is due, at most once an hour; how many. Raises LedgerError."""
        now, policy = self._erasures.clock.monotonic(), self._policy()
        if now < self._next or policy.mode is Mode.OBSERVE:
            return 0
        self._next = now + EVERY
        before = self._erasures.clock.now() - seconds_of(policy.tombstones.retain)
        old = self._erasures.shelf.settled_before(before)
        due = list(islice((erasure for erasure in old if self._over(erasure, before)), AT_ONCE))
        for erasure in due:
            facts = {"retain": str(policy.tombstones.retain), "basis": policy.tombstones.basis}
            draft = Draft(EventType.COLLECTED, erasure.id, self._erasures.clock.now(), facts=facts, gate=True)
            await self._erasures.append([draft], expect=erasure, unmark=[erasure.id])
        return len(due)

    def _over(self, erasure: Erasure, before: float) -> bool:
        settled = erasure.state is State.SETTLED and erasure.tombstoned and not erasure.held
        if not settled or not erasure.watch_ended or erasure.settled_at is None:
            return False
        if erasure.settled_at > before or self._erasures.gate.orders.holding(erasure.predicate):
            return False
        return not any(surface.get("outcome") in _DOUBT for surface in erasure.surfaces)
