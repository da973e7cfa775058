"""Answers that come in pieces: relayed as they arrive, and decided one by one where something is screened.

Where no erasure or tombstone stands, bytes pass unbuffered; a fence that lands aborts the connection. Where
one stands, each event is screened, and the last few are held back until their successors have been looked
at together with them, so that a sentence cut in pieces by event boundaries is still found.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

from quietus.core.exchange import header
from quietus.core.fingerprint import LONG, REACH, RUN
from quietus.flights import Flight
from quietus.ports import OpenReply, UpstreamError
from quietus.profiles.faults import Unreadable
from quietus.profiles.profile import Profile, Reading
from quietus.release import Releaser

EVENT_BYTES: Final = 1024 * 1024
"""The largest event that is screened; a larger one ends the stream."""
HELD_EVENTS: Final = LONG
"""Events held back: as many as a run has words, for a store that sends one word at a time."""
SEAM: Final = REACH + 4
"""Words on each side of a boundary that are looked at together; a dash by itself may count as one here."""
_LINE: Final = re.compile(rb"\r\n|\n|\r")
_END: Final = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


class Overtaken(UpstreamError):
    """A fence landed in the scope of a stream, or it cannot be screened: nothing more of it may leave."""

    def __init__(self) -> None:
        super().__init__("the answer was overtaken by a forget", sent=True)


def coded(opened: OpenReply) -> bool:
    """Whether a stream is compressed: its events cannot be looked at."""
    return (header(opened.headers, "content-encoding") or "identity").strip().lower() != "identity"


async def relay(
    opened: OpenReply,
    flight: Flight,
    reading: Reading,
    releaser: Releaser,
    profile: Profile,
    leaves: Callable[[Flight], bool],
    screens: Callable[[Flight], bool],
) -> AsyncIterator[bytes]:
    """The bytes of a stream that may leave. Raises when it is broken off: it never looks whole."""
    window = Window(flight, reading, releaser, profile)
    rest = b""
    try:
        async for chunk in opened.chunks():
            if not leaves(flight):
                raise Overtaken
            if not screens(flight) and not rest and not window.events:
                yield chunk
                continue
            if coded(opened):
                raise Overtaken
            rest += chunk
            while (found := _END.search(rest)) is not None:
                event, rest = rest[: found.end()], rest[found.end() :]
                for passed in window.take(event):
                    yield passed
            if len(rest) > EVENT_BYTES:
                raise UpstreamError("an event is larger than can be screened", sent=True)
        if rest:
            for passed in window.take(rest):
                yield passed
        for held in window.flush():
            if not leaves(flight):
                raise Overtaken
            yield held
    finally:
        opened.abort()


async def pour(
    first: list[bytes],
    chunks: AsyncIterator[bytes],
    opened: OpenReply,
    flight: Flight,
    leaves: Callable[[Flight], bool],
    screens: Callable[[Flight], bool],
) -> AsyncIterator[bytes]:
    """An answer too large to be held, where nothing is screened. Raises when that changes on the way."""
    try:
        for piece in first:
            yield piece
        async for chunk in chunks:
            if not leaves(flight) or screens(flight):
                raise Overtaken
            yield chunk
    finally:
        opened.abort()


class Window:
    """The last events of a stream, held back until what follows has been looked at with them."""

    def __init__(self, flight: Flight, reading: Reading, releaser: Releaser, profile: Profile) -> None:
        self._flight = flight
        self._reading = reading
        self._releaser = releaser
        self._profile = profile
        self.events: deque[tuple[bytes, dict[str, str]]] = deque()

    def take(self, event: bytes) -> list[bytes]:
        """Takes one more event in; returns those that may leave now, oldest first."""
        if self._erased(event):
            return []
        values = _values(_data(event))
        if self.events and self._crosses(values):
            self.events.clear()  # all that the sentence may have been spread over
            return []
        self.events.append((event, values))
        return list(self._leaving()) if len(self.events) > HELD_EVENTS else []

    def flush(self) -> Iterator[bytes]:
        """The stream has ended: what is held may leave, one by one, if it still may when its turn comes."""
        while self.events:
            yield from self._leaving()

    def _leaving(self) -> Iterator[bytes]:
        # It was looked at when it came; what has been learned of the erased since then is looked for now.
        event, _ = self.events.popleft()
        if not self._erased(event):
            yield event

    def _tells(self, text: str) -> bool:
        return self._releaser.tells(text, self._flight.question.scope)

    def _crosses(self, values: dict[str, str]) -> bool:
        return crosses(values, [held for _, held in self.events], self._tells)

    def _erased(self, event: bytes) -> bool:
        for line in _LINE.split(event):
            name, _, value = line.partition(b":")
            if name != b"data" and value and self._tells(value.decode("utf-8", "replace").strip()):
                return True  # a comment, an id, the name of an event
        data = _data(event)
        if not data:
            return False
        try:
            answered = self._profile.event(self._reading, data)
        except Unreadable:
            return True  # what cannot be read cannot be shown to be free of the erased
        return self._releaser.event_dropped(self._flight, self._reading, answered)


def crosses(values: dict[str, str], before: list[dict[str, str]], tells: Callable[[str], bool]) -> bool:
    """Whether a text, together with those that stood in its place before, says what none says alone."""
    joints: set[str] = set()
    for place, value in values.items():
        pieces = [held[place] for held in before if place in held]
        for glue in (" ", "") if pieces else ():
            joints.add(_seam(glue.join(pieces), value, glue))
            whole = (glue.join([*pieces[start:], value]) for start in range(len(pieces)))
            joints.update(text for text in whole if len(text.split()) < RUN)
    joints.update(_seam(left, right, " ") for left in before[-1].values() for right in values.values())
    return any(tells(joint) for joint in joints)


def _seam(left: str, right: str, glue: str) -> str:
    """What stands on both sides of a boundary, as far as a run of words reaches: each side was looked at."""
    return glue.join((" ".join(left.split()[-SEAM:]), " ".join(right.split()[:SEAM])))


def _data(event: bytes) -> bytes:
    return b"\n".join(line[5:].removeprefix(b" ") for line in _LINE.split(event) if line.startswith(b"data:"))


def _values(data: bytes) -> dict[str, str]:
    """The texts of an event by their place in it."""
    text = data.decode("utf-8", "replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {"": text} if text else {}
    return texts_of(document)


def texts_of(document: object) -> dict[str, str]:
    """The texts of a document by their place in it."""
    found: dict[str, str] = {}
    queue: list[tuple[str, object]] = [("$", document)]
    while queue:
        place, value = queue.pop()
        if isinstance(value, dict):
            queue += [(f"{place}.{name}", each) for name, each in value.items()]
        elif isinstance(value, list):
            queue += [(f"{place}[{at}]", each) for at, each in enumerate(value)]
        elif isinstance(value, str) and value:
            found[place] = value
    return found
