"""Opening a SQLite ledger: made if it is new, refused if it cannot be trusted.

Nothing is changed in a file before it is known to be a ledger of a schema that this code knows.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quietus.ledger import sql
from quietus.ledger.chain import broken, genesis
from quietus.ledger.files import close_to_others, compare, create, read_head
from quietus.ports import Head, LedgerRefused


@dataclass(frozen=True, slots=True)
class Standing:
    """What a ledger says of itself in its one row."""

    head: Head
    key_ids: frozenset[str]
    has_head_file: bool
    """At its last opening it was given a head file."""
    to_scrub: bool
    """Secrets were removed, and it was not made sure yet that no trace of them is left."""


Connect = Callable[[Path], sqlite3.Connection]
"""How a file is opened: a test opens it through a file system of its own, which fails when it is told to."""


def connect_file(path: Path) -> sqlite3.Connection:
    """A connection to a file as it lies on the disk."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)


def open_writable(
    path: Path, head_file: Path | None, max_bytes: int | None, connect: Connect = connect_file
) -> sqlite3.Connection:
    """A connection for the one writer, with everything checked. Raises LedgerRefused, sqlite3.Error."""
    known = read_head(head_file) if head_file else None
    if not path.exists():
        if head_file:
            compare(head_file, None, known, None)
        create(path)
    close_to_others(path)
    connection = connect(path)
    try:
        for statement in sql.SETTINGS:
            connection.execute(statement)
        new = is_new(connection)
        if new and head_file:
            compare(head_file, None, known, None)
        for statement in sql.DURABLE:
            connection.execute(statement)
        if new:
            _make(connection)
        if max_bytes is not None:
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count = {max(1, max_bytes // int(page_size))}")
        standing = check(connection)
        # A file that can only be read is noticed now and not at the first forget. Beginning alone
        # does not tell: SQLite begins a reading transaction then.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(sql.SET_SCRUB, (int(standing.to_scrub),))
        connection.execute("ROLLBACK")
        if head_file:
            check_head_file(connection, standing, head_file, known)
    except BaseException:
        connection.close()
        raise
    return connection


def is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file has nothing in it. Raises LedgerRefused if it has something not understood."""
    (tables,) = connection.execute(sql.COUNT_TABLES).fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if not tables and not application and not schema:
        return True
    if application != sql.APPLICATION_ID:
        raise LedgerRefused("the ledger's file is a database of something else: give another path")
    if schema > sql.SCHEMA:
        raise LedgerRefused(
            f"the ledger has schema {schema} and this Quietus knows {sql.SCHEMA}: a newer Quietus wrote it; "
            "upgrade, or restore the backup that was made before the upgrade"
        )
    if schema < 1 or not tables:
        raise LedgerRefused("the ledger's file has no schema: restore it from a backup that verifies")
    return False


def standing_of(connection: sqlite3.Connection) -> Standing:
    """The ledger's one row. Raises LedgerRefused if it makes no sense."""
    row = connection.execute(sql.LEDGER).fetchone()
    try:
        incarnation, ids, number, last, epoch, has_head_file, to_scrub = row
        head = Head(str(incarnation), int(number), bytes(last).hex(), int(epoch))
        key_ids = frozenset(str(item) for item in json.loads(ids))
    except (TypeError, ValueError):
        raise broken("its head cannot be read") from None
    return Standing(head, key_ids, bool(has_head_file), bool(to_scrub))


def check(connection: sqlite3.Connection) -> Standing:
    """The ledger's standing, if its head is where its events end. Raises LedgerRefused."""
    standing = standing_of(connection)
    head = standing.head
    (last,) = connection.execute(sql.LAST_NUMBER).fetchone()
    if last != head.number:
        raise broken(f"it ends at event {last} and its head says {head.number}")
    if hash_at(connection, standing, last) != head.hash:
        raise broken(f"event {last} does not match the head")
    (epoch,) = connection.execute(sql.LAST_GATE).fetchone()
    if epoch != head.gate_epoch:
        raise broken(f"the newest event of the gate is {epoch} and its head says {head.gate_epoch}")
    return standing


def check_head_file(
    connection: sqlite3.Connection, standing: Standing, head_file: Path, known: Head | None
) -> None:
    """Raises LedgerRefused if the head file knows a newer or another ledger, or has gone missing."""
    if known is None:
        if standing.has_head_file:
            raise LedgerRefused(
                f"the head file {head_file} is missing: put it back, or, if you know that the ledger was not "
                "rolled back, start once without a head file"
            )
        return
    compare(head_file, standing.head, known, hash_at(connection, standing, known.number))


def hash_at(connection: sqlite3.Connection, standing: Standing, number: int) -> str | None:
    """The hash of the event `number` (0: of what stands before the first), None if there is none."""
    if number == 0:
        return genesis(standing.head.incarnation, standing.key_ids).hex()
    row = connection.execute(sql.HASH_AT, (number,)).fetchone()
    return bytes(row[0]).hex() if row else None


def _make(connection: sqlite3.Connection) -> None:
    incarnation = secrets.token_hex(16)
    connection.execute("BEGIN IMMEDIATE")
    for statement in sql.CREATE:
        connection.execute(statement)
    connection.execute(sql.NEW_LEDGER, (incarnation, genesis(incarnation, ())))
    connection.execute("COMMIT")
