"""Strict JSON in, JSON out. What passes here has one meaning for every parser behind us.

UTF-8 without a byte order mark, no duplicate keys, no NaN or Infinity, no lone surrogates, integers
kept exactly, numbers that overflow refused, depth and size bounded.

The fast path is orjson, which is strict in all of this but two things: it keeps the last of two
equal keys, and turns integers beyond 64 bits into floats. A document that is written again as the
same bytes lost neither. One with other spacing or escapes has its keys counted twice, in the bytes
and in the result: `":` ends a key, unless the quote is escaped or opens a string, which only makes
the first count larger. Where the bytes leave that unsure (white space before a colon, a string that
ends in a backslash), `json` with a hook on every object decides.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any, Final

import orjson

from quietus.profiles.faults import NotJson

DEPTH_MAX: Final = 64
NODES_MAX: Final = 1_000_000
NUMBER_MAX: Final = 400
"""Characters of one number. The longest double that is written plainly has about 330."""
_FLOAT_LISTS_FROM: Final = 16
_INT_LIKE: Final = 2.0**63
_GZIP: Final = frozenset({"gzip", "x-gzip"})

_UNDECIDED: Final = object()


class Number(str):
    """A number that keeps its text, for documents that are edited and written again."""

    __slots__ = ()


def decode_json(data: bytes) -> Any:
    """The document in `data`. Raises NotJson, which never quotes it."""
    openers = data.count(b"{") + data.count(b"[")
    if len(data) > NODES_MAX and openers + data.count(b",") > NODES_MAX:
        raise NotJson("it has too many elements", too_large=True)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        document = _UNDECIDED
    if document is _UNDECIDED:  # a number orjson has no room for may be fine; all else fails again
        return _decode_slowly(data)
    if openers > DEPTH_MAX:
        _check_depth(document)
    try:
        if orjson.dumps(document) == data or _nothing_lost(document, data):
            return document
    except orjson.JSONEncodeError:
        pass
    return _decode_slowly(data)


def decode_exact(data: bytes) -> Any:
    """The same document with every non-integer as a `Number`, so that writing it changes nothing."""
    return _decode_slowly(data, exact=True)


def _nothing_lost(document: Any, data: bytes) -> bool:
    """Whether no key and no digit was lost. False also where that cannot be told cheaply."""
    if type(document) is not dict and type(document) is not list:
        return type(document) is not float
    if b" :" in data or any(space in data and space + b":" in data for space in (b"\n", b"\t", b"\r")):
        return False
    written = data.count(b'":')
    if b"\\" in data:
        if b'\\\\":' in data:
            return False
        written -= data.count(b'\\":')
    return written == _count_keys(document)


def _count_keys(document: Any) -> int:
    """Keys of all objects; -1 if an integer may have become a float."""
    keys = 0
    pending = [document]
    push, pop = pending.append, pending.pop
    while pending:
        container = pop()
        if type(container) is dict:
            keys += len(container)
            values: Any = container.values()
        else:
            values = container
            if len(container) >= _FLOAT_LISTS_FROM and type(container[0]) is float and _all_small(container):
                continue
        for value in values:
            kind = type(value)
            if kind is str:
                continue
            if kind is dict or kind is list:
                push(value)
            elif kind is float and not -_INT_LIKE < value < _INT_LIKE:
                return -1
    return keys


def _all_small(numbers: list[Any]) -> bool:
    """Whether it is a vector: floats only, none of which can be an integer that lost digits."""
    return set(map(type, numbers)) == {float} and -_INT_LIKE < min(numbers) and max(numbers) < _INT_LIKE


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEPTH_MAX):
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise NotJson("it is nested too deeply")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotJson("an object has the same key twice")
    return found


def _constant(_name: str) -> Any:
    raise NotJson("NaN and Infinity are not JSON")


def _integer(text: str) -> int:
    if len(text) > NUMBER_MAX:
        raise NotJson("a number is too long")
    return int(text)


def _check_float(text: str) -> float:
    if len(text) > NUMBER_MAX:
        raise NotJson("a number is too long")
    value = float(text)
    if math.isinf(value):
        raise NotJson("a number is too large")
    return value


def _float_text(text: str) -> Number:
    _check_float(text)
    return Number(text)


_SLOW: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_check_float
)
_EXACT: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_integer, parse_float=_float_text
)


def _decode_slowly(data: bytes, exact: bool = False) -> Any:
    if data.count(b"{") + data.count(b"[") + data.count(b",") > NODES_MAX:
        raise NotJson("it has too many elements", too_large=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJson("it is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise NotJson("it starts with a byte order mark")
    try:
        document = (_EXACT if exact else _SLOW).decode(text)
    except NotJson:
        raise
    except (ValueError, RecursionError):
        # The message of a JSONDecodeError quotes nothing, but its `doc` holds the whole document.
        raise NotJson("it is not JSON") from None
    if type(document) is dict or type(document) is list:
        _check_depth(document)
    if "\\ud" in text or "\\uD" in text:
        try:
            json.dumps(document, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise NotJson("a string holds half of a surrogate pair") from None
    return document


def encode_json(document: Any) -> bytes:
    """The document as compact UTF-8. `Number`s are written as they were read."""
    return encode_text(document).encode("utf-8")


def encode_text(document: Any) -> str:
    """As `encode_json`, as text."""
    kind = type(document)
    if kind is str:  # nearly everything is
        return _quote(document)
    if kind is Number:
        return str.__str__(document)
    if isinstance(document, dict):
        return "{" + ",".join(f"{_quote(k)}:{encode_text(v)}" for k, v in document.items()) + "}"
    if isinstance(document, list | tuple):
        return "[" + ",".join(map(encode_text, document)) + "]"
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


_quote = json.encoder.encode_basestring


def scalar_text(value: Any) -> str | None:
    """The text of a scalar: a string itself, a number or truth value as JSON writes it; else None."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if kind is float:
        return repr(value)
    if kind is Number:
        return str(value)
    return None


def inflate(body: bytes, coding: str | None, limit: int) -> bytes:
    """The body without its content coding, at most `limit` bytes. Raises NotJson."""
    name = (coding or "identity").strip().lower()
    if name in ("", "identity"):
        return body
    if name not in _GZIP:
        raise NotJson("it has a content coding that is not read here")
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(body, limit + 1)
        if len(plain) > limit:
            raise NotJson("it is too large once unpacked", too_large=True)
        if not unpacker.eof or unpacker.unused_data:
            raise NotJson("its gzip coding is cut short or followed by more")
    except zlib.error:
        raise NotJson("its gzip coding is broken") from None
    return plain
