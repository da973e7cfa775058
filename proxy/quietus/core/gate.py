"""All erasures and marks in memory: what a decision reads, folded from events and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from enum import StrEnum
from typing import Final

from quietus.core.erasure import Erasure, advance
from quietus.core.events import Event, EventType
from quietus.core.fingerprint import Mark
from quietus.core.index import Index, class_of
from quietus.core.marks import Marks
from quietus.core.orders import Orders
from quietus.core.scope import Scope, covers, overlaps

INTENTS: Final = frozenset({EventType.REQUESTED, EventType.QUARANTINED})
"""Events that shut a scope: the gate is shut before they can be durable."""


class Relation(StrEnum):
    """How a call lies to an erasure."""

    INSIDE = "inside"
    WIDER = "wider"
    NONE = "none"


def relation(erasure: Erasure, scope: Scope) -> Relation:
    """INSIDE when the erasure covers the call or the call could not be read; WIDER when they overlap."""
    if not overlaps(erasure.predicate, scope):
        return Relation.NONE
    if scope.unknown or covers(erasure.predicate, scope):
        return Relation.INSIDE
    return Relation.WIDER


class Gate:
    """The erasures and their marks. Not thread-safe: one event loop owns it."""

    def __init__(self, erasures: MutableMapping[str, Erasure] | None = None) -> None:
        """`erasures` is what they are kept in, empty and in the order in which they came."""
        self.erasures: MutableMapping[str, Erasure] = {} if erasures is None else erasures
        self.epoch = 0
        """Number of the last event that changed what the gate lets through."""
        self.generation = 0
        """Grows with every change of a mark or a state: a cached verdict holds for one generation."""
        self.orders = Orders()
        self._index = Index()
        self.marks = Marks()

    def apply(self, event: Event) -> Erasure | None:
        """Folds one event in; returns the erasure that it changed, or None."""
        if event.gate:
            self.epoch = event.number
            self.generation += 1
        if not event.erasure:
            self.orders.apply(event)
            return None
        if event.type in INTENTS:
            self.withdraw(event.erasure)
            self.orders.deferred.pop(event.erasure, None)
        before = self.erasures.get(event.erasure)
        after = advance(before, event)
        self.erasures[after.id] = after
        alike = before is not None and before.tombstoned == after.tombstoned
        if before is None or not alike or class_of(before) != class_of(after):
            if before is not None:
                self._index.remove(before)
            self._index.add(after)
            self.generation += 1
        return after

    def propose(self, event: Event) -> Erasure:
        """Shuts the gate of an intent that is being written and may be durable at any moment from now."""
        proposed = advance(None, event)
        self.erasures[proposed.id] = proposed
        self._index.add(proposed)
        self.generation += 1
        return proposed

    def withdraw(self, erasure: str) -> None:
        """Takes a proposal back: it was not written, or it is about to be folded in as it was."""
        proposed = self.erasures.pop(erasure, None)
        if proposed is not None:
            self._index.remove(proposed)
            self.generation += 1

    def mark(self, erasure: str, marks: Iterable[Mark]) -> None:
        """Adds marks of an erasure. Adding one twice changes nothing."""
        self.marks.add(erasure, marks)
        self.generation += 1

    def unmark(self, erasure: str) -> None:
        """Takes back every mark of an erasure."""
        self.marks.drop(erasure)
        self.generation += 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of marks in use: what a text has to be looked at for."""
        return self.marks.kinds

    @property
    def unsettled(self) -> int:
        """How many erasures keep a gate shut."""
        return self._index.unsettled

    def holders(self, mark: Mark) -> tuple[Erasure, ...]:
        """The tombstoned erasures that left this mark."""
        return self.standing(self.marks.holders(mark))

    def standing(self, names: Iterable[str]) -> tuple[Erasure, ...]:
        """Those of some erasures whose tombstone stands."""
        return tuple(e for n in names if (e := self.erasures.get(n)) is not None and e.tombstoned)

    def restricting(self, scope: Scope, but: str = "") -> list[tuple[Erasure, Relation]]:
        """The unsettled erasures that touch `scope`, or one of each class of them, and how; never `but`."""
        if not self._index.unsettled:
            return []
        touching: list[tuple[Erasure, Relation]] = []
        for name in self._index.candidates(scope, but):
            erasure = self.erasures[name]
            if erasure.unsettled and (how := relation(erasure, scope)) is not Relation.NONE:
                touching.append((erasure, how))
        return touching

    def of_subject(self, scope: Scope) -> list[Erasure]:
        """The tombstoned erasures that name a subject of `scope` and touch it, re-admitted ones too."""
        named = (self.erasures[name] for name in self._index.of_subjects(scope.subject))
        return [e for e in named if overlaps(e.predicate, scope)]

    def covering(self, predicate: Scope) -> Iterator[Erasure]:
        """Tombstoned erasures that surely hold all of `predicate`: what a repeated forget may join."""
        for name in self._index.holding(predicate):
            erasure = self.erasures[name]
            if not erasure.by_hand and covers(erasure.predicate, predicate):
                yield erasure

    def concerns(self, scope: Scope) -> bool:
        """Whether any erasure or tombstone may stand in the tenant of `scope`."""
        return self._index.in_tenant(scope.tenant)
