"""Rows: what an item spec reads from one row, and where the rows of a document stand.

Rows come as arrays of objects, as one object, or as parallel arrays (`columns`). An `Anchors` remembers which
container of the decoded document belongs to which row, so that the walk over every scalar knows
whose scalar it is, and so that a row can be taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from quietus.core.operations import Item
from quietus.core.scope import split_path
from quietus.profiles.codec import Number, scalar_text
from quietus.profiles.dimensions import capture_all, contents, first, vector_of
from quietus.profiles.faults import Ambiguous, CompileFault, MissingItems, RequestFault, Unread, Unreadable
from quietus.profiles.selector import Place, Selector, selectors
from quietus.profiles.words import ItemModel, SelectorModel


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
        self.resolved = found["provenance_resolved"]
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
            _resolved(self.resolved, row) if self.resolved else None,
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


def _resolved(found: tuple[Selector, ...], row: Any) -> bool | None:
    for selector in found:
        try:
            nodes = selector.raw(row)
        except (Unread, Ambiguous):
            return False
        if nodes:
            return nodes[0] is True
    return None


def number(node: Any) -> float | None:
    """A score as a float; None for anything that is no number."""
    return float(node) if type(node) in (int, float, Number) else None


def _captured(found: Mapping[str, Selector], row: Any, known: Mapping[str, str]) -> dict[str, str]:
    try:
        everything = capture_all(found, row, known)
    except Ambiguous:
        return {}
    return {name: everything[name] for name in found if name in everything}


class Anchors:
    """Where rows stand, by the identity of the containers of one decoded document."""

    def __init__(self) -> None:
        self.lists: dict[int, int] = {}
        """A list whose members are rows (or parts of rows): the position of its first member."""
        self.whole: dict[int, int] = {}
        """An object that is a row by itself, outside any list of rows."""
        self.inner: dict[str, Any] = {}
        """A string that holds JSON: the document in it."""
        self.edit: list[list[Any]] = []
        """Every list from which a dropped row is taken out."""

    def add(self, rows: list[Any], start: int) -> None:
        """Notes a list of rows."""
        self.lists[id(rows)] = start
        self.edit.append(rows)

    def drop(self, positions: frozenset[int]) -> bool:
        """Takes rows out of their lists, in place. False if one of them cannot be taken out."""
        if any(position in positions for position in self.whole.values()):
            return False
        for rows in self.edit:
            start = self.lists[id(rows)]
            rows[:] = [row for number, row in enumerate(rows, start) if number not in positions]
        return True


class Group:
    """One group of rows: where they are, and how one is read."""

    def __init__(self, items: str | SelectorModel, reader: ItemReader, place: Place) -> None:
        self.selector = Selector(items, place)
        if not self.selector.plain and (self.selector.join or self.selector.template or self.selector.split):
            raise CompileFault(place, "items takes select, decode and then only")
        self.reader = reader
        self.optional = False

    def read(
        self, document: Any, start: int, captures: Mapping[str, str], anchors: Anchors, required: bool
    ) -> list[Item]:
        """The rows of this group, numbered from `start`. Raises Unreadable."""
        nodes = self._nodes(document, anchors)
        if not nodes and required:
            raise MissingItems("the answer has nothing at the path of its items")
        items: list[Item] = []
        position = start
        read = self.reader.read
        for node in nodes:
            kind = type(node)
            if kind is list:
                anchors.add(node, position)
                for row in node:
                    items.append(read(row, position, captures))
                    position += 1
            elif kind is dict:
                anchors.whole[id(node)] = position
                items.append(read(node, position, captures))
                position += 1
            elif node is not None:
                raise Unreadable("the items are neither an array nor an object")
        return items

    def _nodes(self, document: Any, anchors: Anchors) -> list[Any]:
        try:
            if self.selector.plain:
                return self.selector.raw(document)
            raw = self.selector.raw(document)
            inner = self.selector.nodes(document) if not self.selector.decode else self._inner(raw, anchors)
        except (Unread, Ambiguous):
            raise Unreadable("the answer has another shape at the path of its items") from None
        return inner

    def _inner(self, raw: list[Any], anchors: Anchors) -> list[Any]:
        """The rows inside strings that hold JSON; each string's document is remembered."""
        from_text = Selector(SelectorModel(select="$", decode="json"), ())
        out: list[Any] = []
        for text in raw:
            if text is None:
                continue
            for decoded in from_text.nodes(text):
                anchors.inner[text] = decoded
                out.extend([decoded] if self.selector.then is None else self.selector.then.find(decoded))
        return out
