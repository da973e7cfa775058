"""A message of gRPC with every value masked: its fields stay where they stood, of the type that they were.

Flags and the names of an enum stay: the descriptor set has them, and they are few. Fields that it does not
know are left out, since nobody can say what they hold. A packed vector is one value: as long as it was, and
equal to what it was equal to.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from quietus.describing.masks import Masks
from quietus.profiles.descriptors import LEN, Field, MessageType
from quietus.profiles.messages import encode_field, write_varint
from quietus.profiles.protobuf import Floats, Opaque, decode, number_of, skip, tag, varint

_FIXED = {"double": "<d", "float": "<f", "fixed64": "<Q", "sfixed64": "<q", "fixed32": "<I", "sfixed32": "<i"}


def masked_message(data: bytes, kind: MessageType, masks: Masks) -> bytes:
    """The message with every value masked. Raises NotMessage, TooMany, CannotQuote."""
    decode(data, kind)  # what two parsers could read in two ways is not masked field by field
    return _Masking(data, masks).message(kind, 0, len(data))


def legible(value: Any) -> Any:
    """A message's view as JSON, for people: vectors and bytes by their length."""
    if isinstance(value, dict):
        return {name: legible(each) for name, each in value.items()}
    if isinstance(value, list):
        return [legible(each) for each in value]
    if isinstance(value, Floats):
        return f"{len(value)} floats"
    return f"{len(value.raw)} bytes" if isinstance(value, Opaque) else value


class _Masking:
    """Goes through a message that is known to decode."""

    def __init__(self, data: bytes, masks: Masks) -> None:
        self._data = data
        self._masks = masks

    def message(self, kind: MessageType, at: int, end: int) -> bytes:
        """The message between two offsets, masked."""
        out = bytearray()
        while at < end:
            start = at
            number, wire, at = tag(self._data, at)
            one = kind.fields.get(number)
            if one is None:
                at = skip(self._data, wire, number, at, end)
                continue
            head = self._data[start:at]
            if wire != LEN:
                value, at = self._short(one, at)
                out += self._data[start:at] if one.kind in ("bool", "enum") else self._numbers(one, value)
                continue
            length, at = varint(self._data, at)
            if one.wire == LEN:
                payload = self._long(one, at, at + length, names=kind.entry and one.name == "key")
                out += head + write_varint(len(payload)) + payload
            else:
                out += self._packed(one, start, at, at + length)
            at += length
        return bytes(out)

    def _long(self, one: Field, at: int, end: int, *, names: bool) -> bytes:
        if one.message is not None:
            return self.message(one.message, at, end)
        raw = self._data[at:end]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            # As long as it was, and no text: 0xFF is never UTF-8.
            said = b"\xff" + self._masks.number("bytes", raw.hex()).to_bytes(4, "big")
            return said[: len(raw)].ljust(len(raw), b"\0")
        return (self._masks.name(text) if names else self._masks.text(text)).encode()

    def _short(self, one: Field, at: int) -> tuple[Any, int]:
        pattern = _FIXED.get(one.kind)
        if pattern is not None:
            return struct.unpack_from(pattern, self._data, at)[0], at + struct.calcsize(pattern)
        value, at = varint(self._data, at)
        return number_of(one, value), at

    def _numbers(self, one: Field, value: int | float) -> bytes:
        return encode_field(one, self._number(one, value), {}, one.name)

    def _number(self, one: Field, value: int | float) -> int | float:
        if one.kind in ("float", "double"):
            return float(self._masks.real(repr(value)))
        return int(self._masks.integer(str(value)))

    def _packed(self, one: Field, start: int, at: int, end: int) -> bytes:
        if one.kind in ("bool", "enum"):
            return self._data[start:end]
        if one.kind in ("float", "double"):
            width = 4 if one.kind == "float" else 8
            vector = [0.5] * ((end - at) // width)
            if vector:
                vector[0] = self._masks.number("vector", self._data[at:end].hex()) + 2.5
            return encode_field(one, vector, {}, one.name)
        found = []
        while at < end:
            value, at = self._short(one, at)
            found.append(self._number(one, value))
        return encode_field(one, found, {}, one.name)


def same_but_for_rows(before: Any, after: Any, most: int, counts: str | None, columns: bool) -> bool:
    """Whether a message's view is another one but for members taken out of its lists, `most` of each.

    `counts` is the field that says how many rows there are. `columns`: rows stand in columns, so that
    vectors get shorter and numbers that count them smaller.
    """
    if isinstance(before, Mapping):
        return isinstance(after, Mapping) and not set(after) - set(before) and all(
            _count(value, after.get(name, 0), most) if name == counts
            else same_but_for_rows(value, after.get(name, _absent(value)), most, counts, columns)
            for name, value in before.items()
        )  # fmt: skip
    if isinstance(before, list) and isinstance(after, list):
        if len(before) == len(after):
            pairs = zip(before, after, strict=True)
            return all(same_but_for_rows(one, other, most, counts, columns) for one, other in pairs)
        left = iter(before)
        return 0 < len(before) - len(after) <= most and all(
            any(same_but_for_rows(one, other, 0, counts, columns=False) for one in left) for other in after
        )
    if isinstance(before, Floats) and isinstance(after, Floats):
        return bytes(before.raw) == bytes(after.raw) or (columns and len(after) < len(before))
    if isinstance(before, Opaque) and isinstance(after, Opaque):
        return bytes(before.raw) == bytes(after.raw)
    if columns and isinstance(before, int) and isinstance(after, int):
        return before - most <= after <= before
    return bool(before == after)


def _count(before: Any, after: Any, most: int) -> bool:
    return isinstance(before, int) and isinstance(after, int) and before - most <= after <= before


def _absent(value: Any) -> Any:
    """What stands for a field that is gone: a list of which nothing is left is not written at all."""
    if isinstance(value, list):
        return []
    return Floats(memoryview(b""), value.width) if isinstance(value, Floats) else None
