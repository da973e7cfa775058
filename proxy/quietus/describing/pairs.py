"""Recorded calls: a request beside its answer, a JSON object a line, and what a profile is to make of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from quietus.core.exchange import Headers, Reply, Request

LINE_MAX: Final = 16 << 20
PAIRS_MAX: Final = 10_000


class NoPair(ValueError):
    """A line or a document that holds no recorded call; the message quotes nothing of it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One recorded call."""

    request: Request
    reply: Reply
    expect: Mapping[str, Any] | None = None
    """What a profile was found to make of it, and is to make of it again."""
    left_out: str = ""
    """Why a body was not recorded."""


def written(pair: Pair) -> str:
    """The pair as one line. Bodies are text."""
    told: dict[str, Any] = {
        "request": {
            "method": pair.request.method, "target": pair.request.target,
            "headers": [list(each) for each in pair.request.headers], "body": pair.request.body.decode(),
        },
        "response": {
            "status": pair.reply.status, "headers": [list(each) for each in pair.reply.headers],
            "body": pair.reply.body.decode(),
        },
    }  # fmt: skip
    if pair.left_out:
        told["left_out"] = pair.left_out
    if pair.expect is not None:
        told["expect"] = dict(pair.expect)
    return json.dumps(told, ensure_ascii=False)


def pairs_of(lines: Iterable[str]) -> Iterator[Pair]:
    """The pairs of a file's lines. Raises NoPair with the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(line) > LINE_MAX or number > PAIRS_MAX:
            raise NoPair(f"line {number}: more than is read; give a shorter recording")
        try:
            yield _pair(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            hint = 'it is {"request": {method, target, headers, body}, "response": {status, headers, body}}'
            raise NoPair(f"line {number} is no recorded call: {hint}") from None


def _pair(told: Any) -> Pair:
    asked, answered = told["request"], told["response"]
    expect = told.get("expect")
    if expect is not None and not isinstance(expect, dict):
        raise TypeError
    return Pair(
        Request(str(asked["method"]), str(asked["target"]), _headers(asked), _body(asked)),
        Reply(int(answered["status"]), _headers(answered), _body(answered)),
        expect,
        str(told.get("left_out", "")),
    )


def _headers(side: Mapping[str, Any]) -> Headers:
    given = side.get("headers") or []
    pairs = given.items() if isinstance(given, dict) else given
    return tuple((str(name), str(value)) for name, value in pairs)


def _body(side: Mapping[str, Any]) -> bytes:
    body = side.get("body")
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def of_archive(document: Any) -> Iterator[Pair]:
    """The calls of an HTTP archive (HAR 1.2), as browsers and proxies save them. Raises NoPair."""
    try:
        entries = document["log"]["entries"]
        for each in entries[:PAIRS_MAX]:
            asked, answered = each["request"], each["response"]
            url = urlsplit(asked["url"])
            target = (url.path or "/") + (f"?{url.query}" if url.query else "")
            content = answered.get("content") or {}
            plain = content.get("encoding") is None
            sent = str((asked.get("postData") or {}).get("text", "")).encode()
            yield Pair(
                Request(str(asked["method"]), target, _named(asked), sent),
                Reply(int(answered["status"]), _unpacked(_named(answered)),
                      str(content.get("text") or "").encode() if plain else b""),
                left_out="" if plain else "binary",
            )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NoPair("this is no HTTP archive (HAR 1.2)") from None


def _named(side: Mapping[str, Any]) -> Headers:
    return tuple((str(each["name"]), str(each["value"])) for each in side.get("headers") or ())


def _unpacked(headers: Headers) -> Headers:
    # An archive holds bodies without their content coding.
    return tuple(pair for pair in headers if pair[0].lower() != "content-encoding")
