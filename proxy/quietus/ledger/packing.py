"""Marks as one value, for servers that keep all marks that came with one event under one name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quietus.core.fingerprint import Mark
from quietus.ledger.chain import broken


def packed(marks: Sequence[Mark]) -> bytes:
    """Kind and digest of each, each with its length before it."""
    return b"".join(_sized(mark.kind.encode()) + _sized(mark.digest) for mark in marks)


def unpacked(blob: bytes) -> Iterator[Mark]:
    """The inverse of `packed`. Raises LedgerRefused."""
    at = 0
    while at < len(blob):
        pieces = []
        for _ in range(2):
            size = int.from_bytes(blob[at : at + 2], "big")
            pieces.append(blob[at + 2 : at + 2 + size])
            at += 2 + size
        if at > len(blob):
            raise broken("marks are cut short")
        yield Mark(pieces[0].decode(), pieces[1])


def _sized(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value
