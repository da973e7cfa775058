"""The reconciler: walks the erasures that are due and moves each on by evidence until it is settled.

It holds no state of its own but where each erasure stands on the monotonic clock; a restart begins those
intervals again. One erasure is worked on by one task at a time; how many at once is bounded.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from quietus.core.due import Due, Progress, Work, due, pace
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.states import State
from quietus.erasures import Erasures
from quietus.forgets import Forgets, Stage
from quietus.ports import Conflict, LedgerError
from quietus.recording import Log, Measures
from quietus.rounds import Round, Rounds
from quietus.snapshots import PREDICATE, SNAPSHOT, Predicate, Snapshot
from quietus.snapshotter import Snapshotter
from quietus.timetable import Timetable

AT_ONCE: Final = 16
REMEDIES_A_RECORD: Final = 3
"""After so many deletes that did not hold, the record is a resurrection: no delete loop."""


class Reconciler:
    """Leases due work, probes, remedies, advances."""

    def __init__(
        self,
        erasures: Erasures,
        forgets: Forgets,
        rounds: Rounds,
        snapshotter: Snapshotter,
        timetable: Timetable,
        metrics: Measures,
        log: Log,
        entropy: random.Random,
        observing: Callable[[], bool],
    ) -> None:
        self._erasures = erasures
        self._forgets = forgets
        self._rounds = rounds
        self._snapshotter = snapshotter
        self._metrics = metrics
        self._log = log
        self._entropy = entropy
        self._observing = observing
        self._clock = erasures.clock
        self._table = timetable
        self._running: dict[str, asyncio.Task[None]] = {}
        self._remedied: dict[str, dict[str, int]] = {}

    async def run(self) -> None:
        """Works until cancelled."""
        try:
            while True:
                await self._next()
        finally:
            for task in list(self._running.values()):
                task.cancel()

    async def _next(self) -> None:
        self._table.woken.clear()
        now = self._clock.monotonic()
        while self._table.queue and self._table.queue[0][0] <= now and len(self._running) < AT_ONCE:
            _, name = heapq.heappop(self._table.queue)
            progress = self._table.standing.get(name)
            if progress is None or name in self._running or progress.next_at > now:
                continue
            task = asyncio.ensure_future(self._work(name, progress))
            self._running[name] = task
            task.add_done_callback(partial(self._finished, name))
        wait = 3600.0
        if self._table.queue and len(self._running) < AT_ONCE:
            wait = max(self._table.queue[0][0] - now, 0.0)
        timer = asyncio.ensure_future(self._clock.sleep(wait))
        woken = asyncio.ensure_future(self._table.woken.wait())
        try:
            await asyncio.wait({timer, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()

    def _finished(self, name: str, task: asyncio.Task[None]) -> None:
        self._running.pop(name, None)
        progress = self._table.standing.get(name)
        if progress is not None:
            self._table.push(name, progress.next_at)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("work_failed", erasure=name, error=type(error).__name__)

    async def _work(self, name: str, progress: Progress) -> None:
        now = self._clock.monotonic()
        # Until this piece of work says otherwise it is not due again at once: a fault must not spin.
        progress.next_at = now + 1.0
        try:
            await self._do(name, progress, now)
        except Conflict:
            progress.next_at = self._clock.monotonic()
        except LedgerError:
            progress.failures += 1
            self._again(name, progress)

    def _again(self, name: str, progress: Progress) -> None:
        erasure = self._erasures.gate.erasures[name]
        progress.next_at = pace(erasure, progress, self._clock.monotonic(), self._entropy.random())

    async def _do(self, name: str, progress: Progress, now: float) -> None:
        erasure = self._erasures.gate.erasures[name]
        if self._observing():
            await self._observe(erasure, progress, now)
            return
        await self._told(erasure, progress)
        await self._close_writes(self._erasures.gate.erasures[name])
        erasure = self._erasures.gate.erasures[name]
        what = due(erasure, progress, now)
        if what.overdue:
            await self._append(erasure, EventType.OVERDUE, {})
            erasure = self._erasures.gate.erasures[name]
        if what.work is Work.FORWARD:
            await self._forward(erasure, progress)
        elif what.work is Work.SETTLE:
            await self._settle(erasure)
        elif what.work in (Work.PROBE, Work.PATROL):
            await self._probe(erasure, progress, what)
        elif what.work is Work.NOTHING:
            progress.next_at = now + 60.0

    async def _observe(self, erasure: Erasure, progress: Progress, now: float) -> None:
        """Observe mode asks the store nothing: what was noted is let go when its interval has passed."""
        opens = progress.interval_from + erasure.terms.settling_interval
        if now < opens:
            progress.next_at = opens
            return
        draft = Draft(EventType.RELEASED, erasure.id, self._clock.now(), facts={"reason": "observed only"},
                      gate=True)
        await self._erasures.append([draft])

    async def _told(self, erasure: Erasure, progress: Progress) -> None:
        started = self._table.leaks.pop(erasure.id, None)
        if started is not None:
            await self._leak(erasure, progress, started, ["client"], "client")

    async def _close_writes(self, erasure: Erasure) -> None:
        wall = self._clock.now()
        over = [name for name, until in erasure.undrained.items() if until <= wall]
        for name in over:
            await self._append(erasure, EventType.WRITE_CLOSED, {"write": name, "cause": "bound"})

    async def _forward(self, erasure: Erasure, progress: Progress) -> None:
        driven = await self._forgets.drive(erasure)
        if driven.stage is Stage.ANSWERED:
            progress.failures = 0
            return
        progress.failures += 1
        self._again(erasure.id, progress)

    async def _settle(self, erasure: Erasure) -> None:
        draft = Draft(EventType.CLEAN, erasure.id, self._clock.now(), gate=True,
                      facts={"through": [s["name"] for s in erasure.surfaces if s["outcome"] == "CLEAN"]})
        await self._erasures.append([draft], expect=erasure)
        settled = self._erasures.gate.erasures[erasure.id]
        if settled.acknowledged_at is not None:
            self._metrics.observe("settling_seconds", max(0.0, draft.at - settled.acknowledged_at))
        self._log.info("settled", erasure=erasure.id, state=settled.state.value)
        await self._clean_up(settled)

    async def _clean_up(self, erasure: Erasure) -> None:
        found = await self._unsealed(erasure)
        if found is None or not found[1].canaries:
            return
        await self._snapshotter.remove_canaries(*found)

    async def _unsealed(self, erasure: Erasure) -> tuple[Predicate, Snapshot] | None:
        predicate = await self._erasures.unseal(erasure.id, PREDICATE)
        snapshot = await self._erasures.unseal(erasure.id, SNAPSHOT)
        if predicate is None or snapshot is None:
            return None
        return Predicate.unseal(predicate), Snapshot.unseal(snapshot)

    # --- probing -------------------------------------------------------------------------------

    async def _probe(self, erasure: Erasure, progress: Progress, what: Due) -> None:
        if erasure.state is State.SETTLED and await self._watch_over(erasure):
            return
        found = await self._unsealed(erasure)
        if found is None:
            progress.next_at = self._clock.monotonic() + 60.0
            return
        predicate, snapshot = found
        began = self._clock.monotonic()
        result = await self._rounds.run(erasure, snapshot, progress.rounds, began)
        progress.rounds += 1
        current = self._erasures.gate.erasures[erasure.id]
        if current.base_version != erasure.base_version:
            progress.next_at = self._clock.monotonic()
            return  # something happened meanwhile: this round says nothing about what is now
        await self._note_round(current, result, what)
        if result.outcome == "leaking":
            await self._leak(current, progress, began, result.leaking, "probe")
            await self._remedy(current, predicate, result)
        elif result.controls_lost and result.outcome == "inconclusive":
            await self._renew_controls(current, predicate, snapshot)
        progress.failures = progress.failures + 1 if result.outcome == "inconclusive" else 0
        self._again(erasure.id, progress)

    async def _note_round(self, erasure: Erasure, result: Round, what: Due) -> None:
        if erasure.state is State.SETTLED and result.outcome == "clean":
            return  # a patrol that finds nothing is counted, not chained
        facts: dict[str, Any] = {
            "outcome": result.outcome,
            "counted": what.counted,
            "surfaces": result.surfaces,
        }
        if result.read_epoch is not None:
            facts["read_epoch"] = result.read_epoch
            if erasure.read_epoch is not None and result.read_epoch < erasure.read_epoch:
                self._metrics.count("violations", cause="epoch_regression")
                await self._append(erasure, EventType.LEAKED_LATE, {"cause": "epoch_regression"}, gate=True)
        await self._append(erasure, EventType.ROUND, facts)

    async def _leak(
        self, erasure: Erasure, progress: Progress, started: float, surfaces: list[str], seen: str
    ) -> None:
        late = started >= progress.bound_at and erasure.state is not State.SETTLED
        kind = EventType.LEAKED_LATE if late else EventType.LEAKED
        was = erasure.state
        await self._append(erasure, kind, {"surfaces": surfaces, "seen": seen}, gate=True)
        now = self._erasures.gate.erasures[erasure.id]
        if now.terms.claims_completion:
            for surface in surfaces:
                self._metrics.count("premature_assurance", surface=surface)
        if now.exposure_seconds is not None:
            self._metrics.observe("exposure_seconds", now.exposure_seconds)
        if was is State.SETTLED:
            self._metrics.count("resurrections", vector="relapse")
        if now.state is State.VIOLATION and was is not State.VIOLATION:
            self._metrics.count("violations", cause="late_leak")
        self._log.info("leak", erasure=erasure.id, state=now.state.value, surfaces=sorted(surfaces))

    async def _remedy(self, erasure: Erasure, predicate: Predicate, result: Round) -> None:
        if erasure.held or erasure.readmitted or not result.residual:
            return
        done = self._remedied.setdefault(erasure.id, {})
        count = await self._rounds.remedy(predicate, result.residual, done, REMEDIES_A_RECORD)
        if count:
            await self._append(erasure, EventType.REMEDIED, {"count": count})

    async def _renew_controls(self, erasure: Erasure, predicate: Predicate, snapshot: Snapshot) -> None:
        renewed = Snapshot.unseal(snapshot.seal())
        renewed.controls.clear()
        await self._snapshotter.find_controls(predicate, renewed)
        if not renewed.controls:
            return
        await self._erasures.append(
            [Draft(EventType.RESTARTED, erasure.id, self._clock.now(), facts={"cause": "controls renewed"})],
            secrets=[self._erasures.seal(erasure.id, SNAPSHOT, renewed.seal())],
        )

    async def _watch_over(self, erasure: Erasure) -> bool:
        assert erasure.settled_at is not None
        if self._clock.now() < erasure.settled_at + erasure.terms.watch_for:
            return False
        await self._append(erasure, EventType.WATCH_ENDED, {})
        await self._erasures.destroy(erasure.id)
        return True

    async def _append(
        self, erasure: Erasure, kind: EventType, facts: dict[str, Any], gate: bool = False
    ) -> None:
        await self._erasures.append([Draft(kind, erasure.id, self._clock.now(), facts=facts, gate=gate)])
