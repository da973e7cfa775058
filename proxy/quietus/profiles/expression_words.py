"""The words of Milvus's boolean expressions: taken apart from a client's, and written into our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from quietus.profiles.codec import scalar_text
from quietus.profiles.faults import CannotQuote, MissingValue

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\\n\r]|\\["'\\])*"|'(?:[^'\\\n\r]|\\["'\\])*')
    |(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<int>0[xX][0-9A-Fa-f]+|0|[1-9]\d*)(?![\w.])
    |(?P<name>\$meta|[A-Za-z_]\w*)
    |(?P<value>\{[A-Za-z_]\w*\})
    |(?P<op>&&|\|\||==|!=|<=|>=|\*\*|[<>!()\[\],+*/%-]))""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Final = {
    "and": "and", "AND": "and", "&&": "and", "or": "or", "OR": "or", "||": "or", "not": "not", "NOT": "not",
    "!": "not", "in": "in", "IN": "in", "like": "like", "LIKE": "like", "true": "true", "True": "true",
    "TRUE": "true", "false": "false", "False": "false", "FALSE": "false", "is": "is", "IS": "is",
    "null": "null", "NULL": "null", "exists": "exists", "EXISTS": "exists",
}  # fmt: skip
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_]\w*)\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class Beyond(Exception):
    """The expression says something that is not understood here."""


def tokens(text: str) -> list[tuple[str, str]]:
    """The words in order, each with its kind, an `end` after the last. Raises Beyond."""
    out: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise Beyond
        kind, said = found.lastgroup, found[found.lastgroup]
        word = _WORDS.get(said) if kind in ("name", "op") else None
        out.append(("op", word or said) if kind == "op" or word else (kind, said))
        at = found.end()
    out.append(("end", ""))
    return out


def template_value(found: Any) -> Any:
    """A template value: what stands in the one member that it has."""
    if not isinstance(found, Mapping) or len(found) != 1:
        return None
    kind, value = next(iter(found.items()))
    if kind in ("string_val", "int64_val"):
        return value
    if kind == "array_val" and isinstance(value, Mapping) and len(value) == 1:
        of, data = next(iter(value.items()))
        if of in ("string_data", "long_data") and isinstance(data, Mapping):
            return data.get("data", [])
    return None


def quoted(template: str, values: Mapping[str, Any]) -> str:
    """A filter of our own: each `{name}` becomes a literal, a list of them with its brackets.

    `NAME_type` among the values says what a key is: `int64` or `varchar`. Raises CannotQuote, MissingValue.
    """

    def put(match: re.Match[str]) -> str:
        name = match[1]
        value = values.get(name)
        if value is None:
            raise MissingValue(name)
        number = values.get(f"{name}_type") == "int64"
        if isinstance(value, list | tuple | set | frozenset):
            return f"[{', '.join(_quoted(one, number) for one in value)}]"
        return _quoted(value, number)

    return _PLACEHOLDER.sub(put, template)


def segments(template: str, values: Mapping[str, Any]) -> str:
    """A path of our own: each `{name}` is one segment of it. Raises CannotQuote, MissingValue."""

    def put(match: re.Match[str]) -> str:
        value = values.get(match[1])
        if value is None:
            raise MissingValue(match[1])
        text = scalar_text(value)
        if text is None or text in ("", ".", "..") or "/" in text or _CONTROL.search(text):
            raise CannotQuote("a value cannot be one segment of a path")
        return text

    return _PLACEHOLDER.sub(put, template)


def _quoted(value: Any, number: bool) -> str:
    text = scalar_text(value)
    if text is None or _CONTROL.search(text):
        raise CannotQuote("a value cannot be quoted in a filter")
    if number or type(value) is int:
        if not re.fullmatch(r"-?\d{1,19}", text, re.ASCII):
            raise CannotQuote("a value is no whole number, and its field takes nothing else")
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
