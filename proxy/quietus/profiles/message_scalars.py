"""Every scalar of a message as text, with the row it stands in: what an answer is screened by.

The tables say what need not be looked at: names of enum values, truth values, vectors. Everything else is:
strings, bytes, numbers, keys of maps, and fields that the tables do not know, which may hold anything.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final

from quietus.core.exchange import Headers
from quietus.profiles.answers import scalars_of
from quietus.profiles.codec import decode_json
from quietus.profiles.descriptors import FIXED32, FIXED64, LEN, VARINT, MessageType
from quietus.profiles.faults import NotJson
from quietus.profiles.protobuf import Floats, Message, NotMessage, Opaque, skip, tag, varint
from quietus.profiles.rows import Anchors

GUESS_DEPTH: Final = 16
"""How deep bytes of no known type are taken for messages within messages."""
GUESS_MAX: Final = 200_000
"""Fields of them that are looked at; beyond it the answer is unreadable."""
FEW_FLOATS: Final = 16
"""Fewer floats than this are numbers of a record; so many or more are a vector, and say nothing."""
_RUN: Final = re.compile(
    rb"(?:[\x20-\x7e]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}){5,}"
)
"""So much text on end is rare among the bytes of a vector, and every sentence has it."""
_JSON_STARTS: Final = ("{", "[")

Scalars = list[tuple[int | None, str]]


def scalars(message: Message, anchors: Anchors) -> Scalars:
    """Every scalar of a message and every key of its maps, each with the row that it stands in.

    Raises NotMessage where bytes of no known type hold more than can be looked at.
    """
    walk = _Walk(message, anchors)
    walk.message(message.view, message.kind, None)
    return walk.out


def beyond(message: Message) -> Iterator[str]:
    """What a message may say beside its view: in fields that the tables do not know, in bytes of no text.

    Raises NotMessage where that is more than can be looked at.
    """
    budget = [GUESS_MAX]
    for spans in message.rest.values():
        for start, end in spans:
            yield from _unknown(message.data[start:end], GUESS_DEPTH, budget)
    for value in message.opaque:
        yield from guesses(value.raw)


def guesses(data: bytes | memoryview) -> Iterator[str]:
    """What bytes of no known type may say: as text, and as a message. Raises NotMessage beyond a bound."""
    budget = [GUESS_MAX]
    raw = bytes(data)
    yield from _texts(raw)
    yield from _inside(raw, GUESS_DEPTH, budget)


def of_metadata(headers: Headers) -> Iterator[str]:
    """What trailing metadata may say; the values of `-bin` keys come as base64."""
    for name, value in headers:
        if not name.lower().endswith("-bin"):
            yield value
            continue
        try:
            raw = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
        except (binascii.Error, ValueError):
            yield value
            continue
        yield from guesses(raw)


class _Walk:
    """A walk over the view of one message, beside the tables."""

    def __init__(self, message: Message, anchors: Anchors) -> None:
        self.source = message
        self.anchors = anchors
        self.out: Scalars = []

    def message(self, view: dict[str, Any], kind: MessageType, row: int | None) -> None:
        if row is None:
            row = self.anchors.whole.get(id(view))
        for name, value in view.items():
            one = kind.names[name]
            if one.kind in ("enum", "bool") or value is None:
                continue
            if one.is_map:
                assert one.message is not None
                inner = one.message.names["value"]
                for key, member in value.items():
                    self._text(key, row)
                    self._value(member, inner.message if inner.kind not in ("enum", "bool") else None, row)
            elif one.repeated:
                self._members(value, one.message, row)
            else:
                self._value(value, one.message, row)
        for start, end in self.source.rest.get(id(view), ()):
            for text in _unknown(self.source.data[start:end], GUESS_DEPTH, [GUESS_MAX]):
                self._text(text, row)

    def _members(self, rows: Any, kind: MessageType | None, row: int | None) -> None:
        if isinstance(rows, Floats):
            if len(rows) < FEW_FLOATS:
                self.out.extend((row, repr(number)) for number in rows.values())
            return
        first = self.anchors.lists.get(id(rows))
        if first is None and kind is None and len(rows) >= FEW_FLOATS and type(rows[0]) is float:
            return
        for number, member in enumerate(rows):
            self._value(member, kind, row if first is None else first + number)

    def _value(self, value: Any, kind: MessageType | None, row: int | None) -> None:
        what = type(value)
        if what is str:
            self._text(value, row)
        elif what is dict and kind is not None:
            self.message(value, kind, row)
        elif what is int or what is float:
            self.out.append((row, repr(value)))
        elif what is Opaque:
            for text in guesses(value.raw):
                self._text(text, row)

    def _text(self, text: str, row: int | None) -> None:
        if not text:
            return
        self.out.append((row, text))
        if text.startswith(_JSON_STARTS):
            try:
                document = decode_json(text.encode("utf-8"))
            except (NotJson, UnicodeEncodeError):
                return
            self.out.extend((row, inner) for inner in scalars_of(document))


def _texts(raw: bytes) -> Iterator[str]:
    """Bytes as text; where they are none, every run of text in them."""
    try:
        yield raw.decode("utf-8")
    except UnicodeDecodeError:
        yield from (run[0].decode("utf-8", "replace") for run in _RUN.finditer(raw))


def _inside(raw: bytes, depth: int, budget: list[int]) -> Iterator[str]:
    """The scalars of bytes if they are a message, from the first field to the last; nothing if not."""
    if depth <= 0 or not raw:
        return
    spans: list[tuple[int, int]] = []
    at = 0
    try:
        while at < len(raw):
            start = at
            number, wire, at = tag(raw, at)
            at = skip(raw, wire, number, at, len(raw))
            spans.append((start, at))
            if at > len(raw):
                return
    except (NotMessage, IndexError):
        return
    for start, end in spans:
        yield from _unknown(raw[start:end], depth, budget)


def _unknown(span: bytes, depth: int, budget: list[int]) -> Iterator[str]:
    """The scalars of one field of which only its bytes are known."""
    budget[0] -= 1
    if budget[0] < 0:
        raise NotMessage("it holds more of what is not known than can be looked at", too_large=True)
    number, wire, at = tag(span, 0)
    if wire == LEN:
        _, at = varint(span, at)
        raw = span[at:]
        yield from _texts(raw)
        yield from _inside(raw, depth - 1, budget)
    elif wire == VARINT:
        value, _ = varint(span, at)
        yield str(value)
        if value >> 63:
            yield str(value - (1 << 64))
    elif wire in (FIXED32, FIXED64):
        yield str(int.from_bytes(span[at:], "little"))
    else:  # a group: its fields stand between two tags
        yield from _inside(span[at : -len(_group_end(number))], depth - 1, budget)


def _group_end(number: int) -> bytes:
    value, out = number << 3 | 4, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
