"""A selector: a path, or a path and what is done with what it finds.

Steps run in this order: `select`, `decode`, `split`, `match`, `join`, `template`, `then`. null
yields nothing. What a step cannot take is `Unread`, and the dimension it feeds is UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quietus.profiles.codec import decode_json, scalar_text
from quietus.profiles.faults import CompileFault, NotJson, Unread
from quietus.profiles.jsonpaths import Path
from quietus.profiles.words import SelectorModel

Place = tuple[str | int, ...]
_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Selector:
    """One compiled selector. `plain` means that its path's nodes are its result."""

    __slots__ = ("decode", "find", "join", "match", "path", "plain", "skip", "split", "template", "then")

    def __init__(self, model: str | SelectorModel, place: Place) -> None:
        spec = SelectorModel(select=model) if isinstance(model, str) else model
        self.path = compile_path(spec.select, (*place, "select")) if spec.select else None
        self.decode = spec.decode == "json"
        self.split = spec.split
        self.match = compile_pattern(spec.match, place)
        self.skip = spec.on_mismatch == "skip"
        self.join = spec.join
        self.template = _NAME.split(spec.template) if spec.template is not None else None
        self.then = compile_path(spec.then, (*place, "then")) if spec.then else None
        self.plain = self.path is not None and not (
            self.decode or self.split or self.match or self.join or self.template or self.then
        )
        self.find = self.path.find if self.path is not None else _nothing

    @property
    def star(self) -> bool:
        """Whether its path ends in `[*]`: one or many are expected."""
        return self.path is not None and self.path.star

    @property
    def many(self) -> bool:
        """Whether it may yield several values from one place."""
        return self.path is None or not self.path.singular or self.split is not None or self.then is not None

    def nodes(self, document: Any, captures: Mapping[str, str] = {}) -> list[Any]:  # noqa: B006
        """The values found, null ones left out. Raises Unread, Ambiguous."""
        found = self.find(document)
        if not self.plain:
            found = self._steps(found, captures)
        for node in found:
            if node is None:
                return [node for node in found if node is not None]
        return found

    def raw(self, document: Any) -> list[Any]:
        """The nodes of the path alone, null ones included."""
        return self.find(document)

    def _steps(self, found: list[Any], captures: Mapping[str, str]) -> list[Any]:
        found = [node for node in found if node is not None]
        if self.decode:
            found = [_decoded(node) for node in found]
        if self.split is not None:
            found = [part for node in found for part in _text(node).split(self.split) if part]
        if self.match is not None:
            found = self._matched(found)
        if self.join is not None and found:
            found = [self._joined(found)]
        if self.template is not None:
            found = self._filled(found, captures)
        if self.then is not None:
            found = [inner for node in found for inner in self.then.find(node)]
        return found

    def _matched(self, found: list[Any]) -> list[Any]:
        assert self.match is not None
        out = []
        for node in found:
            match = self.match.search(_text(node))
            if match is not None and match["value"] is not None:
                out.append(match["value"])
            elif not self.skip:
                raise Unread("a value does not match the profile's pattern")
        return out

    def _joined(self, found: list[Any]) -> str:
        assert self.join is not None
        segments = [_text(node) for node in found]
        if any(not segment or self.join in segment for segment in segments):
            raise Unread("a segment is empty or holds the separator that joins it")
        return self.join.join(segments)

    def _filled(self, found: list[Any], captures: Mapping[str, str]) -> list[Any]:
        assert self.template is not None
        if self.path is None:
            return [_fill(self.template, captures)]
        return [_fill(self.template, {**captures, "value": _text(node)}) for node in found]


def compile_path(text: str, place: Place) -> Path:
    """The path, or a CompileFault that says where the profile is wrong."""
    try:
        return Path(text)
    except ValueError as error:
        raise CompileFault(place, f"not a JSONPath: {error}", "RFC 9535, starting at $") from None


def selectors(model: Any, place: Place) -> tuple[Selector, ...]:
    """One selector or a list of them that must agree."""
    if model is None:
        return ()
    if isinstance(model, list):
        return tuple(Selector(one, (*place, number)) for number, one in enumerate(model))
    return (Selector(model, place),)


def _nothing(_document: Any) -> list[Any]:
    return []


def compile_pattern(text: str | None, place: Place) -> re.Pattern[str] | None:
    """A pattern with its group `value`, or None without one. Raises CompileFault."""
    if text is None:
        return None
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise CompileFault((*place, "match"), f"not a regular expression: {error.msg}") from None
    if "value" not in pattern.groupindex:
        raise CompileFault(
            (*place, "match"), "the pattern has no group named value", "write it as (?P<value>…)"
        )
    return pattern


def _text(node: Any) -> str:
    text = scalar_text(node)
    if text is None:
        raise Unread("a value is a list or an object where a scalar is expected")
    return text


def _decoded(node: Any) -> Any:
    if type(node) is not str:
        raise Unread("a value is no string that could hold JSON")
    try:
        return decode_json(node.encode("utf-8"))
    except (NotJson, UnicodeEncodeError):
        raise Unread("a string does not hold JSON") from None


def _fill(parts: list[str], values: Mapping[str, str]) -> str:
    """A template, split where its names stand: every second part is a name."""
    out = parts.copy()
    for at in range(1, len(parts), 2):
        value = values.get(parts[at])
        if value is None:
            raise Unread("a capture that the template needs is missing")
        out[at] = value
    return "".join(out)
