"""A record of the lineage as bytes, as it lies on disk: digests, numbers and a sealed address.

A reader that does not know the form refuses it; nothing is guessed.
"""

from __future__ import annotations

import struct
from typing import Final

from quietus.core.lineage import Detector, Edge, Record
from quietus.core.scope import ANY, UNKNOWN, Path, Paths, Values, Wild

FORM: Final = 1
_SIZE: Final = 16
_DETECTORS: Final = tuple(Detector)


class BadForm(ValueError):
    """Bytes that are no record of a known form."""


def pack(record: Record) -> bytes:
    """The record without its name, which lies beside it."""
    parents = b"".join(e.source + bytes([_DETECTORS.index(e.detector)]) for e in record.parents)
    prints = struct.pack(f">{len(record.prints)}Q", *record.prints)
    head = struct.pack(">B16sQQ", FORM, record.link, record.born, record.whole)
    parts = (record.tenant, _values(record.subject), _values(record.purpose), _paths(record.path), parents,
             prints, record.address or b"")  # fmt: skip
    return head + b"".join(struct.pack(">H", len(part)) + part for part in parts)


def unpack(name: bytes, data: bytes) -> Record:
    """The inverse of `pack`. Raises BadForm."""
    try:
        form, link, born, whole = struct.unpack_from(">B16sQQ", data)
        if form != FORM:
            raise BadForm(f"a lineage record has form {form}; this Quietus knows {FORM}")
        parts: list[bytes] = []
        at = struct.calcsize(">B16sQQ")
        for _ in range(7):
            (length,) = struct.unpack_from(">H", data, at)
            parts.append(data[at + 2 : at + 2 + length])
            at += 2 + length
        tenant, subject, purpose, paths, parents, prints, address = parts
        return Record(
            name=name,
            link=link,
            tenant=tenant,
            subject=_values_in(subject),
            purpose=_values_in(purpose),
            path=_paths_in(paths),
            born=born,
            parents=tuple(
                Edge(parents[i : i + _SIZE], _DETECTORS[parents[i + _SIZE]])
                for i in range(0, len(parents), _SIZE + 1)
            ),
            whole=whole,
            prints=struct.unpack(f">{len(prints) // 8}Q", prints),
            address=address or None,
        )
    except (struct.error, IndexError):
        raise BadForm("a lineage record is damaged") from None


def _values(values: Values) -> bytes:
    if isinstance(values, Wild):
        return b"*" if values is ANY else b"?"
    return b"".join(sorted(atom for atom in values if isinstance(atom, bytes)))


def _values_in(data: bytes) -> Values:
    if len(data) == 1:
        return ANY if data == b"*" else UNKNOWN
    return frozenset(data[i : i + _SIZE] for i in range(0, len(data), _SIZE))


def _paths(paths: Paths) -> bytes:
    if isinstance(paths, Wild):
        return b"*" if paths is ANY else b"?"
    found = sorted(b"".join(atom for atom in path if isinstance(atom, bytes)) for path in paths)
    return b"".join(struct.pack(">H", len(path)) + path for path in found)


def _paths_in(data: bytes) -> Paths:
    if len(data) == 1:
        return ANY if data == b"*" else UNKNOWN
    found: list[Path] = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from(">H", data, at)
        path = data[at + 2 : at + 2 + length]
        found.append(tuple(path[i : i + _SIZE] for i in range(0, length, _SIZE)))
        at += 2 + length
    return frozenset(found)
