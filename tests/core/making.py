"""Erasures for the tests of the core, made the only way there is: event after event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from quietus.core.erasure import Erasure, advance
from quietus.core.events import Event, EventType, scope_to_facts
from quietus.core.fingerprint import Mark, marks_of
from quietus.core.gate import Gate
from quietus.core.policy import Policy
from quietus.core.scope import Atom, Scope
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.policies import SHIPPED, load_policy

TERMS = Terms(settling_interval=900.0, effectuation_bound=1800.0, clean_rounds=3)
POLICIES: dict[str, Policy] = {name: load_policy(name) for name in SHIPPED}

_E = EventType
WAYS: dict[State, tuple[EventType, ...]] = {
    State.REQUESTED: (),
    State.SETTLING: (_E.ACCEPTED,),
    State.LEAKING: (_E.ACCEPTED, _E.LEAKED),
    State.VIOLATION: (_E.ACCEPTED, _E.LEAKED_LATE),
    State.SETTLED: (_E.ACCEPTED, _E.CLEAN),
    State.RELAPSED: (_E.ACCEPTED, _E.CLEAN, _E.LEAKED),
    State.REFUSED: (_E.REFUSED,),
    State.RELEASED: (_E.ACCEPTED, _E.RELEASED),
}
"""The happenings that lead from REQUESTED to each state."""


def pseudonym(kind: str, value: str) -> bytes:
    return blake2b(f"{kind}\0{value}".encode(), digest_size=16, key=b"test").digest()


def digest(kind: str, data: bytes) -> bytes:
    return blake2b(kind.encode() + b"\0" + data, digest_size=16, key=b"test").digest()


def digested(scope: Scope) -> Scope:
    """A raw scope as the gateway would hand it to the core."""

    def atoms(name: str) -> Any:
        values = getattr(scope, name)
        return frozenset(_atom(name, v) for v in values) if isinstance(values, frozenset) else values

    path = scope.path
    if isinstance(path, frozenset):
        path = frozenset(tuple(_atom("path", segment) for segment in one) for one in path)
    return Scope(atoms("tenant"), atoms("subject"), atoms("purpose"), path, atoms("key"))


def _atom(kind: str, value: Atom) -> bytes:
    return value if isinstance(value, bytes) else pseudonym(kind, value)


def scope(**dimensions: str | tuple[str, ...]) -> Scope:
    """A digested scope: a value or several of each dimension; a path is written with slashes."""
    raw: dict[str, Any] = {}
    for name, given in dimensions.items():
        several = (given,) if isinstance(given, str) else given
        raw[name] = frozenset(tuple(v.split("/")) if name == "path" else v for v in several)
    return digested(Scope(**raw))


def event(
    number: int, kind: EventType, erasure: str = "er_1", at: float = 0.0, *, gate: bool = False, **facts: Any
) -> Event:
    return Event(number, kind, erasure, at, "test", facts, gate, "")


def requested(
    number: int, predicate: Scope, erasure: str = "er_1", at: float = 0.0, terms: Terms = TERMS, **facts: Any
) -> Event:
    every = {"store": "s", "terms": asdict(terms), "predicate": scope_to_facts(predicate), **facts}
    return event(number, EventType.REQUESTED, erasure, at, gate=True, **every)


class Story:
    """One erasure, told event by event."""

    def __init__(self, predicate: Scope | None = None, at: float = 1000.0, terms: Terms = TERMS) -> None:
        self.number = 1
        self.at = at
        self.erasure = advance(None, requested(1, predicate or scope(subject="alice"), at=at, terms=terms))

    def then(self, kind: EventType, at: float | None = None, **facts: Any) -> Erasure:
        """The erasure after one event more."""
        self.number += 1
        self.at = self.at + 1 if at is None else at
        self.erasure = advance(self.erasure, event(self.number, kind, at=self.at, **facts))
        return self.erasure

    def acknowledged(self, **facts: Any) -> Erasure:
        """Forwarded and accepted."""
        self.then(EventType.SNAPSHOTTED, witnesses=1, lineage={"complete": True})
        self.then(EventType.FORWARDED)
        return self.then(EventType.ACCEPTED, **facts)

    def round(self, outcome: str = "clean", counted: bool = True, **facts: Any) -> Erasure:
        """One round of probes."""
        facts.setdefault("surfaces", [surface()])
        return self.then(EventType.ROUND, outcome=outcome, counted=counted, **facts)


def surface(
    name: str = "record", kind: str = "primary", outcome: str = "CLEAN", control: str = "live"
) -> dict[str, Any]:
    """The outcome of one surface as a round notes it."""
    return {"name": name, "kind": kind, "outcome": outcome, "control": control, "residual": 0, "reason": ""}


class World:
    """A gate, and erasures brought into it in any state."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate or Gate()
        self.number = 0

    def happen(self, name: str, kind: EventType, **facts: Any) -> Erasure:
        self.number += 1
        after = self.gate.apply(event(self.number, kind, name, float(self.number), gate=True, **facts))
        assert after is not None
        return after

    def erase(
        self, predicate: Scope, state: State = State.SETTLING, *, readmitted: bool = False, name: str = ""
    ) -> Erasure:
        self.number += 1
        name = name or f"er_{self.number}"
        after = self.gate.apply(requested(self.number, predicate, name))
        for kind in WAYS[state]:
            after = self.happen(name, kind)
        if readmitted:
            after = self.happen(name, EventType.READMITTED)
        assert after is not None
        assert after.state is state
        return after

    def mark(self, erasure: Erasure, *marks: Mark, texts: Iterable[str] = ()) -> None:
        """Marks of the erasure: those given, and those that the texts leave."""
        self.gate.mark(erasure.id, [*marks, *(mark for text in texts for mark in marks_of(text, digest))])
