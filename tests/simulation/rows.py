"""Reading answers for the judge: rows and canary tokens, without the code under test."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from quietus.core.exchange import Headers, header

TOKEN: Final = re.compile(r"zq\d+w\d+")


@dataclass(frozen=True)
class Row:
    """One memory as an answer shows it."""

    key: str | None
    subject: str | None
    tenant: str | None
    path: tuple[str, ...] | None
    sources: tuple[str, ...]
    resolved: Any
    tokens: frozenset[str]
    text: str

    @property
    def identity(self) -> tuple[str | None, str | None, frozenset[str]]:
        return self.key, self.subject, self.tokens


@dataclass(frozen=True)
class Read:
    """The rows of an answer, and the tokens that stand outside of any."""

    rows: tuple[Row, ...]
    loose: frozenset[str]
    readable: bool = True
    keyed: tuple[str, ...] = ()
    """The key that it names outside of rows."""
    merged: tuple[str, ...] = ()
    """The key of the record that the store says to have made one with what was written."""
    columns: bool = False
    """It is laid out in columns."""


def tokens_of(text: str) -> frozenset[str]:
    return frozenset(TOKEN.findall(text))


def split(path: str | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(path.rstrip("/").split("/"))


def row_of(raw: dict[str, Any]) -> Row:
    text = orjson.dumps(raw).decode()
    return Row(
        raw.get("key"), raw.get("subject"), raw.get("tenant"), split(raw.get("scope")),
        tuple(raw.get("derived_from") or ()), raw.get("provenance_resolved", True), tokens_of(text), text,
    )  # fmt: skip


def read(headers: Headers, body: bytes) -> Read:
    """Every row of an answer of the memory tool, however it is laid out."""
    return _read(header(headers, "content-type") or "", header(headers, "content-encoding") or "", body)


# Most answers are read twice: when the store gives them, and when they have passed.
@lru_cache(maxsize=512)
def _read(kind: str, coding: str, body: bytes) -> Read:
    if coding.lower() == "gzip":
        try:
            body = gzip.decompress(body)
        except (OSError, EOFError):
            return Read((), frozenset(), readable=False)
    text = body.decode("utf-8", "replace")
    document = _document(kind, text)
    try:
        rows = tuple(row_of(raw) for raw in _raw_rows(kind, text, document))
    except ValueError:
        return Read((), tokens_of(text), readable=False)
    inside: set[str] = set()
    for row in rows:
        inside |= row.tokens
    columns = bool(rows) and isinstance(document, dict) and isinstance(document.get("results"), dict)
    key, merged = _named(document, "key"), _named(document, "merged_with")
    return Read(rows, tokens_of(text) - inside, keyed=key, merged=merged, columns=columns)


def _document(kind: str, text: str) -> Any:
    """The JSON of an answer that is one document; None where it is none."""
    if "event-stream" in kind or "ndjson" in kind:
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _named(document: Any, member: str) -> tuple[str, ...]:
    key = document.get(member) if isinstance(document, dict) else None
    return (key,) if isinstance(key, str) else ()


def _raw_rows(kind: str, text: str, document: Any) -> Iterator[dict[str, Any]]:
    if "event-stream" in kind:
        for line in text.splitlines():
            if line.startswith("data:") and (found := _object(line[5:])):
                yield found
    elif "ndjson" in kind:
        for line in text.splitlines():
            if found := _object(line):
                yield found
    elif text:
        if document is None:
            raise ValueError("no JSON")
        results = document.get("results") if isinstance(document, dict) else None
        if isinstance(results, list):
            yield from (row for row in results if isinstance(row, dict))
        elif isinstance(results, dict):
            length = max((len(column) for column in results.values()), default=0)
            for place in range(length):
                yield {name: column[place] for name, column in results.items() if place < len(column)}
        elif isinstance(document, dict) and "value" in document:
            yield document


def _object(text: str) -> dict[str, Any]:
    found = orjson.loads(text) if text.strip() else {}
    return found if isinstance(found, dict) else {}
