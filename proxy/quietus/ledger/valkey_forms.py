"""How what Valkey keeps is written and read: rows, packed marks, rosters, and what its errors mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from redis import exceptions

from quietus.ledger.chain import Stored, broken
from quietus.ledger.packing import packed
from quietus.ledger.plan import Plan, Standing
from quietus.ledger.valkey_scripts import SCHEMA
from quietus.ports import Head, LedgerError, LedgerRefused, LedgerUnavailable, Member, Muster

UNREACHABLE: Final = (
    "the ledger's server cannot be reached or does not answer in time; what was being written may or may not "
    "be there: see that it runs, and that the network lets it through"
)
_CODES: Final = ("MISCONF", "NOREPLICAS", "OOM", "CLUSTERDOWN", "MASTERDOWN")


def text(value: Any) -> str:
    """A value of the server as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def standing_of(found: Sequence[Any], last: Any, newest: dict[str, int]) -> Standing:
    """The ledger's own hash. Raises LedgerRefused when it is gone, damaged, or of a schema not known."""
    incarnation, number, last_hash, epoch, keys, schema, floor = found
    if incarnation is None:
        raise LedgerRefused(
            "the ledger is gone from its server: restore it from a backup that verifies (a server that "
            "evicts, or was emptied, loses what was erased)"
        )
    if int(floor or 0) > SCHEMA:
        raise LedgerRefused(
            f"the ledger has schema {text(schema)} and this Quietus knows {SCHEMA}: a newer Quietus "
            "finalised it; upgrade"
        )
    try:
        head = Head(text(incarnation), int(number), bytes(last_hash).hex(), int(epoch))
        ids = frozenset(str(item) for item in json.loads(keys))
    except (TypeError, ValueError):
        raise broken("its head cannot be read") from None
    ends = int(text(last).partition("-")[0])
    if ends != head.number:
        raise broken(f"it ends at event {ends} and its head says {head.number}")
    return Standing(head, ids, newest)


def muster_of(found: Sequence[Any]) -> Muster:
    """What JOIN and RENEW return."""
    ledger, last, _, roster, life, settled = found
    pairs = zip(roster[::2], roster[1::2], strict=True)
    return Muster(
        standing_of(ledger, last, {}).head,
        tuple(_member(text(name), text(value)) for name, value in pairs),
        text(life or ""),
        text(settled or ""),
    )


def _member(session: str, value: str) -> Member:
    beat, number, seconds, undrained = value.split("|")
    epochs = tuple(int(epoch) for epoch in undrained.split(",") if epoch)
    return Member(session, int(beat), int(number), float(seconds), epochs)


def row_of(number: Any, fields: dict[bytes, bytes]) -> Stored:
    """An entry of the stream as a stored row. Raises LedgerRefused when it is none."""
    place = int(text(number).partition("-")[0])
    try:
        return (
            place,
            fields[b"t"].decode(),
            fields[b"e"].decode(),
            float(fields[b"a"]),
            fields[b"w"].decode(),
            fields[b"f"].decode(),
            int(fields[b"g"]),
            fields[b"h"],
        )
    except (KeyError, ValueError):
        raise broken(f"event {place} cannot be read") from None


def arguments(made: Plan, session: str | None) -> Iterator[Any]:
    """A plan as WRITE takes it."""
    yield from (session or "", made.before.number, bytes.fromhex(made.before.hash), len(made.fences))
    for erasure, generation in sorted(made.fences):
        yield from (erasure, generation)
    yield from (len(made.claims), *made.claims, len(made.rows))
    for row in made.rows:
        yield from (row.number, row.erasure, row.type, repr(row.at), row.actor, row.facts)
        yield from (row.gate, row.hash)
    yield from (len(made.unmark), *sorted(made.unmark), len(made.marks))
    for (erasure, number), marks in made.marks.items():
        yield from (erasure, number, packed(marks))
    yield len(made.secrets)
    for (erasure, name), sealed in made.secrets.items():
        yield from (erasure, name, sealed)
    yield from (made.after.number, bytes.fromhex(made.after.hash), made.after.gate_epoch)


def meaning(error: exceptions.RedisError) -> LedgerError:
    """The error to raise instead. The server's own texts are not passed on."""
    if isinstance(error, exceptions.AuthenticationError | exceptions.NoPermissionError):
        return LedgerRefused("the ledger's server does not let us in: give a user and password that may")
    if isinstance(error, exceptions.OutOfMemoryError):
        return LedgerUnavailable("the ledger's server is full; nothing was written: give it more memory")
    if isinstance(error, exceptions.ReadOnlyError):
        return LedgerUnavailable("the ledger's server is a replica; nothing was written: name the primary")
    if isinstance(error, exceptions.BusyLoadingError):
        return LedgerUnavailable("the ledger's server is loading its data; nothing was written: try again")
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
        return LedgerUnavailable(UNREACHABLE)
    if isinstance(error, exceptions.ResponseError):
        code = str(error).partition(" ")[0].strip(":")
        known = code if code in _CODES else "an error"
        return LedgerUnavailable(f"the ledger's server refuses to write ({known}): see its log, try again")
    return LedgerUnavailable(UNREACHABLE)
