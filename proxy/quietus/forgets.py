"""A forget, step by step: REQUESTED, fence, drain, SNAPSHOTTED, drain, FORWARDED, send, answer.

Each step is durable before the next begins, and each can be taken up again from the stored state alone:
the gateway drives a client's forget, the reconciler drives what a crash or an unclear answer left behind.
One erasure is driven by one task at a time. Fence first, forward second, trust last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from quietus.core.decision import Question
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.exchange import Reply, Request
from quietus.core.policy import Policy
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.kept import kept_reply, kept_request, reply_of, request_of
from quietus.outgoing import outgoing
from quietus.permits import Granted, Purpose
from quietus.ports import LedgerError, Upstream, UpstreamError
from quietus.profiles.profile import Profile, Reading
from quietus.recording import Measures
from quietus.snapshots import ANSWER, PREDICATE, REQUEST, SNAPSHOT, Predicate, predicate_of
from quietus.snapshotter import Snapshotter


class Stage(StrEnum):
    """How far one drive came."""

    ANSWERED = "answered"
    UNCLEAR = "unclear"
    BARRIER = "barrier"
    LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Driven:
    """The outcome of one drive; `reply` is the store's answer where there was one."""

    stage: Stage
    erasure: Erasure
    reply: Reply | None = None


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
        policy: Callable[[], Policy],
        upstream: Upstream,
        snapshotter: Snapshotter,
        flights: Flights,
        limits: ForgetLimits,
        metrics: Measures,
        new_id: Callable[[], str],
        exempt: Callable[[], bool] = lambda: False,
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._policy = policy
        self._upstream = upstream
        self._snapshotter = snapshotter
        self._flights = flights
        self._limits = limits
        self._metrics = metrics
        self._new_id = new_id
        self._exempt = exempt
        self._driving: dict[str, asyncio.Task[Driven]] = {}
        self._readings: dict[str, Reading] = {}
        self._opening = asyncio.Lock()
        self.client_calls: dict[str, int] = {}
        """Client calls absorbed by each erasure since the start of this process."""

    def joinable(self, question: Question) -> Erasure | None:
        """The erasure that an identical or contained forget joins, the newest first."""
        found = [
            e
            for e in self._erasures.gate.covering(question.scope)
            if not e.readmitted and e.state is not State.RELEASED
        ]
        return max(found, key=lambda e: e.epoch, default=None)

    async def open(self, question: Question, reading: Reading, actor: str) -> tuple[Erasure, bool]:
        """The erasure of a forget and whether it is new. Raises LedgerError: then nothing has happened."""
        async with self._opening:
            joined = self.joinable(question)
            if joined is not None:
                self.client_calls[joined.id] = self.client_calls.get(joined.id, 1) + 1
                return joined, False
            erasure = await self._request(question, reading, actor)
        self._readings[erasure.id] = reading
        return erasure, True

    async def _request(self, question: Question, reading: Reading, actor: str) -> Erasure:
        name = self._new_id()
        predicate = predicate_of(question.call)
        facts: dict[str, Any] = {
            "store": self._erasures.store,
            "predicate": scope_to_facts(question.scope),
            "terms": asdict(terms_of(self._profile(), self._policy(), exempt=self._exempt())),
            "label": predicate.kind,
            "basis": question.call.basis or "",
            "undrained": self._undrained(question),
        }
        secrets = [
            self._erasures.new_key(name),
            self._erasures.seal(name, PREDICATE, predicate.seal()),
            self._erasures.seal(name, REQUEST, kept_request(reading.request)),
        ]
        marks = [(name, mark) for mark in self._snapshotter.first_marks(predicate)]
        now = self._erasures.clock.now()
        draft = Draft(EventType.REQUESTED, name, now, actor, facts, gate=True)
        await self._erasures.append([draft], marks=marks, secrets=secrets)
        return self._erasures.gate.erasures[name]

    async def note(self, question: Question, reading: Reading) -> None:
        """Observe mode: notes a forget that the store has acknowledged; it is neither fenced nor probed."""
        async with self._opening:
            if self.joinable(question) is None:
                erasure = await self._request(question, reading, "observe")
                await self._erasures.append(
                    [self._draft(erasure, EventType.ACCEPTED, {"outcome": "observed", "claim": {}})]
                )
                await self._erasures.destroy(erasure.id)

    def _undrained(self, question: Question) -> dict[str, float]:
        clock = self._erasures.clock
        now, wall = clock.monotonic(), clock.now()
        return {w.name: wall + w.until - now for w in self._flights.unknown_in(question.scope)}

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
                if not await self._flights.drain(erasure.predicate, self._limits.barrier):
                    return Driven(Stage.BARRIER, erasure)
                erasure = await self._snapshot(erasure)
            # The snapshot is a gate epoch of its own, with its own barrier; so is a forward taken up again.
            if not await self._flights.drain(erasure.predicate, self._limits.barrier):
                return Driven(Stage.BARRIER, erasure)
            request, reading = await self._request_of(erasure)
            await self._append(erasure, EventType.FORWARDED, {"again": erasure.forwards > 0})
            return await self._send(self._erasures.gate.erasures[name], request, reading)
        except LedgerError:
            return Driven(Stage.LEDGER, self._erasures.gate.erasures[name])

    async def _snapshot(self, erasure: Erasure) -> Erasure:
        plain = await self._erasures.unseal(erasure.id, PREDICATE)
        if plain is None:
            raise LedgerError("the erasure's own key is gone: it can neither be sent nor probed")
        snapshot, marks = await self._snapshotter.take(Predicate.unseal(plain))
        facts = {
            "witnesses": snapshot.records,
            "proven": {name: len(its) for name, its in snapshot.proven.items()},
            "controls": {name: len(its) for name, its in snapshot.controls.items()},
            "control_kind": snapshot.control_kind if snapshot.controls else "none",
            "truncated": snapshot.truncated,
            "failed": sorted(set(snapshot.failed)),
            "marks": len(marks),
        }
        await self._erasures.append(
            [Draft(EventType.SNAPSHOTTED, erasure.id, self._erasures.clock.now(), facts=facts, gate=True)],
            marks=[(erasure.id, mark) for mark in marks],
            secrets=[self._erasures.seal(erasure.id, SNAPSHOT, snapshot.seal())],
        )
        return self._erasures.gate.erasures[erasure.id]

    async def _request_of(self, erasure: Erasure) -> tuple[Request, Reading]:
        first = self._readings.get(erasure.id)
        if first is not None and not erasure.forwards:
            return first.request, first
        self._readings.pop(erasure.id, None)
        plain = await self._erasures.unseal(erasure.id, REQUEST)
        if not plain:
            raise LedgerError("the forget's request is gone: retry it by hand or release the erasure")
        request = request_of(plain)
        return request, self._profile().read(request)

    async def _send(self, erasure: Erasure, request: Request, reading: Reading) -> Driven:
        first = erasure.forwards == 1 and erasure.id in self._readings
        permit = Granted(Purpose.CLIENT if first else Purpose.FORGET)
        self._metrics.count("forget_calls", side="upstream")
        began = self._erasures.clock.monotonic()
        try:
            opened = await self._upstream.open(outgoing(request), permit)
            reply = await opened.read(self._limits.response_bytes)
        except UpstreamError:
            await self._append(erasure, EventType.UNCLEAR, {"cause": "no answer"})
            return Driven(Stage.UNCLEAR, self._now(erasure))
        # How fast a store acknowledges is exported, and is evidence of nothing.
        self._metrics.observe("forget_seconds", self._erasures.clock.monotonic() - began, phase="ack")
        return await self._judge(erasure, reply, reading)

    async def _judge(self, erasure: Erasure, reply: Reply, reading: Reading) -> Driven:
        ack = self._profile().ack(reading, reply)
        if ack.outcome == "unclear" or (ack.outcome == "refused" and erasure.forwards > 1):
            await self._append(erasure, EventType.UNCLEAR, {"cause": ack.outcome, "status": reply.status})
            return Driven(Stage.UNCLEAR, self._now(erasure), reply)
        if ack.outcome == "refused":
            self._readings.pop(erasure.id, None)
            draft = self._draft(erasure, EventType.REFUSED, {"status": reply.status}, gate=True)
            # The secrets go when the canaries have been removed: the reconciler sees to both.
            await self._erasures.append([draft], unmark=[erasure.id])
            return Driven(Stage.ANSWERED, self._now(erasure), reply)
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

    def _draft(
        self, erasure: Erasure, kind: EventType, facts: dict[str, Any], gate: bool = False
    ) -> Draft:
        return Draft(kind, erasure.id, self._erasures.clock.now(), facts=facts, gate=gate)

    async def _append(self, erasure: Erasure, kind: EventType, facts: dict[str, Any]) -> None:
        await self._erasures.append([self._draft(erasure, kind, facts)])


def terms_of(profile: Profile, policy: Policy, *, exempt: bool = False) -> Terms:
    """The terms that an erasure begun now is judged by.

    `exempt`: a passing, unexpired trial has shown that this store forgets at once. Then nothing is waited
    for before the clean rounds; probes and the check at release stay as they are.
    """
    store = profile.store
    return Terms(
        settling_interval=0.0 if exempt else store.settling_interval,
        effectuation_bound=store.bound,
        clean_rounds=store.clean_rounds,
        watch_for=policy.watch.seconds,
        patrol_every=policy.watch.patrol_seconds,
        claims_completion=store.claims_completion,
    )
