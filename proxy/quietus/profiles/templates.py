"""Requests of our own: probes, remedies, forgets and canaries, filled in from values.

A placeholder that stands alone keeps its value's type; in a path it is one percent-encoded segment,
in a query it is encoded, in a header it must be plain. What cannot be written safely is refused.
`{name?}` leaves its member, parameter or header out where there is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from quietus.core.exchange import Request
from quietus.profiles.call_words import CallHttp
from quietus.profiles.codec import encode_json, scalar_text
from quietus.profiles.faults import CannotQuote, CompileFault, MissingValue
from quietus.profiles.selector import Place

PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\?)?\}")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ABSENT: Final = object()


class Template:
    """One request with placeholders. `names` are those it needs."""

    def __init__(self, model: CallHttp, place: Place) -> None:
        self.method = model.method
        self.path = model.path
        self.query = dict(model.query)
        self.headers = dict(model.headers)
        self.body = model.body
        if "?" in model.path or "#" in model.path:
            raise CompileFault((*place, "path"), "the path of a call has no query", "write it under query")
        parts = {"path": self.path, "query": self.query, "headers": self.headers, "body": self.body}
        self.names = {
            name: (*place, part) for part, value in parts.items() for name, _ in names_of(value)
        }
        self.required = {name for value in parts.values() for name, free in names_of(value) if not free}

    def fill(self, values: Mapping[str, Any], sets: Mapping[str, Any] | None = None) -> Request:
        """The request. `sets` are values for `$.query.x`, `$.headers.x` or `$.body.x` beside it.

        Raises CannotQuote and MissingValue.
        """
        path = PLACEHOLDER.sub(lambda match: _segment(_value(match, values)), self.path)
        query = {name: filled for name, value in self.query.items()
                 if (filled := fill(value, values)) is not _ABSENT}  # fmt: skip
        headers = {name: filled for name, value in self.headers.items()
                   if (filled := fill(value, values)) is not _ABSENT}  # fmt: skip
        body = fill(self.body, values) if self.body is not None else None
        for target, value in (sets or {}).items():
            body = put(target, value, query, headers, body)
        pairs = tuple((name, header_value(value)) for name, value in headers.items())
        data = b""
        if body is not None and body is not _ABSENT:
            data = encode_json(body)
            if not any(name.lower() == "content-type" for name, _ in pairs):
                pairs = (*pairs, ("Content-Type", "application/json"))
        pairs = (("Accept", "application/json"), *pairs)
        return Request(self.method, path + query_string(query), pairs, data)


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """A value with its placeholders filled in; `_ABSENT` where `{name?}` stands without a value."""
    if isinstance(template, str):
        alone = PLACEHOLDER.fullmatch(template)
        if alone:
            return _value(alone, values)
        parts = [_value(match, values) for match in PLACEHOLDER.finditer(template)]
        if any(part is _ABSENT for part in parts):
            return _ABSENT
        return PLACEHOLDER.sub(lambda match: _scalar(_value(match, values)), template)
    if isinstance(template, Mapping):
        members = {key: fill(value, values) for key, value in template.items()}
        return {key: value for key, value in members.items() if value is not _ABSENT}
    if isinstance(template, list):
        return [value for one in template if (value := fill(one, values)) is not _ABSENT]
    return template


def put(target: str, value: Any, query: dict[str, Any], headers: dict[str, Any], body: Any) -> Any:
    """Sets one place of a request; gives back the body. Raises CannotQuote."""
    root, *steps = set_steps(target)
    if root == "query":
        query[steps[0]] = value
    elif root == "headers":
        for name in [name for name in headers if name.lower() == steps[0].lower()]:
            del headers[name]
        headers[steps[0]] = value
    else:
        body = {} if body is None else body
        node = body
        for step in steps[:-1]:
            if not isinstance(node, dict):
                raise CannotQuote("the body has another shape than the profile expects")
            node = node.setdefault(step, {})
        if not isinstance(node, dict):
            raise CannotQuote("the body has another shape than the profile expects")
        node[steps[-1]] = value
    return body


_TARGET: Final = re.compile(
    r"\$\.(?:query\.([^.\[\]]+)|headers\.([A-Za-z0-9_-]+)|(body)((?:\.[A-Za-z_][\w-]*)+))"
)


def set_steps(target: str) -> list[str]:
    """The steps of a place that can be set. Raises ValueError."""
    found = _TARGET.fullmatch(target)
    if found is None:
        raise ValueError("a place to set is $.query.name, $.headers.name or $.body.name")
    if found[1]:
        return ["query", found[1]]
    if found[2]:
        return ["headers", found[2]]
    return ["body", *found[4].split(".")[1:]]


def names_in(value: Any) -> Iterator[str]:
    """The placeholders in a template."""
    return (name for name, _ in names_of(value))


def names_of(value: Any) -> Iterator[tuple[str, bool]]:
    """The placeholders in a template, each with whether it may be left out."""
    if isinstance(value, str):
        for match in PLACEHOLDER.finditer(value):
            yield match[1], bool(match[2])
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from names_of(member)
    elif isinstance(value, list):
        for member in value:
            yield from names_of(member)


def _value(match: re.Match[str], values: Mapping[str, Any]) -> Any:
    value = values.get(match[1])
    if value is None:
        if match[2]:
            return _ABSENT
        raise MissingValue(match[1])
    if isinstance(value, frozenset | set):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _scalar(value: Any) -> str:
    text = scalar_text(value)
    if text is None:
        raise CannotQuote("a list stands where only one value fits")
    return text


def _encoded(text: str) -> str:
    if _UNRESERVED.fullmatch(text):
        return text
    try:
        return quote(text, safe="-._~")
    except UnicodeEncodeError:
        raise CannotQuote("a value is not text that can be sent") from None


def _segment(value: Any) -> str:
    if value is _ABSENT:
        raise CannotQuote("an optional placeholder cannot stand in a path")
    text = _scalar(value)
    if text in ("", ".", "..") or _CONTROL.search(text):
        raise CannotQuote("a value cannot be one segment of a path")
    return _encoded(text)


def query_string(query: Mapping[str, Any]) -> str:
    """The parameters, encoded, with a question mark before them; empty without any."""
    pairs = [
        f"{_encoded(name)}={_encoded(_scalar(one))}"
        for name, value in query.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return "?" + "&".join(pairs) if pairs else ""


def header_value(value: Any) -> str:
    """The text of a header's value. Raises CannotQuote."""
    text = _scalar(value)
    if not text.isascii() or _CONTROL.search(text) or text != text.strip():
        raise CannotQuote("a value cannot stand in a header")
    return text
