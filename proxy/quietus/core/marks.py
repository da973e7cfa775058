"""All marks in memory, and whose each is: a table that a million of them fit into.

What is marked while the process runs stands in a dictionary. What a ledger held at the start is packed:
sorted arrays of some 23 bytes a mark, and a field of bits in front that answers nearly every "no". A mark is
found by the first half of its digest, its *head*; a run of words is then confirmed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from quietus.core.fingerprint import HALF, Mark

_RECORD: Final = HALF + 1 + 4
"""Bytes behind a head: the tail of the digest, the kind, the owner."""
_PACKED: Final = HALF + _RECORD
_BITS: Final = 16
"""Bits of the field for each packed mark: about one look in sixteen goes on to the arrays for nothing."""
_SMALL: Final = 4096
"""So few marks are sorted out at once when an owner goes; of more, when a quarter of the owners has gone."""


class Marks:
    """The marks of all erasures. Owners are named by strings; one event loop owns the table."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with every change: what a text was found to say holds for one version."""
        self._fresh: dict[bytes, bytes | bytearray] = {}
        self._heads: array[int] = array("Q")
        self._rest = b""
        self._bits = bytearray()
        self._mask = 0
        self._kinds: list[str] = []
        self._codes: dict[str, int] = {}
        self._counts: list[int] = []
        self._names: list[str] = []
        self._owners: dict[str, int] = {}
        self._gone: set[int] = set()

    def __len__(self) -> int:
        """How many marks are held; one that was added twice may count twice."""
        return sum(self._counts)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of marks in use: what a text has to be looked at for."""
        return tuple(kind for kind, count in zip(self._kinds, self._counts, strict=True) if count)

    def add(self, owner: str, marks: Iterable[Mark]) -> None:
        """Adds marks of an owner. Adding one twice changes nothing that can be seen."""
        number = self.number(owner)
        self.version += 1
        fresh = self._fresh
        for mark in marks:
            head, record = self.record(mark, number)
            known = fresh.get(head)
            if known is None:
                fresh[head] = record
            elif isinstance(known, bytearray):
                known += record
            elif known != record:
                fresh[head] = bytearray(known + record)

    def load(self, marked: Iterable[tuple[str, Mark]]) -> None:
        """Takes in what a ledger held, packed, beside what is there."""
        loading = Loading(self)
        for owner, mark in marked:
            loading.take(owner, mark)
        loading.done()

    def drop(self, owner: str) -> None:
        """Takes back every mark of an owner."""
        number = self._owners.pop(owner, None)
        if number is None:
            return
        self.version += 1
        self._gone.add(number)
        if len(self) <= _SMALL or len(self._gone) * 4 > len(self._names):
            self._sort_out()

    def holders(self, mark: Mark) -> tuple[str, ...]:
        """Who left this mark, each once."""
        code = self._codes.get(mark.kind)
        if code is None:
            return ()
        digest = mark.digest.ljust(2 * HALF, b"\0")
        wanted = digest[HALF : 2 * HALF] + bytes((code,))
        found: dict[str, None] = {}
        for record in self._records(digest[:HALF]):
            if record[: HALF + 1] == wanted:
                self._name(record, found)
        return tuple(found)

    def headed(self, head: bytes) -> list[tuple[str, bytes, str]]:
        """The kind, the tail and the owner of every mark of a head."""
        found = []
        for record in self._records(head):
            owner = int.from_bytes(record[HALF + 1 :], "big")
            if owner not in self._gone:
                found.append((self._kinds[record[HALF]], bytes(record[:HALF]), self._names[owner]))
        return found

    def among(self, heads: Sequence[bytes]) -> list[int]:
        """The places of those heads that may be of a mark: all that are, and a few that are not."""
        fresh = self._fresh
        if not self._heads:
            return [place for place, head in enumerate(heads) if head in fresh]
        bits, mask, number = self._bits, self._mask, int.from_bytes
        return [
            place
            for place, head in enumerate(heads)
            if bits[(at := number(head, "big") & mask) >> 3] >> (at & 7) & 1 or head in fresh
        ]

    # --- inside --------------------------------------------------------------------------------

    def number(self, owner: str) -> int:
        """The number that stands for an owner in a record."""
        number = self._owners.get(owner)
        if number is None:
            number = self._owners[owner] = len(self._names)
            self._names.append(owner)
        return number

    def record(self, mark: Mark, owner: int) -> tuple[bytes, bytes]:
        """A mark as its head and the record behind it; counted from here on."""
        code = self._codes.get(mark.kind)
        if code is None:
            code = self._codes[mark.kind] = len(self._kinds)
            self._kinds.append(mark.kind)
            self._counts.append(0)
        self._counts[code] += 1
        digest = mark.digest.ljust(2 * HALF, b"\0")
        return digest[:HALF], digest[HALF : 2 * HALF] + bytes((code,)) + owner.to_bytes(4, "big")

    def _name(self, record: bytes | bytearray, found: dict[str, None]) -> None:
        owner = int.from_bytes(record[HALF + 1 :], "big")
        if owner not in self._gone:
            found[self._names[owner]] = None

    def _records(self, head: bytes) -> Iterator[bytes | bytearray]:
        known = self._fresh.get(head)
        if known is not None:
            for at in range(0, len(known), _RECORD):
                yield known[at : at + _RECORD]
        if not self._heads:
            return
        number = int.from_bytes(head, "big")
        at = number & self._mask
        if not self._bits[at >> 3] >> (at & 7) & 1:
            return
        place = bisect_left(self._heads, number)
        while place < len(self._heads) and self._heads[place] == number:
            yield self._rest[place * _RECORD : (place + 1) * _RECORD]
            place += 1

    def _all(self) -> Iterator[tuple[bytes, bytes | bytearray]]:
        for head, known in self._fresh.items():
            for at in range(0, len(known), _RECORD):
                yield head, known[at : at + _RECORD]
        for place, number in enumerate(self._heads):
            yield number.to_bytes(HALF, "big"), self._rest[place * _RECORD : (place + 1) * _RECORD]

    def _sort_out(self) -> None:
        """Throws away the marks of owners that have gone."""
        kept = [
            (self._names[owner], Mark(self._kinds[record[HALF]], head + bytes(record[:HALF])))
            for head, record in self._all()
            if (owner := int.from_bytes(record[HALF + 1 :], "big")) not in self._gone
        ]
        sorted_out = Marks()
        if self._heads:
            sorted_out.load(kept)
        else:
            for name, mark in kept:
                sorted_out.add(name, [mark])
        self.__dict__.update({**sorted_out.__dict__, "version": self.version + 1})

    def pack(self, buckets: list[bytearray]) -> None:
        """Packs records, grouped by the first byte of their heads, with those that are packed already."""
        self.version += 1
        for place, number in enumerate(self._heads):
            head = number.to_bytes(HALF, "big")
            buckets[head[0]] += head + self._rest[place * _RECORD : (place + 1) * _RECORD]
        heads: array[int] = array("Q")
        rest = bytearray()
        for place, bucket in enumerate(buckets):
            rows = sorted({bytes(bucket[at : at + _PACKED]) for at in range(0, len(bucket), _PACKED)})
            buckets[place] = bytearray()
            heads.extend(int.from_bytes(row[:HALF], "big") for row in rows)
            rest += b"".join(row[HALF:] for row in rows)
        size = 1 << max(6, (len(heads) * _BITS - 1).bit_length())
        bits, mask = bytearray(size >> 3), size - 1
        for number in heads:
            at = number & mask
            bits[at >> 3] |= 1 << (at & 7)
        self._heads, self._rest, self._bits, self._mask = heads, bytes(rest), bits, mask


class Loading:
    """Marks on their way out of a ledger into the table."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._buckets = [bytearray() for _ in range(256)]
        self._newest = ("", 0)

    def take(self, owner: str, mark: Mark) -> None:
        """Takes in one; a ledger gives those of one owner together."""
        if owner != self._newest[0]:
            self._newest = (owner, self._marks.number(owner))
        head, record = self._marks.record(mark, self._newest[1])
        self._buckets[head[0]] += head + record

    def done(self) -> None:
        """All were taken: from here on they are found."""
        self._marks.pack(self._buckets)
