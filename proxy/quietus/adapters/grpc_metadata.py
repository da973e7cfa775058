"""Metadata of gRPC calls, as headers of an exchange and back.

In an exchange a value is text; one whose key ends in `-bin` is bytes, and stands there in base64, as it does
on the wire. What belongs to one connection (`grpc-…`, `te`, the framing) is left out both ways.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Final

from quietus.core.exchange import Headers

Metadata = tuple[tuple[str, str | bytes], ...]

TIMEOUT: Final = "grpc-timeout"
"""The header of an exchange that says how long the client waits: milliseconds, such as `1500m`."""
_HOP: Final = frozenset(
    {"te", "content-type", "user-agent", "host", "connection", "keep-alive", "transfer-encoding",
     "content-length", "proxy-connection", "upgrade", "grpclb_client_stats"}
)  # fmt: skip
_OWN: Final = frozenset({"grpc-trace-bin", "grpc-tags-bin", "grpc-status-details-bin"})
"""Keys that begin like those of the protocol and are the application's all the same."""
_KEY: Final = re.compile(r"[0-9a-z_.-]+")
_VALUE: Final = re.compile(r"[ -~]*")


class UnfitMetadata(Exception):
    """Metadata that cannot be handed on as it is. Quotes nothing."""


def headers_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> Headers:
    """The metadata of a call as headers. Raises UnfitMetadata where a line would break, or a key is none."""
    found: list[tuple[str, str]] = []
    for key, value in metadata or ():
        if _of_connection(key):
            continue
        if _KEY.fullmatch(key) is None:
            raise UnfitMetadata("a key of the metadata is not lower case letters, digits, and . _ -")
        if isinstance(value, bytes):
            found.append((key, b64encode(value).decode("ascii")))
        elif _VALUE.fullmatch(value) is None:
            raise UnfitMetadata("a value of the metadata holds what is not printable ASCII")
        else:
            found.append((key, value))
    return tuple(found)


def metadata_of(headers: Headers) -> Metadata:
    """Headers as metadata, in their order; keys in lower case. Raises UnfitMetadata."""
    found: list[tuple[str, str | bytes]] = []
    for name, value in headers:
        key = name.lower()
        if _of_connection(key) or _KEY.fullmatch(key) is None:
            continue
        if key.endswith("-bin"):
            found.append((key, _bytes(value)))
        elif _VALUE.fullmatch(value) is not None:
            found.append((key, value))
    return tuple(found)


def _of_connection(key: str) -> bool:
    return key in _HOP or key.startswith(":") or (key.startswith("grpc-") and key not in _OWN)


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise UnfitMetadata("the value of a key that ends in -bin is not base64") from None


def timeout_header(seconds: float | None) -> Headers:
    """How long the client still waits, as a header; none where it waits for ever."""
    return () if seconds is None else ((TIMEOUT, f"{max(0, round(seconds * 1000))}m"),)


def timeout_in(headers: Headers) -> float | None:
    """The seconds of that header, or None."""
    for name, value in headers:
        if name == TIMEOUT and value.endswith("m") and value[:-1].isdigit():
            return int(value[:-1]) / 1000
    return None
