"""Making sure that removed secrets are gone from a database file.

`secure_delete` overwrites a row that is deleted, but not the copies of it that an earlier
rebalancing of the tree left in unused parts of pages: of 7,000 removed secrets a dozen could still
be found. So the journal is emptied, the file is searched for what was removed, and if a trace of it
is found the whole file is rewritten from its live rows.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Final

from quietus.ledger import sql
from quietus.ports import LedgerUnavailable

_WINDOW: Final = 1 << 20
PROBE: Final = 16
"""Bytes looked for at a time: what is left of a row may be a part of it."""
PROBES: Final = 4
"""Places looked for in each secret; a wrapped key is covered whole but for its last bytes."""


def scrub(connection: sqlite3.Connection, file: int, removed: Sequence[bytes] | None) -> None:
    """Empties the journal and leaves no trace of `removed`; None: of whatever was removed.

    Raises LedgerUnavailable while a reader keeps the journal, or if a trace outlives a rewrite.
    """
    _empty_journal(connection)
    if removed is not None and not contains(file, probes(removed)):
        return
    connection.execute(sql.REWRITE)
    _empty_journal(connection)
    if removed is not None and contains(file, probes(removed)):
        raise LedgerUnavailable("a removed secret is still in the ledger's file: try again")


def probes(removed: Sequence[bytes]) -> list[bytes]:
    """What to look for: up to four parts of each secret, spread over it."""
    found: list[bytes] = []
    for sealed in removed:
        room = max(len(sealed) - PROBE, 0)
        places = sorted({room * place // (PROBES - 1) for place in range(PROBES)})
        found += [part for place in places if (part := sealed[place : place + PROBE])]
    return found


def contains(file: int, parts: Sequence[bytes]) -> bool:
    """Whether any of `parts` is in the open file; parts are not longer than `PROBE`."""
    if not parts:
        return False
    offset, tail = 0, b""
    while window := os.pread(file, _WINDOW, offset):
        text = tail + window
        if any(part in text for part in parts):
            return True
        offset += len(window)
        tail = text[-PROBE:]
    return False


def _empty_journal(connection: sqlite3.Connection) -> None:
    (busy, _, _) = connection.execute(sql.TRUNCATE_JOURNAL).fetchone()
    if busy:
        raise LedgerUnavailable(
            "secrets were removed, but a reader keeps the ledger's journal from being emptied: end it "
            "(a backup, `quietus ledger verify`), then try again"
        )
