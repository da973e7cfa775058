"""The lineage beside the ledger: a SQLite file of its own, which a scan may write to while the sidecar runs.

It holds digests and sealed addresses only. Losing it loses no erasure and opens no gate: what it knew is
then not known, and verdicts say so.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from quietus.ports import LineageFault

Rows = list[tuple[bytes, bytes]]
T = TypeVar("T")

APPLICATION_ID: Final = 0x5175694C  # "QuiL"
_SETTINGS: Final = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA temp_store = MEMORY",
    f"PRAGMA application_id = {APPLICATION_ID}",
)
_CREATE: Final = (
    """CREATE TABLE IF NOT EXISTS records (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        name BLOB NOT NULL UNIQUE,
        form BLOB NOT NULL
    ) STRICT""",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
)


class LineageFile:
    """`ports.LineageLog` on a file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection: sqlite3.Connection | None = None
        self._seen = 0
        self._serving = False
        self._turn = asyncio.Lock()

    async def open(self, check: str, serving: bool) -> Mapping[str, Any]:
        """Opens or makes the file, 0600; what it says of itself."""
        return await self._do(partial(self._open, check, serving), opening=True)

    async def rows(self) -> Rows:
        """Every record."""
        self._seen = 0
        return await self._do(self._newer)

    async def newer(self) -> tuple[Rows, Mapping[str, Any]]:
        """What another process has written since the last look."""
        return await self._do(lambda: (self._newer(), self._facts()))

    async def write(self, rows: Sequence[tuple[bytes, bytes]], meta: Mapping[str, Any]) -> None:
        """Writes records and facts in one transaction."""
        await self._do(partial(self._write, rows, meta))

    async def close(self) -> None:
        """Says that nothing is missing, empties the journal, lets go."""
        await self._do(self._close)

    # --- on another thread -----------------------------------------------------------------------

    def _open(self, check: str, serving: bool) -> Mapping[str, Any]:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            (known,) = connection.execute("PRAGMA application_id").fetchone()
            if known not in (0, APPLICATION_ID):
                raise LineageFault(f"{self.path} is a database of something else: move it away")
            for statement in (*_SETTINGS, *_CREATE):
                connection.execute(statement)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._serving = serving
        facts = dict(self._facts())
        if facts.get("check") != check:
            # Its digests are of other keys: nothing in it can be matched any more.
            connection.execute("DELETE FROM records")
            connection.execute("DELETE FROM facts")
            facts = {}
            self._say({"check": check})
        if serving:
            self._say({"unclean": True})
        return facts

    def _newer(self) -> Rows:
        found = self._open_connection.execute(
            "SELECT seq, name, form FROM records WHERE seq > ? ORDER BY seq", (self._seen,)
        ).fetchall()
        if found:
            self._seen = found[-1][0]
        return [(bytes(name), bytes(form)) for _, name, form in found]

    def _facts(self) -> Mapping[str, Any]:
        found = self._open_connection.execute("SELECT name, value FROM facts").fetchall()
        return {name: json.loads(value) for name, value in found}

    def _say(self, facts: Mapping[str, Any]) -> None:
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        self._open_connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def _write(self, rows: Sequence[tuple[bytes, bytes]], meta: Mapping[str, Any]) -> None:
        connection = self._open_connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            gone = [(name,) for name, form in rows if not form]
            connection.executemany("DELETE FROM records WHERE name = ?", gone)
            (before,) = connection.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
            kept = [(name, form) for name, form in rows if form]
            connection.executemany("INSERT OR REPLACE INTO records (name, form) VALUES (?, ?)", kept)
            (after,) = connection.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()
            self._say(meta)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if self._seen >= before:
            self._seen = after  # what was written here need not be read back

    def _close(self) -> None:
        if self._connection is None:
            return
        if self._serving:
            self._say({"unclean": False})
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()
        self._connection = None

    @property
    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise LineageFault("the lineage file is not open")
        return self._connection

    async def _do(self, work: Callable[[], T], *, opening: bool = False) -> T:
        async with self._turn:
            if opening and self._connection is not None:
                raise LineageFault("this lineage file is open already: close it first")
            try:
                return await asyncio.get_running_loop().run_in_executor(None, work)
            except (sqlite3.Error, OSError) as error:
                raise LineageFault(
                    f"the lineage file {self.path} cannot be used ({type(error).__name__}): make its folder "
                    "writable, free some space, or move the file away and scan again"
                ) from None
