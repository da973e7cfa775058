"""The hash chain: the canonical form of an event, its hash, and checking a run of them.

An event's hash is SHA-256 over one JSON object in canonical form (keys sorted, no spaces, ASCII
only) of everything in the event and the hash of the one before. The first event follows `genesis`,
which is made of the ledger's incarnation and key ids. Marks are anchored, too: the event they came
with carries their number and hash among its facts, under `LEDGER`.

The chain shows edits, gaps, swaps, forks. Whoever may write the whole ledger can also make a whole
new chain: that is what the head file, kept elsewhere, is for.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from quietus.core.events import Draft, Event, EventType
from quietus.core.fingerprint import Mark
from quietus.ports import Head, LedgerRefused

LEDGER: Final = "ledger"
"""The name among an event's facts that belongs to the ledger: what was marked and unmarked with it."""

RESTRICTING: Final = frozenset({
    EventType.REQUESTED, EventType.LEAKED, EventType.LEAKED_LATE, EventType.QUARANTINED, EventType.HELD,
    EventType.WRITE_OPENED,
})  # fmt: skip
"""What may be written when nothing else may: it shuts the gate, or keeps it from being opened."""

Marked = tuple[str, Mark]
Secret = tuple[str, str, bytes]

_quote = json.encoder.encode_basestring_ascii
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_TYPES: Final = {item.value: item for item in EventType}


class Row(NamedTuple):
    """An event as it is stored: facts as canonical text, hash as bytes."""

    number: int
    type: str
    erasure: str
    at: float
    actor: str
    facts: str
    gate: int
    hash: bytes


Stored = tuple[int, str, str, float, str, str, int, bytes]
"""A row as a database returns it: a `Row` without names, which is what 600,000 of them can afford."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One append, checked and made canonical: nothing of it can fail for its form any more."""

    drafts: tuple[tuple[Draft, str], ...]
    """Each draft with its facts as canonical text."""
    expect: tuple[str, int] | None
    marks: tuple[Marked, ...]
    secrets: tuple[Secret, ...]
    unmark: tuple[str, ...]
    epoch: int | None = None

    @property
    def restricts(self) -> bool:
        """Whether it shuts the gate, or keeps it shut: on a full disk it may use the reserve."""
        return any(draft.type in RESTRICTING for draft, _ in self.drafts)


def canonical(value: Any) -> str:
    """JSON in the one form that is hashed. Raises ValueError for what JSON cannot say."""
    return _canonical(value)


def prepare(
    drafts: Sequence[Draft],
    expect: tuple[str, int] | None,
    marks: Sequence[Marked],
    secrets: Sequence[Secret],
    unmark: Sequence[str],
    epoch: int | None = None,
) -> Batch:
    """Checks an append before it reaches the ledger. Raises ValueError or TypeError: a bug of the caller."""
    if (marks or unmark) and not drafts:
        raise ValueError("marks are anchored in an event: append one with them")
    kept = tuple(dict.fromkeys(marks))
    gone = tuple(sorted(set(unmark)))
    texts: list[tuple[Draft, str]] = []
    for place, draft in enumerate(drafts, 1):
        if LEDGER in draft.facts:
            raise ValueError(f"the fact {LEDGER!r} is the ledger's own")
        if not math.isfinite(draft.at):
            raise ValueError("an event's time must be a finite number")
        f"{draft.erasure}{draft.actor}".encode()  # a lone surrogate cannot be stored
        facts = dict(draft.facts)
        if place == len(drafts) and (kept or gone):
            facts[LEDGER] = _anchor(kept, gone)
        text = canonical(facts)
        # Facts are read back by a faster parser, which rounds integers of more than 64 bits.
        if canonical(orjson.loads(text)) != text:
            raise ValueError("a fact is an integer of more than 64 bits: write it as text")
        texts.append((draft, text))
    return Batch(tuple(texts), expect, kept, tuple(secrets), gone, epoch)


def genesis(incarnation: str, key_ids: Iterable[str]) -> bytes:
    """What stands before the first event."""
    return sha256(canonical({"incarnation": incarnation, "keys": sorted(key_ids)}).encode()).digest()


def link(previous: bytes, row: Stored) -> bytes:
    """The hash that a stored event must have after `previous`; the one it has is not looked at."""
    number, kind, erasure, at, actor, facts, gate, _ = row
    return sha256(
        f'{{"actor":{_quote(actor)},"at":{at!r},"erasure":{_quote(erasure)},"facts":{facts},'
        f'"gate":{"true" if gate else "false"},"number":{number},"previous":"{previous.hex()}",'
        f'"type":{_quote(kind)}}}'.encode()
    ).digest()


def event_hash(previous: str, event: Event) -> str:
    """The hash that `event` must have after the event with hash `previous` (both hexadecimal)."""
    facts = canonical(event.facts)
    row = (event.number, event.type.value, event.erasure, event.at, event.actor, facts, int(event.gate), b"")
    return link(bytes.fromhex(previous), row).hex()


def extend(head: Head, drafts: Iterable[tuple[Draft, str]]) -> tuple[Head, list[Row]]:
    """The rows that follow `head`, and the head after them."""
    number, last, epoch = head.number, bytes.fromhex(head.hash), head.gate_epoch
    rows: list[Row] = []
    for draft, facts in drafts:
        number += 1
        # Adding 0.0 turns -0.0 into 0.0, which a database may not tell apart.
        at = float(draft.at) + 0.0
        row = Row(number, draft.type.value, draft.erasure, at, draft.actor, facts, int(draft.gate), b"")
        last = link(last, row)
        rows.append(row._replace(hash=last))
        if draft.gate:
            epoch = number
    return Head(head.incarnation, number, last.hex(), epoch), rows


def event_of(row: Stored) -> Event:
    """The event that a stored row says. Raises LedgerRefused for a type nobody knows."""
    kind = _TYPES.get(row[1])
    if kind is None:
        raise LedgerRefused(
            f"event {row[0]} of the ledger has a type that this Quietus does not know: upgrade Quietus"
        )
    return Event(row[0], kind, row[2], row[3], row[4], orjson.loads(row[5]), bool(row[6]), row[7].hex())


def fault_of(previous: bytes, expected: int, row: Stored) -> str | None:
    """What is wrong with `row` as the event `expected` after `previous`; None if nothing is."""
    if row[0] != expected:
        return f"event {expected} is missing" if row[0] > expected else f"event {row[0]} is out of order"
    try:
        sound = row[6] in (0, 1) and link(previous, row) == row[7]  # any other number would read as true
    except (TypeError, ValueError, AttributeError):
        sound = False
    return None if sound else f"event {expected} does not match its hash"


def chained(previous: bytes, after: int, rows: Iterable[Stored]) -> list[Event]:
    """The rows as events, checked against the chain. Raises LedgerRefused at the first bad one."""
    found: list[Event] = []
    number = after
    for row in rows:
        number += 1
        fault = fault_of(previous, number, row)
        if fault is not None:
            raise broken(fault)
        found.append(event_of(row))
        previous = row[7]
    return found


def broken(fault: str) -> LedgerRefused:
    """The refusal of a ledger whose chain is broken."""
    return LedgerRefused(
        f"the ledger's chain is broken: {fault}; run `quietus ledger verify`, and restore the ledger from "
        "a backup that verifies"
    )


def marks_hash(marks: Iterable[Mark]) -> tuple[int, str]:
    """How many marks these are and their hash; they must come sorted by kind and digest."""
    hasher, count = sha256(), 0
    for mark in marks:
        hasher.update(f"{mark.kind}\0".encode() + mark.digest)
        count += 1
    return count, hasher.hexdigest()


def _anchor(marks: Sequence[Marked], unmark: Sequence[str]) -> Mapping[str, Any]:
    by_erasure: dict[str, list[Mark]] = {}
    for erasure, mark in marks:
        by_erasure.setdefault(erasure, []).append(mark)
    anchor: dict[str, Any] = {}
    if marks:
        anchor["marks"] = {
            erasure: list(marks_hash(sorted(found, key=lambda m: (m.kind, m.digest))))
            for erasure, found in by_erasure.items()
        }
    if unmark:
        anchor["unmarked"] = list(unmark)
    return anchor
