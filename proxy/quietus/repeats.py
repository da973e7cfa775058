"""What clients do over and over beside an open erasure: write a hidden key again, and guess.

A key that was written, or refused, beside an unsettled erasure may look lost: the store answers 404, and a
client that believes it writes the key again, for ever. Such a 404 is told as what it is, and a key that is
written again and again counts as a loop. A refusal tells whoever asks that something was erased: each
principal is refused so many times in a while, and then all of their writes wait, whatever they say.

Kept in memory, digested and bounded; a restart forgets it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from quietus.answers import Answer, decision_header
from quietus.core.decision import Decision, Question
from quietus.core.erasure import Erasure
from quietus.core.operations import Call, Operation
from quietus.core.policy import Effect, Mode, Vector
from quietus.core.problems import Reason
from quietus.core.scope import Wild
from quietus.erasures import Erasures
from quietus.recording import Log, Measures

KEYS: Final = 20_000
"""Keys remembered; at the bound the one written longest ago goes."""
LOOP: Final = 3
"""So many writes of one key beside the same open erasure are none; one more is a loop."""
PRINCIPALS: Final = 10_000
REFUSALS: Final = 120
"""Refusals that a principal may be given at once."""
REFILL: Final = 2.0
"""Refusals that come back in a second."""
GUESSES: Final = frozenset({Vector.RESTATED_CONTENT, Vector.DERIVED_SUBJECT, Vector.DEDUP_MERGE})
"""The vectors whose refusal tells something that the caller may not have known."""
_GONE: Final = frozenset({404, 410})


@dataclass(slots=True)
class _Key:
    erasures: tuple[str, ...]
    writes: int = 0


class Repeats:
    """Remembers keys and principals. One event loop owns it."""

    def __init__(self, erasures: Erasures, metrics: Measures, log: Log) -> None:
        self._erasures = erasures
        self._metrics = metrics
        self._log = log
        self._keys: OrderedDict[bytes, _Key] = OrderedDict()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By principal: refusals left, and when that was so (monotonic seconds)."""

    # --- guessing ------------------------------------------------------------------------------

    def presses(self, call: Call, principal: str) -> float | None:
        """Seconds after which a principal may write again, who has been refused too often; None: now."""
        if call.operation is not Operation.WRITE or principal not in self._left:
            return None
        left = self._refilled(principal)
        return None if left >= 1.0 else max(1.0, (1.0 - left) / REFILL)

    def _refilled(self, principal: str) -> float:
        now = self._erasures.clock.monotonic()
        left, since = self._left.get(principal, (float(REFUSALS), now))
        left = min(float(REFUSALS), left + (now - since) * REFILL)
        if left >= REFUSALS:
            self._left.pop(principal, None)
        else:
            self._left[principal] = (left, now)
        return left

    def _spend(self, principal: str) -> None:
        left = self._refilled(principal)
        if principal not in self._left and len(self._left) >= PRINCIPALS:
            self._left.popitem(last=False)
        self._left[principal] = (left - 1.0, self._erasures.clock.monotonic())
        self._left.move_to_end(principal)

    # --- keys ----------------------------------------------------------------------------------

    def decided(self, question: Question, decision: Decision, seconds: float) -> None:
        """Takes note of a decision on a write, which came `seconds` after the write."""
        if question.call.operation is not Operation.WRITE or decision.mode is not Mode.ENFORCE:
            return
        refused = decision.effect is Effect.REJECT
        if refused and (decision.vectors & GUESSES or decision.problem == "erased-subject"):
            self._metrics.observe("detection_seconds", seconds)
        if refused and decision.vectors & GUESSES:
            self._spend(question.principal)
        if question.suspected and not refused:
            self._metrics.count("laundering_attempts", vector="restated_content", effect="annotate")
            self._log.info("suspected_write", route=question.call.route, rule=decision.rule)
        beside = tuple(erasure.id for erasure in decision.erasures if erasure.unsettled)[:8]
        for key in self._named(question.call) if beside else ():
            self._wrote(key, beside, question.call.route)

    def _wrote(self, key: bytes, beside: tuple[str, ...], route: str) -> None:
        known = self._keys.pop(key, None)
        if known is None or not set(known.erasures) & set(beside):
            known = _Key(beside)
        known.writes += 1
        if known.writes == LOOP + 1:
            self._metrics.count("rewrite_loops")
            self._log.info("rewrite_loop", route=route, count=known.writes)
        if len(self._keys) >= KEYS:
            self._keys.popitem(last=False)
        self._keys[key] = known

    def forgot(self, call: Call) -> None:
        """A client has asked to forget keys: that they are gone is then no wonder."""
        for key in self._named(call):
            self._keys.pop(key, None)

    def translated(
        self, question: Question, decision: Decision, answer: Answer, refusal: Callable[[Decision], Answer]
    ) -> Answer:
        """The answer to a read by key; a "not found" that an erasure is behind says so instead.

        The answer to a suspected write is marked.
        """
        call = question.call
        if question.suspected and answer.refused is None and decision.mode is Mode.ENFORCE:
            marked = replace(decision, effect=Effect.ANNOTATE)
            answer.headers = (*answer.headers, decision_header(marked, Reason.SCOPE_LAUNDERING.value))
        missing = answer.refused is None and (answer.status in _GONE or answer.code == "NOT_FOUND")
        if not missing or call.operation is not Operation.READ or decision.mode is not Mode.ENFORCE:
            return answer
        erasure = self._hiding(call)
        if erasure is None:
            return answer
        self._metrics.count("suppressed_reads")
        hidden = Decision(
            Effect.BLOCK, decision.rule, decision.mode, "suppressed-by-erasure", (erasure,), decision.relation
        )
        answer.done()
        return refusal(hidden)

    def _hiding(self, call: Call) -> Erasure | None:
        for key in self._named(call):
            known = self._keys.get(key)
            for name in known.erasures if known is not None else ():
                erasure = self._erasures.get(name)
                if erasure is not None and erasure.unsettled:
                    return erasure
        return None

    def _named(self, call: Call) -> Iterable[bytes]:
        keys = [] if isinstance(call.scope.key, Wild) else [str(key) for key in call.scope.key]
        keys += [item.key for item in call.items if item.key is not None]
        tenants = call.scope.tenant
        tenant = "" if isinstance(tenants, Wild) else "\x1f".join(sorted(str(each) for each in tenants))
        return [self._erasures.keyring.pseudonym("repeat", f"{tenant}\x1e{key}") for key in keys]
