"""Rows as Milvus writes them: ids here, a column for each field there, scores and counts beside them.

A row is `{"id": …, "key_type": "int64" or "varchar", "score": …, "fields": {name: value}, "vectors": …}`.
Dynamic fields stand in one column as JSON and are fields like any other, where no column has their name.
Columns that do not run in parallel are unreadable: whose text is whose could not be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from quietus.core.operations import Item
from quietus.profiles.codec import decode_json
from quietus.profiles.faults import Ambiguous, CompileFault, NotJson, Unread, Unreadable
from quietus.profiles.item_reader import ItemReader
from quietus.profiles.messages import Edits
from quietus.profiles.protobuf import Floats, Opaque
from quietus.profiles.rows import Anchors
from quietus.profiles.selector import Place, compile_path
from quietus.profiles.words import FieldColumnsModel

_BESIDE: Final = ("scores", "distances", "recalls")
_STRIDES: Final = {"binary_vector": (1, 8), "float16_vector": (2, 1), "bfloat16_vector": (2, 1),
                   "int8_vector": (1, 1)}  # fmt: skip
"""Vectors that are bytes: how many bytes so many dimensions take."""
_UNTOLD: Final = ("group_by_field_value", "group_by_field_values", "highlight_results", "element_indices",
                  "agg_buckets")  # fmt: skip
"""What also runs beside the rows; it is screened, and an answer that has it loses no single row."""


class FieldColumns:
    """One group of such rows."""

    def __init__(self, model: FieldColumnsModel, reader: ItemReader, place: Place) -> None:
        self.path = compile_path(model.select, (*place, "select"))
        if not self.path.singular:
            raise CompileFault((*place, "select"), "columns stand at a plain path to one message")
        self.reader = reader
        self.optional = False

    def read(
        self, document: Any, start: int, captures: Mapping[str, str], anchors: Anchors, required: bool
    ) -> list[Item]:
        """The rows, numbered from `start`. Raises Unreadable where the columns do not run in parallel."""
        try:
            node = self.path.one(document)
        except (Unread, Ambiguous):
            raise Unreadable("the answer has another shape at the path of its columns") from None
        if not isinstance(node, dict):
            return []
        columns = _Columns(node)
        rows = columns.rows()
        columns.note(start, anchors)
        if rows:
            anchors.cutters.append(lambda positions, edits: columns.cut(positions, start, edits))
        return [self.reader.read(row, start + at, captures) for at, row in enumerate(rows)]


class _Columns:
    """The columns of one message."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.node = node
        self.lists: list[tuple[Any, int]] = []
        """Every list that runs beside the rows, with how many of its members are one row."""
        self.bytes: list[tuple[dict[str, Any], str, Any, int]] = []
        """Vectors that are bytes: the message, its field, the value, bytes of a row."""
        self.fixed = any(self.node.get(name) for name in _UNTOLD)
        """Nothing can be taken out singly."""
        self.vectors: dict[str, tuple[Floats, int]] = {}
        self.ids: list[Any] = []
        self.count: int | None = None
        self._read_ids()
        self.fields = {name: list(values) for name, values in self._read_fields() if values is not None}

    def rows(self) -> list[dict[str, Any]]:
        """The rows."""
        scores = self.node.get("scores")
        said = scores.values() if isinstance(scores, Floats) else scores or ()
        for name in _BESIDE:
            values = self.node.get(name)
            if values:
                self._beside(values, 1)
        primary = self.node.get("primary_field_name", "id")
        out: list[dict[str, Any]] = []
        for at in range(self.count or 0):
            row: dict[str, Any] = {"fields": _row_fields(self.fields, at)}
            key = self.ids[at] if self.ids else row["fields"].get(primary)
            if type(key) in (int, str):
                row["id"] = key
                row["key_type"] = "int64" if type(key) is int else "varchar"
            if said:
                row["score"] = said[at]
            if self.vectors:
                row["vectors"] = {name: values.part(at, dim) for name, (values, dim) in self.vectors.items()}
            out.append(row)
        return out

    def note(self, start: int, anchors: Anchors) -> None:
        """Says whose each value is, for the walk over every scalar."""
        for values, per in self.lists:
            if per == 1 and type(values) is list:
                anchors.lists[id(values)] = start

    def cut(self, positions: frozenset[int], start: int, edits: Edits) -> None:
        """What is to change so that rows are gone from columns and counts. Raises Unreadable."""
        dropped = frozenset(at - start for at in positions if start <= at < start + (self.count or 0))
        if not dropped:
            return
        if self.fixed:
            raise Unreadable("the answer has columns from which no single row can be taken")
        for values, per in self.lists:
            edits.drops[id(values)] = (dropped, per)
        for holder, name, value, width in self.bytes:
            raw = value.raw if isinstance(value, Opaque) else memoryview(value.encode("utf-8"))
            kept = (raw[at * width : (at + 1) * width] for at in range(self.count or 0) if at not in dropped)
            edits.sets.setdefault(id(holder), {})[name] = b"".join(kept)
        topks = self.node.get("topks")
        if isinstance(topks, list):
            edits.sets.setdefault(id(self.node), {})["topks"] = _counted(topks, dropped)

    # --- reading -------------------------------------------------------------------------------

    def _beside(self, values: Any, per: int) -> None:
        """Notes a list that runs beside the rows. Raises Unreadable if it does not."""
        if per <= 0 or len(values) % per:
            raise Unreadable("a vector is cut short")
        rows = len(values) // per
        if self.count is None:
            self.count = rows
        if rows != self.count:
            raise Unreadable("the columns do not run in parallel")
        self.lists.append((values, per))

    def _read_ids(self) -> None:
        for name in ("ids", "IDs"):
            of = self.node.get(name)
            for kind in ("int_id", "str_id"):
                if isinstance(of, dict) and kind in of:
                    self.ids = of[kind].get("data", [])
                    self._beside(self.ids, 1)

    def _read_fields(self) -> Iterator[tuple[str, Any]]:
        for one in self.node.get("fields_data", ()):
            name = one.get("field_name", "")
            present = one.get("valid_data")
            if "scalars" in one and one["scalars"]:
                (kind, inner), *_ = one["scalars"].items()
                values = inner.get("data", [])
                if present and len(values) != len(present):
                    # A column that leaves its empty places out is read by what it holds, and not cut.
                    yield name, self._sparse(present, values)
                    continue
                self._beside(values, 1)
                said: Any = values.values() if isinstance(values, Floats) else values
                if kind == "json_data":
                    said = [_parsed(value) for value in said]
                if one.get("is_dynamic"):
                    yield from self._dynamic(said)
                else:
                    yield name, _present(said, present)
            elif "vectors" in one:
                self._vectors(name, one["vectors"], bool(present))
            elif "struct_arrays" in one:
                self.fixed = True
            if present:
                self._beside(present, 1)

    def _sparse(self, present: list[Any], values: Any) -> list[Any]:
        self.fixed = True
        said = iter(values.values() if isinstance(values, Floats) else values)
        found = [next(said, None) if there else None for there in present]
        if self.count is None:
            self.count = len(found)
        if len(found) != self.count:
            raise Unreadable("the columns do not run in parallel")
        return found

    def _dynamic(self, rows: list[Any]) -> Iterator[tuple[str, Any]]:
        """The fields within a column of JSON, each as a column of its own."""
        names = {name for row in rows if isinstance(row, dict) for name in row}
        for name in sorted(names):
            yield name, [row.get(name) if isinstance(row, dict) else None for row in rows]

    def _vectors(self, name: str, of: dict[str, Any], nullable: bool) -> None:
        dim = of.get("dim", 0)
        for kind, inner in of.items():
            if kind == "dim":
                continue
            if nullable:  # empty places may be left out: which vector is whose cannot be told without them
                self.fixed = True
            elif kind == "float_vector" and inner.get("data"):
                self._beside(inner["data"], dim)
                if isinstance(inner["data"], Floats):
                    self.vectors[name] = (inner["data"], dim)
            elif kind == "sparse_float_vector":
                self._beside(inner.get("contents", []), 1)
            elif kind == "vector_array":
                self._beside(inner.get("data", []), 1)
            elif kind in _STRIDES:
                size, per = _STRIDES[kind]
                self._strided(of, kind, inner, dim * size // per)
            else:
                self.fixed = True

    def _strided(self, of: dict[str, Any], kind: str, value: Any, width: int) -> None:
        length = len(value.raw) if isinstance(value, Opaque) else len(value.encode("utf-8"))
        if width <= 0 or length != width * (self.count if self.count is not None else length // width):
            raise Unreadable("a vector is cut short")
        self.count = length // width
        self.bytes.append((of, kind, value, width))


def _row_fields(fields: Mapping[str, list[Any]], at: int) -> dict[str, Any]:
    said = ((name, values[at]) for name, values in fields.items() if at < len(values))
    return {name: value for name, value in said if value is not None}


def _present(values: Any, present: Any) -> list[Any]:
    if not present:
        return list(values)
    return [value if there else None for value, there in zip(values, present, strict=False)]


def _parsed(value: Any) -> Any:
    if type(value) is not str or not value:
        return None
    try:
        return decode_json(value.encode("utf-8"))
    except NotJson:
        raise Unreadable("a column of JSON holds something else") from None


def _counted(topks: list[int], dropped: frozenset[int]) -> list[int]:
    """How many rows each query of a search is left with."""
    out: list[int] = []
    at = 0
    for count in topks:
        out.append(count - sum(at <= row < at + count for row in dropped))
        at += count
    return out
