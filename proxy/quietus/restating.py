"""What of a write restates the erased: every string of it is looked at, and whose words they are.

The contents come first, row by row, so that a refused batch can say which row it is; then every other string
of the body, names of fields included, and the key and path that it is written to. A bystander who held the
very same text when it was erased of somebody else may write it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from quietus.core.gate import Gate
from quietus.core.operations import Call, Item
from quietus.core.scope import Scope, Values, Wild, overlaps
from quietus.core.screener import Hit, Screener
from quietus.owners import Owners

CAUSES: Final = frozenset({"content", "token", "beside"})
"""The causes of a hit for which a write restates content; a name, a subject or an id alone is none."""
STRINGS: Final = 20_000
"""Strings of one body that are looked at beside its contents; a body of more is taken to restate whatever
stands here, because it cannot be looked through."""
NAME: Final = 3
"""Words from which on a string that is no content counts as a text of its own: a tag is nobody's."""


class Restated(NamedTuple):
    """One finding: which row of a batch it stands in, from 0 on, or None where that is not known."""

    row: int | None
    hit: Hit


class Restating:
    """Looks through writes."""

    def __init__(self, gate: Gate, screener: Screener, owners: Owners) -> None:
        self._gate = gate
        self._screener = screener
        self._owners = owners

    def of(self, call: Call, scope: Scope, document: Any) -> Iterator[Restated]:
        """What a write restates. `scope` is the call's, digested; `document` its decoded body, if any."""
        if not self._gate.kinds:
            return
        seen: set[str] = set()
        for row, item, text in _contents(call):
            seen.add(text)
            for hit in self._screener.look(text):
                if hit.cause in CAUSES and not self._theirs(hit, text, item, call, scope):
                    yield Restated(row, hit)
        for number, text in enumerate(strings(document)):
            if number >= STRINGS:
                yield from (Restated(None, hit) for hit in self._unread(scope))
                return
            if text not in seen:
                yield from self._named(text, scope.subject)
        for text in (*_atoms(call.scope.key), *_segments(call)):
            yield from self._named(text, scope.subject)

    def suspected(self, call: Call, scope: Scope) -> bool:
        """Whether a content shares so much with an erased text of its tenant that it may be made of it."""
        if "beside" not in self._gate.kinds:
            return False
        here = Scope(tenant=scope.tenant)
        return any(
            hit.cause == "overlap" and overlaps(Scope(tenant=hit.erasure.predicate.tenant), here)
            for _, _, text in _contents(call)
            for hit in self._screener.look(text)
        )

    def _named(self, text: str, subject: Values) -> Iterator[Restated]:
        for hit in self._screener.look(text):
            if hit.cause not in CAUSES or (hit.whole and len(text.split()) < NAME):
                continue
            if not (hit.whole and self._screener.twin(text, subject)):
                yield Restated(None, hit)

    def _theirs(self, hit: Hit, text: str, item: Item | None, call: Call, scope: Scope) -> bool:
        """Whether a text is the writer's own, word for word, from before the erasure."""
        if not hit.whole:
            return False
        whose = scope.subject if item is None else self._owners.scope_of(item, call, scope).subject
        return self._screener.twin(text, whose)

    def _unread(self, scope: Scope) -> Iterator[Hit]:
        here = Scope(tenant=scope.tenant)
        for erasure in self._gate.erasures.values():
            if erasure.tombstoned and overlaps(Scope(tenant=erasure.predicate.tenant), here):
                yield Hit(erasure, "content")
                return


def _contents(call: Call) -> Iterator[tuple[int | None, Item | None, str]]:
    for text in call.texts:
        yield None, None, text
    for row, item in enumerate(call.items):
        for text in item.texts:
            yield row, item, text


def strings(document: Any) -> Iterator[str]:
    """Every string of a decoded body, and every name of a field in it."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for name, each in value.items():
                if isinstance(name, str):
                    yield name
                waiting.append(each)
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
        elif isinstance(value, bytes):
            yield value.decode("utf-8", "replace")
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) > 999_999:
            yield str(value)  # a telephone number is one with and without quotation marks


def _atoms(values: Values) -> Iterable[str]:
    return () if isinstance(values, Wild) else [value for value in values if isinstance(value, str)]


def _segments(call: Call) -> Iterable[str]:
    paths = call.scope.path
    if isinstance(paths, Wild):
        return ()
    return [segment for path in paths for segment in path if isinstance(segment, str)]
