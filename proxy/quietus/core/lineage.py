"""Records, whose they are, and what they were derived from: a graph that an erasure has to follow.

Nothing here is raw: names, links, subjects and paths are keyed digests. An edge is *declared* where a write
or an answer named its sources, and *suspected* where a text quotes or contains another record's; a
suspicion is followed only once the content has borne it out. Bounded: at the bound the oldest record goes,
one without sources first, and that is counted, because what is not known any more caps a verdict.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from quietus.core.prints import KEPT, SHARED, Prints, Sharing
from quietus.core.scope import Paths, Values, Wild

RECORDS: Final = 100_000
"""Records remembered by default. `python -m bench.lineage` measures what one costs."""
PARENTS: Final = 64
"""Sources remembered of one record; one with more is taken for an aggregate of unknown sources."""
DESCENDANTS: Final = 10_000
"""Descendants of one erasure that are followed; beyond that the snapshot says that it was cut short."""
SUSPECTS: Final = 8
"""Records that one text is suspected to quote."""


class Detector(StrEnum):
    """How an edge became known. All but DECLARED are suspicions."""

    DECLARED = "declared"
    CONTAINMENT = "containment"
    """Every print of the source, or its whole text as one sentence, is in the later text."""
    QUOTE = "quote"
    """A run of five words or more is in both."""
    SEARCH = "search"
    """The store itself gave the record back for a text of the erased, before the forget."""


class Edge(NamedTuple):
    """One source of a record: its link, and how that is known."""

    source: bytes
    detector: Detector = Detector.DECLARED


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one record, digested."""

    name: bytes
    """Of tenant, path and key: the record itself."""
    link: bytes
    """Of tenant and key: what a `derived_from` can name."""
    tenant: bytes
    """Empty where none was named."""
    subject: Values
    purpose: Values
    path: Paths
    born: int = 0
    """The gate epoch at which it was written; 0 if before the sidecar."""
    parents: tuple[Edge, ...] = ()
    whole: int = 0
    """Print of its whole text; 0 when no text was seen."""
    prints: tuple[int, ...] = ()
    address: bytes | None = None
    """How to ask the store for it, sealed. Only derived records have one."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a record lies, in clear: what a probe or a remedy asks with."""

    key: str
    tenant: str | None = None
    path: tuple[str, ...] | None = None
    capture: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the store the lineage knows."""

    records: int
    derived: int
    evicted: int
    scanned_at: float | None
    """When the last scan that went through all of it began. Unix seconds."""
    gap: str
    """Why it may not be whole; empty when a scan was completed and nothing was lost since."""

    @property
    def complete(self) -> bool:
        """Whether every record that the store held is known."""
        return not self.gap


class Kin(NamedTuple):
    """A descendant as the graph knows it."""

    record: Record
    depth: int
    detector: Detector
    """DECLARED when a path of declared edges leads to it, else the last suspicion on the way."""


class Records:
    """The graph. One event loop owns it."""

    def __init__(self, bound: int = RECORDS) -> None:
        self.bound = bound
        self.evicted = 0
        """Records that were let go at the bound, since the graph was last known to be whole."""
        self.sharing = Sharing(bound)
        self.changed: dict[bytes, Record | None] = {}
        """What is not written down yet: a record, or None for one that is gone."""
        self._plain: OrderedDict[bytes, Record] = OrderedDict()
        self._derived: OrderedDict[bytes, Record] = OrderedDict()
        self._children: dict[bytes, dict[bytes, None]] = {}
        self._prints: dict[int, bytes | tuple[bytes, ...]] = {}
        """Mostly one record's; nearly all of the memory of a text is this."""

    def __len__(self) -> int:
        return len(self._plain) + len(self._derived)

    def __iter__(self) -> Iterator[Record]:
        yield from self._plain.values()
        yield from self._derived.values()

    def get(self, name: bytes) -> Record | None:
        """The record of that name, or None."""
        return self._plain.get(name) or self._derived.get(name)

    def put(self, record: Record, *, written: bool = False) -> None:
        """Adds or replaces a record. `written`: it comes from where it would be written to."""
        before = self.get(record.name)
        if before is not None:
            self._take_out(before)
        elif len(self) >= self.bound:
            self._evict()
        (self._derived if record.parents else self._plain)[record.name] = record
        for edge in record.parents:
            self._children.setdefault(edge.source, {})[record.name] = None
        for number in record.prints:
            known = self._names(number)
            if len(known) < SHARED:  # what more than so many records say is nobody's in particular
                self._prints[number] = (*known, record.name) if known else record.name
        if record.whole:
            self._prints.setdefault(record.whole, record.name)
        if not written:
            self.changed[record.name] = record

    def drop(self, name: bytes, *, written: bool = False) -> None:
        """Forgets a record and what was known of its text."""
        record = self.get(name)
        if record is None:
            return
        self._take_out(record)
        for subject in () if isinstance(record.subject, Wild) else record.subject:
            if record.whole and isinstance(subject, bytes):
                self.sharing.gone(record.whole, subject)
        if not written:
            self.changed[name] = None

    def held(self, record: Record, prints: Iterable[Prints]) -> None:
        """Counts the texts of a record for its subjects."""
        for subject in () if isinstance(record.subject, Wild) else record.subject:
            for each in prints:
                for text in (each.whole, *each.sentences):
                    if isinstance(subject, bytes):
                        self.sharing.held(text, subject)

    def suspects(self, prints: Prints, own: Record) -> list[Edge]:
        """The records of its tenant that a text seems to quote or contain, but those of its own subject."""
        met: dict[bytes, int] = {}
        for number in prints.runs:
            for name in self._names(number):
                met[name] = met.get(name, 0) + 1
        found: list[Edge] = []
        for whole in (prints.whole, *prints.sentences):
            for name in self._names(whole):
                met[name] = KEPT
        for name, count in met.items():
            record = self.get(name)
            if record is None or record.tenant != own.tenant or name == own.name:
                continue
            # The same words of two people are two people's: neither was made of the other.
            if _same(record.subject, own.subject) or record.whole == prints.whole:
                continue
            whole_of_it = count >= len(record.prints)
            found.append(Edge(record.link, Detector.CONTAINMENT if whole_of_it else Detector.QUOTE))
            if len(found) >= SUSPECTS:
                break
        return found

    def descendants(self, roots: Collection[bytes], *, suspected: bool = True) -> list[Kin]:
        """Everything that was derived from the records of these links, transitively, nearest first.

        Declared paths are walked first: who is reached by one is no mere suspect.
        """
        found: dict[bytes, Kin] = {}
        for follow in (False, True) if suspected else (False,):
            level: list[tuple[bytes, int]] = [(link, 0) for link in roots]
            level += [(kin.record.link, kin.depth) for kin in found.values()]
            while level and len(found) < DESCENDANTS:
                level = self._next(level, roots, found, follow)
        return sorted(found.values(), key=lambda kin: kin.depth)

    def _next(
        self, level: list[tuple[bytes, int]], roots: Collection[bytes], found: dict[bytes, Kin], follow: bool
    ) -> list[tuple[bytes, int]]:
        following: list[tuple[bytes, int]] = []
        for link, depth in level:
            for name in self._children.get(link, ()):
                record = self._derived[name]
                if name in found or record.link in roots:
                    continue
                detector = min((e.detector for e in record.parents if e.source == link), key=_rank)
                if detector is not Detector.DECLARED and not follow:
                    continue
                found[name] = Kin(record, depth + 1, detector)
                following.append((record.link, depth + 1))
                if len(found) >= DESCENDANTS:
                    return []
        return following

    def of_subjects(self, subjects: Collection[object]) -> Iterator[Record]:
        """Records that surely belong to one of these subjects."""
        for record in self:
            if not isinstance(record.subject, Wild) and not record.subject.isdisjoint(subjects):
                yield record

    def _names(self, number: int) -> tuple[bytes, ...]:
        found = self._prints.get(number, ())
        return (found,) if isinstance(found, bytes) else found

    def _take_out(self, record: Record) -> None:
        self._plain.pop(record.name, None)
        self._derived.pop(record.name, None)
        for edge in record.parents:
            children = self._children.get(edge.source)
            if children is not None:
                children.pop(record.name, None)
                if not children:
                    del self._children[edge.source]
        for number in (*record.prints, record.whole):
            left = tuple(name for name in self._names(number) if name != record.name)
            if left:
                self._prints[number] = left if len(left) > 1 else left[0]
            else:
                self._prints.pop(number, None)

    def _evict(self) -> None:
        oldest = next(iter(self._plain or self._derived))
        self.drop(oldest)
        self.evicted += 1


def _rank(detector: Detector) -> int:
    return list(Detector).index(detector)


def _same(a: Values, b: Values) -> bool:
    return not isinstance(a, Wild) and not isinstance(b, Wild) and not a.isdisjoint(b)
