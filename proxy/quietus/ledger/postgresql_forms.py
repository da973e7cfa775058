"""How what PostgreSQL keeps is written and read: rows, rosters, and what its errors mean."""

from __future__ import annotations

import json
from typing import Any, Final

import asyncpg

from quietus.ledger.chain import Stored, broken
from quietus.ledger.packing import packed
from quietus.ledger.plan import Plan, Standing
from quietus.ledger.postgresql_sql import SCHEMA
from quietus.ports import Head, LedgerError, LedgerRefused, LedgerUnavailable, Member, Muster

DRIVER: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
"""What the driver raises."""
UNREACHABLE: Final = (
    "the ledger's server cannot be reached or does not answer in time; what was being written may or may not "
    "be there: see that it runs, and that the network lets it through"
)


def standing_of(row: Any, newest: dict[str, int]) -> Standing:
    """The ledger's one row. Raises LedgerRefused when it is gone, damaged, or of a schema not known."""
    if row is None:
        raise LedgerRefused("the ledger's head is gone: restore it from a backup that verifies")
    incarnation, number, last_hash, epoch, keys, schema, floor, ends = row[:8]
    if floor > SCHEMA:
        raise LedgerRefused(
            f"the ledger has schema {schema} and this Quietus knows {SCHEMA}: a newer Quietus finalised it; "
            "upgrade"
        )
    try:
        ids = frozenset(str(item) for item in json.loads(keys))
    except (TypeError, ValueError):
        raise broken("its head cannot be read") from None
    if ends != number:
        raise broken(f"it ends at event {ends} and its head says {number}")
    return Standing(Head(incarnation, number, bytes(last_hash).hex(), epoch), ids, newest)


def muster_of(row: Any) -> Muster:
    """What MUSTER returns."""
    head = standing_of(row, {}).head
    members = tuple(
        Member(str(session), int(beat), int(number), float(seconds), tuple(undrained))
        for session, beat, number, seconds, undrained in json.loads(row[10])
    )
    return Muster(head, members, str(row[8]), str(row[9]))


def row_of(row: Any) -> Stored:
    """A row of `events` as a stored row."""
    number, kind, erasure, at, actor, facts, gate, its_hash = row[:8]
    return number, kind, erasure, at, actor, facts, int(gate), bytes(its_hash)


def arguments(made: Plan, session: str | None) -> list[Any]:
    """A plan as APPEND takes it."""
    columns = [list(column) for column in zip(*made.rows, strict=True)] or [[] for _ in range(8)]
    columns[6] = [bool(gate) for gate in columns[6]]
    fences = sorted(made.fences)
    return [
        session or "",
        made.before.number,
        bytes.fromhex(made.before.hash),
        *columns,
        made.after.number,
        bytes.fromhex(made.after.hash),
        made.after.gate_epoch,
        sorted(made.unmark),
        [erasure for erasure, _ in made.marks],
        [number for _, number in made.marks],
        [packed(marks) for marks in made.marks.values()],
        [erasure for erasure, _ in made.secrets],
        [name for _, name in made.secrets],
        list(made.secrets.values()),
        [erasure for erasure, _ in fences],
        [generation for _, generation in fences],
        made.claims,
    ]


def meaning(error: BaseException) -> LedgerError:
    """The error to raise instead. The server's own texts are not passed on."""
    state = getattr(error, "sqlstate", None) or ""
    if state.startswith("28"):
        return LedgerRefused("the ledger's server does not let us in: give a user and password that may")
    if state in ("42501", "3D000"):
        return LedgerRefused(
            "the ledger's database does not let us work in it: make the database, and let this user create a "
            "schema in it"
        )
    if state == "25006":
        return LedgerUnavailable("the ledger's server is read-only; nothing was written: name the primary")
    if state.startswith("53"):
        return LedgerUnavailable(f"the ledger's server is full ({state}); nothing was written: make room")
    if state.startswith(("40", "55", "57")):
        return LedgerUnavailable(f"the ledger's server is busy or ends ({state}): try again")
    if state.startswith(("42", "58", "XX")):
        return LedgerRefused(
            f"the ledger's tables are damaged or not ours ({state}): restore it from a backup that verifies"
        )
    if state:
        return LedgerUnavailable(f"the ledger's server refuses ({state}); see its log")
    return LedgerUnavailable(UNREACHABLE)
