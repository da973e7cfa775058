"""A ledger as it lies on disk, folded once: what `explain` decides by, while another process writes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from quietus.core.fingerprint import Mark
from quietus.core.gate import Gate
from quietus.keys import Keyring
from quietus.ledger import sql
from quietus.ledger.chain import event_of
from quietus.ledger.opening import is_new, standing_of
from quietus.ledger.verify import open_read_only
from quietus.ports import LedgerRefused


def replay(path: Path, keyring: Keyring, gate: Gate) -> int:
    """Folds a ledger into `gate`; returns the number of its last event. Raises LedgerError."""
    with closing(open_read_only(path)) as connection:
        connection.execute("BEGIN")
        if is_new(connection):
            return 0
        standing = standing_of(connection)
        if standing.key_ids and standing.key_ids != keyring.ids:
            raise LedgerRefused("the ledger was written with other keys: give the file that belongs to it")
        for row in connection.execute(sql.ALL_EVENTS):
            gate.apply(event_of(row))
        marks: dict[str, list[Mark]] = {}
        for erasure, kind, digest, _ in connection.execute(sql.ALL_MARKS):
            marks.setdefault(erasure, []).append(Mark(kind, digest))
        for erasure, its in marks.items():
            gate.mark(erasure, its)
        return standing.head.number
