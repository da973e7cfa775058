"""The SQLite ledger as one thread sees it: plain calls, one connection, no waiting.

`SqliteLedger` runs these on its writer thread and nowhere else.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from quietus.core.events import Event
from quietus.ledger import files, scrub, sql
from quietus.ledger.chain import Batch, Row, broken, canonical, chained, extend, genesis
from quietus.ledger.faults import FULL, READ_ERRORS, meaning
from quietus.ledger.memory import GATE_MOVED, MOVED, refuse_binding
from quietus.ledger.opening import Connect, Standing, connect_file, hash_at, open_writable, standing_of
from quietus.ledger.reserve import Reserve
from quietus.ports import Conflict, Head, LedgerError, LedgerFull, LedgerRefused, LedgerUncertain

MarkRow = tuple[str, str, bytes, int]
"""An erasure, a kind, a digest, and the event that the mark came with: also where reading goes on."""


class Database:
    """One open ledger file, its lock and its head file. Raises LedgerError, never sqlite3.Error."""

    def __init__(
        self,
        path: Path,
        head_file: Path | None,
        max_bytes: int | None,
        reserve_bytes: int = 0,
        connect: Connect = connect_file,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.head_file = head_file
        self.head_file_fault: str | None = None
        """Why the head file could not be written last time; None when it is current."""
        self._lock = files.lock(self.path)
        self.reserve = Reserve(self.path, reserve_bytes)
        self.full = False
        """Whether the last append found the disk full; then only what restricts is written."""
        self._poison: LedgerError | None = None
        try:
            with self._guarded():
                self._connection = open_writable(self.path, head_file, max_bytes, connect)
        except BaseException:
            os.close(self._lock)
            raise
        # Open for as long as the connection is: closing any descriptor of the file would drop the
        # locks that SQLite holds on it for this process.
        self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Empties the journal into the file and lets go of everything."""
        try:
            if self._poison is None and not self.reserve.spent:
                self._connection.execute(sql.TRUNCATE_JOURNAL)
        except sqlite3.Error:
            pass  # what is committed stands in the journal and is read from there next time
        finally:
            self._connection.close()
            os.close(self._file)
            os.close(self._lock)

    def _begin(self) -> None:
        """Brings the head file up to date, notes that there is one, completes what was cut short."""
        with self._guarded():
            self._standing = standing_of(self._connection)
            self._write_head_file()
            if self.head_file_fault is not None:
                raise LedgerRefused(f"{self.head_file_fault}; make its folder, writable for Quietus")
            if self._standing.has_head_file != (self.head_file is not None):
                self._connection.execute(sql.SET_HEAD_FILE, (int(self.head_file is not None),))
            if self._standing.to_scrub:
                scrub.scrub(self._connection, self._file, None)
                self._connection.execute(sql.SET_SCRUB, (0,))
            self._standing = standing_of(self._connection)
        self._keep_reserve()

    def _keep_reserve(self) -> None:
        """Sees to it that there is a reserve, where there is room for one."""
        before = self.reserve.held
        self.reserve.keep()
        if self.reserve.spent:
            self.full = True
            # A checkpoint makes the file larger: it would take what was given up for the gate.
            self._connection.execute(sql.NO_CHECKPOINTS)
        elif self.reserve.held and not before:
            self.full = False
            self._connection.execute(sql.CHECKPOINTS)

    def head(self) -> Head:
        """The newest head, read from the file so that a ledger that is gone is noticed."""
        with self._guarded():
            self._still_there()
            self._standing = standing_of(self._connection)
        self._keep_reserve()
        return self._standing.head

    def append_all(self, batches: Sequence[Batch]) -> list[list[Event] | LedgerError]:
        """Commits all batches at once, each judged after those before it; conflicts fail alone.

        On a full disk the reserve is given up for those that restrict, and the others fail.
        """
        self._keep_reserve()
        if not self.reserve.spent:
            try:
                found = self._commit(batches)
                self.full = False
                return found
            except LedgerFull:
                self.full = True
                if not any(batch.restricts for batch in batches) or not self.reserve.give_up():
                    raise
                self._keep_reserve()
        restricting = iter(self._commit([batch for batch in batches if batch.restricts]))
        return [next(restricting) if batch.restricts else LedgerFull(FULL) for batch in batches]

    def _commit(self, batches: Sequence[Batch]) -> list[list[Event] | LedgerError]:
        if not batches:
            return []
        head, outcomes = self._standing.head, list[list[Event] | LedgerError]()
        with self._guarded(), self._transaction():
            self._still_there()
            for batch in batches:
                if batch.expect is not None and self._newest_of(batch.expect[0]) != batch.expect[1]:
                    outcomes.append(Conflict(MOVED))
                    continue
                if batch.epoch is not None and batch.epoch != head.gate_epoch:
                    outcomes.append(Conflict(GATE_MOVED))
                    continue
                before = bytes.fromhex(head.hash), head.number
                head, rows = extend(head, batch.drafts)
                self._write(batch, rows, head.number)
                outcomes.append(chained(*before, rows))
            last = bytes.fromhex(head.hash)
            self._connection.execute(sql.SET_HEAD, (head.number, last, head.gate_epoch))
        self._standing = Standing(
            head, self._standing.key_ids, self._standing.has_head_file, self._standing.to_scrub
        )
        self._write_head_file()
        return outcomes

    def events(self, after: int, erasure: str | None, limit: int) -> list[Event]:
        """The next events, checked against the chain."""
        with self._guarded():
            if erasure is not None:
                return self._events_of(erasure, after, limit)
            previous = hash_at(self._connection, self._standing, after)
            rows = self._connection.execute(sql.EVENTS, (after, limit)).fetchall()
            if rows and previous is None:
                raise broken(f"event {after} is missing")
            found = chained(bytes.fromhex(previous or ""), after, rows)
            last = found[-1].number if found else after
            if len(rows) < limit and last < self._standing.head.number:
                raise broken(f"event {last + 1} is missing")
            return found

    def marks(self, after: MarkRow, limit: int) -> list[MarkRow]:
        """The next marks in order."""
        with self._guarded():
            return self._connection.execute(sql.MARKS, (*after, limit)).fetchall()

    def secret(self, erasure: str, name: str) -> bytes | None:
        """Sealed bytes, or None."""
        with self._guarded():
            row = self._connection.execute(sql.SECRET, (erasure, name)).fetchone()
            return None if row is None else bytes(row[0])

    def secret_names(self, erasure: str) -> list[str]:
        """The names, sorted."""
        with self._guarded():
            return [row[0] for row in self._connection.execute(sql.SECRET_NAMES, (erasure,))]

    def destroy_secrets(self, erasure: str) -> None:
        """Removes secrets, and looks whether they are gone; see `scrub`.

        Raises LedgerUnavailable when a reader keeps the journal, or the disk is too full to rewrite
        the file. The rows are gone then, and the next call or opening sees to the rest.
        """
        with self._guarded():
            found = [bytes(row[0]) for row in self._connection.execute(sql.SECRETS_OF, (erasure,))]
            pending = standing_of(self._connection).to_scrub
            if not found and not pending:
                return
            with self._transaction():
                self._connection.execute(sql.DROP_SECRETS, (erasure,))
                self._connection.execute(sql.SET_SCRUB, (1,))
            # What a crash or a reader left over is not known any more: then nothing but a rewrite is sure.
            scrub.scrub(self._connection, self._file, None if pending else found)
            self._connection.execute(sql.SET_SCRUB, (0,))

    def key_ids(self) -> frozenset[str]:
        """Ids of the keys that are bound."""
        with self._guarded():
            return standing_of(self._connection).key_ids

    def bind_keys(self, ids: frozenset[str]) -> None:
        """Binds keys to a ledger that has none and no events."""
        with self._guarded():
            refuse_binding(self._standing.key_ids, ids, self._standing.head)
            if self._standing.key_ids == ids:
                return
            first = genesis(self._standing.head.incarnation, ids)
            self._connection.execute(sql.SET_KEYS, (canonical(sorted(ids)), first))
            self._standing = standing_of(self._connection)
        self._write_head_file()

    def _write(self, batch: Batch, rows: Sequence[Row], number: int) -> None:
        execute, many = self._connection.execute, self._connection.executemany
        many(sql.ADD_EVENT, rows)
        many(sql.DROP_MARKS, ((erasure,) for erasure in batch.unmark))
        many(sql.ADD_MARK, ((erasure, mark.kind, mark.digest, number) for erasure, mark in batch.marks))
        for erasure, name, sealed in batch.secrets:
            execute(sql.DROP_SECRET, (erasure, name))
            execute(sql.ADD_SECRET, (erasure, name, bytes(sealed)))

    def _events_of(self, erasure: str, after: int, limit: int) -> list[Event]:
        first = genesis(self._standing.head.incarnation, self._standing.key_ids)
        found: list[Event] = []
        for *columns, previous in self._connection.execute(sql.EVENTS_OF, (erasure, after, limit)):
            before = columns[0] - 1
            if previous is None and before > 0:
                raise broken(f"event {before} is missing")
            found += chained(previous or first, before, (Row._make(columns),))
        return found

    def _newest_of(self, erasure: str) -> int:
        return int(self._connection.execute(sql.NEWEST_OF, (erasure,)).fetchone()[0])

    def _still_there(self) -> None:
        """Poisons the ledger if its file is not the one at its path: what is written would be lost."""
        try:
            same = os.path.samestat(os.stat(self.path), os.fstat(self._file))
        except OSError:
            same = False
        if not same:
            self._poison = LedgerUncertain(
                f"the ledger {self.path} was removed or replaced while it was in use: put it back, then "
                "restart Quietus"
            )
            raise self._poison

    def _write_head_file(self) -> None:
        if self.head_file is None:
            return
        try:
            files.write_head(self.head_file, self._standing.head)
            self.head_file_fault = None
        except OSError as error:
            # The events are durable and must not be reported as lost; the head file is older, as it may be.
            self.head_file_fault = f"the head file {self.head_file} cannot be written: {error.strerror}"

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._poison is not None:
            raise self._poison
        try:
            yield
        except READ_ERRORS as error:
            fault, poisons = meaning(error)
            if poisons:
                self._poison = fault
            raise fault from None
