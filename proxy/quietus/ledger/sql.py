"""Every SQL statement of the SQLite ledger.

Secrets are appended (AUTOINCREMENT) and not ordered by erasure: a row that only ever goes to the
right-hand end of its tree is rarely moved, and a move is what leaves copies of a row behind that
`secure_delete` does not know of (see `Database.destroy_secrets`, which looks for them).
"""

from __future__ import annotations

from typing import Final

APPLICATION_ID: Final = 0x51756965  # "Quie"
SCHEMA: Final = 1
"""Number of the newest schema that this code reads and writes."""

SETTINGS: Final = (
    "PRAGMA busy_timeout = 1000",
    "PRAGMA secure_delete = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA mmap_size = 0",
    "PRAGMA cache_size = -16384",
)
CHECKPOINTS: Final = "PRAGMA wal_autocheckpoint = 1000"
NO_CHECKPOINTS: Final = "PRAGMA wal_autocheckpoint = 0"
DURABLE: Final = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    CHECKPOINTS,
    "PRAGMA journal_size_limit = 16777216",
)

CREATE: Final = (
    """CREATE TABLE ledger (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        incarnation TEXT NOT NULL,
        key_ids TEXT NOT NULL,
        number INTEGER NOT NULL,
        hash BLOB NOT NULL,
        gate_epoch INTEGER NOT NULL,
        has_head_file INTEGER NOT NULL DEFAULT 0,
        to_scrub INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    """CREATE TABLE events (
        number INTEGER PRIMARY KEY,
        type TEXT NOT NULL,
        erasure TEXT NOT NULL,
        at REAL NOT NULL,
        actor TEXT NOT NULL,
        facts TEXT NOT NULL,
        gate INTEGER NOT NULL,
        hash BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX events_of_erasure ON events (erasure, number)",
    """CREATE TABLE marks (
        erasure TEXT NOT NULL,
        kind TEXT NOT NULL,
        digest BLOB NOT NULL,
        number INTEGER NOT NULL,
        PRIMARY KEY (erasure, kind, digest, number)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE secrets (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        erasure TEXT NOT NULL,
        name TEXT NOT NULL,
        sealed BLOB NOT NULL,
        UNIQUE (erasure, name)
    ) STRICT""",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA}",
)

COUNT_TABLES: Final = "SELECT count(*) FROM sqlite_schema"
NEW_LEDGER: Final = (
    "INSERT INTO ledger (id, incarnation, key_ids, number, hash, gate_epoch) VALUES (1, ?, '[]', 0, ?, 0)"
)
LEDGER: Final = (
    "SELECT incarnation, key_ids, number, hash, gate_epoch, has_head_file, to_scrub FROM ledger WHERE id = 1"
)
SET_HEAD: Final = "UPDATE ledger SET number = ?, hash = ?, gate_epoch = ? WHERE id = 1"
SET_KEYS: Final = "UPDATE ledger SET key_ids = ?, hash = ? WHERE id = 1"
SET_HEAD_FILE: Final = "UPDATE ledger SET has_head_file = ? WHERE id = 1"
SET_SCRUB: Final = "UPDATE ledger SET to_scrub = ? WHERE id = 1"

_COLUMNS: Final = "number, type, erasure, at, actor, facts, gate, hash"
ADD_EVENT: Final = f"INSERT INTO events ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
EVENTS: Final = f"SELECT {_COLUMNS} FROM events WHERE number > ? ORDER BY number LIMIT ?"
ALL_EVENTS: Final = f"SELECT {_COLUMNS} FROM events ORDER BY number"
EVENTS_OF: Final = (
    f"SELECT {', '.join('e.' + name for name in _COLUMNS.split(', '))}, p.hash "
    "FROM events e LEFT JOIN events p ON p.number = e.number - 1 "
    "WHERE e.erasure = ? AND e.number > ? ORDER BY e.number LIMIT ?"
)
HASH_AT: Final = "SELECT hash FROM events WHERE number = ?"
LAST_NUMBER: Final = "SELECT coalesce(max(number), 0) FROM events"
NEWEST_OF: Final = "SELECT coalesce(max(number), 0) FROM events WHERE erasure = ?"
LAST_GATE: Final = "SELECT coalesce(max(number), 0) FROM events WHERE gate"

ADD_MARK: Final = "INSERT INTO marks (erasure, kind, digest, number) VALUES (?, ?, ?, ?)"
DROP_MARKS: Final = "DELETE FROM marks WHERE erasure = ?"
MARKS: Final = (
    "SELECT erasure, kind, digest, number FROM marks WHERE (erasure, kind, digest, number) > (?, ?, ?, ?) "
    "ORDER BY erasure, kind, digest, number LIMIT ?"
)
ALL_MARKS: Final = "SELECT erasure, kind, digest, number FROM marks ORDER BY erasure, kind, digest, number"

DROP_SECRET: Final = "DELETE FROM secrets WHERE erasure = ? AND name = ?"
ADD_SECRET: Final = "INSERT INTO secrets (erasure, name, sealed) VALUES (?, ?, ?)"
SECRET: Final = "SELECT sealed FROM secrets WHERE erasure = ? AND name = ?"
SECRET_NAMES: Final = "SELECT name FROM secrets WHERE erasure = ? ORDER BY name"
SECRETS_OF: Final = "SELECT sealed FROM secrets WHERE erasure = ?"
DROP_SECRETS: Final = "DELETE FROM secrets WHERE erasure = ?"

TRUNCATE_JOURNAL: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
REWRITE: Final = "VACUUM"
INTEGRITY: Final = "PRAGMA integrity_check(1)"
