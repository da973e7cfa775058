"""Filters in the stores' own languages: which values each dimension may take, at most.

A reading is an upper bound. That is right for a recall, which is restricted by what it may touch;
a forget must be exact, so a reading also says whether anything made it narrower (`narrowed`) or
void (`empty`). What is not wholly understood makes its dimensions UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.scope import UNKNOWN, Values, Wild
from quietus.profiles.codec import scalar_text

NARROWS: Final = "narrows"
OTHERS: Final = "*"
_DEPTH_MAX: Final = 16

Fields = Mapping[str, str]


@dataclass(slots=True)
class FilterReading:
    """The upper bound of a filter: dimensions that are not named are ANY."""

    bounds: dict[str, Values] = field(default_factory=dict)
    narrowed: bool = False
    empty: bool = False

    def unknown(self, dimensions: set[str]) -> FilterReading:
        """The same, with these dimensions beyond reading."""
        for name in dimensions:
            self.bounds[name] = UNKNOWN
        self.narrowed = True
        return self


def read_chroma(where: Any, fields: Fields) -> FilterReading:
    """Chroma's `where`: fields with a scalar, `$eq` or `$in`, under `$and` and `$or`."""
    return _chroma(where, fields, 0)


def read_plain(found: Any, fields: Fields) -> FilterReading:
    """Fields with a scalar, a list (any of), `{eq}`, `{any}` or `{in}`; all of them must hold."""
    if found is None:
        return FilterReading()
    if type(found) is not dict:
        return FilterReading().unknown(_dimensions(fields))
    if not found:
        return FilterReading(empty=True)
    return _all(
        [_field(name, _plain_values(condition), fields) for name, condition in found.items()
         if condition is not None]
    )  # fmt: skip


DIALECTS: Final[Mapping[str, Callable[[Any, Fields], FilterReading]]] = {
    "chroma": read_chroma,
    "plain": read_plain,
}


def _chroma(where: Any, fields: Fields, depth: int) -> FilterReading:
    if where is None:
        return FilterReading()
    if type(where) is not dict or depth > _DEPTH_MAX:
        return FilterReading().unknown(_dimensions(fields))
    if not where:
        return FilterReading(empty=True)
    parts = []
    for name, condition in where.items():
        if name in ("$and", "$or"):
            if type(condition) is not list or not condition:
                parts.append(FilterReading(empty=condition == []).unknown(_dimensions(fields)))
                continue
            inner = [_chroma(one, fields, depth + 1) for one in condition]
            parts.append(_all(inner) if name == "$and" else _any(inner))
        elif name.startswith("$"):
            parts.append(FilterReading().unknown(_dimensions(fields)))
        else:
            parts.append(_field(name, _chroma_values(condition), fields))
    return _all(parts)


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


def _field(name: str, found: list[Any] | None, fields: Fields) -> FilterReading:
    """One condition on one field. `found` is None where the condition is not understood."""
    dimension = fields.get(name) or fields.get(OTHERS)
    if dimension is None:  # a field that the profile does not know may well be another name for a person
        return FilterReading().unknown(_dimensions(fields))
    if dimension == NARROWS:
        return FilterReading(narrowed=True)
    if found is None:
        return FilterReading().unknown({dimension})
    if not found:
        return FilterReading(empty=True).unknown({dimension})
    texts = [scalar_text(value) for value in found]
    if any(not text or text == "*" for text in texts):  # an asterisk is everybody to some stores
        return FilterReading().unknown({dimension})
    return FilterReading({dimension: frozenset(text for text in texts if text)})


def _all(parts: list[FilterReading]) -> FilterReading:
    """All hold: each dimension's bounds meet. An UNKNOWN bound only narrows a known one."""
    out = FilterReading()
    for part in parts:
        out.narrowed |= part.narrowed
        out.empty |= part.empty
        for name, bound in part.bounds.items():
            before = out.bounds.get(name)
            if before is None or before is UNKNOWN:
                out.bounds[name] = bound
            elif not isinstance(before, Wild) and not isinstance(bound, Wild):
                # Nothing can be two different people: what a store makes of that is not ours to guess.
                out.bounds[name] = (before & bound) or UNKNOWN
                out.narrowed |= before != bound
    return out


def _any(parts: list[FilterReading]) -> FilterReading:
    """One holds: the bounds join, and a dimension that any branch leaves open is open."""
    out = FilterReading()
    out.narrowed = any(part.narrowed for part in parts)
    out.empty = any(part.empty for part in parts)
    names = {name for part in parts for name in part.bounds}
    if len(names) > 1:
        out.narrowed = True  # a product of the joined bounds is wider than the branches
    for name in names:
        bounds = [part.bounds.get(name) for part in parts]
        if any(bound is UNKNOWN for bound in bounds):
            out.bounds[name] = UNKNOWN
        elif all(bound is not None for bound in bounds):
            joined: frozenset[Any] = frozenset()
            for bound in bounds:
                if bound is not None and not isinstance(bound, Wild):
                    joined |= bound
            out.bounds[name] = joined
        else:
            out.narrowed = True
    return out


def _dimensions(fields: Fields) -> set[str]:
    return {name for name in fields.values() if name != NARROWS} or {"subject"}
