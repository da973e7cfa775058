"""The ledger in memory: the reference that every other ledger is compared with.

It keeps nothing past the process. A simulation closes and opens it again to play a restart, and sets
`fault` to play a ledger that cannot be reached.
"""

from __future__ import annotations

import secrets as random
from collections.abc import AsyncIterator, Sequence
from typing import Final

from quietus.core.events import Draft, Event
from quietus.ledger.chain import Marked, Row, Secret, event_of, extend, genesis, prepare
from quietus.ports import Conflict, Head, LedgerError, LedgerRefused, LedgerUnavailable

MOVED: Final = "the erasure has moved on: read it again and decide anew"
GATE_MOVED: Final = "the gate has moved on: look again whether this is still to be written"


class MemoryLedger:
    """`ports.Ledger` in a few lists. An `incarnation` may be given so that a simulation repeats itself."""

    def __init__(self, incarnation: str | None = None) -> None:
        self.fault: LedgerError | None = None
        """While set, every method raises it and changes nothing."""
        self._incarnation = incarnation or random.token_hex(16)
        self._key_ids: frozenset[str] = frozenset()
        self._head = self._first_head()
        self._rows: list[Row] = []
        self._newest: dict[str, int] = {}
        self._marks: list[tuple[int, Marked]] = []
        self._secrets: dict[str, dict[str, bytes]] = {}
        self._is_open = False

    async def open(self) -> Head:
        """Opens it; what was in it before it was closed is still there."""
        if self._is_open:
            raise LedgerRefused("this ledger is open already: close it first")
        if self.fault is not None:
            raise self.fault
        self._is_open = True
        return self._head

    @property
    def full(self) -> bool:
        """Never: it has no disk."""
        return False

    @property
    def reserve_bytes(self) -> int:
        """None is needed."""
        return 0

    async def head(self) -> Head:
        """The newest head."""
        self._check()
        return self._head

    async def append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: tuple[str, int] | None = None,
        epoch: int | None = None,
        marks: Sequence[Marked] = (),
        secrets: Sequence[Secret] = (),
        unmark: Sequence[str] = (),
    ) -> list[Event]:
        """Writes all of it, or raises and writes nothing."""
        batch = prepare(drafts, expect, marks, secrets, unmark, epoch)
        self._check()
        if epoch is not None and self._head.gate_epoch != epoch:
            raise Conflict(GATE_MOVED)
        if expect is not None and self._newest.get(expect[0], 0) != expect[1]:
            raise Conflict(MOVED)
        self._head, rows = extend(self._head, batch.drafts)
        self._rows += rows
        self._newest |= {row.erasure: row.number for row in rows}
        if batch.unmark:
            self._marks = [entry for entry in self._marks if entry[1][0] not in batch.unmark]
        self._marks += [(self._head.number, marked) for marked in batch.marks]
        for erasure, name, sealed in batch.secrets:
            self._secrets.setdefault(erasure, {})[name] = bytes(sealed)
        return [event_of(row) for row in rows]

    async def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first."""
        self._check()
        place = max(after, 0)
        # By index and not by iterator: what is appended meanwhile follows.
        while place < len(self._rows):
            row = self._rows[place]
            place += 1
            if erasure is None or row.erasure == erasure:
                yield event_of(row)
                self._check()

    async def marks(self) -> AsyncIterator[Marked]:
        """Every mark with its erasure, each once."""
        self._check()
        for marked in sorted({entry[1] for entry in self._marks}, key=_order):
            yield marked

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""
        self._check()
        return self._secrets.get(erasure, {}).get(name)

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""
        self._check()
        return sorted(self._secrets.get(erasure, {}))

    async def destroy_secrets(self, erasure: str) -> None:
        """Forgets them."""
        self._check()
        self._secrets.pop(erasure, None)

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with; empty when it is new."""
        self._check()
        return self._key_ids

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once, before the first event."""
        self._check()
        refuse_binding(self._key_ids, ids, self._head)
        self._key_ids = frozenset(ids)
        if not self._rows:
            self._head = self._first_head()

    async def close(self) -> None:
        """Lets go; `open` opens it again."""
        self._is_open = False

    def _first_head(self) -> Head:
        return Head(self._incarnation, 0, genesis(self._incarnation, self._key_ids).hex(), 0)

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault
        if not self._is_open:
            raise LedgerUnavailable("the ledger is not open")


def refuse_binding(bound: frozenset[str], ids: frozenset[str], head: Head) -> None:
    """Raises LedgerRefused unless `ids` may be bound, or are bound already."""
    if not ids:
        raise LedgerRefused("no key ids were given: load the keys first")
    if bound == ids:
        return
    if bound:
        raise LedgerRefused(
            "the ledger was written with other keys: start with the keys file that belongs to this ledger"
        )
    if head.number:
        raise LedgerRefused("the ledger has events but no keys: keys are bound before the first event")


def _order(marked: Marked) -> tuple[str, str, bytes]:
    return marked[0], marked[1].kind, marked[1].digest
