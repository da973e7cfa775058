"""What one commit to a shared ledger is to do, worked out beforehand from what was looked up.

The server is asked twice: to say how the ledger stands, and to write all of a plan if it still stands so.
Between the two nothing is held: a process that is frozen there holds nobody up, and its plan is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quietus.core.events import Draft, Event, EventType
from quietus.core.fingerprint import Mark
from quietus.ledger.chain import Batch, Row, event_of, extend
from quietus.ledger.memory import GATE_MOVED, MOVED
from quietus.ports import Conflict, Head

FENCED: Final = frozenset(
    {
        EventType.SNAPSHOTTED,
        EventType.FORWARDED,
        EventType.ROUND,
        EventType.CLEAN,
        EventType.OVERDUE,
        EventType.WATCH_ENDED,
    }
)
"""Events that only whoever holds the work on an erasure may write. What was seen is written by anybody."""
NOT_HELD: Final = "another replica works on this erasure: it goes on there"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a ledger says of itself, and of some erasures."""

    head: Head
    key_ids: frozenset[str]
    newest: Mapping[str, int] = field(default_factory=dict)
    """The number of the newest event of each erasure that was asked for."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One append, with what its writer holds."""

    batch: Batch
    fences: tuple[tuple[str, int], ...] = ()
    """Erasures whose work must still be held, under which generation; 0: it is not held at all."""
    claims: tuple[str, ...] = ()
    """Erasures whose work its writer takes on with it: those that it asks for."""


@dataclass(slots=True)
class Plan:
    """All that one commit writes, if the ledger still ends at `before`."""

    before: Head
    after: Head
    rows: list[Row] = field(default_factory=list)
    unmark: set[str] = field(default_factory=set)
    marks: dict[tuple[str, int], list[Mark]] = field(default_factory=dict)
    """By erasure and the event that they come with."""
    secrets: dict[tuple[str, str], bytes] = field(default_factory=dict)
    fences: set[tuple[str, int]] = field(default_factory=set)
    claims: list[str] = field(default_factory=list)
    outcomes: list[list[Event] | Conflict] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.rows or self.secrets)


def plan(standing: Standing, asked: Sequence[Asked]) -> Plan:
    """The plan for some appends, each judged after those before it; only conflicts fail alone."""
    made = Plan(standing.head, standing.head)
    newest = dict(standing.newest)
    for one in asked:
        batch = one.batch
        conflict = _conflict(one, newest, made.after)
        if conflict is not None:
            made.outcomes.append(conflict)
            continue
        made.after, rows = extend(made.after, batch.drafts)
        made.rows += rows
        newest.update((row.erasure, row.number) for row in rows)
        _keep(made, batch)
        made.fences.update(one.fences)
        made.claims += one.claims
        made.outcomes.append([event_of(row) for row in rows])
    return made


def _conflict(one: Asked, newest: Mapping[str, int], head: Head) -> Conflict | None:
    batch = one.batch
    if any(not generation for _, generation in one.fences):
        return Conflict(NOT_HELD)
    if batch.expect is not None and newest.get(batch.expect[0], 0) != batch.expect[1]:
        return Conflict(MOVED)
    if batch.epoch is not None and batch.epoch != head.gate_epoch:
        return Conflict(GATE_MOVED)
    return None


def _keep(made: Plan, batch: Batch) -> None:
    for erasure in batch.unmark:
        made.unmark.add(erasure)
        for place in [place for place in made.marks if place[0] == erasure]:
            del made.marks[place]
    for erasure, mark in batch.marks:
        made.marks.setdefault((erasure, made.after.number), []).append(mark)
    for erasure, name, sealed in batch.secrets:
        made.secrets[erasure, name] = bytes(sealed)


def erasures_of(asked: Sequence[Asked]) -> list[str]:
    """The erasures whose newest event has to be looked up."""
    return sorted({one.batch.expect[0] for one in asked if one.batch.expect is not None})


def fenced(drafts: Sequence[Draft], held: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """What a replica that holds this work has to be asked for when it writes these."""
    names = {draft.erasure for draft in drafts if draft.type in FENCED}
    return tuple((name, held.get(name, 0)) for name in sorted(names))
