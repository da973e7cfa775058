"""Calls that the policy lets wait: held until what they touch is settled, and then decided anew.

A recall waits (`wait`) where it would otherwise be refused; a write is held (`delay`) where it would be
rejected. Neither passes for having waited: what still has to wait when the time or the room is used up is
refused, with the problem that it would have been refused with at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quietus.core.decision import Decision, Question
from quietus.core.erasure import Erasure
from quietus.erasures import Erasures
from quietus.recording import Measures

BYTES_MAX: Final = 64 << 20
"""Of the bodies that wait at one time; a call that does not fit any more is refused at once."""
BYTES_EACH: Final = 16 << 10
"""What a waiting call counts for at least: it holds a connection and its headers beside its body."""


class Waiting:
    """Who waits, and for how long."""

    def __init__(
        self, erasures: Erasures, deciding: Callable[[Question], Decision], seconds: float, metrics: Measures
    ) -> None:
        self._erasures = erasures
        self._deciding = deciding
        self._seconds = seconds
        self._metrics = metrics
        self._bytes = 0

    async def settled(
        self, question: Question, decision: Decision, size: int, anew: Callable[[], Question]
    ) -> tuple[Question, Decision]:
        """The question and the decision once nothing has to be waited for any more, or a refusal.

        `size` is that of the body, in bytes; `anew` asks again, for what a text is marked by changes while it
        waits.
        """
        size = max(size, BYTES_EACH)
        if self._bytes + size > BYTES_MAX:
            return question, decision.ended
        clock = self._erasures.clock
        began = clock.monotonic()
        self._bytes += size
        try:
            while decision.holds and (erasure := _unsettled(question, decision)) is not None:
                left = began + self._seconds - clock.monotonic()
                if left <= 0 or not await self._erasures.changed(erasure.id, left):
                    break
                question = anew()
                decision = self._deciding(question)
        finally:
            self._bytes -= size
        self._metrics.observe("wait_seconds", clock.monotonic() - began)
        return question, decision.ended


def _unsettled(question: Question, decision: Decision) -> Erasure | None:
    """What has to be waited for; None where waiting changes nothing."""
    touched = (*decision.erasures, *question.named, *question.owned)
    return next((erasure for erasure in touched if erasure.unsettled), None)
