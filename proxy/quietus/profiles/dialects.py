"""Filters in the stores' own languages, by their names in profiles. `filters` says what one reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from quietus.profiles.expressions import read_milvus
from quietus.profiles.filters import Fields, FilterReading, all_of, any_of, dimensions, field_reading
from quietus.profiles.keyranges import KeyRanges

_DEPTH_MAX: Final = 16


def read_chroma(where: Any, fields: Fields) -> FilterReading:
    """Chroma's `where`: fields with a scalar, `$eq` or `$in`, under `$and` and `$or`."""
    return _chroma(where, fields, 0)


def read_plain(found: Any, fields: Fields) -> FilterReading:
    """Fields with a scalar, a list (any of), `{eq}`, `{any}` or `{in}`; all of them must hold."""
    if found is None:
        return FilterReading()
    if type(found) is not dict:
        return FilterReading().unknown(dimensions(fields))
    if not found:
        return FilterReading(empty=True)
    return all_of(
        [field_reading(name, _plain_values(condition), fields) for name, condition in found.items()
         if condition is not None]
    )  # fmt: skip


Dialect = Callable[[Any, Fields], FilterReading]


def dialect(name: str, pattern: re.Pattern[str] | None = None) -> Dialect:
    """The reader of a dialect. `pattern` is a profile's own, for the dialect that takes one."""
    if name == "etcd":
        return KeyRanges(pattern)
    return _DIALECTS[name]


_DIALECTS: Final[Mapping[str, Dialect]] = {
    "chroma": read_chroma,
    "milvus": read_milvus,
    "plain": read_plain,
}


def _chroma(where: Any, fields: Fields, depth: int) -> FilterReading:
    if where is None:
        return FilterReading()
    if type(where) is not dict or depth > _DEPTH_MAX:
        return FilterReading().unknown(dimensions(fields))
    if not where:
        return FilterReading(empty=True)
    parts = []
    for name, condition in where.items():
        if name in ("$and", "$or"):
            if type(condition) is not list or not condition:
                parts.append(FilterReading(empty=condition == []).unknown(dimensions(fields)))
                continue
            inner = [_chroma(one, fields, depth + 1) for one in condition]
            parts.append(all_of(inner) if name == "$and" else any_of(inner))
        elif name.startswith("$"):
            parts.append(FilterReading().unknown(dimensions(fields)))
        else:
            parts.append(field_reading(name, _chroma_values(condition), fields))
    return all_of(parts)


def _chroma_values(condition: Any) -> list[Any] | None:
    if type(condition) is dict:
        if len(condition) != 1:
            return None
        operator, operand = next(iter(condition.items()))
        if operator == "$eq":
            return [operand]
        return operand if operator == "$in" and type(operand) is list else None
    return [condition]


def _plain_values(condition: Any) -> list[Any] | None:
    if type(condition) is list:
        return condition
    if type(condition) is dict:
        if len(condition) != 1:
            return None
        operator, operand = next(iter(condition.items()))
        if operator == "eq":
            return [operand]
        return operand if operator in ("any", "in") and type(operand) is list else None
    return [condition]
