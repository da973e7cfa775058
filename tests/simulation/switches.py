"""Each protection, switched off: here and nowhere else, for the length of one simulation.

The product has no such switch. Each function below replaces, in the real classes, the one thing that is the
protection; the names are those of the table in docs/negative-controls.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from quietus import reconciler, rounds, timetable
from quietus.arrivals import Arrivals
from quietus.core import due, gate
from quietus.core.events import Event, EventType
from quietus.core.gate import Gate, Relation
from quietus.core.states import State
from quietus.erasures import Erasures
from quietus.flights import Flight, Flights
from quietus.forgets import Forgets
from quietus.release import Releaser
from quietus.snapshotter import Snapshotter
from tests.simulation.replica_switches import OF_REPLICAS

Patch = tuple[Any, str, Any]


def _fence() -> list[Patch]:
    real = Gate.restricting

    def restricting(self: Gate, *a: Any, **k: Any) -> Any:
        return [pair for pair in real(self, *a, **k) if pair[0].state is not State.REQUESTED]

    return [(Gate, "restricting", restricting)]


def _barrier() -> list[Patch]:
    async def drain(self: Flights, *_: Any) -> bool:
        return True

    return [(Flights, "drain", drain)]


def _durable_intent() -> list[Patch]:
    async def write(
        self: Erasures, drafts: Any, expect: Any, epoch: Any, marks: Any, secrets: Any, unmark: Any, *_: Any
    ) -> Any:
        late = asyncio.ensure_future(
            self.ledger.append(drafts, marks=marks, secrets=secrets, unmark=unmark)
        )
        late.add_done_callback(lambda task: task.cancelled() or task.exception())
        events = [
            Event(self.number + place, d.type, d.erasure, d.at, d.actor, d.facts, d.gate, "")
            for place, d in enumerate(drafts, 1)
        ]
        self._fold(events, marks, unmark)
        return events

    return [(Erasures, "_write", write)]


def _forwarded() -> list[Patch]:
    real = Erasures.append

    async def append(self: Erasures, drafts: Any, *, expect: Any = None, **more: Any) -> Any:
        if drafts[0].type is not EventType.FORWARDED:
            return await real(self, drafts, expect=expect, **more)
        late = asyncio.ensure_future(real(self, drafts, **more))
        late.add_done_callback(lambda task: task.cancelled() or task.exception())
        return []

    return [(Erasures, "append", append)]


def _release() -> list[Patch]:
    return [
        (Arrivals, "blocked", lambda self, flight: False),
        (Arrivals, "_concerned", lambda self, flight: flight.concerned),
        (Flights, "fence", lambda self, erasure, decide: None),
    ]


def _strictest() -> list[Patch]:
    def hold(self: Flight, decision: Any) -> None:
        self.decision, self.touched = decision, decision.overlaps

    return [(Flight, "hold", hold)]


def _absorption() -> list[Patch]:
    return [(Forgets, "joinable", lambda self, question: None)]


def _interval() -> list[Patch]:
    def at_once(erasure: Any, progress: Any, now: float) -> Any:
        return due.due(erasure, replace(progress, interval_from=-1e9), now)

    return [(reconciler, "due", at_once)]


def _rounds() -> list[Patch]:
    def enough(erasure: Any) -> bool:
        return erasure.clean_streak >= 1 and erasure.streak_base == erasure.base_version

    return [(due, "_rounds_enough", enough)]


def _restart() -> list[Patch]:
    real = gate.advance
    leaks = {EventType.LEAKED, EventType.LEAKED_LATE}

    def advance(before: Any, event: Event) -> Any:
        after = real(before, event)
        if event.type not in leaks or before is None:
            return after
        return replace(
            after, clean_streak=before.clean_streak, streak_base=before.streak_base,
            base_version=before.base_version,
        )  # fmt: skip

    return [(gate, "advance", advance), (timetable, "DISTURBANCES", timetable.DISTURBANCES - leaks)]


def _compare_and_set() -> list[Patch]:
    real = Erasures.append

    async def append(self: Erasures, drafts: Any, *, expect: Any = None, **more: Any) -> Any:
        if drafts[0].type is EventType.CLEAN:
            expect = None
        return await real(self, drafts, expect=expect, **more)

    return [(Erasures, "append", append)]


def _controls() -> list[Patch]:
    real = rounds.judge

    def judge(surface: Any, findings: Any, *a: Any, **k: Any) -> Any:
        found = real(surface, findings, *a, **k)
        answered = all(f.readable for f in findings if not f.control)
        return found | {"outcome": "CLEAN"} if found["outcome"] == "INCONCLUSIVE" and answered else found

    return [(rounds, "judge", judge)]


def _ancestors() -> list[Patch]:
    real = Gate.restricting

    def restricting(self: Gate, *a: Any, **k: Any) -> Any:
        return [pair for pair in real(self, *a, **k) if pair[1] is Relation.INSIDE]

    return [(Gate, "restricting", restricting)]


def _scalars() -> list[Patch]:
    real = Releaser._screened

    class Mute:
        def __init__(self, answered: Any) -> None:
            self.items = answered.items

        def scalars(self) -> Iterator[Any]:
            return iter((item.position, "") for item in self.items)

    def screened(self: Releaser, reading: Any, answered: Any, *a: Any) -> Any:
        return real(self, reading, Mute(answered), *a)  # type: ignore[arg-type]

    return [(Releaser, "_screened", screened)]


def _unattributable() -> list[Patch]:
    real = Releaser._screened

    def screened(self: Releaser, *a: Any) -> Any:
        kept = Gate.restricting
        Gate.restricting = lambda *_: []  # type: ignore[method-assign,assignment]
        try:
            return real(self, *a)
        finally:
            Gate.restricting = kept  # type: ignore[method-assign]

    return [(Releaser, "_screened", screened)]


def _paging() -> list[Patch]:
    real = Snapshotter._list

    async def first_page(self: Snapshotter, surface: Any, *a: Any) -> None:
        page = surface.page
        surface.page = None
        try:
            await real(self, surface, *a)
        finally:
            surface.page = page

    return [(Snapshotter, "_list", first_page)]


def _overtaken() -> list[Patch]:
    real = Flights.fence

    def fence(self: Flights, erasure: Any, decide: Any) -> None:
        real(self, erasure, decide)
        for flight in self._open:
            flight.overtaken.clear()

    return [(Flights, "fence", fence)]


PROTECTIONS: Final[dict[str, Callable[[], list[Patch]]]] = {
    "fence before forward": _fence,
    "barrier before forward": _barrier,
    "durable intent": _durable_intent,
    "FORWARDED before send": _forwarded,
    "check at release": _release,
    "strictest over the interval": _strictest,
    "retry absorption": _absorption,
    "settling interval": _interval,
    "N clean rounds": _rounds,
    "restart of rounds after a leak": _restart,
    "compare-and-set of CLEAN": _compare_and_set,
    "positive and live probe controls": _controls,
    "ancestor gating": _ancestors,
    "screening of every scalar": _scalars,
    "holding back the unattributable": _unattributable,
    "paging of the snapshot": _paging,
    "aborting overtaken answers": _overtaken,
    **OF_REPLICAS,
}
"""Every protection by its name."""


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Switches one protection off; "" switches nothing off."""
    patches = PROTECTIONS[name]() if name else []
    kept = [(owner, attribute, getattr(owner, attribute)) for owner, attribute, _ in patches]
    for owner, attribute, value in patches:
        setattr(owner, attribute, value)
    try:
        yield
    finally:
        for owner, attribute, value in kept:
            setattr(owner, attribute, value)
