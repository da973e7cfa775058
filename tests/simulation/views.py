"""The judge over several replicas: each answer is held against what its replica had to know by then.

A replica gates on what it has read of the ledger, and answers of it are judged by that. Two things it has to
know whether it has read them or not, because a forget waits for it: of an erasure before its snapshot begins
(the first barrier), and of the snapshot's marks before the forget goes to the store (the second). And no
replica answers that has not read what is older than a lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from quietus.core.events import Event
from quietus.core.exchange import Reply, Request, header
from tests.simulation.calls import Call, Released
from tests.simulation.judge import RECALLS, Judge
from tests.simulation.monitor import Monitor
from tests.simulation.network import Witness
from tests.simulation.plan import INTERVAL
from tests.simulation.truth import Erased, Truth

DRIFT: Final = 0.02
"""How much faster or slower than true time a machine's clock may run."""


class View(Truth):
    """What one replica knows of the truth, and since when."""

    def __init__(self, whole: Truth) -> None:
        super().__init__()
        self._whole = whole
        self.carried, self.steps = whole.carried, whole.steps
        self.pending, self.past = whole.pending, whole.past
        self.number = 0
        """The newest event that it has read."""

    def next(self) -> int:
        self.tick = self._whole.next()
        return self.tick

    def learned(self, event: Event) -> None:
        """It has read an event."""
        if event.number > self.number:
            self.number = event.number
            self._fold(event, self.next())

    def has_to_know(self, event: Event) -> None:
        """It has to know of this one, whether it has read it or not."""
        self._fold(event, self.next())

    def _change(self, erased: Erased, kind: str, event: Event, tick: int) -> None:
        if kind != "snapshotted":
            super()._change(erased, kind, event, tick)
        elif erased.snapshotted is None:
            erased.snapshotted = tick

    def looks(self) -> None:
        """Takes over what is known of the store, which is the same for all."""
        self.tick = self._whole.tick
        for name, erased in self.erased.items():
            same = self._whole.erased[name]
            erased.generation, erased.whole = same.generation, same.whole
            erased.seen, erased.bearers = same.seen, same.bearers


class SharedMonitor(Monitor):
    """The judge of the ledger, where clocks run a little fast or slow."""

    def _interval(self, event: Event, mine: Any, now: float, what: str) -> None:
        super()._interval(event, mine, now + INTERVAL * DRIFT, what)


class SharedJudge(Judge):
    """Follows every call through whichever replica."""

    def __init__(
        self, replicas: int, lease: float, now: Callable[[], float], read: Callable[[int], int]
    ) -> None:
        """`now` tells true seconds, `read` the newest event that a replica has read."""
        super().__init__()
        self.views = [View(self.truth) for _ in range(replicas)]
        self.listed = [False] * replicas
        """Whether each is in the roster."""
        self.epochs: dict[int, int] = {}
        """The epoch that a forget was answered with, by its step."""
        self._lease = lease
        self._now = now
        self._read = read
        self._written_at: list[float] = []
        self._intents: dict[str, Event] = {}
        self._snapshots: dict[str, Event] = {}

    # --- the ledger ------------------------------------------------------------------------------

    def written(self, events: Sequence[Event]) -> None:
        """These are durable."""
        self.truth.known(events)
        for event in events:
            self._written_at.append(self._now())
            kind, known = event.type.value, None
            if kind == "requested":
                self._intents[event.erasure] = event
            elif kind == "snapshotted":
                self._snapshots[event.erasure] = event
                known = self._intents[event.erasure]
            elif kind == "forwarded":
                known = self._snapshots.get(event.erasure)
            for view in self.views if known is not None else ():
                view.has_to_know(known)

    def loaded(self, replica: int, events: Sequence[Event]) -> None:
        """A new process of it has read these."""
        for event in events:
            self.views[replica].learned(event)

    # --- what leaves for clients -----------------------------------------------------------------

    def released(self, call: Call, out: Released, *, whole: bool) -> None:
        view, truth = self.views[call.step["via"]], self.truth
        view.looks()
        if call.step["do"] in RECALLS and out.status < 300:
            self._current(call)
        self.truth = view
        try:
            super().released(call, out, whole=whole)
        finally:
            self.truth = truth

    def _current(self, call: Call) -> None:
        number, now = self._read(call.step["via"]), self._now()
        if number < len(self._written_at) and now > self._written_at[number] + self._lease:
            late = now - self._written_at[number]
            self.find("stale", call.step["n"], f"answered without an event that is {late:.2f} s old")
        if (asked := call.step.get("epoch_of")) in self.epochs and self.epochs[asked] > number:
            self.find("epoch", call.step["n"], f"answered at {number}, asked for {self.epochs[asked]}")

    def _promise(self, number: int, out: Released) -> None:
        super()._promise(number, out)
        told = header(out.headers, "quietus-erasure") or ""
        if out.status < 300 and "epoch=" in told:
            self.epochs[number] = int(told.partition("epoch=")[2].partition(";")[0])

    # --- replicas that are lost ------------------------------------------------------------------

    def lost(self, replica: int, *, dead: bool) -> None:
        """Nobody waits for a replica any more: what it had sent has no sender, as far as others know."""
        mine = {number for number, call in self.calls.items() if call.step.get("via") == replica}
        for records in self.truth.carried.values():
            for written in records:
                written.orphan = written.orphan or written.step in self.writing & mine
        self.writing -= mine
        for erased in self.truth.erased.values():
            if erased.snapshotted is None:
                erased.seen.clear()
        if dead:
            for number in [number for number in self.truth.pending if number in mine]:
                self.truth.asked_no_more(number)


class Seat(Witness):
    """Sees what passes between one replica and the store."""

    def __init__(self, judge: SharedJudge, replica: int) -> None:
        self._judge = judge
        self._replica = replica

    def patience(self, step: str) -> float:
        return self._judge.patience(step)

    def sent(self, step: str, request: Request, purpose: str) -> None:
        self._judge.sent(step, request, purpose)

    def handled(self, step: str, request: Request, reply: Reply) -> None:
        self._judge.handled(step, request, reply)

    def answered(self, step: str, request: Request, reply: Reply) -> None:
        # What one that nobody waits for still sees is no part of the snapshot that another one takes.
        if step or self._judge.listed[self._replica]:
            self._judge.answered(step, request, reply)

    def arrived(self, step: str) -> None:
        self._judge.arrived(step)
