"""A client's recall, asked for an answer that has caught up: the same request with a few places set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from quietus.core.exchange import Request
from quietus.profiles.codec import decode_exact, encode_json
from quietus.profiles.descriptors import Rpc
from quietus.profiles.messages import with_fields
from quietus.profiles.protobuf import decode
from quietus.profiles.templates import fill, header_value, put, query_string, set_steps

_UNCHANGED: Final = object()


def strengthened(
    request: Request, sets: Mapping[str, Any], values: Mapping[str, Any], rpc: Rpc | None
) -> Request:
    """The request with these places set. Raises CannotQuote, MissingValue."""
    if request.wire == "grpc":
        return _message(request, sets, values, rpc)
    path, _, raw = request.target.partition("?")
    query: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    body = _UNCHANGED
    for target, value in sets.items():
        if target.startswith("$.body") and body is _UNCHANGED:
            body = decode_exact(request.body) if request.body else {}
        changed = put(target, fill(value, values), query, headers, None if body is _UNCHANGED else body)
        body = body if body is _UNCHANGED else changed
    return _rewritten(request, path, raw, query, headers, body)


def _message(
    request: Request, sets: Mapping[str, Any], values: Mapping[str, Any], rpc: Rpc | None
) -> Request:
    fields: dict[tuple[str, ...], Any] = {}
    headers = request.headers
    for target, value in sets.items():
        root, *steps = set_steps(target)
        filled = fill(value, values)
        if root == "headers":
            kept = tuple(pair for pair in headers if pair[0].lower() != steps[0].lower())
            headers = (*kept, (steps[0].lower(), header_value(filled)))
        elif root == "body":
            fields[tuple(steps)] = filled
    if not fields or rpc is None:
        return replace(request, headers=headers)
    return replace(request, headers=headers, body=with_fields(decode(request.body, rpc.takes), fields))


def _rewritten(
    request: Request, path: str, raw: str, query: dict[str, Any], headers: dict[str, Any], body: Any
) -> Request:
    """The request with these parameters, headers and body in place of its own."""
    extra = query_string(query)[1:]
    kept = [pair for pair in raw.split("&") if pair and pair.partition("=")[0] not in query]
    together = "&".join([*kept, *([extra] if extra else [])])
    named = {name.lower() for name in headers}
    pairs = tuple(pair for pair in request.headers if pair[0].lower() not in named)
    pairs = (*pairs, *((name, header_value(value)) for name, value in headers.items()))
    data = request.body
    if body is not _UNCHANGED:
        data = encode_json(body)
        pairs = tuple(pair for pair in pairs if pair[0].lower() != "content-length")
        pairs = (*pairs, ("Content-Length", str(len(data))))
    target = f"{path}?{together}" if together else path
    return replace(request, target=target, headers=pairs, body=data)
