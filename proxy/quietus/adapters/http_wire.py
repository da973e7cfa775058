"""What HTTP/1 the sidecar accepts from a client, and how an answer's head is written.

The parser (llhttp, through aiohttp) has already refused what is not HTTP. Here is refused what is, and
yet could mean something else to the store than it means to us: two values where one is meant, names
that a gateway behind us folds into others, a method or a path that another header replaces, a switch
of protocols. No detail of a fault quotes what was sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
_PASSED_ON: Final = frozenset({"authorization", "host", "x-request-id"})
_COMMON: Final = frozenset({"authorization", "content-length", "host"})
_JOINED: Final = frozenset({"connection", "te"})
_NEVER_LISTED: Final = frozenset({"authorization", "content-encoding", "content-length", "content-type",
                                  "host", "upgrade"})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^`|~0-9A-Za-z-]+")
_TARGET: Final = re.compile(r"/[!\"$-~]*")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_METHOD_IN_QUERY: Final = re.compile(r"[?&]_method(?:=|&|$)", re.IGNORECASE)
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,128}")
_OPAQUE_ID: Final = re.compile(r"[0-9A-Fa-f-]{8,64}")
REQUEST_ID: Final = "Quietus-Request-Id"
"""The name of a request for our own log, among the headers handed to the gateway; it goes no further."""


class WireFault(Exception):
    """A request that goes no further. `problem` names it; afterwards the connection is closed."""

    def __init__(self, problem: str, detail: str) -> None:
        super().__init__(detail)
        self.problem = problem
        self.detail = detail


def malformed(detail: str) -> WireFault:
    """A fault of the kind that has no second reading."""
    return WireFault("malformed-request", detail)


def too_large(limit: int) -> WireFault:
    """A body beyond the limit."""
    return WireFault("too-large", f"The body is larger than {limit} bytes.")


# What is done with a header: passes, at most once; passes, as often as it comes; is read here, and
# passes; is read here, and stays; belongs to this connection. Plain numbers: each header looks here.
_ONCE, _MANY, _READ, _TAKE, _DROP = range(5)


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


_rules: dict[bytes, tuple[str, str, int]] = {}


def _rule(raw: bytes) -> tuple[str, str, int]:
    """The name as text, in lower case, and what is done with the header."""
    name = raw.decode("latin-1")
    if not _TOKEN.fullmatch(name):
        # An underscore is a token's character; many a gateway makes it a dash, and so another header.
        raise malformed("A header has a name with an underscore or with characters that no name has.")
    lower = name.lower()
    if lower in _REFUSED:
        raise malformed(_REFUSED[lower])
    if lower in _READ_HERE:
        rule = _READ if lower in _PASSED_ON else _TAKE
    elif lower in HOP_BY_HOP or lower == REQUEST_ID.lower():
        rule = _DROP
    else:
        rule = _MANY if lower in _LISTS else _ONCE
    if len(_rules) >= NAMES_MAX:
        _rules.clear()
    _rules[raw] = found = (name, lower, rule)
    return found


def read_head(message: RawRequestMessage) -> Head:
    """Judges everything before the body. Raises WireFault."""
    old = message.version is HttpVersion10  # the parser gives these very objects
    if not old and message.version is not HttpVersion11:
        raise malformed("Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    method, target = message.method, message.path
    if method not in METHODS:
        raise malformed("The method is none that the sidecar forwards.")
    if not _TARGET.fullmatch(target):
        raise malformed("The target must be a path, in origin form, with neither fragment nor raw bytes.")
    if "_method" in target and _METHOD_IN_QUERY.search(target):
        raise malformed("A query must not replace the method.")
    kept: list[tuple[str, str]] = []
    names: list[str] = []
    read: dict[str, str] = {}
    for raw, value in message.raw_headers:
        known = _rules.get(raw)
        name, lower, rule = _rule(raw) if known is None else known
        text = value.decode("latin-1")
        if rule <= _READ:
            kept.append((name, text))
            if rule == _MANY:
                continue
        if rule >= _READ:
            if lower in _JOINED and lower in read:
                read[lower] += "," + text
                continue
            read[lower] = text
        names.append(lower)
    if len(set(names)) != len(names):
        raise WireFault("ambiguous-request", "A header that may come once comes twice.")
    head = Head(kept, read.get("authorization"), old=old, close=message.should_close)
    _read_framing(head, read, method)
    if not read.keys() <= _COMMON:
        _read_rare(head, read)
    return head


def name_request(head: Head, made: str) -> None:
    """Gives the request its name: the client's own, or `made`.

    In the log only a name that can hold nothing but digits is the client's: others may hold a person's.
    """
    sent = head.request_id
    if sent is None:
        head.request_id = made
    head.headers.append((REQUEST_ID, sent if sent is not None and _OPAQUE_ID.fullmatch(sent) else made))


def _read_framing(head: Head, read: dict[str, str], method: str) -> None:
    host = read.get("host")
    if host is None:
        if not head.old:
            raise malformed("HTTP/1.1 wants one Host.")
    elif not _HOST.fullmatch(host):
        raise malformed("The Host cannot be read.")
    length = read.get("content-length")
    if length is not None:
        if not (length.isascii() and length.isdigit()) or len(length) > 18:
            raise malformed("The Content-Length is no number.")
        head.length = int(length)
    chunked = read.get("transfer-encoding")
    if chunked is not None and (head.old or length is not None or chunked.lower() != "chunked"):
        raise malformed("A body has a length or comes in plain chunks.")
    if method in BODILESS_METHODS and (head.length or chunked is not None):
        raise malformed("A request of this method has no body.")


def _read_rare(head: Head, read: dict[str, str]) -> None:
    if (expect := read.get("expect")) is not None:
        if expect.lower() != "100-continue":
            raise malformed("Nothing but 100-continue can be expected.")
        head.expects_continue = not head.old
    if (te := read.get("te")) is not None and not _tokens(te) <= {"trailers", "chunked"}:
        raise malformed("No transfer coding but chunked is spoken here.")
    if (sent_id := read.get("x-request-id")) is not None and _REQUEST_ID.fullmatch(sent_id):
        head.request_id = sent_id
    if (connection := read.get("connection")) is not None:
        _drop_listed(head, _tokens(connection))


def _drop_listed(head: Head, listed: set[str]) -> None:
    """Whatever `Connection` lists ends here, unless it would change what the request means."""
    if not listed <= {"close", "keep-alive"}:
        if listed & _NEVER_LISTED:
            raise malformed("Connection lists a header that belongs to the request.")
        head.headers[:] = [pair for pair in head.headers if pair[0].lower() not in listed]


def _tokens(value: str) -> set[str]:
    return {part.strip().lower() for part in value.split(",")} - {""}


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
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n"]
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
