"""A recorded call with everything masked that a profile does not itself name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote, unquote

from quietus.core.exchange import Headers, Reply, Request, header
from quietus.describing.masks import Masks, TooMany
from quietus.describing.message_masks import legible, masked_message
from quietus.describing.pairs import Pair
from quietus.profiles.answers import open_body
from quietus.profiles.faults import CannotQuote, NotJson, RequestFault, Unreadable
from quietus.profiles.profile import Profile
from quietus.profiles.protobuf import NotMessage, decode
from quietus.profiles.wire import is_json

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_HEADER: Final = re.compile(r"\$\.headers\.([!#$%&'*+.^_`|~0-9A-Za-z-]+)")
_KIND: Final = re.compile(
    r"\s*([A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+)\s*(;\s*charset=[A-Za-z0-9-]+)?", re.IGNORECASE
)
_EXPECTED: Final = frozenset({"when", "clean", "requires"})
_TEXTS: Final = ("text/", "application/x-ndjson", "application/jsonl", "application/x-jsonlines")


def names_in(document: Any) -> frozenset[str]:
    """Every word that a profile's document has: they are its author's, and nobody's data."""
    return frozenset(word for text in _strings(document) for word in _NAME.findall(text))


def words_in(document: Any) -> frozenset[str]:
    """The values that a profile's conditions wait for: a mask in their place would change what is read."""
    return frozenset(_waited(document, inside=False))


def headers_in(document: Any) -> frozenset[str]:
    """The headers that a profile looks at, in lower case."""
    return frozenset(name.lower() for text in _strings(document) for name in _HEADER.findall(text))


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield str(key)
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def _waited(node: Any, inside: bool) -> Iterator[str]:
    if isinstance(node, str):
        if inside:
            yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from _waited(value, inside or key in _EXPECTED)
    elif isinstance(node, list):
        for value in node:
            yield from _waited(value, inside)


class Masker:
    """Masks the pairs of one recording, all by the same masks. `document` is the profile's."""

    def __init__(self, profile: Profile, document: Any, key: bytes) -> None:
        self._profile = profile
        self._headers = headers_in(document)
        segments = (each for route in profile.routes for each in route.template.segments)
        self._segments = frozenset(text for parameter, text in segments if not parameter)
        self._masks = Masks(key, names_in(document), words_in(document))

    def masked(self, pair: Pair) -> Pair:
        """The pair without anything that was in it in clear. Raises TooMany."""
        request, reply, left = pair.request, pair.reply, pair.left_out
        if request.wire == "grpc":
            return self._call(pair)
        try:
            plain = open_body(reply)
        except Unreadable:
            plain, left = b"", left or "packed in a way that is not read"
        asked = self._body(request.headers, request.body)
        told = self._body(reply.headers, plain)
        if asked is None or told is None:
            left = left or "neither strict JSON nor text"
        return Pair(
            Request(request.method, self._target(request), self._kept(request.headers), asked or b""),
            Reply(reply.status, self._kept(reply.headers), told or b""),
            left_out=left,
        )

    def _call(self, pair: Pair) -> Pair:
        """A call of gRPC, by the descriptor set of the profile."""
        request, reply = pair.request, pair.reply
        rpc = self._profile.descriptors.rpc(request.target) if self._profile.descriptors is not None else None
        asked, told, left = b"", b"", pair.left_out
        shows: dict[str, Any] = {}
        if rpc is None:
            left = left or "the descriptor set lacks the method"
        else:
            try:
                asked = masked_message(request.body, rpc.takes, self._masks)
                told = masked_message(reply.body, rpc.gives, self._masks)
                shows = {"request": legible(decode(asked, rpc.takes).view),
                         "response": legible(decode(told, rpc.gives).view)}  # fmt: skip
            except (NotMessage, CannotQuote):
                asked, told, left = b"", b"", left or "a message that does not decode"
        target = request.target if rpc is not None else "/" + self._masks.text(request.target[1:])
        return Pair(
            Request("POST", target, self._kept(request.headers), asked, "grpc"),
            Reply(reply.status, self._kept(reply.headers), told, self._masks.text(reply.reason), reply.code,
                  self._kept(reply.trailers)),
            pair.expect, left, shows or None,
        )  # fmt: skip

    def _target(self, request: Request) -> str:
        literal = self._literals(request)
        segments = [segment if number in literal else quote(self._masks.text(unquote(segment)), safe="")
                    for number, segment in enumerate(request.path.split("/")[1:])]  # fmt: skip
        pairs = []
        for each in request.query.split("&") if request.query else ():
            name, equals, value = each.partition("=")
            masked = quote(self._masks.text(unquote(value.replace("+", " "))), safe="")
            pairs.append(quote(self._masks.name(unquote(name)), safe="") + equals + masked)
        return "/" + "/".join(segments) + (f"?{'&'.join(pairs)}" if pairs else "")

    def _literals(self, request: Request) -> frozenset[int]:
        """Segments that stay: those that its route has as such; of an unknown call those of any."""
        try:
            route = self._profile.read(request).route
        except RequestFault:
            route = None
        if route is None:
            segments = request.path.split("/")[1:]
            return frozenset(at for at, segment in enumerate(segments) if segment in self._segments)
        return frozenset(at for at, (parameter, _) in enumerate(route.template.segments) if not parameter)

    def _kept(self, headers: Headers) -> Headers:
        out: list[tuple[str, str]] = []
        for name, value in headers:
            lower = name.lower()
            if lower in ("content-type", "accept"):
                found = _KIND.match(value)
                out += [(name, found[0].strip())] if found else []
            elif lower in self._headers and lower not in ("authorization", "cookie", "set-cookie"):
                out.append((name, self._masks.text(value)))
        return tuple(out)

    def _body(self, headers: Headers, body: bytes) -> bytes | None:
        """A body without its values; None for one that is neither JSON nor text."""
        if not body:
            return b""
        kind = header(headers, "content-type") or ""
        try:
            return self._masks.json(body)
        except NotJson:
            if is_json(kind) or not kind.strip().lower().startswith(_TEXTS):
                return None
        return self._masks.lines(body)


__all__ = ["Masker", "TooMany"]
