"""Recorded calls: a request beside its answer, a JSON object a line, and what a profile is to make of it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from quietus.core.exchange import GRPC_STATUS, Headers, Reply, Request

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
    shows: Mapping[str, Any] | None = None
    """Of gRPC: its two messages as JSON, for people; what counts are their bytes."""


def written(pair: Pair) -> str:
    """The pair as one line. Bodies of HTTP are text, messages of gRPC base64."""
    request, reply = pair.request, pair.reply
    asked: dict[str, Any]
    answered: dict[str, Any]
    if request.wire == "grpc":
        asked = {"grpc": request.target, "metadata": _listed(request.headers),
                 "message": _packed(request.body)}  # fmt: skip
        answered = {"code": reply.code, "details": reply.reason, "metadata": _listed(reply.headers),
                    "trailers": _listed(reply.trailers), "message": _packed(reply.body)}  # fmt: skip
    else:
        asked = {"method": request.method, "target": request.target, "headers": _listed(request.headers),
                 "body": request.body.decode()}  # fmt: skip
        answered = {"status": reply.status, "headers": _listed(reply.headers), "body": reply.body.decode()}
    told: dict[str, Any] = {"request": asked, "response": answered}
    if pair.shows is not None:
        told["shows"] = dict(pair.shows)
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
            hint = (
                'it is {"request": {method, target, headers, body}, "response": {status, headers, body}}, or '
                'of gRPC {"request": {grpc, metadata, message}, "response": {code, details, metadata, '
                "trailers, message}} with messages in base64"
            )
            raise NoPair(f"line {number} is no recorded call: {hint}") from None


def _pair(told: Any) -> Pair:
    asked, answered = told["request"], told["response"]
    expect = told.get("expect")
    if expect is not None and not isinstance(expect, dict):
        raise TypeError
    left_out, shows = str(told.get("left_out", "")), told.get("shows")
    if "grpc" in asked:
        code = str(answered["code"])
        return Pair(
            Request("POST", str(asked["grpc"]), _headers(asked, "metadata"), _unpacked(asked), "grpc"),
            Reply(GRPC_STATUS[code], _headers(answered, "metadata"), _unpacked(answered),
                  str(answered.get("details", "")), code, _headers(answered, "trailers")),
            expect, left_out, shows,
        )  # fmt: skip
    return Pair(
        Request(str(asked["method"]), str(asked["target"]), _headers(asked), _body(asked)),
        Reply(int(answered["status"]), _headers(answered), _body(answered)),
        expect,
        left_out,
    )


def _listed(headers: Headers) -> list[list[str]]:
    return [list(each) for each in headers]


def _packed(message: bytes) -> str:
    return b64encode(message).decode("ascii")


def _unpacked(side: Mapping[str, Any]) -> bytes:
    return b64decode(str(side.get("message") or ""), validate=True)


def _headers(side: Mapping[str, Any], name: str = "headers") -> Headers:
    given = side.get(name) or []
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
                Reply(int(answered["status"]), _uncoded(_named(answered)),
                      str(content.get("text") or "").encode() if plain else b""),
                left_out="" if plain else "binary",
            )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NoPair("this is no HTTP archive (HAR 1.2)") from None


def _named(side: Mapping[str, Any]) -> Headers:
    return tuple((str(each["name"]), str(each["value"])) for each in side.get("headers") or ())


def _uncoded(headers: Headers) -> Headers:
    # An archive holds bodies without their content coding.
    return tuple(pair for pair in headers if pair[0].lower() != "content-encoding")
