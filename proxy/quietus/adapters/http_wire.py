"""What HTTP/1 the sidecar accepts from a client, and how an answer's head is written.

The parser (llhttp, through aiohttp) has already refused what is not HTTP. Here is refused what is, and
yet could mean something else to the store than it means to us: two values where one is meant, names
that a gateway behind us folds into others, a method or a path that another header replaces, a switch
of protocols. No detail of a fault quotes what was sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final

from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage

from quietus.core.exchange import Headers

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BODILESS_METHODS: Final = frozenset({"GET", "HEAD"})
BODILESS_STATUSES: Final = frozenset({204, 304})
NAMES_MAX: Final = 1024
"""How many spellings of header names are remembered; the memory is emptied when it is full."""

HOP_BY_HOP: Final = frozenset({"connection", "keep-alive", "proxy-connection", "proxy-authenticate",
                               "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"})
_LISTS: Final = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "baggage", "cache-control",
    "content-language", "cookie", "forwarded", "if-match", "if-none-match", "link", "pragma", "prefer",
    "tracestate", "via", "warning", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
})  # fmt: skip
_REFUSED: Final = {
    "upgrade": "The sidecar switches to no other protocol.",
    "http2-settings": "The sidecar switches to no other protocol.",
    "x-http-method": "A header must not replace the method.",
    "x-http-method-override": "A header must not replace the method.",
    "x-method-override": "A header must not replace the method.",
    "x-original-url": "A header must not replace the target.",
    "x-rewrite-url": "A header must not replace the target.",
}
_READ_HERE: Final = frozenset({"authorization", "connection", "content-length", "expect", "host", "te",
                               "transfer-encoding", "x-request-id"})
_NEVER_LISTED: Final = frozenset({"authorization", "content-encoding", "content-length", "content-type",
                                  "host", "upgrade"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(r"/[!\"$-~]*")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_METHOD_IN_QUERY: Final = re.compile(r"[?&]_method(?:=|&|$)", re.IGNORECASE)
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")


class WireFault(Exception):
    """A request that goes no further. `problem` names it; afterwards the connection is closed."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


def malformed(detail: str) -> WireFault:
    """A fault of the kind that has no second reading."""
    return WireFault("malformed-request", detail)


class _Rule(Enum):
    ONCE = "passes, at most once"
    MANY = "passes, as often as it comes"
    DROP = "belongs to this connection"
    HERE = "is read here"


@dataclass(slots=True)
class Head:
    """What the listener itself has to know of a request, and the headers that go on."""

    headers: list[tuple[str, str]]
    authorization: str | None = None
    request_id: str | None = None
    length: int = 0
    """As declared; 0 when the body comes in chunks or there is none."""
    expects_continue: bool = False
    close: bool = False
    old: bool = False
    """HTTP/1.0: no chunks in the answer."""


_rules: dict[bytes, tuple[str, str, _Rule]] = {}


def _rule(raw: bytes) -> tuple[str, str, _Rule]:
    """The name as text, in lower case, and what is done with the header."""
    name = raw.decode("latin-1")
    if not _TOKEN.fullmatch(name):
        # An underscore is a token's character; many a gateway makes it a dash, and so another header.
        raise malformed("A header has a name with an underscore or with characters that no name has.")
    lower = name.lower()
    if lower in _REFUSED:
        raise malformed(_REFUSED[lower])
    if lower in _READ_HERE:
        rule = _Rule.HERE
    elif lower in HOP_BY_HOP:
        rule = _Rule.DROP
    else:
        rule = _Rule.MANY if lower in _LISTS else _Rule.ONCE
    if len(_rules) >= NAMES_MAX:
        _rules.clear()
    _rules[raw] = found = (name, lower, rule)
    return found


def read_head(message: RawRequestMessage) -> Head:
    """Judges everything before the body. Raises WireFault."""
    version = message.version
    if version != HttpVersion11 and version != HttpVersion10:
        raise malformed("Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    if message.method not in METHODS:
        raise malformed("The method is none that the sidecar forwards.")
    _judge_target(message.path)
    kept: list[tuple[str, str]] = []
    head = Head(kept, close=message.should_close, old=version == HttpVersion10)
    seen: set[str] = set()
    read: dict[str, bytes] = {}
    for raw, value in message.raw_headers:
        name, lower, rule = _rules.get(raw) or _rule(raw)
        if rule is _Rule.MANY:
            kept.append((name, value.decode("latin-1")))
            continue
        if lower in seen:
            if lower == "connection" or lower == "te":
                read[lower] += b"," + value
                continue
            raise WireFault("ambiguous-request", "A header that may come once comes twice.")
        seen.add(lower)
        if rule is _Rule.ONCE:
            kept.append((name, value.decode("latin-1")))
        elif rule is _Rule.HERE:
            read[lower] = value
            if lower == "authorization" or lower == "host" or lower == "x-request-id":
                kept.append((name, value.decode("latin-1")))
    _read_special(head, read, message.method)
    return head


def _judge_target(target: str) -> None:
    if not _TARGET.fullmatch(target):
        raise malformed("The target must be a path, in origin form, with neither fragment nor raw bytes.")
    if "_method" in target and _METHOD_IN_QUERY.search(target):
        raise malformed("A query must not replace the method.")


def _read_special(head: Head, read: dict[str, bytes], method: str) -> None:
    host = read.get("host")
    if host is None:
        if not head.old:
            raise malformed("HTTP/1.1 wants one Host.")
    elif not _HOST.fullmatch(host.decode("latin-1")):
        raise malformed("The Host cannot be read.")
    if (length := read.get("content-length")) is not None:
        if not length.isdigit() or len(length) > 18:
            raise malformed("The Content-Length is no number.")
        head.length = int(length)
    chunked = read.get("transfer-encoding")
    if chunked is not None and (head.old or length is not None or chunked.lower() != b"chunked"):
        raise malformed("A body has a length or comes in plain chunks.")
    if method in BODILESS_METHODS and (head.length or chunked is not None):
        raise malformed("A request of this method has no body.")
    if (credentials := read.get("authorization")) is not None:
        head.authorization = credentials.decode("latin-1")
    if (expect := read.get("expect")) is not None:
        if expect.lower() != b"100-continue":
            raise malformed("Nothing but 100-continue can be expected.")
        head.expects_continue = not head.old
    if (te := read.get("te")) is not None and not _tokens(te) <= {"trailers", "chunked"}:
        raise malformed("No transfer coding but chunked is spoken here.")
    if (sent_id := read.get("x-request-id")) is not None:
        text = sent_id.decode("latin-1")
        head.request_id = text if _REQUEST_ID.fullmatch(text) else None
    if (connection := read.get("connection")) is not None:
        _drop_listed(head, _tokens(connection))


def _drop_listed(head: Head, listed: set[str]) -> None:
    """Whatever `Connection` lists ends here, unless it would change what the request means."""
    if not listed <= {"close", "keep-alive"}:
        if listed & _NEVER_LISTED:
            raise malformed("Connection lists a header that belongs to the request.")
        head.headers[:] = [pair for pair in head.headers if pair[0].lower() not in listed]


def _tokens(value: bytes) -> set[str]:
    return {part.strip().lower() for part in value.decode("latin-1").split(",")} - {""}


# Answers

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES: Final = {
    int(status): f"HTTP/1.1 {int(status)} {status.phrase}\r\n" for status in HTTPStatus if status >= 200
}
_PASS, _SKIP, _LENGTH, _ID = range(4)
_fates: dict[str, int] = {}


def _fate(name: str) -> int:
    lower = name.lower()
    fate = (_LENGTH if lower == "content-length" else _ID if lower == "x-request-id"
            else _SKIP if lower in HOP_BY_HOP else _PASS)  # fmt: skip
    if len(_fates) >= NAMES_MAX:
        _fates.clear()
    _fates[name] = fate
    return fate


def declared_length(headers: Headers) -> int | None:
    """The Content-Length among `headers`, or None."""
    for name, value in headers:
        if name.lower() == "content-length" and value.isdecimal():
            return int(value)
    return None


def answer_head(
    status: int,
    headers: Headers,
    *,
    length: int | None,
    declare: bool = False,
    close: bool = False,
    request_id: str | None = None,
) -> bytes:
    """The bytes before a body of `length` bytes; None: in chunks.

    `declare` leaves the length to the headers, as an answer to HEAD or a 304 has it.
    Raises ValueError where a header would break out of its line.
    """
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} -\r\n"]
    declared: str | None = None
    for name, value in headers:
        fate = _fates.get(name)
        if fate is None:
            fate = _fate(name)
        if fate == _PASS:
            lines.append(f"{name}: {value}\r\n")
        elif fate == _LENGTH:
            declared = value
        elif fate == _ID:
            request_id = value
    if request_id is not None:
        lines.append(f"X-Request-Id: {request_id}\r\n")
    if declare:
        if declared is not None and status != 204:
            lines.append(f"Content-Length: {declared}\r\n")
    elif length is None:
        lines.append("Transfer-Encoding: chunked\r\n")
    else:
        lines.append(f"Content-Length: {length}\r\n")
    if close:
        lines.append("Connection: close\r\n")
    return seal_head(lines)


def seal_head(lines: list[str]) -> bytes:
    """The lines and the empty one that ends them. Raises ValueError where a line holds a line's end."""
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise ValueError("a header holds a line's end")
    return (text + "\r\n").encode("latin-1")
