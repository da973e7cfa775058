"""Messages in, a view of them out: names to values, as JSON would have them, without copying vectors.

Read from the wire by the tables of `descriptors`, so that it is known where each byte stands and what is
not changed can be written as it came. A message that two parsers could read in two ways is refused: a
single field that comes twice, two members of one choice, a known field of another wire type, a string that
is not UTF-8. Fields that the tables do not know are kept apart and screened all the same.

In a view, 64-bit numbers are numbers, an enum is the name of its value, bytes that are UTF-8 are text and
others `Opaque`; packed floats are `Floats`. What is absent is absent; defaults are the conditions' matter.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.profiles.descriptors import FIXED32, FIXED64, LEN, VARINT, Field, MessageType

DEPTH_MAX: Final = 64
NODES_MAX: Final = 500_000
"""Values of one message that are read; floats of packed vectors do not count, for they are not read."""
_GROUP, _GROUP_END = 3, 4
_HIGH: Final = bytes(range(0x80, 0x100))
_FIXED: Final = {"double": "<d", "float": "<f", "fixed64": "<Q", "sfixed64": "<q", "fixed32": "<I",
                 "sfixed32": "<i"}  # fmt: skip


class NotMessage(ValueError):
    """Bytes that are no message of the type, or could mean two things. `too_large`: beyond a bound."""

    def __init__(self, detail: str, *, too_large: bool = False) -> None:
        super().__init__(detail)
        self.too_large = too_large


class Floats:
    """Packed floats, as they stand in the message."""

    __slots__ = ("raw", "width")

    def __init__(self, raw: memoryview, width: int) -> None:
        self.raw = raw
        self.width = width

    def __len__(self) -> int:
        return len(self.raw) // self.width

    def part(self, at: int, count: int) -> Floats:
        """The floats of one row of `count`, still where they stand."""
        size = count * self.width
        return Floats(self.raw[at * size : (at + 1) * size], self.width)

    def values(self) -> tuple[float, ...]:
        """The numbers, copied out."""
        return struct.unpack(f"<{len(self)}{'f' if self.width == 4 else 'd'}", self.raw)


class Opaque:
    """Bytes that are no text."""

    __slots__ = ("raw",)

    def __init__(self, raw: memoryview) -> None:
        self.raw = raw


@dataclass(slots=True, eq=False)
class Message:
    """One message as it was read."""

    data: bytes
    kind: MessageType
    view: dict[str, Any] = field(default_factory=dict)
    rest: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Of each message within, by the identity of its view: where fields stand that are not known."""
    opaque: list[Opaque] = field(default_factory=list)
    """Bytes anywhere in it that are no text."""


def decode(data: bytes, kind: MessageType) -> Message:
    """The message in `data`. Raises NotMessage, which never quotes it."""
    reader = _Reader(data)
    try:
        view = reader.message(kind, 0, len(data), 0)
    except (IndexError, struct.error):
        raise NotMessage("it is cut short") from None
    return Message(data, kind, view, reader.rest, reader.opaque)


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """An unsigned number and where it ends. Raises IndexError, NotMessage."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value = byte & 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 70:
            raise NotMessage("a number is too long")


def tag(data: bytes | memoryview, at: int) -> tuple[int, int, int]:
    """The number and wire type of a field, and where its value starts. Raises IndexError, NotMessage."""
    value, at = varint(data, at)
    if value >> 3 == 0 or value > 0xFFFF_FFFF:
        raise NotMessage("a field has no number that a field can have")
    return value >> 3, value & 7, at


def skip(data: bytes | memoryview, wire: int, number: int, at: int, end: int, depth: int = 0) -> int:
    """Where a value of an unknown field ends. Raises IndexError, NotMessage."""
    if wire == VARINT:
        return varint(data, at)[1]
    if wire == LEN:
        length, at = varint(data, at)
        return at + length
    if wire in (FIXED64, FIXED32):
        return at + (8 if wire == FIXED64 else 4)
    if wire != _GROUP or depth >= DEPTH_MAX:
        raise NotMessage("a field has no wire type that a field can have")
    while at < end:
        inner, wire, at = tag(data, at)
        if wire == _GROUP_END:
            if inner != number:
                break
            return at
        at = skip(data, wire, inner, at, end, depth + 1)
    raise NotMessage("a group does not end")


class _Reader:
    """Reads one message, counting what it reads."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.raw = memoryview(data)
        self.left = NODES_MAX
        self.rest: dict[int, list[tuple[int, int]]] = {}
        self.opaque: list[Opaque] = []

    def message(self, kind: MessageType, at: int, end: int, depth: int) -> dict[str, Any]:
        """The view of the message between two offsets."""
        if depth > DEPTH_MAX:
            raise NotMessage("it is nested too deeply")
        data, fields = self.data, kind.fields
        found: dict[str, Any] = {}
        chosen: set[str] | None = None
        while at < end:
            start = at
            byte = data[at]  # most tags are one byte
            number, wire, at = (byte >> 3, byte & 7, at + 1) if 8 <= byte < 0x80 else tag(data, at)
            one = fields.get(number)
            self.left -= 1
            if self.left < 0:
                raise NotMessage("it has too many values", too_large=True)
            if one is not None and one.text and wire == LEN:
                at = self._text(one, at, end, found)
                continue
            if one is None:
                at = skip(data, wire, number, at, end)
                if at > end:
                    raise NotMessage("a field is longer than its message")
                self.rest.setdefault(id(found), []).append((start, at))
                continue
            if one.oneof is not None:
                chosen = chosen if chosen is not None else set()
                if one.oneof in chosen and one.name not in found:
                    raise NotMessage("two members of one choice are given")
                chosen.add(one.oneof)
            at = self._value(one, wire, at, end, found, depth)
        if at != end:
            raise NotMessage("a field is longer than its message")
        return found

    def _text(self, one: Field, at: int, end: int, found: dict[str, Any]) -> int:
        """A single string of no choice: what most fields of a memory are."""
        length = self.data[at]
        at += 1
        if length >= 0x80:
            length, at = varint(self.data, at - 1)
        stop = at + length
        if stop > end:
            raise NotMessage("a field is longer than its message")
        if one.name in found:
            raise NotMessage("a single field is given twice")
        found[one.name] = self._long(one, at, stop, 0)
        return stop

    def _value(
        self, one: Field, wire: int, at: int, end: int, found: dict[str, Any], depth: int
    ) -> int:
        if wire == LEN:
            length, at = varint(self.data, at)
            stop = at + length
            if stop > end:
                raise NotMessage("a field is longer than its message")
            if one.wire == LEN:
                value = self._long(one, at, stop, depth)
            elif one.repeated:
                self._packed(one, at, stop, found)
                return stop
            else:
                raise NotMessage("a field has another wire type than its descriptor says")
        elif wire != one.wire:
            raise NotMessage("a field has another wire type than its descriptor says")
        else:
            value, stop = self._short(one, at)
        if not one.repeated:
            if one.name in found:
                raise NotMessage("a single field is given twice")
            found[one.name] = value
        elif one.is_map:
            _into_map(one, found.setdefault(one.name, {}), value)
        else:
            rows = found.setdefault(one.name, [])
            if type(rows) is not list:
                raise NotMessage("a list of floats is written in two ways")
            rows.append(value)
        return stop

    def _long(self, one: Field, at: int, stop: int, depth: int) -> Any:
        if one.message is not None:
            return self.message(one.message, at, stop, depth + 1)
        try:
            return self.data[at:stop].decode("utf-8")
        except UnicodeDecodeError:
            if one.kind == "string":
                raise NotMessage("a string is not UTF-8") from None
            self.opaque.append(Opaque(self.raw[at:stop]))
            return self.opaque[-1]

    def _short(self, one: Field, at: int) -> tuple[Any, int]:
        pattern = _FIXED.get(one.kind)
        if pattern is not None:
            width = 8 if one.wire == FIXED64 else 4
            return struct.unpack_from(pattern, self.data, at)[0], at + width
        value, at = varint(self.data, at)
        return number_of(one, value), at

    def _packed(self, one: Field, at: int, stop: int, found: dict[str, Any]) -> None:
        if one.kind in ("float", "double"):
            width = 4 if one.kind == "float" else 8
            if (stop - at) % width:
                raise NotMessage("packed floats are cut short")
            if found.get(one.name):
                raise NotMessage("a list of floats is written in two ways")
            found[one.name] = Floats(self.raw[at:stop], width)
            return
        rows = found.setdefault(one.name, [])
        # Each number ends with the only byte of it that has no high bit.
        whole = one.wire == VARINT
        self.left -= len(self.data[at:stop].translate(None, _HIGH)) if whole else (stop - at) // 4
        if self.left < 0:
            raise NotMessage("it has too many values", too_large=True)
        while at < stop:
            value, at = self._short(one, at)
            rows.append(value)
        if at != stop:
            raise NotMessage("packed numbers are cut short")


def number_of(one: Field, value: int) -> Any:
    """What an unsigned number of the wire means to a field."""
    kind = one.kind
    if kind == "uint64":
        return value
    if kind == "int64":
        return value - (1 << 64) if value >> 63 else value
    if kind == "bool":
        return value != 0
    if kind == "sint64":
        return (value >> 1) ^ -(value & 1)
    value &= 0xFFFF_FFFF
    if kind == "uint32":
        return value
    if kind == "sint32":
        return (value >> 1) ^ -(value & 1)
    value = value - (1 << 32) if value >> 31 else value
    return one.numbers.get(value, value) if kind == "enum" else value


def _into_map(one: Field, entries: dict[str, Any], entry: dict[str, Any]) -> None:
    """One entry of a map; a key is the text of it, and the value's default stands as null."""
    assert one.message is not None
    key = entry.get("key", one.message.names["key"].absent())
    if type(key) is bool:
        key = "true" if key else "false"
    name = str(key)
    if name in entries:
        raise NotMessage("a map has the same key twice")
    entries[name] = entry.get("value")
