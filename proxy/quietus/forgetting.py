"""What a client is told about a forget: its acknowledgement, the erasure behind it, and its status later."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from quietus.answers import Answer, erasure_headers, passed, problem
from quietus.core.decision import Decision, Question, decide
from quietus.core.erasure import Erasure
from quietus.core.exchange import Reply, Request, Wire, header
from quietus.core.policy import Effect, Mode, Policy
from quietus.core.problems import Reason
from quietus.core.scope import Wild
from quietus.core.states import State
from quietus.core.verdict import Word
from quietus.erasures import Erasures
from quietus.forgets import Driven, Forgets, HeldBack, Stage
from quietus.permits import Granted, Purpose
from quietus.ports import LedgerError, Upstream, UpstreamError
from quietus.profiles.profile import Reading
from quietus.recording import Measures
from quietus.shown import StatusView
from quietus.views import stamp

STATUS_PATH = "/.well-known/quietus/erasures/"
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?(?:$|[,;\s])", re.IGNORECASE)
_ASYNC = re.compile(r"(?:^|[,;\s])respond-async(?:$|[,;\s])", re.IGNORECASE)
_HELD = "a legal hold stands until {}; the demand is recorded, and taken up with its date when the hold ends"
_STOPPED = "a legal hold was placed before the store was asked; it is asked when the hold ends"
_SUCCESS = frozenset({200, 201, 202, 204})


@dataclass(frozen=True, slots=True)
class DeskLimits:
    """The bounds of an answer to a forget. Seconds and bytes."""

    wait: float = 120.0
    response_bytes: int = 8 * 1024 * 1024


class ForgetDesk:
    """Takes forgets in and answers them."""

    def __init__(
        self,
        erasures: Erasures,
        forgets: Forgets,
        policy: Callable[[], Policy],
        synchronous: Callable[[], bool],
        upstream: Upstream,
        limits: DeskLimits,
        metrics: Measures,
        verdict: Callable[[Erasure], str],
        status_view: Callable[[Erasure], StatusView],
        retry_after: Callable[[Erasure], float],
        foreign: Callable[[Question, Reading, Reply, str], bool],
    ) -> None:
        self._erasures = erasures
        self._forgets = forgets
        self._policy = policy
        self._synchronous = synchronous
        self._upstream = upstream
        self._limits = limits
        self._metrics = metrics
        self._verdict = verdict
        self._status_view = status_view
        self._retry_after = retry_after
        self._foreign = foreign

    def status(self, request: Request) -> Answer | None:
        """The status document of an erasure for whoever holds its id; None for any other request."""
        if request.wire != "http" or not request.path.startswith(STATUS_PATH):
            return None
        if request.method not in ("GET", "HEAD"):
            return None
        erasure = self._erasures.get(request.path[len(STATUS_PATH) :])
        if erasure is None:
            return problem("not-found", "no erasure of that id is known here")
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        if erasure.unsettled and erasure.state is not State.VIOLATION:
            headers.append(("Retry-After", str(max(1, round(self._retry_after(erasure))))))
        body = json.dumps(self._status_view(erasure), separators=(",", ":")).encode()
        return Answer(200, tuple(headers), b"" if request.method == "HEAD" else body)

    async def forget(self, question: Question, reading: Reading, principal: str) -> Answer:
        """One forget of a client, from its intent to its answer."""
        self._metrics.count("forget_calls", side="client")
        decision = decide(question, self._erasures.gate, self._policy())
        self._metrics.count("operations", wire=reading.request.wire, operation="forget",
                            effect=decision.effect.value, rule=decision.rule, mode=decision.mode.value)
        if decision.mode is Mode.OBSERVE:
            return await self._observed(question, reading)
        if self._erasures.closed_cause is not None or decision.problem == "ledger-unavailable":
            return problem("ledger-unavailable", rule=decision.rule, retry_after=1.0)
        if decision.effect is Effect.REFUSE:
            return problem("legal-hold", rule=decision.rule)
        # A client that goes away does not cancel a forget: the work is its own task.
        began = self._erasures.clock.monotonic()
        work = asyncio.ensure_future(self._forget(question, reading, principal, decision))
        answer = await asyncio.shield(work)
        self._metrics.observe("forget_seconds", self._erasures.clock.monotonic() - began, phase="answer")
        return answer

    async def _forget(
        self, question: Question, reading: Reading, principal: str, decision: Decision
    ) -> Answer:
        try:
            erasure, fresh = await self._forgets.open(question, reading, principal)
        except LedgerError:
            return problem("ledger-unavailable", rule=decision.rule, retry_after=1.0)
        except HeldBack as held:
            return problem("legal-hold", _HELD.format(stamp(held.hold.until)), rule=decision.rule)
        reply: Reply | None
        if fresh or self._forgets.driving(erasure.id) is not None:
            outcome = await self._driven(erasure)
            if isinstance(outcome, Answer):
                return outcome
            reply, erasure = outcome.reply, outcome.erasure
        else:
            erasure = await self._elsewhere(erasure)
            if erasure.state is State.REFUSED:  # its fence is lifted again: this forget is one of its own
                return await self._forget(question, reading, principal, decision)
            if erasure.state is State.REQUESTED:
                return self._unknown(erasure)  # it is sent again when its turn comes, not when a client asks
            try:
                reply = await self._forgets.original(erasure)
            except LedgerError:
                return problem("ledger-unavailable", rule=decision.rule, retry_after=1.0)
        return await self._acknowledge(question, reading, erasure, reply, decision)

    async def _driven(self, erasure: Erasure) -> Driven | Answer:
        drive = self._forgets.drive(erasure)
        timer = asyncio.ensure_future(self._erasures.clock.sleep(self._limits.wait))
        try:
            await asyncio.wait({drive, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
        if not drive.done():
            return self._unknown(self._erasures.gate.erasures[erasure.id])
        driven = drive.result()
        if driven.stage is Stage.BARRIER:
            return problem("barrier-unreachable", retry_after=1.0,
                           headers=erasure_headers(driven.erasure, self._verdict(driven.erasure)))
        if driven.stage is Stage.LEDGER:
            return problem("ledger-unavailable", retry_after=1.0,
                           headers=erasure_headers(driven.erasure, self._verdict(driven.erasure)))
        if driven.stage is Stage.UNCLEAR:
            return self._unknown(driven.erasure)
        if driven.stage is Stage.HELD:
            return problem("legal-hold", _STOPPED,
                           headers=erasure_headers(driven.erasure, self._verdict(driven.erasure)))
        return driven

    async def _elsewhere(self, erasure: Erasure) -> Erasure:
        """Waits for the answer to a forget that another replica is sending."""
        until = self._erasures.clock.monotonic() + self._limits.wait
        while self._erasures.shared is not None and erasure.state is State.REQUESTED and not erasure.unclear:
            left = until - self._erasures.clock.monotonic()
            if left <= 0 or not await self._erasures.changed(erasure.id, left):
                break
            erasure = self._erasures.gate.erasures[erasure.id]
        return erasure

    def _unknown(self, erasure: Erasure) -> Answer:
        return problem("outcome-unknown", retry_after=self._retry_after(erasure),
                       headers=erasure_headers(erasure, self._verdict(erasure)))

    async def _acknowledge(
        self,
        question: Question,
        reading: Reading,
        erasure: Erasure,
        reply: Reply | None,
        decision: Decision,
    ) -> Answer:
        if erasure.state is State.REFUSED:
            assert reply is not None
            return passed(reply)
        seconds = self._wanted(reading.request)
        if decision.effect is Effect.WAIT or (self._synchronous() and seconds is None):
            seconds = self._limits.wait
        seconds = seconds or 0.0
        if seconds > 0 and erasure.unsettled:
            erasure = await self._erasures.settled(erasure.id, min(seconds, self._limits.wait))
        if reply is None or reply.wire != reading.request.wire:
            reply = _said(reading.request.wire, 200, erasure)
        elif self._foreign(question, reading, reply, erasure.id):
            # Done, but its answer tells of others who were erased.
            reply = _said(reply.wire, reply.status, erasure)
        status = reply.status
        if erasure.unsettled and self._policy().ack == "accepted" and status in _SUCCESS:
            status = 202
        limitation = self._limitation(question)
        verdict = Word.PARTIAL.value if limitation else self._verdict(erasure)
        headers = erasure_headers(erasure, verdict, limitation)
        if erasure.unsettled:
            headers = (*headers, ("Retry-After", str(max(1, round(self._retry_after(erasure))))))
        return passed(reply, *headers, status=status)

    @staticmethod
    def _limitation(question: Question) -> str:
        scope = question.scope
        called_erasure = bool(question.call.basis) or not isinstance(scope.subject, Wild)
        by_key = not isinstance(scope.key, Wild)
        return Reason.KEY_IS_NOT_ERASURE_UNIT.value if by_key and called_erasure else ""

    @staticmethod
    def _wanted(request: Request) -> float | None:
        """Seconds that the client wants to wait; None where it says nothing of it."""
        preferred = header(request.headers, "prefer") or ""
        if (found := _WAIT.search(preferred)) is not None:
            return float(found[1])
        return 0.0 if _ASYNC.search(preferred) else None

    async def _observed(self, question: Question, reading: Reading) -> Answer:
        """Observe mode: forwarded as it came; the erasure is noted, so that recalls can be counted."""
        try:
            opened = await self._upstream.open(reading.request, Granted(Purpose.CLIENT))
            reply = await opened.read(self._limits.response_bytes)
        except UpstreamError as error:
            name = "outcome-unknown" if error.sent else "upstream-unavailable"
            return problem(name, retry_after=1.0)
        if 200 <= reply.status < 300 and self._forgets.joinable(question.scope) is None:
            try:
                await self._forgets.note(question, reading)
            except LedgerError:
                self._metrics.count("bypass", cause="ledger")
        return passed(reply)


def _said(wire: Wire, status: int, erasure: Erasure) -> Reply:
    if wire == "grpc":
        return Reply(status, code="OK")  # no bytes are a message with nothing set
    body = json.dumps({"status": erasure.state.value}).encode()
    return Reply(status, (("Content-Type", "application/json"),), b"" if status == 204 else body)
