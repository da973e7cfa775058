"""Where the rows of a document stand.

Rows come as arrays of objects, as one object, or as parallel arrays (`columns`). An `Anchors` remembers which
container of the decoded document belongs to which row, so that the walk over every scalar knows
whose scalar it is, and so that a row can be taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quietus.core.operations import Item
from quietus.profiles.faults import Ambiguous, CompileFault, MissingItems, Unread, Unreadable
from quietus.profiles.item_reader import ItemReader
from quietus.profiles.messages import Edits
from quietus.profiles.selector import Place, Selector
from quietus.profiles.words import SelectorModel


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
        self.cutters: list[Callable[[frozenset[int], Edits], None]] = []
        """Of messages: what else must change when rows are taken out."""

    def add(self, rows: list[Any], start: int) -> None:
        """Notes a list of rows."""
        self.lists[id(rows)] = start
        self.edit.append(rows)

    def cut(self, positions: frozenset[int]) -> Edits | None:
        """What is to be changed in a message to take rows out. None if one of them cannot be taken out."""
        if self.inner or any(position in positions for position in self.whole.values()):
            return None
        edits = Edits()
        for rows in self.edit:
            start = self.lists[id(rows)]
            found = frozenset(at - start for at in positions if start <= at < start + len(rows))
            if found:
                edits.drops[id(rows)] = (found, 1)
        for cutter in self.cutters:
            cutter(positions, edits)
        return edits

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
