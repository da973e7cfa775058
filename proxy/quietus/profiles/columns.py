"""Rows that are written as parallel arrays, nested as deep as the store likes.

A row is what stands at the same place of every column; a column that is null says nothing. Columns
that do not run in parallel are unreadable: whose text is whose could not be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quietus.core.operations import Item
from quietus.profiles.codec import scalar_text
from quietus.profiles.dimensions import contents, vector_of
from quietus.profiles.faults import Ambiguous, CompileFault, MissingItems, Unread, Unreadable
from quietus.profiles.field_columns import FieldColumns
from quietus.profiles.item_reader import ItemReader, number
from quietus.profiles.jsonpaths import MISSING, Path
from quietus.profiles.rows import Anchors, Group
from quietus.profiles.selector import Place, Selector, compile_path
from quietus.profiles.words import ColumnsModel, FieldColumnsModel, GroupModel, ItemModel


class Columns:
    """Rows that are written as parallel arrays."""

    def __init__(self, model: ColumnsModel, reader: ItemReader, place: Place) -> None:
        self.depth = model.depth
        self.optional = False
        self.reader = reader
        named = {"key": model.key, "content": model.content, "meta": model.meta,
                 "vector": model.vector, "score": model.score}  # fmt: skip
        self.named: dict[str, Path] = {
            name: compile_path(path, (*place, name)) for name, path in named.items() if path is not None
        }
        self.also = [
            compile_path(path, (*place, "also", at)) for at, path in enumerate(model.also)
        ]
        for path in (*self.named.values(), *self.also):
            if not path.singular:
                raise CompileFault(place, "a column is a plain path to one array")

    def read(
        self, document: Any, start: int, captures: Mapping[str, str], anchors: Anchors, required: bool
    ) -> list[Item]:
        """The rows, numbered from `start`. Raises Unreadable where the arrays do not run in parallel."""
        try:
            keys = self.named["key"].one(document)
            columns = {name: path.one(document) for name, path in self.named.items()}
            others = [path.one(document) for path in self.also]
        except (Unread, Ambiguous):
            raise Unreadable("the answer has another shape at the path of its columns") from None
        if type(keys) is not list:
            if required:
                raise MissingItems("the answer has no array at the path of its keys")
            if keys is not None and keys is not MISSING:
                raise Unreadable("the keys are no array")
            return []
        leaves = _leaves(keys, self.depth)
        parts = {name: _parallel(column, leaves, self.depth) for name, column in columns.items()}
        for column in others:
            _note(_parallel(column, leaves, self.depth), start, leaves, anchors)
        for part in parts.values():
            _note(part, start, leaves, anchors)
        items: list[Item] = []
        position = start
        for place, leaf in enumerate(leaves):
            for index in range(len(leaf)):
                row = {
                    name: part[place][index]
                    for name, part in parts.items()
                    if part is not None and part[place] is not None
                }
                items.append(self._item(row, position, captures))
                position += 1
        return items

    def _item(self, row: dict[str, Any], position: int, captures: Mapping[str, str]) -> Item:
        item = self.reader.read(row, position, captures)
        changed: dict[str, Any] = {}
        if "key" not in self.reader.says:
            changed["key"] = scalar_text(row.get("key"))
        if "content" not in self.reader.says and row.get("content") is not None:
            changed["texts"] = contents(_CONTENT, row, {})
        if "vector" not in self.reader.says and "vector" in row:
            changed["vector"] = vector_of(row["vector"])
        if "score" not in self.reader.says and "score" in row:
            changed["score"] = number(row["score"])
        return _replaced(item, changed) if changed else item


_CONTENT = (Selector("$.content", ()),)


def _replaced(item: Item, changed: Mapping[str, Any]) -> Item:
    values = {name: getattr(item, name) for name in Item.__slots__}
    values.update(changed)
    return Item(**values)


def _leaves(column: Any, depth: int) -> list[Any]:
    level = [column]
    for _ in range(depth - 1):
        if any(type(part) is not list for part in level):
            raise Unreadable("a column is not nested as deep as its profile says")
        level = [inner for part in level for inner in part]
    if any(type(part) is not list for part in level):
        raise Unreadable("a column is not nested as deep as its profile says")
    return level


def _parallel(column: Any, leaves: list[Any], depth: int) -> list[Any] | None:
    """The leaves of a column that runs beside the keys; None where it is null or missing."""
    if type(column) is not list:
        if column is None or column is MISSING:
            return None
        raise Unreadable("a column is no array")
    level: list[Any] = [column]
    for _ in range(depth - 1):
        level = [inner for part in level for inner in (part if type(part) is list else [None])]
    if len(level) != len(leaves):
        raise Unreadable("the columns do not run in parallel")
    for part, keys in zip(level, leaves, strict=True):
        if part is not None and (type(part) is not list or len(part) != len(keys)):
            raise Unreadable("the columns do not run in parallel")
    return level


def _note(parts: list[Any] | None, start: int, leaves: list[Any], anchors: Anchors) -> None:
    if parts is None:
        return
    position = start
    for part, keys in zip(parts, leaves, strict=True):
        if part is not None:
            anchors.add(part, position)
        position += len(keys)


Rows = Group | Columns | FieldColumns


def compile_groups(
    items: Any, item: ItemModel | None, columns: ColumnsModel | None, place: Place, *, strict: bool = False
) -> list[Rows]:
    """The groups of rows that a response, a batch or a surface names. `strict`: see ItemReader."""
    reader = ItemReader(item, (*place, "item"), strict=strict)
    if columns is not None:
        if items is not None:
            raise CompileFault(place, "rows stand in items or in columns, not in both")
        return [Columns(columns, reader, (*place, "columns"))]
    if items is None:
        return []
    if isinstance(items, FieldColumnsModel):
        return [FieldColumns(items, reader, (*place, "items"))]
    if not isinstance(items, list):
        return [Group(items, reader, (*place, "items"))]
    groups: list[Rows] = []
    for at, group in enumerate(items):
        assert isinstance(group, GroupModel)
        where = (*place, "items", at)
        made = Group(group.items, ItemReader(group.item, (*where, "item"), strict=strict), where)
        made.optional = group.optional
        groups.append(made)
    return groups
