"""The gateway: every call of a client comes in here, and no answer leaves but through here.

Decide, forward under a permit, decide again, screen, answer. A call that has been admitted is a *flight*
until its last byte is written. Whatever goes wrong in here shuts: the caller gets a problem, never a hole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final

from quietus.answers import FRAMING, Answer, passed, problem, too_large
from quietus.arrivals import Arrivals, hint
from quietus.barrier import Sharing
from quietus.core.decision import Decision, Question
from quietus.core.exchange import Request, Wire, without
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import Mode, Policy
from quietus.decided import Decided
from quietus.erasures import Erasures
from quietus.flights import Flight, Flights
from quietus.forgetting import ForgetDesk
from quietus.outgoing import prepared
from quietus.permits import Granted, Purpose
from quietus.ports import ReplyTooLarge, Upstream, UpstreamError
from quietus.profiles.faults import RequestFault
from quietus.profiles.profile import Profile, Reading
from quietus.questions import Questions
from quietus.recording import Log, Measures, Recorder
from quietus.release import Releaser
from quietus.repeats import Repeats
from quietus.shapes import Shapes
from quietus.waiting import Waiting

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that promise to change nothing: asking again after no answer does no harm."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """The bounds of a call. Bytes and seconds."""

    response_bytes: int = 8 * 1024 * 1024
    wait: float = 120.0


class Gateway:
    """Admits calls and lets answers go."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        policy: Callable[[], Policy],
        deciding: Callable[[Question], Decision],
        upstream: Upstream,
        flights: Flights,
        questions: Questions,
        releaser: Releaser,
        desk: ForgetDesk,
        shapes: Shapes,
        arrivals: Arrivals,
        sharing: Sharing,
        limits: GatewayLimits,
        metrics: Measures,
        log: Log,
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._policy = policy
        self._deciding = deciding
        self._upstream = upstream
        self._flights = flights
        self._questions = questions
        self._releaser = releaser
        self._desk = desk
        self._shapes = shapes
        self._arrivals = arrivals
        self._sharing = sharing
        self._limits = limits
        self._metrics = metrics
        self._log = log
        self._recorder = Recorder(metrics, log)
        self.decided = Decided(erasures.gate, erasures.clock.now())
        self._repeats = Repeats(erasures, metrics, log)
        self._waiting = Waiting(erasures, deciding, limits.wait, metrics)
        self._clock = erasures.clock
        erasures.listen(lambda erasure, event: flights.fence(erasure, self.decide) if event.gate else None)
        erasures.on_fence(lambda erasure: flights.fence(erasure, self.decide))
        erasures.on_order(lambda event: flights.ordered(event, self.decide))

    # --- asking --------------------------------------------------------------------------------

    def decide(self, question: Question) -> Decision:
        """The decision on a question as the gate and the policy stand now."""
        return self._deciding(question)

    def question(self, call: Call, principal: str, document: Any = None) -> Question:
        """The question of a call and its body; a gate shut for everything makes it one about a failure."""
        failure = "ledger" if self._erasures.closed_cause is not None else None
        return self._questions.of(call, principal, failure, document)

    def _asked(self, reading: Reading, principal: str) -> Question:
        brought = self._questions.brought(reading, principal) if self._erasures.closed_cause is None else None
        return brought or self.question(reading.call, principal, reading.document)

    @property
    def observing(self) -> bool:
        """Whether the policy only observes: then nothing is refused and nothing changed."""
        return self._policy().mode is Mode.OBSERVE

    def refuse(self, name: str, detail: str = "", wire: Wire = "http") -> Answer:
        """A problem for a fault that the wire found before there was a call."""
        self._recorder.refused(name, wire)
        return problem(name, detail)

    # --- one call ------------------------------------------------------------------------------

    async def handle(self, request: Request, principal: str) -> Answer:
        """One call, from its bytes to its answer. Raises nothing but CancelledError."""
        began = self._clock.monotonic()
        status = self._desk.status(request)
        if status is not None:
            return status
        try:
            reading = self._profile().read(request)
        except RequestFault as fault:
            self.decided.faulty(fault.problem)
            if self.observing:
                return await self._blind(request)
            return self.unread(fault, request.wire)
        try:
            return await self._admit(reading, principal, began)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if self.observing:
                self.broken(error, reading.call.route, request.wire)
                self._metrics.count("bypass", cause="internal")
                return await self._blind(request)
            return self.broken(error, reading.call.route, request.wire)

    def broken(self, error: Exception, route: str, wire: Wire) -> Answer:
        """The refusal for a fault of ours: it must not become an open gate.

        The fault's words may quote the request: only its type is told.
        """
        self._log.error("internal_error", exc_info=error, route=route)
        return self.refuse("internal", wire=wire)

    def unread(self, fault: RequestFault, wire: Wire) -> Answer:
        """The refusal of what cannot be read in exactly one way."""
        answer = problem(fault.problem, fault.detail)
        if fault.status is not None:
            answer.status = fault.status
        self._recorder.refused(fault.problem, wire)
        return answer

    async def _admit(self, reading: Reading, principal: str, began: float) -> Answer:
        call = reading.call
        if call.operation is Operation.FORGET:
            self._note(reading)
            self._repeats.forgot(call)
            question = self.question(call, principal)
            self.decided.saw(question, self.decide(question))
            if reading.request.wire == "grpc":
                # The deadline is the client's: the forget goes on when that client has long been gone.
                patient = without(reading.request.headers, frozenset({"grpc-timeout"}))
                reading = replace(reading, request=replace(reading.request, headers=patient))
            return await self._desk.forget(question, reading, principal)
        entered = await self.enter(reading, principal, began)
        if isinstance(entered, Answer):
            return entered
        if call.operation is Operation.WRITE:
            return await self._to_its_end(self._forward(*entered, reading))
        return await self._forward(*entered, reading)

    async def enter(
        self, reading: Reading, principal: str, began: float | None = None
    ) -> tuple[Question, Decision] | Answer:
        """Counts and decides a call. Where it may go on: its question and its decision; else the refusal."""
        began = self._clock.monotonic() if began is None else began
        self._note(reading)
        if reading.call.min_epoch is not None:
            await self._sharing.hear(reading.call.min_epoch)
        if (pressing := self._repeats.presses(reading.call, principal)) is not None:
            self._recorder.refused("overloaded", reading.request.wire)
            return problem("overloaded", retry_after=pressing)
        question = self._asked(reading, principal)
        decision = self.decide(question)
        if decision.holds and decision.mode is Mode.ENFORCE:
            question, decision = await self._waiting.settled(
                question, decision, len(reading.request.body),
                lambda: self._asked(reading, principal),
            )  # fmt: skip
        self._recorder.call(question.call, decision, self._clock.monotonic() - began, reading.request.wire)
        self.decided.saw(question, decision)
        self._repeats.decided(question, decision, self._clock.monotonic() - began)
        if decision.refuses and decision.mode is Mode.ENFORCE:
            return self._refusal(question, decision)
        return question, decision

    def _note(self, reading: Reading) -> None:
        if reading.call.route == UNMAPPED:
            self._shapes.saw(reading.request)
            self._metrics.count("unclassified", wire=reading.request.wire)
        self.decided.unread(reading)
        for _ in reading.unreadable:
            self._metrics.count("unreadable_fields", route=reading.call.route)

    @staticmethod
    async def _to_its_end(forward: Coroutine[Any, Any, Answer]) -> Answer:
        """What was sent must come back and be recorded even if the client goes away.

        Nobody writes that answer then: its flight lands by itself, or a forget would wait for it for ever.
        """
        work = asyncio.ensure_future(forward)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(_land)
            raise

    def _refusal(self, question: Question, decision: Decision) -> Answer:
        return self._releaser.refusal(decision, hint(question))

    async def _forward(self, question: Question, decision: Decision, reading: Reading) -> Answer:
        gate = self._erasures.gate
        flight = self._flights.open(question, decision, gate.concerns(question.scope))
        handed = False
        try:
            answer = await self._fly(flight, reading)
            finish = answer.finish

            def landed() -> None:
                finish()
                self._flights.close(flight)

            answer.finish = landed
            answer.overtaken = flight.overtaken
            handed = True
            return answer
        finally:
            if not handed:
                self._flights.close(flight)

    async def _fly(self, flight: Flight, reading: Reading) -> Answer:
        request = reading.request if self.observing else prepared(flight, reading, self._profile())
        if reading.call.operation is Operation.WRITE:
            # Its content is held against the marks as they stand now, not as they stood at its entry.
            principal = flight.question.principal
            flight.question = self.question(reading.call, principal, reading.document)
        again = self.decide(flight.question)
        flight.hold(again)
        if again.refuses and again.mode is Mode.ENFORCE:
            return self._refusal(flight.question, again)
        flight.sent = True
        sent_at = self._clock.monotonic()
        try:
            opened = await self._upstream.open(request, Granted(Purpose.CLIENT, again.rule))
            answer = await self._arrivals.arrive(flight, reading, opened)
        except ReplyTooLarge:
            if reading.call.operation is Operation.WRITE:
                return self._unanswered(flight, reading, True)
            return too_large()
        except UpstreamError as error:
            return self._unanswered(flight, reading, error.sent)
        self._metrics.observe("upstream_seconds", self._clock.monotonic() - sent_at, wire=request.wire,
                              operation=reading.call.operation.value)
        return self._repeats.translated(
            flight.question, flight.decision, answer, lambda hidden: self._refusal(flight.question, hidden)
        )

    def _unanswered(self, flight: Flight, reading: Reading, sent: bool) -> Answer:
        if sent and reading.call.operation is Operation.WRITE:
            self._arrivals.may_land(flight)
            return problem("outcome-unknown", retry_after=1.0)
        if sent and not reading.mapped and reading.request.method not in SAFE:
            return problem("outcome-unknown", retry_after=1.0)
        return problem("upstream-unavailable", retry_after=1.0)

    async def _blind(self, request: Request) -> Answer:
        """Observe mode, and the request could not be read: it goes through as it came."""
        self._metrics.count("unclassified", wire=request.wire)
        try:
            opened = await self._upstream.open(request, Granted(Purpose.CLIENT))
        except UpstreamError:
            return problem("upstream-unavailable", retry_after=1.0)
        if request.wire == "grpc":
            return passed(await opened.read(self._limits.response_bytes))
        headers = without(opened.headers, FRAMING)
        return Answer(opened.status, headers, opened.chunks(), finish=opened.abort)


def _land(work: asyncio.Future[Answer]) -> None:
    if not work.cancelled() and work.exception() is None:
        work.result().done()
