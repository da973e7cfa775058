"""Messages out: made from values, or the ones that came with some rows taken out or some fields set.

What is not changed is copied as it stands, byte for byte: the order of fields, fields that nobody knows,
and numbers that are written longer than they need be.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.profiles.descriptors import FIXED64, LEN, VARINT, Field, MessageType
from quietus.profiles.faults import CannotQuote
from quietus.profiles.protobuf import Floats, Message, skip, tag, varint

Coder = Callable[[Any], bytes]
"""How a value becomes the bytes of a field that wants something of its own."""
_RANGES: Final = {
    "int32": (-(1 << 31), 1 << 31), "sint32": (-(1 << 31), 1 << 31), "sfixed32": (-(1 << 31), 1 << 31),
    "uint32": (0, 1 << 32), "fixed32": (0, 1 << 32), "uint64": (0, 1 << 64), "fixed64": (0, 1 << 64),
}  # fmt: skip
_LONG: Final = (-(1 << 63), 1 << 63)
_PACKS: Final = {"double": "d", "float": "f", "fixed64": "Q", "sfixed64": "q", "fixed32": "I",
                 "sfixed32": "i"}  # fmt: skip
DEPTH_MAX: Final = 32


@dataclass(slots=True)
class Edits:
    """What is to be changed in a message, by the identity of the containers of its view."""

    drops: dict[int, tuple[frozenset[int], int]] = field(default_factory=dict)
    """A list: which rows leave it, and how many of its members are one row."""
    sets: dict[int, dict[str, Any]] = field(default_factory=dict)
    """A message: fields that get another value; None takes a field out."""
    counts: str | None = None
    """The field beside a list that says how many rows there are: it goes down with each that leaves."""


def encode(
    values: Mapping[str, Any], kind: MessageType, coders: Mapping[str, Coder] = {}, place: str = ""  # noqa: B006
) -> bytes:
    """A message from values by the names of its fields. Raises CannotQuote for what a field cannot hold.

    `coders` make the bytes of single fields, by their dotted names.
    """
    if place.count(".") > DEPTH_MAX:
        raise CannotQuote("a message is nested too deeply")
    out = bytearray()
    for name, value in values.items():
        one = kind.names.get(name)
        if one is None:
            raise CannotQuote("a message has no field of a name that is filled in")
        out += encode_field(one, value, coders, f"{place}.{name}" if place else name)
    return bytes(out)


def encode_field(one: Field, value: Any, coders: Mapping[str, Coder], place: str) -> bytes:
    """One field with its tag; nothing for null, and for a default that means the same as absence."""
    if value is None:
        return b""
    if one.is_map:
        return _map(one, value, coders, place)
    if one.repeated:
        members = list(value) if isinstance(value, list | tuple) else [value]
        if one.packed and members:
            return _head(one, LEN) + _long(b"".join(_number(one, member) for member in members))
        return b"".join(_head(one) + _payload(one, member, coders, place) for member in members)
    made = _payload(one, value, coders, place)
    if not one.explicit and not any(made):
        return b""
    return _head(one) + made


def write_varint(value: int) -> bytes:
    """A number as the wire has it; negative ones take ten bytes."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _head(one: Field, wire: int | None = None) -> bytes:
    return write_varint(one.number << 3 | (one.wire if wire is None else wire))


def _long(data: bytes) -> bytes:
    return write_varint(len(data)) + data


def _payload(one: Field, value: Any, coders: Mapping[str, Coder], place: str) -> bytes:
    """The value without its tag."""
    coder = coders.get(place)
    if coder is not None:
        return _long(value if isinstance(value, bytes) else coder(value))
    if one.message is not None:
        if not isinstance(value, Mapping):
            raise CannotQuote("a message stands where its field wants one with names")
        return _long(encode(value, one.message, coders, place))
    if one.wire != LEN:
        return _number(one, value)
    if isinstance(value, bytes) and one.kind == "bytes":
        return _long(value)
    if isinstance(value, dict | list) and one.kind == "bytes":
        value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CannotQuote("a value is no text that its field could hold")
    try:
        return _long(str(value).encode("utf-8"))
    except UnicodeEncodeError:
        raise CannotQuote("a value is not text that can be sent") from None


def _number(one: Field, value: Any) -> bytes:
    if one.kind == "enum" and isinstance(value, str) and value in one.names:
        value = one.names[value]
    if one.kind in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise CannotQuote("a value is no number, and its field takes nothing else")
        try:
            return struct.pack(f"<{_PACKS[one.kind]}", value)
        except (OverflowError, struct.error):
            raise CannotQuote("a number is too large for its field") from None
    if one.kind == "bool":
        if not isinstance(value, bool):
            raise CannotQuote("a value is neither true nor false, and its field takes nothing else")
        return b"\x01" if value else b"\x00"
    whole = _whole(value)
    low, high = _RANGES.get(one.kind, _LONG if one.kind != "enum" else _RANGES["int32"])
    if not low <= whole < high:
        raise CannotQuote("a number is too large for its field")
    if one.kind in _PACKS:
        return struct.pack(f"<{_PACKS[one.kind]}", whole)
    if one.kind in ("sint32", "sint64"):
        return write_varint(whole << 1 ^ whole >> 63)
    return write_varint(whole)


def _whole(value: Any) -> int:
    """A whole number, also as its digits: keys are text wherever they are kept."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= 20 and value.isascii():
        digits = value.removeprefix("-")
        if digits.isdigit() and str(int(value)) == value:
            return int(value)
    raise CannotQuote("a value is no whole number, and its field takes nothing else")


def _map(one: Field, value: Any, coders: Mapping[str, Coder], place: str) -> bytes:
    if not isinstance(value, Mapping) or one.message is None:
        raise CannotQuote("a map is filled in with something else")
    entries = ({"key": key, "value": member} for key, member in value.items())
    return b"".join(_head(one) + _long(encode(entry, one.message, coders, place)) for entry in entries)


# --- what came, changed -------------------------------------------------------------------------


def rewrite(message: Message, edits: Edits) -> bytes:
    """The message with these edits; every byte that they do not touch is as it was. Raises CannotQuote."""
    return _Writer(message.data, edits).message(message.view, message.kind, 0, len(message.data))


def with_fields(message: Message, fields: Mapping[tuple[str, ...], Any]) -> bytes:
    """The message with fields set, by the names on the way to each. Raises CannotQuote."""
    edits = Edits()
    for steps, value in fields.items():
        view, kind = message.view, message.kind
        into: dict[str, Any] | None = None  # what is set there: a message that was not there before
        for step in steps[:-1]:
            one = kind.names.get(step)
            if one is None or one.message is None or one.repeated:
                raise CannotQuote("a message has no field where one is to be set")
            kind = one.message
            if into is None and step in view:
                view = view[step]
            else:
                into = (edits.sets.setdefault(id(view), {}) if into is None else into).setdefault(step, {})
        if steps[-1] not in kind.names:
            raise CannotQuote("a message has no field where one is to be set")
        (edits.sets.setdefault(id(view), {}) if into is None else into)[steps[-1]] = value
    return rewrite(message, edits)


class _Writer:
    """Goes through a message a second time, beside its view."""

    def __init__(self, data: bytes, edits: Edits) -> None:
        self.data = data
        self.drops = edits.drops
        self.sets = edits.sets
        self.counts = edits.counts

    def message(self, view: Mapping[str, Any], kind: MessageType, at: int, end: int) -> bytes:
        data = self.data
        sets = self.sets.get(id(view)) or self._counted(view)
        out: list[bytes] = []
        seen: dict[str, int] = {}
        while at < end:
            start = at
            number, wire, at = tag(data, at)
            one = kind.fields.get(number)
            value_at = at
            at = skip(data, wire, number, at, end)
            if one is None:
                out.append(data[start:at])
            elif one.name in sets:
                continue
            elif one.repeated and not one.is_map:
                out.append(self._member(one, wire, view[one.name], seen, (start, value_at, at)))
            elif one.message is not None and not one.is_map:
                out.append(self._inner(one.message, view[one.name], start, value_at, at))
            else:
                out.append(data[start:at])
        out += [encode_field(kind.names[name], value, {}, name) for name, value in sets.items()]
        return b"".join(out)

    def _counted(self, view: Mapping[str, Any]) -> dict[str, Any]:
        """The count of a message, less the rows that leave it."""
        said = view.get(self.counts) if self.counts is not None else None
        gone = sum(len(self.drops[id(rows)][0]) for rows in view.values() if id(rows) in self.drops)
        return {str(self.counts): max(0, said - gone)} if type(said) is int and gone else {}

    def _inner(self, kind: MessageType, view: Any, start: int, value_at: int, end: int) -> bytes:
        _, inside = varint(self.data, value_at)
        made = self.message(view, kind, inside, end)
        if len(made) == end - inside and made == self.data[inside:end]:
            return self.data[start:end]
        return self.data[start:value_at] + _long(made)

    def _member(
        self, one: Field, wire: int, rows: Any, seen: dict[str, int], place: tuple[int, int, int]
    ) -> bytes:
        """One occurrence of a repeated field: a member, or packed ones."""
        start, value_at, end = place
        dropped, per = self.drops.get(id(rows), (frozenset[int](), 1))
        index = seen.get(one.name, 0)
        if wire == LEN and one.wire != LEN:
            _, inside = varint(self.data, value_at)
            if isinstance(rows, Floats):
                kept = self._floats(rows, dropped, per)
            else:
                kept, count = self._packed(one, dropped, per, index, inside, end)
                seen[one.name] = index + count
            if len(kept) == end - inside:
                return self.data[start:end]
            return self.data[start:value_at] + _long(kept) if kept else b""
        seen[one.name] = index + 1
        if index // per in dropped:
            return b""
        if one.message is not None:
            return self._inner(one.message, rows[index], start, value_at, end)
        return self.data[start:end]

    @staticmethod
    def _floats(rows: Floats, dropped: frozenset[int], per: int) -> bytes:
        row = rows.width * per
        count = len(rows.raw) // row if row else 0
        return b"".join(rows.raw[at * row : (at + 1) * row] for at in range(count) if at not in dropped)

    def _packed(
        self, one: Field, dropped: frozenset[int], per: int, index: int, at: int, end: int
    ) -> tuple[bytes, int]:
        kept: list[bytes] = []
        first = index
        while at < end:
            start = at
            at = varint(self.data, at)[1] if one.wire == VARINT else at + (8 if one.wire == FIXED64 else 4)
            if index // per not in dropped:
                kept.append(self.data[start:at])
            index += 1
        return b"".join(kept), index - first
