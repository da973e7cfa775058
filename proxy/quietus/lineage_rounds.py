"""In each round: is everything that was derived from the erased gone, or proven harmless? Else it is severed.

A descendant that still bears the erased is a propagation failure: it is known, and deleting it again is the
remedy, where the policy says `cascade: execute`. What was written anew after the forget is never touched.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.erasure import Erasure
from quietus.core.lineage import Detector
from quietus.core.operations import Call, Item, Operation
from quietus.core.policy import Policy
from quietus.core.probing import KEYS_A_ROUND, LINEAGE
from quietus.core.scope import Scope
from quietus.core.severance import Fate
from quietus.core.verdict import Outcome
from quietus.lineage import Lineage
from quietus.lineage_descent import Descent, by_key, dangles, erased_keys
from quietus.owners import Owners
from quietus.prober import Prober
from quietus.recording import Observer
from quietus.snapshots import Descendant, Predicate, Snapshot

LEAKING: Final = Fate.CASCADE.value


@dataclass(slots=True)
class Kinship:
    """What one round saw of the descendants."""

    surface: dict[str, Any]
    to_sever: list[Descendant]


class Severing:
    """Reads descendants in rounds, and says which must go."""

    def __init__(
        self,
        prober: Prober,
        descent: Descent,
        owners: Owners,
        lineage: Lineage,
        policy: Callable[[], Policy],
        metrics: Observer,
    ) -> None:
        self._prober = prober
        self._descent = descent
        self._owners = owners
        self._lineage = lineage
        self._policy = policy
        self._metrics = metrics

    async def look(
        self,
        erasure: Erasure,
        predicate: Predicate,
        snapshot: Snapshot,
        turn: int,
        others: list[dict[str, Any]],
    ) -> Kinship | None:
        """One round over the descendants; None where there are none. `others`: the surfaces of the round."""
        every = snapshot.descendants
        if not every:
            return None
        start = (turn * KEYS_A_ROUND) % len(every)
        some = (every[start:] + every[:start])[:KEYS_A_ROUND]
        sources, erased = self._descent.sources(predicate, snapshot), erased_keys(snapshot)

        async def one(each: Descendant) -> tuple[Descendant, str, bool]:
            if each.witness.key == "":
                return each, Fate.ESCALATE.value, False
            payload = await self._descent.payload(each.witness)
            fresh = self._newer(each, erasure)
            declared = each.detector == Detector.DECLARED.value and not fresh
            found = self._descent.judged(payload, sources, erased, declared=declared)
            # The source is gone by now: an edge that still points at it is a failure and no mere doubt.
            edge = payload.row is not None and dangles(payload.row, erased)
            return each, LEAKING if edge and found.fate is Fate.ESCALATE else found.fate.value, fresh

        read = await asyncio.gather(*(one(each) for each in some))
        fates = Counter(fate for _, fate, _ in read)
        surface = self._surface(fates, others, len(every) > KEYS_A_ROUND)
        gone = (Fate.GONE.value, Fate.DISMISSED.value)
        there = [(each, fate) for each, fate, _ in read if fate not in gone]
        surface["cascaded"] = sum(1 for each, fate, _ in read if each.fate == LEAKING and fate in gone)
        surface["quarantined"] = sum(1 for _, fate in there if fate != Fate.UNLINK.value)
        for each, fate, fresh in read:
            if fate == Fate.GONE.value and not fresh:
                self._lineage.records.drop(bytes.fromhex(each.record))
        doubtful = [each for each, fate in there if fate != Fate.UNLINK.value and each.fate != LEAKING]
        surface["escalated"] = len(doubtful)
        self._metrics.count("probes", surface=LINEAGE, outcome=surface["outcome"])
        must_go = [e for e, fate, fresh in read if fate == LEAKING and not fresh and e.fate == LEAKING]
        return Kinship(surface, must_go)

    def _surface(
        self, fates: Counter[str], others: list[dict[str, Any]], sampled: bool
    ) -> dict[str, Any]:
        way = by_key(self._prober.profile.surfaces)
        through = next((s for s in others if way is not None and s["name"] == way.name), {})
        outcome, reason = Outcome.CLEAN, ""
        if fates[Fate.CASCADE.value]:
            outcome, reason = Outcome.LEAKING, "records that were derived from the erased still bear it"
        elif fates[Fate.ESCALATE.value]:
            outcome = Outcome.INCONCLUSIVE
            reason = "it is not known whether a derived record can be turned back: see `lineage` for each"
        elif through.get("outcome") == Outcome.INCONCLUSIVE.value:
            outcome, reason = Outcome.INCONCLUSIVE, "the surface that they are read through did not count"
        return {
            "name": LINEAGE,
            "kind": "derived",
            "applies": True,
            "outcome": outcome.value,
            "control": through.get("control", "none"),
            "residual": fates[Fate.CASCADE.value],
            "reason": reason,
            "probed_at": self._prober.now(),
            "unlinked": fates[Fate.UNLINK.value],
            **({"sampled": True} if sampled else {}),
        }

    def _newer(self, descendant: Descendant, erasure: Erasure) -> bool:
        """Whether the record was written again since the forget."""
        witness = descendant.witness
        record = self._lineage.records.get(bytes.fromhex(descendant.record))
        if record is not None:
            return erasure.before(record.born)
        scope = Scope() if witness.tenant is None else Scope(tenant=frozenset({witness.tenant}))
        item = Item(-1, key=witness.key, path=witness.path)
        return erasure.before(self._owners.born(item, Call(Operation.RECALL, scope=scope)))

    def severed(self, to_sever: list[Descendant]) -> list[tuple[str | None, dict[str, Any]]]:
        """What is to be deleted of them, by key and values: all, if the policy says so, else nothing."""
        if self._policy().cascade != "execute":
            return []
        return [(each.witness.key, each.witness.values()) for each in to_sever]
