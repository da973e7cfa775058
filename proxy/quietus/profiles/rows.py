"""Rows: what an item spec reads from one row, and where the rows of a document stand.

Rows come as arrays of objects, as one object, or as parallel arrays (`columns`). An `Anchors` remembers which
container of the decoded document belongs to which row, so that the walk over every scalar knows
whose scalar it is, and so that a row can be taken out.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        self.strict = strict
        self.key = selectors(model.key, (*place, "key"))
        self.subject = selectors(model.subject, (*place, "subject"))
        self.tenant = selectors(model.tenant, (*place, "tenant"))
        self.purpose = selectors(model.purpose, (*place, "purpose"))
        self.path = selectors(model.path, (*place, "path"))
        self.content = selectors(model.content, (*place, "content"))
        self.vector = selectors(model.vector, (*place, "vector"))
        self.derived_from = selectors(model.derived_from, (*place, "derived_from"))
        self.score = selectors(model.score, (*place, "score"))
        self.resolved = selectors(model.provenance_resolved, (*place, "provenance_resolved"))
        self.capture = {
            name: Selector(one, (*place, "capture", name)) for name, one in model.capture.items()
        }

    def read(self, row: Any, position: int, captures: Mapping[str, str]) -> Item:
        """The row as an Item. What cannot be read of it is left out: the row is then unattributed."""
        strict = self.strict
        path = _text(self.path, row, captures, strict) if self.path else None
        try:
            texts = contents(self.content, row, captures) if self.content else ()
        except (Unread, Ambiguous):
            texts = ()
        own = _captured(self.capture, row, captures) if self.capture else {}
        return Item(
            position=position,
            key=_text(self.key, row, captures, strict),
            subject=_text(self.subject, row, captures, strict),
            tenant=_text(self.tenant, row, captures, strict) if self.tenant else None,
            purpose=_text(self.purpose, row, captures) if self.purpose else None,
            path=split_path(path) if path else None,
            texts=texts,
            vector=vector_of(first(self.vector, row, captures)) if self.vector else None,
            derived_from=_ids(self.derived_from, row, captures) if self.derived_from else (),
            provenance_resolved=_resolved(self.resolved, row) if self.resolved else None,
            score=number(first(self.score, row, captures)) if self.score else None,
            capture=own,
        )


def _text(
    found: tuple[Selector, ...], row: Any, captures: Mapping[str, str], strict: bool = False
) -> str | None:
    """The one text that the selectors agree on. A row that says two things says nothing."""
    agreed: str | None = None
    for selector in found:
        try:
            nodes = selector.nodes(row, captures)
        except (Unread, Ambiguous):
            return _unsaid(strict)
        if not nodes:
            continue
        node = nodes[0]
        text = node if type(node) is str else scalar_text(node)
        if text is None or len(nodes) > 1 or (agreed is not None and agreed != text):
            return _unsaid(strict)
        agreed = text
    return agreed


def _unsaid(strict: bool) -> None:
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
