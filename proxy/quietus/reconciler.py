"""The reconciler: walks the erasures that are due and moves each on by evidence until it is settled.

It holds no state of its own but where each erasure stands on the monotonic clock; a restart begins those
intervals again. One erasure is worked on by one task at a time; how many at once is bounded.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from quietus.barrier import Sharing
from quietus.core.due import Due, Progress, Work, due, pace
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.policy import Mode, Policy
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.core.verdict import Verdict, Word
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.forgets import Forgets, Stage
from quietus.inquiry import Inquiry
from quietus.patience import within
from quietus.ports import Conflict, LedgerError
from quietus.recording import Log, Measures
from quietus.timetable import Timetable

AT_ONCE: Final = 16


class Reconciler:
    """Leases due work, probes, remedies, advances."""

    def __init__(
        self,
        erasures: Erasures,
        forgets: Forgets,
        inquiry: Inquiry,
        flights: Flights,
        timetable: Timetable,
        metrics: Measures,
        log: Log,
        entropy: random.Random,
        policy: Callable[[], Policy],
        verdict: Callable[[Erasure], Verdict],
        sharing: Sharing,
        terms: Callable[[], Terms],
    ) -> None:
        self._terms = terms
        self._erasures = erasures
        self._forgets = forgets
        self._inquiry = inquiry
        self._flights = flights
        self._metrics = metrics
        self._log = log
        self._entropy = entropy
        self._policy = policy
        self._verdict = verdict
        self._sharing = sharing
        self._clock = erasures.clock
        self._table = timetable
        self._running: dict[str, asyncio.Task[None]] = {}

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
        await self._bury()
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
        await within(self._clock, self._table.woken, wait)

    def _finished(self, name: str, task: asyncio.Task[None]) -> None:
        self._running.pop(name, None)
        progress = self._table.standing.get(name)
        if progress is not None:
            self._table.push(name, progress.next_at)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("work_failed", erasure=name, exc_info=error)

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
        now = self._clock.monotonic()
        at = pace(erasure, progress, now, self._entropy.random())
        if erasure.unsettled and not erasure.overdue and progress.bound_at > now:
            at = min(at, progress.bound_at)  # whatever it waits for: being overdue is noticed in time
        progress.next_at = now if name in self._table.leaks else at  # told while it was busy

    async def _do(self, name: str, progress: Progress, now: float) -> None:
        erasure = self._erasures.gate.erasures[name]
        # What only a rule observed was never asked about either, and cannot settle.
        observing = self._policy().mode is Mode.OBSERVE or erasure.dossier.observed
        if not observing:
            # What was seen here is written down here, whoever works on the erasure.
            await self._told(erasure, progress)
            await self._heard(self._erasures.gate.erasures[name])
        if not await self._sharing.hold(name):
            self._elsewhere(self._erasures.gate.erasures[name], progress)
            return
        if observing:
            await self._observe(erasure, progress, now)
            return
        await self._over(self._erasures.gate.erasures[name])
        await self._harden(self._erasures.gate.erasures[name])
        erasure = self._erasures.gate.erasures[name]
        what = due(erasure, progress, now)
        if what.overdue:
            await self._append(erasure, EventType.OVERDUE, {})
            # What was due was due of what it was before: it may have been disturbed while this was written.
            erasure = self._erasures.gate.erasures[name]
            what = due(erasure, progress, now)
        if what.work is Work.FORWARD:
            await self._forward(erasure, progress)
        elif what.work is Work.SETTLE:
            await self._settle(erasure)
        elif what.work in (Work.PROBE, Work.PATROL):
            await self._inquire(erasure, progress, what)
        elif what.work is Work.NOTHING:
            progress.next_at = now + 60.0

    async def _harden(self, erasure: Erasure) -> None:
        """What has to be waited for may grow until it is settled: an exemption falls, a reload says so."""
        if not erasure.unsettled or erasure.by_hand:
            return
        was, now = erasure.terms, erasure.terms.stricter(self._terms())
        if (was.settling_interval, was.clean_rounds) != (now.settling_interval, now.clean_rounds):
            await self._append(erasure, EventType.RESTARTED, {"cause": "terms", "terms": asdict(now)})

    def _elsewhere(self, erasure: Erasure, progress: Progress) -> None:
        """Another replica works on it; it is asked for again, in case that one is lost."""
        if erasure.state is State.SETTLED:
            self._again(erasure.id, progress)
        else:
            progress.next_at = self._clock.monotonic() + self._sharing.patience

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
            await self._inquiry.leak(erasure, progress, started, ["client"], "client")
        if erasure.id in self._table.restarts:
            self._table.restarts.discard(erasure.id)
            await self._append(erasure, EventType.RESTARTED, {"cause": "reconnect"})

    async def _heard(self, erasure: Erasure) -> None:
        """Writes that may still land delay settling: those heard of meanwhile open."""
        wall, now = self._clock.now(), self._clock.monotonic()
        for write in self._flights.unknown_in(erasure.predicate) if erasure.unsettled else ():
            if write.name not in erasure.undrained:
                facts = {"write": write.name, "until": wall + write.until - now}
                await self._append(erasure, EventType.WRITE_OPENED, facts)

    async def _over(self, erasure: Erasure) -> None:
        """Those that can land no more close."""
        for name in [name for name in erasure.undrained if self._table.write_over(erasure.id, name)]:
            await self._append(erasure, EventType.WRITE_CLOSED, {"write": name, "cause": "bound"})

    async def _forward(self, erasure: Erasure, progress: Progress) -> None:
        driven = await self._forgets.drive(erasure)
        if driven.stage in (Stage.ANSWERED, Stage.SUPPRESSED, Stage.HELD):
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
        if settled.exposure_seconds is not None:
            self._metrics.observe("exposure_seconds", settled.exposure_seconds)
        self._log.info("settled", erasure=erasure.id, state=settled.state.value)
        await self._escalate(settled)
        await self._inquiry.put_away(settled)
        if self._policy().readmission == "on_settled" and not settled.readmitted:
            facts = {"reason": "policy: on_settled", "allows_old": False}
            await self._append(settled, EventType.READMITTED, facts, gate=True)

    async def _escalate(self, settled: Erasure) -> None:
        """What may be claimed is less than what the store claimed: people are told what is missing."""
        verdict = self._verdict(settled)
        if verdict.word is Word.COMPLIANT:
            return
        if settled.terms.claims_completion:
            self._metrics.count("downgrades")
        if not settled.escalated:
            facts = {"verdict": verdict.word.value, "missing": list(verdict.missing)}
            await self._append(settled, EventType.ESCALATED, facts)

    async def _inquire(self, erasure: Erasure, progress: Progress, what: Due) -> None:
        if erasure.state is State.SETTLED and await self._watch_over(erasure):
            return
        counted = await self._inquiry.probe(erasure, progress, what)
        if counted:
            self._again(erasure.id, progress)

    async def _watch_over(self, erasure: Erasure) -> bool:
        assert erasure.settled_at is not None
        if self._clock.now() < erasure.settled_at + erasure.terms.watch_for:
            return False
        await self._append(erasure, EventType.WATCH_ENDED, {})
        return True

    async def _bury(self) -> None:
        """What has ended leaves no canary behind, and its own key is destroyed."""
        while self._table.ended:
            erasure = self._erasures.gate.erasures[self._table.ended[0]]
            try:
                if await self._sharing.hold(erasure.id):
                    await self._inquiry.put_away(erasure)
                    await self._erasures.destroy(erasure.id)
                    await self._sharing.release(erasure.id)
                else:
                    self._erasures.drop_key(erasure.id)
            except LedgerError as error:
                self._log.error("not_destroyed", erasure=erasure.id, exc_info=error)
                return
            self._table.ended.popleft()

    async def _append(
        self, erasure: Erasure, kind: EventType, facts: dict[str, Any], gate: bool = False
    ) -> None:
        await self._erasures.append([Draft(kind, erasure.id, self._clock.now(), facts=facts, gate=gate)])
