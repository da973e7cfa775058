"""A forget, step by step: REQUESTED, fence, drain, SNAPSHOTTED, drain, FORWARDED, send, answer.

Each step is durable before the next begins, and each can be taken up again from the stored state alone:
the gateway drives a client's forget, the reconciler drives what a crash or an unclear answer left behind.
One erasure is driven by one task at a time. Fence first, forward second, trust last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quietus.barrier import Sharing, anew
from quietus.core.decision import Question
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.exchange import Reply
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.driven import Driven as Driven
from quietus.driven import HeldBack as HeldBack
from quietus.driven import Stage as Stage
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.intents import Intent, Intents, intent_of
from quietus.kept import kept_reply, reply_of, requests_of
from quietus.lineage_descent import Descent
from quietus.outgoing import outgoing
from quietus.permits import Granted, Purpose
from quietus.ports import LedgerError, Upstream, UpstreamError
from quietus.profiles.acks import Ack, summed
from quietus.profiles.profile import Profile, Reading
from quietus.recording import Measures
from quietus.snapshots import ANSWER, PREDICATE, REQUEST, SNAPSHOT, Predicate
from quietus.snapshotter import Snapshotter


@dataclass(frozen=True, slots=True)
class ForgetLimits:
    """The bounds of a forget. Seconds and bytes."""

    barrier: float = 5.0
    response_bytes: int = 8 * 1024 * 1024


class Forgets:
    """Opens, joins and drives erasures."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        upstream: Upstream,
        snapshotter: Snapshotter,
        descent: Descent,
        flights: Flights,
        limits: ForgetLimits,
        metrics: Measures,
        intents: Intents,
        sharing: Sharing,
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._upstream = upstream
        self._snapshotter = snapshotter
        self._descent = descent
        self._flights = flights
        self._limits = limits
        self._metrics = metrics
        self._intents = intents
        self._sharing = sharing
        self._driving: dict[str, asyncio.Task[Driven]] = {}
        self._readings: dict[str, Reading] = {}
        self._opening = asyncio.Lock()
        self.client_calls: dict[str, int] = {}
        """Client calls absorbed by each erasure since the start of this process."""

    def joinable(self, scope: Scope) -> Erasure | None:
        """The erasure that an identical or contained forget joins, the newest first."""
        found = [
            e
            for e in self._erasures.gate.covering(scope)
            if not e.readmitted and e.state is not State.RELEASED
        ]
        return max(found, key=lambda e: e.epoch, default=None)

    async def open(self, question: Question, reading: Reading, actor: str) -> tuple[Erasure, bool]:
        """The erasure of a forget and whether it is new.

        Raises LedgerError: then nothing has happened. Raises HeldBack: it is recorded, and waits.
        """
        return await anew(self._erasures, lambda: self._open(question, reading, actor))

    async def _open(self, question: Question, reading: Reading, actor: str) -> tuple[Erasure, bool]:
        async with self._opening:
            intent = intent_of(
                question.call, question.scope, reading.request, undrained=self._undrained(question.scope)
            )
            await self._withhold(intent, actor)
            joined = self.joinable(question.scope)
            if joined is not None:
                self.client_calls[joined.id] = self.client_calls.get(joined.id, 1) + 1
                return joined, False
            erasure = await self._intents.write(intent, actor)
        self._readings[erasure.id] = reading
        return erasure, True

    async def demand(self, intent: Intent, actor: str) -> tuple[Erasure, bool]:
        """The erasure that an operator demands, and whether it is new; the reconciler drives it.

        Raises LedgerError, HeldBack.
        """
        return await anew(self._erasures, lambda: self._demand(intent, actor))

    async def _demand(self, intent: Intent, actor: str) -> tuple[Erasure, bool]:
        async with self._opening:
            await self._withhold(intent, actor)
            joined = self.joinable(intent.scope)
            if joined is not None:
                return joined, False
            return await self._intents.write(
                replace(intent, undrained=self._undrained(intent.scope)), actor
            ), True

    async def _withhold(self, intent: Intent, actor: str) -> None:
        holds = self._erasures.gate.orders.holding(intent.scope)
        if holds:
            await self._intents.defer(intent, holds[0], actor)
            raise HeldBack(holds[0])

    async def note(self, question: Question, reading: Reading) -> None:
        """Observe mode: notes a forget that the store has acknowledged; it is neither fenced nor probed."""
        async with self._opening:
            if self.joinable(question.scope) is None:
                intent = intent_of(question.call, question.scope, reading.request, observed=True)
                erasure = await self._intents.write(intent, "observe")
                await self._erasures.append(
                    [self._draft(erasure, EventType.ACCEPTED, {"outcome": "observed", "claim": {}})]
                )
                await self._erasures.destroy(erasure.id)

    def _undrained(self, scope: Scope) -> dict[str, float]:
        clock = self._erasures.clock
        now, wall = clock.monotonic(), clock.now()
        return {w.name: wall + w.until - now for w in self._flights.unknown_in(scope)}

    # --- driving -------------------------------------------------------------------------------

    def drive(self, erasure: Erasure) -> asyncio.Task[Driven]:
        """Drives an erasure to the store's answer; a drive that is under way is joined."""
        running = self._driving.get(erasure.id)
        if running is None or running.done():
            running = asyncio.ensure_future(self._drive(erasure.id))
            self._driving[erasure.id] = running
            running.add_done_callback(lambda _: self._driving.pop(erasure.id, None))
        return running

    def driving(self, erasure: str) -> asyncio.Task[Driven] | None:
        """The drive that is under way, or None."""
        return self._driving.get(erasure)

    async def _drive(self, name: str) -> Driven:
        erasure = self._erasures.gate.erasures[name]
        try:
            if not erasure.snapshotted:
                if not await self._sharing.reach(erasure, self._limits.barrier):
                    return Driven(Stage.BARRIER, erasure)
                erasure = await self._snapshot(erasure)
            # The snapshot is a gate epoch of its own, with its own barrier; so is a forward taken up again.
            if not await self._sharing.reach(erasure, self._limits.barrier):
                return Driven(Stage.BARRIER, erasure)
            if erasure.dossier.suppressed:
                return Driven(Stage.SUPPRESSED, erasure)
            asking = await self._asking(erasure)
            if not await self._may_go(name):
                return Driven(Stage.HELD, self._erasures.gate.erasures[name])
            return await self._send(self._erasures.gate.erasures[name], asking)
        except LedgerError:
            return Driven(Stage.LEDGER, self._erasures.gate.erasures[name])

    async def _may_go(self, name: str) -> bool:
        """Writes that it is forwarded; False where people have placed a hold on it meanwhile.

        By compare-and-set: no hold that stands in the ledger is followed by a forward. Raises LedgerError.
        """

        async def attempt() -> bool:
            now = self._erasures.gate.erasures[name]
            if not now.held:
                draft = self._draft(now, EventType.FORWARDED, {"again": now.forwards > 0})
                await self._erasures.append([draft], expect=now)
            return not now.held

        return await anew(self._erasures, attempt)

    async def _snapshot(self, erasure: Erasure) -> Erasure:
        plain = await self._erasures.unseal(erasure.id, PREDICATE)
        if plain is None:
            raise LedgerError("the erasure's own key is gone: it can neither be sent nor probed")
        predicate = Predicate.unseal(plain)
        snapshot, marks = await self._snapshotter.take(predicate)
        more, lineage = await self._descent.follow(predicate, erasure.predicate, snapshot)
        marks += more
        facts = {
            "lineage": lineage,
            "witnesses": snapshot.records,
            "proven": {name: len(its) for name, its in snapshot.proven.items()},
            "controls": {name: len(its) for name, its in snapshot.controls.items()},
            "control_kind": snapshot.control_kind if snapshot.controls else "none",
            "truncated": snapshot.truncated,
            "failed": sorted(set(snapshot.failed)),
            "marks": len(marks),
            "residual_shared": snapshot.residual_shared,
        }
        await self._erasures.append(
            [Draft(EventType.SNAPSHOTTED, erasure.id, self._erasures.clock.now(), facts=facts, gate=True)],
            marks=[(erasure.id, mark) for mark in marks],
            secrets=[self._erasures.seal(erasure.id, SNAPSHOT, snapshot.seal())],
        )
        return self._erasures.gate.erasures[erasure.id]

    async def _asking(self, erasure: Erasure) -> list[Reading]:
        """What the store is asked with: the client's own request, or those that stand sealed."""
        first = self._readings.get(erasure.id)
        if first is not None and not erasure.forwards:
            return [first]
        self._readings.pop(erasure.id, None)
        plain = await self._erasures.unseal(erasure.id, REQUEST)
        if not plain:
            raise LedgerError("the forget's request is gone: retry it by hand or release the erasure")
        return [self._profile().read(request) for request in requests_of(plain)]

    async def _send(self, erasure: Erasure, asking: list[Reading]) -> Driven:
        first = erasure.forwards == 1 and erasure.id in self._readings
        purpose = Purpose.CLIENT if first else Purpose.FORGET
        permit = Granted(purpose, still=lambda: not self._now(erasure).held)
        began, heard = self._erasures.clock.monotonic(), list[tuple[Ack, Reply]]()
        for reading in asking:
            self._metrics.count("forget_calls", side="upstream")
            try:
                opened = await self._upstream.open(outgoing(reading.request), permit)
                reply = await opened.read(self._limits.response_bytes)
            except UpstreamError:
                await self._came_of(erasure, EventType.UNCLEAR, {"cause": "no answer"})
                return Driven(Stage.HELD if self._now(erasure).held else Stage.UNCLEAR, self._now(erasure))
            heard.append((self._profile().ack(reading, reply), reply))
        # How fast a store acknowledges is exported, and is evidence of nothing.
        self._metrics.observe("forget_seconds", self._erasures.clock.monotonic() - began, phase="ack")
        return await self._judge(erasure, summed([ack for ack, _ in heard]), heard[-1][1])

    async def _judge(self, erasure: Erasure, ack: Ack, reply: Reply) -> Driven:
        if ack.outcome == "unclear" or (ack.outcome == "refused" and erasure.forwards > 1):
            await self._came_of(erasure, EventType.UNCLEAR, {"cause": ack.outcome, "status": reply.status})
            return Driven(Stage.UNCLEAR, self._now(erasure), reply)
        if ack.outcome == "refused":
            self._readings.pop(erasure.id, None)
            # The secrets go when the canaries have been removed: the reconciler sees to both.
            await self._came_of(erasure, EventType.REFUSED, {"status": reply.status}, [erasure.id])
            refused = self._now(erasure).state is State.REFUSED
            return Driven(Stage.ANSWERED if refused else Stage.UNCLEAR, self._now(erasure), reply)
        digest = self._erasures.keyring.pseudonym
        facts: dict[str, Any] = {
            "outcome": ack.outcome,
            "epoch": ack.epoch,
            "token": digest("token", ack.token).hex() if ack.token else None,
            "claim": {"status": ack.outcome, "count": ack.count, "at": self._erasures.clock.now()},
        }
        secrets = [
            self._erasures.seal(erasure.id, ANSWER, kept_reply(reply)),
            self._erasures.seal(erasure.id, REQUEST, b""),  # answered: it is not sent again
        ]
        await self._erasures.append([self._draft(erasure, EventType.ACCEPTED, facts)], secrets=secrets)
        self._readings.pop(erasure.id, None)
        return Driven(Stage.ANSWERED, self._now(erasure), reply)

    async def original(self, erasure: Erasure) -> Reply | None:
        """The store's first acknowledgement, as it stands sealed; None once it was destroyed."""
        plain = await self._erasures.unseal(erasure.id, ANSWER)
        return None if plain is None else reply_of(plain)

    def _now(self, erasure: Erasure) -> Erasure:
        return self._erasures.gate.erasures[erasure.id]

    def _draft(self, erasure: Erasure, kind: EventType, facts: dict[str, Any], gate: bool = False) -> Draft:
        return Draft(kind, erasure.id, self._erasures.clock.now(), facts=facts, gate=gate)

    async def _came_of(
        self, erasure: Erasure, kind: EventType, facts: dict[str, Any], unmark: Sequence[str] = ()
    ) -> None:
        """Writes what came of a forward, unless it was forwarded again meanwhile: then that one counts."""

        async def attempt() -> None:
            now = self._now(erasure)
            if now.forwards == erasure.forwards and not now.answered:
                draft = self._draft(now, kind, facts, gate=kind is EventType.REFUSED)
                await self._erasures.append([draft], expect=now, unmark=unmark)

        await anew(self._erasures, attempt)
