"""The canonical memory tool on the wire: bytes in, bytes out.

`docs/memory-tool.openapi.yaml` describes it. Reading is strict enough to be honest about mistakes
and says where they are, without repeating what was sent; answers come as rows, in columns, as
server-sent events, gzip-encoded, as the switches say.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import orjson

from quietus.core.exchange import Headers, Reply, Request, header
from quietus.legacy.embedding import DIMENSIONS, Vector, from_dense
from quietus.legacy.faults import Faults
from quietus.legacy.records import Predicate
from quietus.legacy.writing import Draft

BODY_MAX: Final = 4 * 1024 * 1024
BATCH_MAX: Final = 1000
LIMIT_MAX: Final = 1000


class BadRequest(Exception):
    """A request that the store cannot read; `message` names the field and what it should be."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class Fields:
    """The members of a JSON object or query, taken out one by one by type."""

    def __init__(self, members: Mapping[str, Any], where: str) -> None:
        self._members = dict(members)
        self._where = where

    def text(self, name: str) -> str | None:
        """A string, or None where it is absent or null."""
        value = self._members.pop(name, None)
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"{self._where}{name}: must be a string")
        return value

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or None where it is absent or null."""
        value = self._members.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise BadRequest(f"{self._where}{name}: must be an array of strings")
        return tuple(value)

    def number(self, name: str, low: float, high: float) -> float | None:
        """A number between two bounds, or None where it is absent or null."""
        value = self._members.pop(name, None)
        if isinstance(value, str):
            value = _digits(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise BadRequest(f"{self._where}{name}: must be a number from {low:g} to {high:g}")
        return value

    def member(self, name: str) -> Any:
        """Any member, or None."""
        return self._members.pop(name, None)

    def object(self, name: str) -> Fields:
        """An object's fields; absent or null is an empty one."""
        value = self._members.pop(name, None)
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"{self._where}{name}: must be an object")
        return Fields(value or {}, f"{self._where}{name}.")

    def done(self) -> None:
        """Raises BadRequest where members are left that nobody asked for."""
        if self._members:
            raise BadRequest(f"{self._where or 'the request'} has members that this route does not know")


def _digits(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def body_of(request: Request) -> Any:
    """The JSON document of a request."""
    if len(request.body) > BODY_MAX:
        raise BadRequest("the body is larger than 4 MiB", 413)
    if (header(request.headers, "content-encoding") or "identity").lower() != "identity":
        raise BadRequest("the body must not be encoded", 415)
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None


def fields_of(request: Request) -> Fields:
    """The members of a request's JSON object."""
    document = body_of(request)
    if not isinstance(document, dict):
        raise BadRequest("the body must be a JSON object")
    return Fields(document, "")


def query_of(request: Request) -> Fields:
    """The members of a request's query; one that is repeated is refused."""
    if not request.query:
        return Fields({}, "")
    try:
        pairs = parse_qsl(request.query, keep_blank_values=True, errors="strict", max_num_fields=50)
    except ValueError:
        raise BadRequest("the query cannot be read") from None
    if len(dict(pairs)) != len(pairs):
        raise BadRequest("a query parameter is repeated")
    return Fields(dict(pairs), "")


def segments_of(request: Request) -> tuple[str, ...]:
    """The decoded segments of the path."""
    path = request.path
    if "%" not in path:
        return tuple(path.split("/")[1:])
    try:
        return tuple(unquote(part, errors="strict") for part in path.split("/")[1:])
    except UnicodeDecodeError:
        raise BadRequest("the path is not UTF-8") from None


def draft_of(fields: Fields) -> Draft:
    """A memory to be written."""
    value = fields.text("value")
    if value is None:
        raise BadRequest("value: is required and must be a string")
    retention = fields.object("retention")
    key = fields.text("key")
    if key == "":
        raise BadRequest("key: must not be empty")
    draft = Draft(
        value=value,
        key=key,
        tenant=fields.text("tenant"),
        subject=retention.text("subject"),
        purpose=retention.text("purpose"),
        ttl=retention.number("ttl", 0, 1e10),
        scope=fields.text("scope"),
        derived_from=fields.texts("derived_from") or (),
        salience=fields.number("salience", 0, 1),
    )
    retention.done()
    fields.done()
    return draft


def predicate_of(fields: Fields) -> Predicate:
    """What a list, a recall or a reset is about."""
    purpose = fields.text("purpose")
    return Predicate(
        tenant=fields.text("tenant"),
        subject=fields.text("subject"),
        scope=fields.text("scope"),
        purposes=None if purpose is None else frozenset({purpose}),
    )


def vector_of(fields: Fields) -> Vector | None:
    """The vector of a recall."""
    numbers = fields.member("vector")
    if numbers is None:
        return None
    if (
        not isinstance(numbers, list)
        or len(numbers) != DIMENSIONS
        or not all(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers)
    ):
        raise BadRequest(f"vector: must be an array of {DIMENSIONS} numbers")
    return from_dense(numbers)


def reply(status: int, document: Any, faults: Faults) -> Reply:
    """A JSON answer."""
    return _encode(status, "application/json", _written(document), faults)


def _written(document: Any) -> bytes:
    """Compact JSON, as most services write it."""
    try:
        return orjson.dumps(document)
    except TypeError:  # an integer or half of a surrogate pair that a client wrote, and orjson does not
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def rows_reply(rows: list[dict[str, Any]], extra: Mapping[str, Any], faults: Faults) -> Reply:
    """An answer of rows, or of parallel columns."""
    results: Any = rows
    if faults.columnar:
        names = sorted({name for row in rows for name in row} | {"key", "value", "subject"})
        results = {name: [row.get(name) for row in rows] for name in names}
    return reply(200, {"results": results, **extra}, faults)


def events_reply(rows: list[dict[str, Any]], faults: Faults) -> Reply:
    """A stream with one event a row, and one that ends it."""
    events = [b"data: " + _written(row) + b"\n\n" for row in rows]
    body = b"".join([*events, b"event: done\ndata: {}\n\n"])
    return _encode(200, "text/event-stream", body, faults)


def lines_reply(rows: list[dict[str, Any]], faults: Faults) -> Reply:
    """One JSON row a line."""
    body = b"".join(_written(row) + b"\n" for row in rows)
    return _encode(200, "application/x-ndjson", body, faults)


def _encode(status: int, kind: str, body: bytes, faults: Faults) -> Reply:
    headers: Headers = (("Content-Type", kind),)
    if faults.gzip:
        body = gzip.compress(body, compresslevel=1, mtime=0)
        headers = (*headers, ("Content-Encoding", "gzip"))
    return Reply(status, (*headers, ("Content-Length", str(len(body)))), body)
