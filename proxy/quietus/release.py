"""Letting an answer go: the last decision, the screening, and the marks it carries."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from quietus.answers import Answer, decision_header, marks, passed, problem
from quietus.core.decision import Decision, Question, Screening
from quietus.core.erasure import Erasure
from quietus.core.exchange import Headers, Reply
from quietus.core.gate import Gate, Relation
from quietus.core.operations import Call, Item, Operation
from quietus.core.policy import Effect, Mode
from quietus.core.problems import PROBLEMS, Retry
from quietus.core.scope import ANY, Scope, Wild, overlaps
from quietus.core.screening import Screener
from quietus.core.states import State
from quietus.erasures import Erasures
from quietus.flights import Flight
from quietus.owners import Owners
from quietus.profiles.faults import Unreadable
from quietus.profiles.profile import Answered, Profile, Reading
from quietus.recording import Observer

Leak = Callable[[Iterable[Erasure], float], None]
"""Told of erased items met in a client's answer, and when its upstream call started."""


@dataclass(slots=True)
class Judged:
    """An answer that was looked at: what of it may leave."""

    screening: Screening
    answered: Answered | None
    unreadable: bool = False


class Releaser:
    """Decides about answers just before they leave. Nothing here waits."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        owners: Owners,
        screener: Screener,
        metrics: Observer,
        leaked: Leak,
        retry_after: Callable[[Erasure], float],
        disclose: Callable[[], bool],
    ) -> None:
        self._erasures = erasures
        self._profile = profile
        self._owners = owners
        self._screener = screener
        self._metrics = metrics
        self._leaked = leaked
        self._retry_after = retry_after
        self._disclose = disclose

    @property
    def _gate(self) -> Gate:
        return self._erasures.gate

    # --- refusing ------------------------------------------------------------------------------

    def refusal(self, decision: Decision, hint: dict[str, Any] | None = None) -> Answer:
        """The refusal that a decision asks for. Who comes here does not wait any longer."""
        decision = decision.ended
        first = decision.erasures[0] if decision.erasures else None
        name = decision.problem or "erasure-not-settled"
        kind = PROBLEMS[name]
        members: dict[str, Any] = dict(hint or {})
        if first is not None and first.unsettled:
            members["erasure_epoch"] = first.epoch if first.store_epoch is None else first.store_epoch
            if first.read_epoch is not None:
                members["read_epoch"] = first.read_epoch
        if self._disclose() and decision.erasures:
            members["erasures"] = [e.id for e in decision.erasures[:5]]
        after = None
        if kind.retry is Retry.YES or (kind.retry is Retry.WHILE_UNSETTLED and first and first.unsettled):
            after = self._retry_after(first) if first is not None else 1.0
        header = decision_header(decision, kind.reason.value)
        return problem(name, rule=decision.rule, retry_after=after, members=members, headers=(header,))

    # --- judging -------------------------------------------------------------------------------

    def judge(
        self, flight: Flight, reading: Reading, reply: Reply, answered: Answered | None = None
    ) -> Judged:
        """Looks at a whole answer: every scalar and key of it, every row. It may have been read before."""
        try:
            if answered is None:
                answered = self._profile().answer(reading, reply)
            found = self.screen(flight, reading, answered)
        except Unreadable:
            return Judged(Screening(), None, unreadable=bool(reply.body) or reply.wire == "grpc")
        if any(self.tells(text, flight.question.scope) for text in beside_the_body(reply)):
            found = replace(found, outside=True)
        return Judged(found, answered)

    def screen(self, flight: Flight, reading: Reading, answered: Answered) -> Screening:
        """Screens the rows and scalars of one answer, or of one event of a stream."""
        call, scope = reading.call, flight.question.scope
        found = self._screened(reading, answered, scope, "")
        # What stood unsettled at any time since the call started holds back what cannot be attributed,
        # even if it has been settled meanwhile: the answer is older than that.
        met = [e for e in flight.met.values() if not e.readmitted]
        late = {
            item.position
            for item in (answered.items if met and call.recalls else ())
            if item.position not in found.dropped
            and any(overlaps(e.predicate, self._owners.scope_of(item, call, scope)) for e in met)
        }
        found = replace(found, dropped=found.dropped | late) if late else found
        return self._let_through(found) if flight.decision.overridden else found

    def _let_through(self, found: Screening) -> Screening:
        # People have overridden the gate. What was met stays evidence, and each answer is counted.
        if found.dropped or found.outside:
            self._metrics.count("bypass", cause="override")
        return replace(found, dropped=frozenset(), outside=False)

    def _screened(self, reading: Reading, answered: Answered, scope: Scope, own: str) -> Screening:
        call = reading.call
        written = _keys_of(call) if call.operation is Operation.WRITE else frozenset()
        return self._owners.screened(
            answered.items, answered.scalars(), gate=self._gate, screener=self._screener, call=call,
            scope=scope, own=own, written=written,
        )  # fmt: skip

    def foreign(self, question: Question, reading: Reading, reply: Reply, own: str) -> bool:
        """Whether the answer to a forget tells of somebody else who was erased, or cannot be read."""
        if not reply.body or all(e.id == own for e in self._gate.erasures.values() if e.tombstoned):
            return False
        try:
            found = self._screened(reading, self._profile().answer(reading, reply), question.scope, own)
        except Unreadable:
            return True
        return bool(found.dropped) or found.outside

    def read(self, reading: Reading, reply: Reply) -> Answered | None:
        """The rows of an answer that nothing is screened in, for learning; None where it has none."""
        try:
            return self._profile().answer(reading, reply)
        except Unreadable:
            return None

    def event_dropped(self, flight: Flight, reading: Reading, answered: Answered) -> bool:
        """Whether one event of a stream must not leave."""
        screening = self.screen(flight, reading, answered)
        if screening.erased:
            self._leaked(screening.erased, flight.started)
        return bool(screening.dropped) or screening.outside

    def leak(self, erased: Iterable[Erasure], flight: Flight) -> None:
        """Tells of erased items that were met in an answer."""
        self._leaked(erased, flight.started)

    def merges(self, flight: Flight, reading: Reading, judged: Judged) -> tuple[Erasure, ...]:
        """The erasures whose erased ids the answer to a write names, where the write itself did not.

        A settled id that the store has given to the very record that was written is that record's now.
        """
        call, answered = reading.call, judged.answered
        if call.operation is not Operation.WRITE or answered is None or not judged.screening.causes:
            return ()
        own = _keys_of(call)
        found: dict[str, Erasure] = {}
        rows = {item.key: item for item in answered.items if item.key is not None}
        for key, item in rows.items():
            if key in own:
                continue
            for hit in self._screener.keys(key, self._owners.path_of(item, call)):
                if own or hit.erasure.unsettled:
                    found[hit.erasure.id] = hit.erasure
            # A forget that names keys names them wherever they lie, also where nothing lay under them.
            scope = self._owners.scope_of(item, call, flight.question.scope)
            near = (e for e, how in self._gate.restricting(scope) if how is Relation.INSIDE)
            found |= {e.id: e for e in near if not isinstance(e.predicate.key, Wild)}
        for _, text in answered.scalars():
            if text not in own and text not in rows:
                found.update((h.erasure.id, h.erasure) for h in self._screener.look(text) if h.cause == "key")
        here = Scope(tenant=flight.question.scope.tenant)
        return tuple(e for e in found.values() if overlaps(Scope(tenant=e.predicate.tenant), here))

    def tells(self, text: str, scope: Scope) -> bool:
        """Whether a text, of whatever place, says something of who was erased in the tenant of a call."""
        here = Scope(tenant=ANY if isinstance(scope.tenant, Wild) else scope.tenant)
        return any(
            hit.strong and overlaps(Scope(tenant=hit.erasure.predicate.tenant), here)
            for hit in self._screener.look(text)
        )

    def learn(self, flight: Flight, reading: Reading, items: Iterable[Item], dropped: frozenset[int]) -> None:
        """Remembers whose the rows are that pass."""
        # A write that a gate has overtaken is not newer than what shut it.
        born = self._gate.epoch if reading.call.operation is Operation.WRITE and not flight.met else 0
        own = _keys_of(reading.call)
        for item in items:
            if item.position not in dropped:
                # Under another key than it asked for it may have gone into a record that was there before.
                new = not own or item.key in own
                self._owners.learn(item, reading.call, flight.question.scope, born if new else 0)

    # --- releasing -----------------------------------------------------------------------------

    def release(
        self, flight: Flight, reading: Reading, reply: Reply, judged: Judged | None
    ) -> Answer:
        """The answer as it may leave. `flight.decision` is the strictest since its upstream call started."""
        decision = flight.decision
        enforced = decision.mode is Mode.ENFORCE
        recalls = reading.call.operation is not Operation.FORGET
        if judged is None:
            return self._as_it_came(flight, reply)
        if judged.unreadable:
            if enforced and recalls:
                return self.unscreenable(decision)
            return self._as_it_came(flight, reply)
        screening = judged.screening
        if screening.erased:
            self._leaked(screening.erased, flight.started)
        if not enforced:
            return self._as_it_came(flight, reply)
        if screening.outside:
            return self.outside(decision, screening)
        drop = screening.dropped
        answered = judged.answered
        if decision.effect is Effect.EMPTY and answered is not None:
            drop = frozenset(item.position for item in answered.items)
        if not drop or answered is None:
            return self._as_it_came(flight, reply)
        body = answered.without(drop)
        if body is None:
            return self._quarantined(decision)
        return self._marked(flight, reply.with_body(body), len(drop))

    def _as_it_came(self, flight: Flight, reply: Reply) -> Answer:
        return self._marked(flight, reply, 0)

    def _marked(self, flight: Flight, reply: Reply, dropped: int) -> Answer:
        return passed(reply, *self.head_marks(flight, dropped))

    def head_marks(self, flight: Flight, dropped: int = 0) -> Headers:
        """The marks that an answer carries: none where no unsettled erasure touched the call."""
        if not flight.touched or flight.decision.mode is not Mode.ENFORCE:
            return ()
        if flight.question.call.operation in (Operation.FORGET, Operation.IGNORE):
            return ()
        self._metrics.count("contaminated_recalls", effect=flight.decision.effect.value)
        return marks(flight.decision, dropped, self._disclose())

    def unscreenable(self, decision: Decision) -> Answer:
        """The refusal of an answer that cannot be looked at."""
        return problem("unscreenable", rule=decision.rule, headers=(decision_header(decision),))

    def outside(self, decision: Decision, screening: Screening) -> Answer:
        """The refusal of an answer that tells of the erased where nothing can be taken out."""
        unsettled = [e for e in screening.erased if e.unsettled]
        if not unsettled:
            return self._quarantined(decision)
        late = any(e.state is State.VIOLATION for e in unsettled)
        name = "consistency-violation" if late else "erasure-not-settled"
        after = None if late else self._retry_after(unsettled[0])
        reason = PROBLEMS[name].reason.value
        header = decision_header(decision, reason)
        return problem(name, rule=decision.rule, retry_after=after, headers=(header,))

    def _quarantined(self, decision: Decision) -> Answer:
        header = decision_header(decision, PROBLEMS["record-quarantined"].reason.value)
        return problem("record-quarantined", rule=decision.rule, headers=(header,))


def beside_the_body(reply: Reply) -> Iterator[str]:
    """The texts that a reply of gRPC holds outside of its message: its status, its metadata."""
    if reply.code is None:
        return
    if reply.reason:
        yield reply.reason
    for name, value in (*reply.headers, *reply.trailers):
        if name.endswith("-bin"):
            # Whatever message it is, its texts stand in it as they are, between bytes that are no letters.
            yield b64decode(value + "=" * (-len(value) % 4)).decode("utf-8", "replace")
        else:
            yield value


def _keys_of(call: Call) -> frozenset[str]:
    """The keys that a call names itself."""
    named = () if isinstance(call.scope.key, Wild) else map(str, call.scope.key)
    return frozenset((*named, *(item.key for item in call.items if item.key is not None)))
