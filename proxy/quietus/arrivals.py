"""What comes back from the store for a client: read, decided again, screened, and let go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from quietus.answers import FRAMING, Answer, problem
from quietus.attribution import Attribution
from quietus.core.decision import Decision, Question
from quietus.core.exchange import Reply, header, without
from quietus.core.operations import UNMAPPED, Operation
from quietus.core.policy import Mode, Policy, Vector
from quietus.core.scope import Wild
from quietus.erasures import Erasures
from quietus.flights import Flight, Flights
from quietus.owners import written
from quietus.ports import OpenReply, ReplyTooLarge
from quietus.profiles.profile import Answered, Profile, Reading
from quietus.recording import Observer
from quietus.release import Judged, Releaser
from quietus.streams import coded, pour, relay

ROWS: Final = 50
"""Rows of a batch that a refusal names."""


class Arrivals:
    """Reads answers and decides about them when they are about to leave."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        policy: Callable[[], Policy],
        decide: Callable[[Question], Decision],
        flights: Flights,
        releaser: Releaser,
        attribution: Attribution,
        response_bytes: int,
        metrics: Observer,
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._policy = policy
        self._decide = decide
        self._flights = flights
        self._releaser = releaser
        self._attribution = attribution
        self._limit = response_bytes
        self._metrics = metrics

    async def arrive(self, flight: Flight, reading: Reading, opened: OpenReply) -> Answer:
        """The answer as it may leave. Raises UpstreamError."""
        if reading.request.wire == "grpc":
            reply: Reply | Answer = await opened.read(self._limit)  # one message; streams are `messages`'
        elif (header(opened.headers, "content-type") or "").lower().startswith("text/event-stream"):
            return self._stream(flight, reading, opened)
        else:
            reply = await self._whole(flight, opened)
        if isinstance(reply, Answer):
            return reply
        seen = await self._attribute(flight, reading, reply)
        # From here to the return there is no await: what is decided is what leaves.
        if self.blocked(flight):
            return self.refused_late(flight)
        self._born(flight, reading, reply)
        judged = None
        if self._concerned(flight) and reading.call.operation is not Operation.IGNORE:
            judged = self._releaser.judge(flight, reading, reply, seen)
        answered = judged.answered if judged is not None else self._unscreened(reading, reply)
        if self._behind(flight, reading, answered):
            return self.refused_late(flight)
        self._learn(flight, reading, reply, judged, answered)
        if judged is not None and self._merged(flight, reading, judged):
            return self._releaser.refusal(flight.decision, hint(flight.question))
        if self._raced(flight):
            self._metrics.count("resurrections", vector="race")
            answer = self._releaser.refusal(flight.decision, hint(flight.question))
            if answer.refused is not None:
                answer.refused.code = "ABORTED"
            return answer
        self._flights.release(flight)
        return self._releaser.release(flight, reading, reply, judged)

    # --- reading -------------------------------------------------------------------------------

    def _stream(self, flight: Flight, reading: Reading, opened: OpenReply) -> Answer:
        self._flights.release(flight)
        if self.blocked(flight):
            opened.abort()
            return self.refused_late(flight)
        if self.screens(flight) and coded(opened):
            opened.abort()
            return problem("unscreenable", rule=flight.decision.rule)
        events = relay(
            opened, flight, reading, self._releaser, self._profile(), self._leaves, self.screens
        )
        headers = (*without(opened.headers, FRAMING), *self._releaser.head_marks(flight))
        return Answer(opened.status, headers, events, finish=opened.abort)

    async def _whole(self, flight: Flight, opened: OpenReply) -> Reply | Answer:
        """The whole answer; one too large to be held goes on as it comes where nothing is screened."""
        limit = self._limit
        length = header(opened.headers, "content-length")
        known = length is not None and length.isdigit() and int(length) <= limit
        if known or self.screens(flight) or flight.question.call.operation is Operation.WRITE:
            return await opened.read(limit)
        chunks = opened.chunks()
        first: list[bytes] = []
        size = 0
        async for chunk in chunks:
            first.append(chunk)
            size += len(chunk)
            if size > limit:
                return self._large(flight, opened, first, chunks)
        return Reply(opened.status, opened.headers, b"".join(first))

    def _large(self, flight: Flight, opened: OpenReply, first: list[bytes], chunks: Any) -> Answer:
        self._flights.release(flight)
        if self.blocked(flight):
            opened.abort()
            return self.refused_late(flight)
        if self.screens(flight):
            opened.abort()
            raise ReplyTooLarge("the answer is larger than can be screened", sent=True)
        self._metrics.count("bypass", cause="too_large")
        poured = pour(first, chunks, opened, flight, self._leaves, self.screens)
        return Answer(opened.status, without(opened.headers, FRAMING), poured, finish=opened.abort)

    async def _attribute(self, flight: Flight, reading: Reading, reply: Reply) -> Answered | None:
        """Asks whose the rows are that do not say so; returns the answer where it has been read for that."""
        touched = flight.touched or self._decide(flight.question).overlaps
        if not touched or not reading.call.recalls or self._policy().mode is Mode.OBSERVE:
            return None
        answered = self._read(reading, reply)
        if answered is not None:
            await self._attribution.attribute(answered.items, reading.call, flight.question.scope)
        return answered

    def _unscreened(self, reading: Reading, reply: Reply) -> Answered | None:
        """The rows of an answer that nothing is screened in, where somebody needs them.

        Reading every answer only to learn whose its rows are would cost each call more than all the rest:
        owners are learned from writes, and from answers once an erasure or tombstone stands in the tenant;
        whoever is not known then is asked for (`attribution`).
        """
        needed = reading.call.operation is Operation.WRITE or reading.call.min_epoch is not None
        return self._read(reading, reply) if needed else None

    def _read(self, reading: Reading, reply: Reply) -> Answered | None:
        if reading.call.route == UNMAPPED or reading.call.operation is Operation.IGNORE:
            return None
        return self._releaser.read(reading, reply) if 200 <= reply.status < 300 else None

    # --- deciding ------------------------------------------------------------------------------

    def blocked(self, flight: Flight) -> bool:
        """Decides again. A write that has come back is done: what it left is looked at first."""
        flight.hold(self._decide(flight.question))
        if flight.question.call.operation is Operation.WRITE:
            return False
        return flight.decision.refuses and flight.decision.mode is Mode.ENFORCE

    @staticmethod
    def _raced(flight: Flight) -> bool:
        """Whether a write was overtaken by a forget of what it wrote: it is erased with the rest."""
        refused = flight.decision.refuses and flight.decision.mode is Mode.ENFORCE
        return refused and flight.question.call.operation is Operation.WRITE

    def _merged(self, flight: Flight, reading: Reading, judged: Judged) -> bool:
        """Whether the store says that a write went into something erased, and the policy refuses that.

        It is done by then: it delays settling like a write that may still land, and is evidence of a leak.
        """
        merged = self._releaser.merges(flight, reading, judged)
        if not merged:
            return False
        question = flight.question
        named = {erasure.id: erasure for erasure in (*question.named, *merged)}
        vectors = question.vectors | {Vector.DEDUP_MERGE}
        flight.question = replace(question, vectors=vectors, named=tuple(named.values()))
        flight.hold(self._decide(flight.question))
        self._metrics.count(
            "laundering_attempts", vector=Vector.DEDUP_MERGE.value, effect=flight.decision.effect.value
        )
        if not flight.decision.refuses or flight.decision.mode is not Mode.ENFORCE:
            return False
        rows = judged.answered.items if judged.answered is not None else ()
        self.may_land(flight, [item.key for item in rows if item.key is not None])
        self._releaser.leak(merged, flight)
        return True

    def _concerned(self, flight: Flight) -> bool:
        flight.concerned = flight.concerned or self._erasures.gate.concerns(flight.question.scope)
        return flight.concerned

    def screens(self, flight: Flight) -> bool:
        """Whether what leaves has to be looked at."""
        if self._policy().mode is Mode.OBSERVE or flight.question.call.operation is Operation.IGNORE:
            return False
        return self._concerned(flight)

    def _leaves(self, flight: Flight) -> bool:
        return not self.blocked(flight) and not flight.overtaken.is_set()

    def _behind(self, flight: Flight, reading: Reading, answered: Answered | None) -> bool:
        """Whether the client asked for an epoch that the answer has not reached, or does not speak of."""
        asked = reading.call.min_epoch
        if asked is None or not reading.call.recalls or self._policy().mode is Mode.OBSERVE:
            return False
        if answered is not None and answered.epoch is not None:
            return answered.epoch < asked
        if self._erasures.shelf.names_epochs:
            return True  # a store that names epochs has not named one
        # Where the store names none it can only be the number that a forget of ours was answered with.
        return answered is None or not 0 < asked <= self._erasures.gate.epoch

    def refused_late(self, flight: Flight) -> Answer:
        """The refusal of an answer that would have been let through when its call began."""
        self._metrics.count("contaminated_recalls", effect=flight.decision.effect.value)
        return self._releaser.refusal(flight.decision, hint(flight.question))

    # --- learning ------------------------------------------------------------------------------

    def _learn(
        self, flight: Flight, reading: Reading, reply: Reply, judged: Judged | None, answered: Answered | None
    ) -> None:
        if reading.call.operation is Operation.WRITE:
            self._written(flight, reading, reply, answered)
        if answered is not None and 200 <= reply.status < 300:
            dropped = judged.screening.dropped if judged is not None else frozenset()
            self._releaser.learn(flight, reading, answered.items, dropped)

    def _born(self, flight: Flight, reading: Reading, reply: Reply) -> None:
        """A write that was done makes its records new: what stood under their keys before is judged apart."""
        if reading.call.operation is not Operation.WRITE:
            return
        if self._profile().ack(reading, reply).outcome != "accepted":
            return
        answered = self._read(reading, reply)
        rows = written(reading.call, answered.items if answered is not None else ())
        self._releaser.learn(flight, reading, rows, frozenset())

    def _written(self, flight: Flight, reading: Reading, reply: Reply, answered: Answered | None) -> None:
        ack = self._profile().ack(reading, reply)
        if ack.outcome not in ("queued", "unclear"):
            return
        keys = [item.key for item in (answered.items if answered is not None else ()) if item.key is not None]
        self.may_land(flight, keys)

    def may_land(self, flight: Flight, keys: list[str] | None = None) -> None:
        """A write may still land: remembered for the erasures it would disturb."""
        bound = self._profile().store.bound
        for key in keys or ():
            self._flights.unknown(flight.question.scope, bound, self._erasures.keyring.pseudonym("key", key))
        if not keys:
            self._flights.unknown(flight.question.scope, bound)


def hint(question: Question) -> dict[str, Any]:
    """The caller's own subject, as the logs know it (a keyed prefix), and which rows of a batch are meant."""
    subject = question.scope.subject
    said: dict[str, Any] = {"rows": list(question.rows[:ROWS])} if question.rows else {}
    if isinstance(subject, Wild):
        return said
    return {"subject": sorted(f"hmac:{a.hex()[:16]}" for a in subject if isinstance(a, bytes))[:5], **said}
