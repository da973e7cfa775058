"""The messages of a gRPC stream on their way to a client: each decided, screened and edited by itself.

Unlike the events of a text stream they are not held back: whoever watches for changes waits for each. What a
sentence spread over messages would tell is looked for across the last of them, and the message that would
complete it is where the call ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from quietus.answers import Answer, passed
from quietus.arrivals import Arrivals
from quietus.core.decision import Screening
from quietus.core.exchange import Reply
from quietus.flights import Flight
from quietus.profiles.faults import Unreadable
from quietus.profiles.profile import Answered, Profile, Reading
from quietus.release import Releaser, beside_the_body
from quietus.streams import HELD_EVENTS, crosses, texts_of

Pairs = Iterable[tuple[Flight, Reading]]


class Ended(Exception):
    """Nothing more of a call may go on; the answer says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("the call was ended")
        self.answer = answer


class Messages:
    """Looks at the messages of one stream after the other."""

    def __init__(self, profile: Callable[[], Profile], arrivals: Arrivals, releaser: Releaser) -> None:
        self._profile = profile
        self._arrivals = arrivals
        self._releaser = releaser

    def passed(self, message: bytes, pairs: Pairs, before: Before) -> bytes | None:
        """The message as it may leave; None: not at all. Raises Ended."""
        pairs = list(pairs)
        for flight, _ in pairs:
            if self._arrivals.blocked(flight):
                raise Ended(self._arrivals.refused_late(flight))
        looked = [pair for pair in pairs if self._arrivals.screens(pair[0])]
        if not looked:
            return message
        answered, dropped = self._looked(message, looked)
        left = message if not dropped else answered.without(dropped)
        if left is not None:  # what does not leave completes nothing
            leaving = answered if not dropped else self._profile().event(looked[-1][1], left)
            before.add(leaving, self._releaser, looked)
        return left

    def _looked(self, message: bytes, looked: list[tuple[Flight, Reading]]) -> tuple[Answered, set[int]]:
        dropped: set[int] = set()
        answered: Answered | None = None
        for flight, reading in looked:
            try:
                answered = self._profile().event(reading, message)
                screening = self._releaser.screen(flight, reading, answered)
            except Unreadable:
                raise Ended(self._releaser.unscreenable(flight.decision)) from None
            if screening.erased:
                self._releaser.leak(screening.erased, flight)
            if screening.outside:
                raise Ended(self._releaser.outside(flight.decision, screening))
            dropped |= screening.dropped
            self._releaser.learn(flight, reading, answered.items, screening.dropped)
        assert answered is not None
        return answered, dropped

    def ending(self, reply: Reply, pairs: Pairs) -> Answer:
        """How a call ended, as it may be told: the store's status and trailers, with our marks."""
        pairs = list(pairs)
        for flight, _ in pairs:
            scope = flight.question.scope
            if self._arrivals.screens(flight) and any(
                self._releaser.tells(text, scope) for text in beside_the_body(reply)
            ):
                raise Ended(self._releaser.outside(flight.decision, Screening(outside=True)))
        touched = next((flight for flight, _ in pairs if flight.touched), None)
        return passed(reply, *(self._releaser.head_marks(touched) if touched is not None else ()))


class Before:
    """The texts of the last messages of one stream."""

    def __init__(self) -> None:
        self._texts: deque[dict[str, str]] = deque(maxlen=HELD_EVENTS)

    def add(self, answered: Answered, releaser: Releaser, looked: list[tuple[Flight, Reading]]) -> None:
        """Takes in one more. Raises Ended where it completes what none says alone."""
        texts = texts_of(answered.document)
        for flight, _ in looked:
            tells = partial(releaser.tells, scope=flight.question.scope)
            if texts and self._texts and crosses(texts, list(self._texts), tells):
                self._texts.clear()
                raise Ended(releaser.outside(flight.decision, Screening(outside=True)))
        if texts:
            self._texts.append(texts)
