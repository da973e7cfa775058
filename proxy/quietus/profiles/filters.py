"""What a filter says: which values each dimension may take, at most.

A reading is an upper bound. That is right for a recall, which is restricted by what it may touch;
a forget must be exact, so a reading also says whether anything made it narrower (`narrowed`) or
void (`empty`). What is not wholly understood makes its dimensions UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.scope import UNKNOWN, Values, Wild
from quietus.profiles.codec import scalar_text

NARROWS: Final = "narrows"
OTHERS: Final = "*"

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


def field_reading(name: str, found: list[Any] | None, fields: Fields) -> FilterReading:
    """One condition on one field. `found` is None where the condition is not understood."""
    dimension = fields.get(name) or fields.get(OTHERS)
    if dimension is None:  # a field that the profile does not know may well be another name for a person
        return FilterReading().unknown(dimensions(fields))
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


def all_of(parts: list[FilterReading]) -> FilterReading:
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


def any_of(parts: list[FilterReading]) -> FilterReading:
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


def dimensions(fields: Fields) -> set[str]:
    """The dimensions that the fields of a filter name."""
    return {name for name in fields.values() if name != NARROWS} or {"subject"}
