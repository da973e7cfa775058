"""What of a store's answer belongs to the connection, and what it says about where the body ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quietus.adapters.http_wire import HOP_BY_HOP, NAMES_MAX

_CONTROL: Final = bytes({*range(32), 127} - {9})
_names: dict[bytes, tuple[str, str | None]] = {}


class Unfit(Exception):
    """The answer cannot be handed on; says why, quoting nothing."""


def name_of(raw: bytes) -> tuple[str, str | None]:
    """A header's name as it came, and in lower case if it is one that `read_special` looks at."""
    known = _names.get(raw)
    if known is not None:
        return known
    name = raw.decode("latin-1")
    lower = name.lower()
    if len(_names) >= NAMES_MAX:
        _names.clear()
    _names[raw] = known = (name, lower if lower in HOP_BY_HOP or lower == "content-length" else None)
    return known


def read_special(headers: Iterable[tuple[str, str]], reason: bytes) -> tuple[int | None, bool, set[str]]:
    """The length, whether the body comes in chunks, and which other headers `Connection` lists.

    Raises Unfit where two readings are possible.
    """
    if len(reason.translate(None, _CONTROL)) != len(reason):  # the parser lets them stand here, and only here
        raise Unfit("the head of the store's answer holds control characters")
    length: int | None = None
    chunked = False
    listed: set[str] = set()
    for name, value in headers:
        if name == "content-length":
            if length is not None or not (value.isascii() and value.isdigit()) or len(value) > 18:
                raise Unfit("the store's answer has a length that cannot be read")
            length = int(value)
        elif name == "transfer-encoding":
            if chunked or value.lower() != "chunked":
                raise Unfit("the store's answer has a transfer coding that is not spoken here")
            chunked = True
        elif name == "connection":
            listed |= {part.strip().lower() for part in value.split(",")}
    if length is not None and chunked:
        raise Unfit("the store's answer has two lengths")
    return length, chunked, listed - {"close", "keep-alive", "content-length"}
