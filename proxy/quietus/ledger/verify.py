"""Checking a whole ledger from outside: what `quietus ledger verify` does.

Reads only. A SQLite ledger may be live (its process goes on writing; one moment of it is checked),
closed, or left behind by a process that was killed. An exported run of events is checked with
`verify_events`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quietus.core.events import Event
from quietus.ledger import sql
from quietus.ledger.chain import LEDGER, event_hash, event_of, fault_of, genesis, marks_hash
from quietus.ledger.faults import READ_ERRORS, meaning
from quietus.ledger.files import compare, read_head
from quietus.ledger.opening import check, hash_at, is_new, standing_of
from quietus.ports import Head, LedgerRefused, LedgerUnavailable, Mark


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found. `fault` is the first thing wrong and `at` its event, where it belongs to one."""

    events: int
    """Events that follow from one another, from the first on."""
    marks: int = 0
    head: Head | None = None
    at: int | None = None
    fault: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault is None


def verify_events(events: Iterable[Event], incarnation: str, key_ids: Iterable[str]) -> VerifyReport:
    """Checks an export: events from the first on, with the incarnation and key ids of their ledger."""
    previous, number, epoch = genesis(incarnation, key_ids).hex(), 0, 0
    for event in events:
        if event.number != number + 1:
            return VerifyReport(number, at=number + 1, fault=f"event {number + 1} is missing or out of order")
        if event_hash(previous, event) != event.hash:
            return VerifyReport(number, at=event.number, fault=f"event {number + 1} does not match its hash")
        previous, number = event.hash, event.number
        epoch = number if event.gate else epoch
    return VerifyReport(number, head=Head(incarnation, number, previous, epoch))


def verify_chain(
    path: str | os.PathLike[str], *, head_file: str | os.PathLike[str] | None = None
) -> VerifyReport:
    """Checks a SQLite ledger and says the first thing that is wrong. Raises LedgerUnavailable only."""
    where = Path(path)
    progress = _Progress()
    try:
        with closing(open_read_only(where)) as connection:
            connection.execute("BEGIN")
            if is_new(connection):
                raise LedgerRefused("the file is empty: no ledger was ever in it")
            return _verify(connection, progress, Path(head_file) if head_file is not None else None)
    except READ_ERRORS as error:
        fault, _ = meaning(error)
        if isinstance(fault, LedgerUnavailable):
            raise fault from None
        return progress.report(str(fault), progress.events + 1)
    except LedgerRefused as error:
        return progress.report(str(error), progress.at)


def schema_of(path: Path) -> tuple[int, int]:
    """The schema of a ledger, and the newest that is known here. Raises LedgerRefused, LedgerUnavailable."""
    try:
        with closing(open_read_only(path)) as connection:
            if is_new(connection):
                raise LedgerRefused("the file is empty: no ledger was ever in it")
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            return int(found), sql.SCHEMA
    except READ_ERRORS as error:
        raise meaning(error)[0] from None


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing. Raises LedgerUnavailable if there is no such file."""
    if not path.is_file():
        raise LedgerUnavailable(f"there is no ledger at {path}: give the path of its file")
    place = path.absolute().as_uri()
    connection = sqlite3.connect(f"{place}?mode=ro", uri=True, isolation_level=None)
    try:
        connection.execute(sql.COUNT_TABLES)
    except sqlite3.OperationalError:
        connection.close()
        if (journal := Path(f"{path}-wal")).exists() and journal.stat().st_size:
            raise LedgerUnavailable(
                f"the ledger {path} has a journal that cannot be read from a read-only folder: copy the "
                "ledger with its -wal file to a folder of your own and verify it there"
            ) from None
        # Nobody can be writing: where the journal's index cannot be made, none is needed.
        connection = sqlite3.connect(f"{place}?mode=ro&immutable=1", uri=True, isolation_level=None)
    for statement in sql.SETTINGS:
        connection.execute(statement)
    return connection


@dataclass(slots=True)
class _Progress:
    events: int = 0
    marks: int = 0
    at: int | None = None

    def report(self, fault: str, at: int | None) -> VerifyReport:
        return VerifyReport(self.events, self.marks, None, at, fault)


def _verify(connection: sqlite3.Connection, progress: _Progress, head_file: Path | None) -> VerifyReport:
    standing = standing_of(connection)
    anchors = _Anchors()
    previous = genesis(standing.head.incarnation, standing.key_ids)
    for row in connection.execute(sql.ALL_EVENTS):
        fault = fault_of(previous, progress.events + 1, row)
        if fault is not None:
            return progress.report(fault, progress.events + 1)
        progress.at = row[0]
        anchors.add(event_of(row))
        previous, progress.events = row[7], row[0]
    progress.at = None
    head = check(connection).head
    for at, fault in anchors.faults(connection, progress):
        return progress.report(fault, at)
    (found,) = connection.execute(sql.INTEGRITY).fetchone()
    if found != "ok":
        return progress.report("the events are whole, but the file's tables or indexes are damaged", None)
    if head_file is not None:
        known = read_head(head_file)
        compare(head_file, head, known, hash_at(connection, standing, known.number) if known else None)
    return VerifyReport(progress.events, progress.marks, head)


class _Anchors:
    """What the events say of the marks that came with them."""

    def __init__(self) -> None:
        self._said: dict[str, dict[int, tuple[int, str]]] = {}

    def add(self, event: Event) -> None:
        said: Any = event.facts.get(LEDGER, {})
        for erasure in said.get("unmarked", ()):
            self._said.pop(erasure, None)
        for erasure, (count, digest) in said.get("marks", {}).items():
            self._said.setdefault(erasure, {})[event.number] = (count, digest)

    def faults(self, connection: sqlite3.Connection, progress: _Progress) -> Iterator[tuple[int, str]]:
        """Where the marks are not those that the events speak of."""
        current: str | None = None
        found: dict[int, list[Mark]] = {}
        for erasure, kind, digest, number in connection.execute(sql.ALL_MARKS):
            if erasure != current:
                yield from self._compare(current, found)
                current, found = erasure, {}
            found.setdefault(number, []).append(Mark(kind, digest))
            progress.marks += 1
        yield from self._compare(current, found)
        for said in self._said.values():
            for number in said:
                yield number, f"marks of event {number} are missing"

    def _compare(self, erasure: str | None, found: dict[int, list[Mark]]) -> Iterator[tuple[int, str]]:
        if erasure is None:
            return
        said = self._said.pop(erasure, {})
        for number in sorted(said.keys() | found.keys()):
            if said.get(number) != marks_hash(found.get(number, ())):
                yield number, f"marks of event {number} are not those that it came with"

