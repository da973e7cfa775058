"""Milvus's boolean expressions: which values each dimension may take, at most.

Understood are comparisons of a field with literals (`==`, `in`, and as mere narrowing `!=`, `not in`,
ranges, `like`), `and`, `or`, `not` in every spelling, parentheses, template values, and calls and arithmetic
over fields that only narrow. What is not wholly understood makes its dimensions UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quietus.profiles.codec import scalar_text
from quietus.profiles.expression_words import Beyond, template_value, tokens
from quietus.profiles.filters import NARROWS, OTHERS, Fields, FilterReading, all_of, any_of, dimensions

_COMPARES: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
LENGTH_MAX: Final = 1_048_576
DEPTH_MAX: Final = 32


@dataclass(slots=True)
class _Operand:
    """A side of a comparison: one literal, one field, or something over these fields."""

    fields: tuple[str, ...] = ()
    literal: Any = None
    plain: bool = True
    """It is one literal or one field and nothing else."""

    @property
    def name(self) -> str | None:
        """The field that it is, where it is one."""
        return self.fields[0] if self.plain and self.fields else None


@dataclass(slots=True)
class _Part:
    """A part of the expression, read; `negative` if some of it excludes values of a dimension."""

    reading: FilterReading
    negative: bool = False


def read_milvus(found: Any, fields: Fields) -> FilterReading:
    """An expression, or a request that holds one with its template values, or several such requests."""
    if isinstance(found, Mapping):
        inner = found.get("requests") or found.get("sub_reqs")
        if isinstance(inner, list):
            return any_of([read_milvus(one, fields) for one in inner])
        text = found.get("expr", found.get("dsl"))
        return _read(text, fields, found.get("expr_template_values") or {})
    return _read(found, fields, {})


def _read(text: Any, fields: Fields, values: Mapping[str, Any]) -> FilterReading:
    if text is None or (type(text) is str and not text.strip()):
        return FilterReading()
    try:
        if type(text) is not str or len(text) > LENGTH_MAX:
            raise Beyond
        return _Parser(tokens(text), fields, values).whole()
    except Beyond:
        return FilterReading().unknown(dimensions(fields))


class _Parser:
    """Reads tokens from the loosest binding to the tightest."""

    def __init__(self, tokens: list[tuple[str, str]], fields: Fields, values: Mapping[str, Any]) -> None:
        self.tokens = tokens
        self.fields = fields
        self.values = values
        self.at = 0
        self.depth = 0
        self.left = 4 * len(tokens) + 2000  # steps: brackets are tried in two ways, and may be nested

    def whole(self) -> FilterReading:
        part = self.either()
        if self.tokens[self.at][0] != "end":
            raise Beyond
        return part.reading

    def take(self, *said: str) -> str | None:
        """The operator that stands here if it is one of these, and steps over it."""
        kind, text = self.tokens[self.at]
        if kind == "op" and text in said:
            self.at += 1
            return text
        return None

    def either(self) -> _Part:
        return self._joined("or", self.both, any_of)

    def both(self) -> _Part:
        return self._joined("and", self.negated, all_of)

    def _joined(
        self, word: str, inner: Callable[[], _Part], join: Callable[[list[FilterReading]], FilterReading]
    ) -> _Part:
        parts = [inner()]
        while self.take(word):
            parts.append(inner())
        if len(parts) == 1:
            return parts[0]
        return _Part(join([part.reading for part in parts]), any(part.negative for part in parts))

    def negated(self) -> _Part:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Beyond
        try:
            if not self.take("not"):
                return self.atom()
            inner = self.negated()
        finally:
            self.depth -= 1
        if inner.negative:
            # Not to exclude somebody may mean only them, and whoever has no value there at all.
            return _Part(FilterReading().unknown(dimensions(self.fields)), True)
        unread = {name for name, bound in inner.reading.bounds.items() if not isinstance(bound, frozenset)}
        return _Part(FilterReading(narrowed=True).unknown(unread), True)

    def atom(self) -> _Part:
        if self.take("exists"):
            return self._over(self.operand().fields)
        start = self.at
        if self.take("("):
            # A bracket opens either an expression or a number: tried as the first, then as the other.
            try:
                part = self.either()
                if self.take(")") and not self._goes_on():
                    return part
            except Beyond:
                pass
            self.at = start
        return self.comparison()

    def _goes_on(self) -> bool:
        kind, text = self.tokens[self.at]
        return kind == "op" and text not in ("and", "or", ")", "]", ",")

    def comparison(self) -> _Part:
        left = self.operand()
        if self.take("is"):
            self.take("not")
            if not self.take("null"):
                raise Beyond
            return self._over(left.fields)
        if self.take("like"):
            self._literal(self.operand())
            return self._over(left.fields, plain=left.plain)
        excludes = bool(self.take("not"))
        if excludes or self.tokens[self.at] == ("op", "in"):
            if not self.take("in"):
                raise Beyond
            return self._compared(left, self._list(), excludes)
        sides = [left]
        signs: list[str] = []
        while (sign := self.take(*_COMPARES)) is not None:
            signs.append(sign)
            sides.append(self.operand())
        if not signs:
            return self._over(left.fields, plain=False)  # a call, or a field that is true or false
        if len(signs) == 1 and signs[0] in ("==", "!="):
            one, other = sides if sides[0].name else sides[::-1]
            if one.name and not other.fields and other.plain:
                return self._compared(one, [other.literal], signs[0] == "!=")
            return self._over((*one.fields, *other.fields), plain=False)
        simple = all(side.plain for side in sides) and sum(bool(side.fields) for side in sides) <= 1
        return self._over(tuple(name for side in sides for name in side.fields), plain=simple)

    def _compared(self, side: _Operand, literals: list[Any] | None, excludes: bool) -> _Part:
        """`==`, `!=`, `in`, `not in`: of a mapped field the values, of any other that it narrows."""
        if not side.fields:
            return _Part(FilterReading(narrowed=True))
        dimension = self._dimension(side.fields[0])
        if len(side.fields) > 1 or not side.plain or dimension in (None, NARROWS):
            return self._over(side.fields, plain=side.plain)
        if literals == [] and not excludes:
            return _Part(FilterReading(empty=True).unknown({str(dimension)}))
        texts = [scalar_text(one) if type(one) in (str, int) else None for one in literals or [None]]
        if any(not text or text == "*" for text in texts):
            return _Part(FilterReading().unknown({str(dimension)}), excludes)
        if excludes:
            return _Part(FilterReading(narrowed=True), True)
        return _Part(FilterReading({str(dimension): frozenset(text for text in texts if text)}))

    def _over(self, names: tuple[str, ...], *, plain: bool = True) -> _Part:
        """Something over these fields that is understood to narrow; `plain`: also where they are mapped."""
        unread: set[str] = set()
        for name in names:
            dimension = self._dimension(name)
            if dimension is None:
                unread |= dimensions(self.fields)
            elif dimension != NARROWS and not plain:
                unread.add(dimension)
        return _Part(FilterReading(narrowed=True).unknown(unread))

    def _dimension(self, name: str) -> str | None:
        head = name.partition("[")[0]
        if head != name:  # within a field that names somebody, anything may name somebody
            whole = self.fields.get(head)
            return None if whole not in (None, NARROWS) else self.fields.get(OTHERS)
        return self.fields.get(name) or self.fields.get(OTHERS)

    # --- operands ------------------------------------------------------------------------------

    def operand(self) -> _Operand:
        """A sum or product of terms."""
        found = self.term()
        while self.take("+", "-", "*", "/", "%", "**"):
            other = self.term()
            found = _Operand((*found.fields, *other.fields), plain=False)
        return found

    def term(self) -> _Operand:
        kind, said = self.tokens[self.at]
        self.at += 1
        self.left -= 1
        if self.left < 0:
            raise Beyond
        if kind == "string":
            return _Operand(literal=re.sub(r"\\(.)", r"\1", said[1:-1]))
        if kind == "int":
            return _Operand(literal=int(said, 0))
        if kind == "float":
            return _Operand(literal=float(said))
        if kind == "value":
            return _Operand(literal=template_value(self.values.get(said[1:-1])))
        if kind == "name":
            return self._named(said)
        if (kind, said) in (("op", "true"), ("op", "false")):
            return _Operand(literal=said == "true")
        if (kind, said) in (("op", "-"), ("op", "+")):
            inner = self.term()
            if inner.plain and type(inner.literal) in (int, float):
                return _Operand(literal=-inner.literal if said == "-" else inner.literal)
            return _Operand(inner.fields, plain=False)
        self.at -= 1
        return self._bracketed()

    def _bracketed(self) -> _Operand:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Beyond
        if self.take("("):
            inner = self.operand()
            if not self.take(")"):
                raise Beyond
        else:
            inner = _Operand(literal=self._list(), plain=False)
        self.depth -= 1
        return inner

    def _named(self, name: str) -> _Operand:
        if self.take("("):
            fields: tuple[str, ...] = ()
            while not self.take(")"):
                fields += self.operand().fields
                if not self.take(",") and self.tokens[self.at] != ("op", ")"):
                    raise Beyond
            return _Operand(fields, plain=False)
        steps: list[Any] = []
        while self.take("["):
            steps.append(self._literal(self.operand()))
            if not self.take("]"):
                raise Beyond
        if name == "$meta":
            if not steps or type(steps[0]) is not str:
                raise Beyond
            name, steps = steps[0], steps[1:]
        return _Operand((name + "".join(f"[{step}]" for step in steps),))

    def _literal(self, side: _Operand) -> Any:
        if side.fields or not side.plain:
            raise Beyond
        return side.literal

    def _list(self) -> list[Any] | None:
        """The literals of a list; None for a template value that cannot be read."""
        kind, said = self.tokens[self.at]
        if kind == "value":
            self.at += 1
            found = template_value(self.values.get(said[1:-1]))
            return found if isinstance(found, list) else None
        if not self.take("["):
            raise Beyond
        out: list[Any] = []
        while not self.take("]"):
            out.append(self._literal(self.operand()))
            if not self.take(",") and self.tokens[self.at] != ("op", "]"):
                raise Beyond
        return out
