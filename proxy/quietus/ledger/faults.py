"""What an error of SQLite means for a ledger, in words for whoever has to act.

SQLite's own texts are never passed on: some of them quote the bytes they stumbled over.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from quietus.ports import LedgerError, LedgerFull, LedgerRefused, LedgerUnavailable, LedgerUncertain

READ_ERRORS: Final = (sqlite3.Error, UnicodeError)
"""What SQLite raises: the second where damage makes it quote bytes that are no text."""

FULL: Final = "the ledger's disk is full; nothing was written: free some space"
_FULL: Final = (sqlite3.SQLITE_FULL,)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT)
_MEMORY: Final = (sqlite3.SQLITE_NOMEM,)
_READ_ONLY: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
_INPUT_OUTPUT: Final = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def meaning(error: Exception) -> tuple[LedgerError, bool]:
    """The error to raise instead, and whether nothing may be trusted until the ledger is opened anew.

    After an I/O error nobody knows what reached the disk: a later sync that succeeds would prove
    nothing about the pages that an earlier one lost.
    """
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", "unknown error")
    primary = None if code is None else code & 0xFF
    if primary in _FULL:
        return LedgerFull(FULL), False
    if primary in _BUSY or primary in _MEMORY:
        return LedgerUnavailable(f"the ledger is busy ({name}); nothing was written: try again"), False
    if primary in _READ_ONLY:
        return (
            LedgerUnavailable(
                f"the ledger cannot be written ({name}); nothing was written: make its file and folder "
                "writable for Quietus"
            ),
            False,
        )
    if primary in _INPUT_OUTPUT:
        return (
            LedgerUncertain(
                f"the ledger's disk fails or is full ({name}); what was being written may or may not be "
                "there: check the disk, then restart Quietus"
            ),
            True,
        )
    return (
        LedgerRefused(
            f"the ledger is damaged ({name}): run `quietus ledger verify`, and restore it from a backup that "
            "verifies"
        ),
        True,
    )
