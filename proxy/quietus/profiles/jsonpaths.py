"""JSONPath (RFC 9535), compiled once. The library decides what a path is; plain ones become closures.

A plain path is names and indexes, at the end perhaps `[*]`. It answers with the nodes and also says
`Unread` when a value on the way has a shape that the path cannot enter: a store could still read
something there that we do not. Any other path is left to the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import jsonpath
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

from quietus.profiles.faults import Ambiguous, Unread

Find = Callable[[Any], list[Any]]
"""From a document to the nodes found, null ones included."""

_ENVIRONMENT: Final = jsonpath.JSONPathEnvironment(strict=True)
_HEADER: Final = re.compile(r"^\$\.headers\.([!#$%&'*+.^_`|~0-9A-Za-z-]+?)(\[\*\])?$")
MISSING: Final = object()
"""What a singular path answers where there is nothing; null is something."""


class Repeated(list[str]):
    """The values of a query parameter or header that came more than once."""


class Path:
    """One compiled path. `steps` is None where only the library can walk it."""

    def __init__(self, text: str) -> None:
        header = _HEADER.match(text)
        if header:  # a header's name is a token, which the shorthand of RFC 9535 has no room for
            text = f"$.headers['{header[1].lower()}']{header[2] or ''}"
        try:
            self._query = _ENVIRONMENT.compile(text)
        except jsonpath.JSONPathError as error:
            raise ValueError(str(error).splitlines()[0]) from None
        self.text = text
        self.steps, self.star = _plain(self._query)
        self.find: Find = self._closure()

    @property
    def singular(self) -> bool:
        """Whether it names at most one node."""
        return self.steps is not None and not self.star

    def one(self, document: Any) -> Any:
        """The node of a singular path, or MISSING. Raises Unread and Ambiguous."""
        if self.steps is None:
            found = self.by_library(document)
            return found[0] if found else MISSING
        return _walk(document, self.steps)

    def by_library(self, document: Any) -> list[Any]:
        """The nodes as the library finds them."""
        return list(self._query.findall(document))

    def _closure(self) -> Find:
        steps, star = self.steps, self.star
        if steps is None:
            return self.by_library
        one_or_many = len(steps) == 2 and steps[0] in ("query", "headers")
        if not star and len(steps) == 1 and isinstance(steps[0], str):
            return _named(steps[0])

        def find(document: Any) -> list[Any]:
            node = _walk(document, steps, star)
            if node is MISSING:
                return []
            if not star:
                return [node]
            return [node] if one_or_many and type(node) is str else _members(node)

        return find


def _named(name: str) -> Find:
    """The commonest path of all, `$.name`, without a loop."""

    def find(document: Any) -> list[Any]:
        if type(document) is not dict:
            raise Unread("a value has another shape than the profile expects")
        node = document.get(name, MISSING)
        if node is MISSING:
            return []
        if type(node) is Repeated:
            raise Ambiguous("a parameter or header is given more than once")
        return [node]

    return find


def _walk(node: Any, steps: tuple[str | int, ...], star: bool = False) -> Any:
    for step in steps:
        kind = type(node)
        if kind is dict and type(step) is str:
            node = node.get(step, MISSING)
        elif kind is list and type(step) is int:
            node = node[step] if -len(node) <= step < len(node) else MISSING
        elif node is None:
            return MISSING
        else:
            raise Unread("a value has another shape than the profile expects")
        if node is MISSING:
            return MISSING
    if type(node) is Repeated and not star:
        raise Ambiguous("a parameter or header is given more than once")
    return node


def _members(node: Any) -> list[Any]:
    if type(node) is list or type(node) is Repeated:
        return list(node)
    if type(node) is dict:
        return list(node.values())
    if node is None:
        return []
    raise Unread("a value is no list")


def _plain(query: Any) -> tuple[tuple[str | int, ...] | None, bool]:
    """The steps of a plain path and whether `[*]` ends it; (None, False) for any other path."""
    steps: list[str | int] = []
    segments = getattr(query, "segments", None)
    if segments is None:
        return None, False
    segments = list(segments)
    for number, segment in enumerate(segments):
        if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
            return None, False
        selector = segment.selectors[0]
        if isinstance(selector, NameSelector):
            steps.append(selector.name)
        elif isinstance(selector, IndexSelector):
            steps.append(selector.index)
        elif isinstance(selector, WildcardSelector) and number == len(segments) - 1:
            return tuple(steps), True
        else:
            return None, False
    return tuple(steps), False
