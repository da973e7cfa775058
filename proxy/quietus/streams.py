"""Answers that come in pieces: relayed as they arrive, and decided one by one where something is screened.

Where no erasure or tombstone stands, bytes pass unbuffered; a fence that lands aborts the connection. Where
one stands, each event is screened, and one is held back until its successor has been looked at together with
it, so that a sentence cut in two by an event boundary is still found.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Final

from quietus.flights import Flight
from quietus.ports import OpenReply, UpstreamError
from quietus.profiles.faults import Unreadable
from quietus.profiles.profile import Profile, Reading
from quietus.release import Releaser

EVENT_BYTES: Final = 1024 * 1024
"""The largest event that is screened; a larger one ends the stream."""
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class Overtaken(UpstreamError):
    """A fence landed in the scope of a stream: nothing more of it may leave."""

    def __init__(self) -> None:
        super().__init__("the answer was overtaken by a forget", sent=True)


async def relay(
    opened: OpenReply,
    flight: Flight,
    reading: Reading,
    releaser: Releaser,
    profile: Profile,
    leaves: Callable[[Flight], bool],
) -> AsyncIterator[bytes]:
    """The bytes of a stream that may leave. Raises when it is broken off: it never looks whole."""
    held = b""
    rest = b""
    try:
        async for chunk in opened.chunks():
            if not leaves(flight):
                raise Overtaken
            if not flight.concerned and not rest and not held:
                yield chunk
                continue
            rest += chunk
            while (found := _END.search(rest)) is not None:
                event, rest = rest[: found.end()], rest[found.end() :]
                passed, held = _pass(event, held, flight, reading, releaser, profile)
                if passed:
                    yield passed
            if len(rest) > EVENT_BYTES:
                raise UpstreamError("an event is larger than can be screened", sent=True)
        if not leaves(flight):
            raise Overtaken
        if rest:
            passed, held = _pass(rest, held, flight, reading, releaser, profile)
            if passed:
                yield passed
        if held:
            yield held
    finally:
        opened.abort()


def _pass(
    event: bytes, held: bytes, flight: Flight, reading: Reading, releaser: Releaser, profile: Profile
) -> tuple[bytes, bytes]:
    """(what may leave now, what is held back) after one more event."""
    if _erased(event, flight, reading, releaser, profile):
        return held, b""
    if held and releaser.crosses(_text(held), _text(event)):
        return b"", b""
    return held, event


def _data(event: bytes) -> bytes:
    lines = re.split(rb"\r\n|\n|\r", event)
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))


def _text(event: bytes) -> str:
    return _data(event).decode("utf-8", "replace")


def _erased(
    event: bytes, flight: Flight, reading: Reading, releaser: Releaser, profile: Profile
) -> bool:
    data = _data(event)
    if not data:
        return False
    try:
        answered = profile.event(reading, data)
    except Unreadable:
        return True  # what cannot be read cannot be shown to be free of the erased
    return releaser.event_dropped(flight, reading, answered)
