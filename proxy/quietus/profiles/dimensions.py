"""From selectors to the dimensions of a scope: agreement, identifiers, what cannot be read.

Used alike for what a request asks for and for what a row says of itself. A request that could mean
two things is refused; a row is only read.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final

from quietus.core.scope import Path, split_path
from quietus.profiles.codec import Number, scalar_text
from quietus.profiles.faults import Ambiguous, RequestFault, Unread
from quietus.profiles.protobuf import Floats
from quietus.profiles.selector import Selector

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_NOT_IN_NAMES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_TEXTS_DEPTH: Final = 64


def check_name(text: str, what: str) -> None:
    """Refuses an identifier that a store could trim, drop or mistake. Raises RequestFault."""
    if not text:
        raise RequestFault("malformed-request", f"{what} is empty")
    if text.isascii():
        fine = text.isprintable()
    else:
        fine = not any(unicodedata.category(char) in _NOT_IN_NAMES for char in text)
    if not fine:
        raise RequestFault("malformed-request", f"{what} holds control or formatting characters")
    if text[0].isspace() or text[-1].isspace():
        raise RequestFault("malformed-request", f"{what} starts or ends with white space")


def names_asked(
    selectors: tuple[Selector, ...], document: Any, captures: Mapping[str, str], what: str
) -> frozenset[str] | None:
    """The identifiers that a request names, or None. All selectors that yield must agree.

    Raises RequestFault, Unread, Ambiguous.
    """
    agreed: frozenset[str] | None = None
    for selector in selectors:
        found = selector.nodes(document, captures)
        if not found:
            continue
        if selector.star and selector.path is not None and type(_at(document, selector.path.steps)) is dict:
            raise RequestFault("malformed-request", f"the {what} is an object where a list is expected")
        texts = frozenset(_name(node, selector, what) for node in found)
        if agreed is not None and agreed != texts:
            raise RequestFault("ambiguous-request", f"two places of the request disagree on the {what}")
        agreed = texts
    return agreed


def _name(node: Any, selector: Selector, what: str) -> str:
    text = node if type(node) is str else scalar_text(node)
    if text is None:
        if type(node) is list and not selector.star:
            raise RequestFault("ambiguous-request", f"the {what} is a list")
        raise RequestFault("malformed-request", f"the {what} is no plain value")
    check_name(text, f"the {what}")
    return text


def paths_asked(
    selectors: tuple[Selector, ...], document: Any, captures: Mapping[str, str], what: str
) -> frozenset[Path] | None:
    """The paths that a request names, or None. Raises RequestFault, Unread, Ambiguous."""
    found = names_asked(selectors, document, captures, what)
    if found is None:
        return None
    return frozenset(_segments(text) for text in found)


def _segments(text: str) -> tuple[str, ...]:
    path = split_path(text)
    if not text.strip("/") or any(not segment for segment in path[1:]):
        raise RequestFault("malformed-request", "the path has an empty segment")
    if "." in path or ".." in path:
        raise RequestFault("malformed-request", "the path holds a dot segment")
    return path


def lists_nothing(selectors: tuple[Selector, ...], document: Any) -> bool:
    """Whether a selector of many values was given a list with a hole or nothing in it."""
    for selector in selectors:
        if selector.path is None:
            continue
        if selector.star:
            steps = selector.path.steps
            given = selector.find(document)
            if any(node is None for node in given) or (not given and _at(document, steps) is not None):
                return True
        elif selector.path.singular and not selector.skip:
            given = selector.find(document)
            if given == [""] or given == [[]]:
                return True
    return False


def _at(document: Any, steps: tuple[str | int, ...] | None) -> Any:
    """What stands at plain steps, None where there is nothing."""
    node = document
    for step in steps or ():
        if type(node) is dict and type(step) is str:
            node = node.get(step)
        elif type(node) is list and type(step) is int and -len(node) <= step < len(node):
            node = node[step]
        else:
            return None
    return node


def texts_of(nodes: Iterable[Any]) -> tuple[str, ...]:
    """The texts of content nodes; a container stands for its strings."""
    out: list[str] = []
    for node in nodes:
        if type(node) is str:
            out.append(node)
        else:
            _strings(node, out, _TEXTS_DEPTH)
    return tuple(out)


def _strings(node: Any, out: list[str], depth: int) -> None:
    if type(node) is str:
        out.append(node)
    elif depth and type(node) is dict:
        for value in node.values():
            _strings(value, out, depth - 1)
    elif depth and type(node) is list:
        for value in node:
            _strings(value, out, depth - 1)
    elif type(node) is int:
        out.append(str(node))


def contents(selectors: tuple[Selector, ...], document: Any, captures: Mapping[str, str]) -> tuple[str, ...]:
    """Every text that any of the selectors finds."""
    out: tuple[str, ...] = ()
    for selector in selectors:
        out += texts_of(selector.nodes(document, captures))
    return out


def vector_of(node: Any) -> tuple[float, ...] | None:
    """A vector written as numbers, or as base64 of 32-bit floats; None for anything else."""
    if isinstance(node, Floats):
        return node.values() or None
    if type(node) is list and node and all(type(one) in (int, float, Number) for one in node):
        return tuple(float(one) for one in node)
    if type(node) is str and len(node) % 4 == 0:
        try:
            raw = base64.b64decode(node, validate=True)
        except (binascii.Error, ValueError):
            return None
        if raw and len(raw) % 4 == 0:
            return struct.unpack(f"<{len(raw) // 4}f", raw)
    return None


def first(selectors: tuple[Selector, ...], document: Any, captures: Mapping[str, str]) -> Any:
    """The first value of the first selector that yields one, or None. Unreadable counts as nothing."""
    for selector in selectors:
        try:
            found = selector.nodes(document, captures)
        except (Unread, Ambiguous):
            continue
        if found:
            return found[0]
    return None


def capture_all(
    captures: Mapping[str, Selector], document: Any, known: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The captures that are there, as texts. Raises Ambiguous where one has several values."""
    found = dict(known or {})
    for name, selector in captures.items():
        try:
            nodes = selector.nodes(document, found)
        except Unread:
            continue
        if len(nodes) > 1:
            raise Ambiguous("a capture has several values")
        text = scalar_text(nodes[0]) if nodes else None
        if text is not None:
            found[name] = text
    return found


def digits(node: Any) -> int | None:
    """A count or an epoch: a whole number, or the digits of a string; None for anything else."""
    if type(node) is int:
        return node if node >= 0 else None
    if type(node) is str and node.isascii() and node.isdigit() and len(node) <= 19:
        return int(node)
    return None
