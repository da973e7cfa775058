"""Calls that are on their way: what a fence has to wait for, and what it overtakes.

A recall is decided again when its answer leaves; the strictest decision that held since its upstream call
started wins. An answer that is still being written when a fence lands in its scope is aborted. A write
that has been sent must come back before the forget is forwarded; one whose outcome stays unknown delays
settling instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from quietus.core.decision import Decision, Question, stricter
from quietus.core.erasure import Erasure
from quietus.core.events import Event, EventType, scope_from_facts
from quietus.core.operations import Operation
from quietus.core.policy import Mode
from quietus.core.scope import Scope, overlaps
from quietus.ports import Clock

UNKNOWN_WRITES: Final = 10_000
"""Writes of unknown outcome remembered for forgets to come; at the bound the oldest is dropped, and what
it might have delayed is delayed by its own bound instead (the settling interval)."""


@dataclass(slots=True, eq=False)
class Flight:
    """One call between its admission and the last byte of its answer."""

    question: Question
    decision: Decision
    started: float
    """Monotonic second at which its upstream call started."""
    touched: bool = False
    """An unsettled erasure overlapped it at some time since then."""
    concerned: bool = False
    """An erasure or tombstone stood in its tenant at some time since then."""
    sent: bool = False
    releasing: bool = False
    met: dict[str, Erasure] = field(default_factory=dict)
    """Erasures whose gate changed in its scope while it was under way: settled by now or not, its answer
    was begun before."""
    overtaken: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def hold(self, decision: Decision) -> None:
        """Remembers the stricter of what held before and what holds now."""
        self.decision = stricter(self.decision, decision, self.question.call.operation)
        self.touched = self.touched or decision.overlaps


@dataclass(frozen=True, slots=True)
class UnknownWrite:
    """A write that may or may not land yet, and until when that matters (monotonic seconds).

    Its name is that of the record where the store named one: what finds and removes the record can then
    close the write.
    """

    name: str
    scope: Scope
    until: float


def write_name(key: bytes) -> str:
    """The name of a write whose record is known, from the digest of its key."""
    return f"k:{key.hex()}"


class Flights:
    """Every call under way. One event loop owns it."""

    def __init__(self, clock: Clock, new_id: Callable[[], str]) -> None:
        self._clock = clock
        self._new_id = new_id
        self._open: dict[Flight, None] = {}  # in the order in which they came
        self._unknown: list[UnknownWrite] = []

    def __len__(self) -> int:
        return len(self._open)

    def open(self, question: Question, decision: Decision, concerned: bool) -> Flight:
        """Enters a call. It must be closed, whatever happens to it."""
        flight = Flight(
            question,
            decision,
            self._clock.monotonic(),
            touched=decision.overlaps,
            concerned=concerned,
        )
        self._open[flight] = None
        return flight

    def close(self, flight: Flight) -> None:
        """Takes a call out: its last byte is written, or it was aborted. Closing twice changes nothing."""
        self._open.pop(flight, None)
        flight.done.set()

    def fence(self, erasure: Erasure, decide: Callable[[Question], Decision]) -> None:
        """A gate has changed: every call under way in that scope is decided again, open answers aborted."""
        for flight in self._open:
            flight.concerned = True
            if not overlaps(erasure.predicate, flight.question.scope):
                continue
            flight.met[erasure.id] = erasure
            flight.hold(decide(flight.question))
            enforced = flight.decision.mode is Mode.ENFORCE
            if flight.releasing and erasure.unsettled and enforced:
                flight.overtaken.set()

    def ordered(self, event: Event, decide: Callable[[Question], Decision]) -> None:
        """An override has begun or ended: calls under way are decided again, what it let out is aborted."""
        if event.type is not EventType.OVERRIDDEN:
            return
        scope = scope_from_facts(event.facts["scope"])
        for flight in self._open:
            if not overlaps(scope, flight.question.scope):
                continue
            before = flight.decision
            flight.hold(decide(flight.question))
            if flight.releasing and flight.decision.effect is not before.effect:
                flight.overtaken.set()

    def lapse(self) -> None:
        """What others have forgotten is not known here any more: no answer goes on leaving."""
        for flight in self._open:
            if flight.releasing and flight.decision.mode is Mode.ENFORCE:
                flight.overtaken.set()

    def release(self, flight: Flight) -> None:
        """Its answer is about to leave: from here a fence aborts it."""
        flight.releasing = True

    def unknown(self, scope: Scope, seconds: float, key: bytes | None = None) -> None:
        """Remembers a write that may land within `seconds`; `key` is the digest of its record's key."""
        name = write_name(key) if key is not None else f"w:{self._new_id()}"
        if len(self._unknown) >= UNKNOWN_WRITES:
            self._unknown.pop(0)
        self._unknown.append(UnknownWrite(name, scope, self._clock.monotonic() + seconds))

    def landed(self, keys: Iterable[bytes]) -> None:
        """These records were seen and removed: their writes can land no more."""
        over = {write_name(key) for key in keys}
        self._unknown = [write for write in self._unknown if write.name not in over]

    def unknown_in(self, predicate: Scope) -> list[UnknownWrite]:
        """Writes of unknown outcome that may still land in a scope."""
        now = self._clock.monotonic()
        self._unknown = [write for write in self._unknown if write.until > now]
        return [write for write in self._unknown if overlaps(predicate, write.scope)]

    def undrained(self, predicate: Scope) -> bool:
        """Whether a sent write or a leaving answer of that scope is left."""
        return any(self._drains(flight, predicate) for flight in self._open)

    async def drain(self, predicate: Scope, seconds: float) -> bool:
        """Waits until no sent write and no leaving answer of that scope is left; False when time ran out."""
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            while waiting := [f for f in self._open if self._drains(f, predicate)]:
                done = asyncio.ensure_future(waiting[0].done.wait())
                try:
                    await asyncio.wait({timer, done}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    done.cancel()
                if timer.done() and not waiting[0].done.is_set():
                    return False
            return True
        finally:
            timer.cancel()

    @staticmethod
    def _drains(flight: Flight, predicate: Scope) -> bool:
        writes = flight.sent and flight.question.call.operation is Operation.WRITE
        return (writes or flight.releasing) and overlaps(predicate, flight.question.scope)
