"""What an item spec reads from one row.

Nearly every selector of a row is `$.name`: those are read without a walk, for a row costs what its
answer costs a hundred times over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quietus.core.operations import Item
from quietus.core.scope import split_path
from quietus.profiles.codec import Number, scalar_text
from quietus.profiles.dimensions import capture_all, contents, first, vector_of
from quietus.profiles.faults import Ambiguous, RequestFault, Unread
from quietus.profiles.selector import Place, Selector, selectors
from quietus.profiles.words import ItemModel


class ItemReader:
    """Reads one row. Every part that the row does not say is None or empty.

    `strict`, for the rows of a request: one whose subject, key, tenant or path cannot be read is
    refused, where the row of an answer is only left unattributed.
    """

    def __init__(self, model: ItemModel | None, place: Place, *, strict: bool = False) -> None:
        model = model or ItemModel()
        found = {
            name: selectors(getattr(model, name), (*place, name))
            for name in ItemModel.model_fields
            if name != "capture"
        }
        self.says = {name for name, one in found.items() if one}
        self.key = _text_reader(found["key"], strict)
        self.subject = _text_reader(found["subject"], strict)
        self.tenant = _text_reader(found["tenant"], strict)
        self.purpose = _text_reader(found["purpose"], strict)
        self.path = _text_reader(found["path"], strict)
        self.content = _content_reader(found["content"])
        self.vector = found["vector"]
        self.derived_from = _ids_reader(found["derived_from"])
        self.score = _score_reader(found["score"])
        self.resolved = _resolved_reader(found["provenance_resolved"])
        self.capture = {
            name: Selector(one, (*place, "capture", name)) for name, one in model.capture.items()
        }

    def read(self, row: Any, position: int, captures: Mapping[str, str]) -> Item:
        """The row as an Item. What cannot be read of it is left out: the row is then unattributed."""
        path = self.path(row, captures)
        return Item(
            position,
            self.key(row, captures),
            self.subject(row, captures),
            self.tenant(row, captures),
            self.purpose(row, captures),
            split_path(path) if path else None,
            self.content(row, captures),
            vector_of(first(self.vector, row, captures)) if self.vector else None,
            self.derived_from(row, captures),
            self.resolved(row, captures),
            self.score(row, captures),
            _captured(self.capture, row, captures) if self.capture else _NOTHING,
        )


_NOTHING: Mapping[str, str] = MappingProxyType({})
_TextReader = Callable[[Any, Mapping[str, str]], "str | None"]
_TextsReader = Callable[[Any, Mapping[str, str]], "tuple[str, ...]"]


def _says_nothing(row: Any, captures: Mapping[str, str]) -> None:
    return None


def _plain_name(found: tuple[Selector, ...], star: bool = False) -> str | None:
    """The name in a single `$.name` (or `$.name[*]`), by far the commonest selector of a row."""
    if len(found) != 1 or not found[0].plain or found[0].path is None or found[0].path.star is not star:
        return None
    steps = found[0].path.steps
    return steps[0] if steps is not None and len(steps) == 1 and isinstance(steps[0], str) else None


def _text_reader(found: tuple[Selector, ...], strict: bool) -> _TextReader:
    if not found:
        return _says_nothing
    name = _plain_name(found)
    if name is None:
        return lambda row, captures: _text(found, row, captures, strict)

    def read(row: Any, captures: Mapping[str, str]) -> str | None:
        if type(row) is dict:
            node = row.get(name)
            if node is None or type(node) is str:
                return node
        return _text(found, row, captures, strict)

    return read


def _content_reader(found: tuple[Selector, ...]) -> _TextsReader:
    if not found:
        return lambda row, captures: ()
    name = _plain_name(found)

    def read(row: Any, captures: Mapping[str, str]) -> tuple[str, ...]:
        if name is not None and type(row) is dict:
            node = row.get(name)
            if type(node) is str:
                return (node,)
        try:
            return contents(found, row, captures)
        except (Unread, Ambiguous):
            return ()

    return read


def _score_reader(found: tuple[Selector, ...]) -> Callable[[Any, Mapping[str, str]], float | None]:
    if not found:
        return _says_nothing
    name = _plain_name(found)

    def read(row: Any, captures: Mapping[str, str]) -> float | None:
        if name is not None and type(row) is dict:
            node = row.get(name)
            if node is None or type(node) is float:
                return node
        return number(first(found, row, captures))

    return read


def _ids_reader(found: tuple[Selector, ...]) -> _TextsReader:
    if not found:
        return lambda row, captures: ()
    name = _plain_name(found, star=True)

    def read(row: Any, captures: Mapping[str, str]) -> tuple[str, ...]:
        if name is not None and type(row) is dict and not row.get(name):
            return ()
        return _ids(found, row, captures)

    return read


def _text(
    found: tuple[Selector, ...], row: Any, captures: Mapping[str, str], strict: bool = False
) -> str | None:
    """The one text that the selectors agree on. A row that says two things says nothing."""
    agreed: str | None = None
    for selector in found:
        try:
            nodes = selector.nodes(row, captures)
        except (Unread, Ambiguous):
            _refuse(strict)
            return None
        if not nodes:
            continue
        node = nodes[0]
        text = node if type(node) is str else scalar_text(node)
        if text is None or len(nodes) > 1 or (agreed is not None and agreed != text):
            _refuse(strict)
            return None
        agreed = text
    return agreed


def _refuse(strict: bool) -> None:
    if strict:
        raise RequestFault("malformed-request", "a row names its subject, key, tenant or path unreadably")


def _ids(found: tuple[Selector, ...], row: Any, captures: Mapping[str, str]) -> tuple[str, ...]:
    out: list[str] = []
    for selector in found:
        try:
            nodes = selector.nodes(row, captures)
        except (Unread, Ambiguous):
            continue
        for node in nodes:
            members = node if type(node) is list else [node]
            out.extend(text for text in map(scalar_text, members) if text)
    return tuple(out)


def _resolved_reader(found: tuple[Selector, ...]) -> Callable[[Any, Mapping[str, str]], bool | None]:
    """Only a plain true resolves; null and everything else where it is selected is false."""
    if not found:
        return _says_nothing
    name = _plain_name(found)

    def read(row: Any, captures: Mapping[str, str]) -> bool | None:
        if name is not None and type(row) is dict:
            return row[name] is True if name in row else None
        for selector in found:
            try:
                nodes = selector.raw(row)
            except (Unread, Ambiguous):
                return False
            if nodes:
                return nodes[0] is True
        return None

    return read


def number(node: Any) -> float | None:
    """A score as a float; None for anything that is no number."""
    return float(node) if type(node) in (int, float, Number) else None


def _captured(found: Mapping[str, Selector], row: Any, known: Mapping[str, str]) -> dict[str, str]:
    try:
        everything = capture_all(found, row, known)
    except Ambiguous:
        return {}
    return {name: everything[name] for name in found if name in everything}
