"""What lingers of a removed record: ghosts that some reads still see, traces that writes run into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from quietus.legacy.embedding import Vector
from quietus.legacy.faults import Faults
from quietus.legacy.records import Record

Haunt = Literal["replica", "liar", "export", "repair"]
Memory = Literal["salience", "dedup", "centroid"]


@dataclass(slots=True, eq=False)
class Ghost:
    """A removed record that some kind of read still sees."""

    haunt: Haunt
    record: Record
    until: float


@dataclass(slots=True, eq=False)
class Trace:
    """What the write path remembers of a removed record: its place in heap, map or cluster."""

    kind: Memory
    key: str
    tenant: str | None
    vector: Vector
    salience: float | None
    until: float


def ghosts_of(record: Record, faults: Faults, now: float) -> Iterator[Ghost]:
    """The ghosts that a record leaves when it is removed."""
    lingering: list[tuple[Haunt, float]] = [
        ("replica", faults.stale_replica),
        ("liar", faults.probe_liar),
        ("export", faults.stale_export),
        ("repair", inf if faults.read_repair != "off" else 0.0),
    ]
    for haunt, seconds in lingering:
        if seconds:
            yield Ghost(haunt, record, now + seconds)


def traces_of(record: Record, faults: Faults, now: float) -> Iterator[Trace]:
    """The traces that a record leaves in what the write path reads."""
    lasting: list[tuple[Memory, float]] = [
        ("salience", faults.stale_salience),
        ("dedup", faults.stale_dedup),
        ("centroid", faults.stale_centroid),
    ]
    for kind, seconds in lasting:
        if seconds:
            yield Trace(kind, record.key, record.tenant, record.vector, record.salience, now + seconds)
