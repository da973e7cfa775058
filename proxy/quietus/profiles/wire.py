"""Paths and queries of requests: canonical or refused, decoded strictly, matched exactly.

A literal segment matches only byte for byte; a parameter may carry percent-escapes of what an id
may hold. What a store could read in two ways never gets as far as a route.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from quietus.core.exchange import Headers, header
from quietus.profiles.faults import CompileFault, RequestFault
from quietus.profiles.jsonpaths import Repeated

_PATH: Final = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})*)+")
_DOTS: Final = re.compile(r"(?:\.|%2[eE]){1,2}")
_QUERY: Final = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,=:@/?\[\]{}|^`\"<> -]|%[0-9A-Fa-f]{2})*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PARAMETER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\.\.\.)?\}")
_LITERAL: Final = re.compile(r"[A-Za-z0-9._~!$&'()*+,=:@-]+")


def canonical_segments(path: str) -> list[str]:
    """The raw segments of a path that has one meaning. Raises RequestFault."""
    if _PATH.fullmatch(path) is None or "//" in path:
        raise RequestFault("malformed-request", "the path is not in canonical form")
    segments = path.split("/")[1:]
    for segment in segments:
        if segment and segment[0] in ".%" and _DOTS.fullmatch(segment):
            raise RequestFault("malformed-request", "the path holds a dot segment")
    return segments


def decode_segment(segment: str) -> str:
    """The text of a parameter. Raises RequestFault where a store could see something else."""
    if "%" not in segment:
        return segment
    text = _unquoted(segment, "a path parameter")
    if "/" in text or "\\" in text or text in (".", "..") or _CONTROL.search(text):
        raise RequestFault("malformed-request", "a path parameter holds what no identifier may hold")
    return text


def parse_query(query: str) -> dict[str, Any]:
    """The parameters; one that comes twice is `Repeated`. Raises RequestFault."""
    if not query:
        return {}
    if _QUERY.fullmatch(query) is None:
        raise RequestFault("malformed-request", "the query is not in canonical form")
    found: dict[str, Any] = {}
    for pair in query.split("&"):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        name, value = _plain(name), _plain(value)
        before = found.get(name)
        if before is None:
            found[name] = value
        elif type(before) is Repeated:
            before.append(value)
        else:
            found[name] = Repeated([before, value])
    return found


def header_fields(headers: Headers) -> dict[str, Any]:
    """The headers by lower-case name; one that comes twice is `Repeated`."""
    found: dict[str, Any] = {}
    for name, value in headers:
        name = name.lower()
        before = found.get(name)
        if before is None:
            found[name] = value
        elif type(before) is Repeated:
            before.append(value)
        else:
            found[name] = Repeated([before, value])
    return found


def check_json_request(headers: Headers) -> None:
    """Refuses a body that says it is not plain JSON. Raises RequestFault."""
    coding = header(headers, "content-encoding")
    if coding is not None and coding.strip().lower() not in ("", "identity"):
        raise RequestFault("malformed-request", "a compressed request is not read here", status=415)
    kind = header(headers, "content-type")
    if kind is not None and not is_json(kind):
        raise RequestFault("malformed-request", "this route takes JSON in UTF-8")


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON in UTF-8."""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        return False
    charset = re.search(r"charset\s*=\s*\"?([^\s\";]+)", parameters, re.IGNORECASE)
    return charset is None or charset[1].lower() in ("utf-8", "utf8")


def _plain(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    text = _unquoted(text, "a query parameter")
    if _CONTROL.search(text.replace("\n", "").replace("\t", "").replace("\r", "")):
        raise RequestFault("malformed-request", "a query parameter holds a control character")
    return text


def _unquoted(text: str, what: str) -> str:
    try:
        return unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise RequestFault("malformed-request", f"{what} is not UTF-8") from None


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """A route's path: literal segments, parameters, perhaps the rest."""

    segments: tuple[tuple[bool, str], ...]
    """(whether it is a parameter, its literal or its name)."""
    rest: str | None

    def match(self, raw: list[str]) -> dict[str, str] | None:
        """The parameters, decoded, if the raw segments are this path. Raises RequestFault."""
        count = len(self.segments)
        if len(raw) != count if self.rest is None else len(raw) <= count:
            return None
        for (parameter, text), segment in zip(self.segments, raw, strict=False):
            if not segment if parameter else text != segment:
                return None
        found = {
            text: decode_segment(segment)
            for (parameter, text), segment in zip(self.segments, raw, strict=False)
            if parameter
        }
        if self.rest is not None:
            found[self.rest] = "/".join(decode_segment(segment) for segment in raw[count:])
        return found


def compile_template(path: str, place: tuple[str | int, ...]) -> PathTemplate:
    """The path of a route, compiled. Raises CompileFault."""
    segments: list[tuple[bool, str]] = []
    rest = None
    raw = path.split("/")[1:]
    for number, segment in enumerate(raw):
        parameter = _PARAMETER.fullmatch(segment)
        if parameter and parameter[2]:
            if number != len(raw) - 1:
                raise CompileFault(place, "{name...} must be the last segment of a path")
            rest = parameter[1]
        elif parameter:
            segments.append((True, parameter[1]))
        elif _LITERAL.fullmatch(segment) or (not segment and number == len(raw) - 1):
            segments.append((False, segment))
        else:
            raise CompileFault(
                place, "a segment is neither plain text nor one {name}", "escapes do not match literals"
            )
    return PathTemplate(tuple(segments), rest)


def same_shape(one: PathTemplate, other: PathTemplate) -> bool:
    """Whether two paths match the same requests."""
    return _shape(one) == _shape(other)


def _shape(template: PathTemplate) -> tuple[tuple[str | None, ...], bool]:
    segments = tuple(None if parameter else text for parameter, text in template.segments)
    return segments, template.rest is not None
