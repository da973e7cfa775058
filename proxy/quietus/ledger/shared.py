"""A ledger on a server that several replicas write: `ports.SharedLedger` over one of two engines.

Here is what does not depend on the engine: what is read is held against the chain, and a ledger of another
incarnation, or behind what was seen of it, is refused. An append that raises LedgerUnavailable may have been
written all the same when the connection broke: following the ledger tells.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from quietus.core.events import Draft, Event, EventType
from quietus.ledger import files
from quietus.ledger.appender import EXPELLED, TRIES, Appender
from quietus.ledger.chain import LEDGER, Marked, Secret, broken, chained, genesis, prepare
from quietus.ledger.engine import Engine
from quietus.ledger.memory import refuse_binding
from quietus.ledger.plan import Asked, fenced
from quietus.ports import (
    Entry,
    Head,
    LedgerBehind,
    LedgerRefused,
    LedgerUnavailable,
    Muster,
    Unlisted,
)

PAGE: Final = 2000
"""Rows read at a time."""


class SharedServerLedger:
    """`ports.SharedLedger` on an engine. `head_file` may keep the newest head outside the server."""

    def __init__(self, engine: Engine, *, head_file: str | os.PathLike[str] | None = None) -> None:
        self.news = asyncio.Event()
        self._engine = engine
        self._head_file = Path(head_file) if head_file is not None else None
        self.head_file_fault: str | None = None
        """Why the head file is older than the ledger; None while it is current or not asked for."""
        self._seen: Head | None = None
        self._session: str | None = None
        self._held: dict[str, int] = {}
        self._appender: Appender | None = None

    @property
    def full(self) -> bool:
        """Never of its own: a server's full disk shows as a ledger that does not answer."""
        return False

    @property
    def reserve_bytes(self) -> int:
        """None: the disk is the server's."""
        return 0

    async def open(self) -> Head:
        """Connects and checks. Raises LedgerError."""
        if self._appender is not None:
            raise LedgerRefused("this ledger is open already: close it first")
        try:
            await self._engine.connect(self.news)
            await self._engine.verify()
            standing = await self._engine.standing()
            first = genesis(standing.head.incarnation, standing.key_ids)
            await self._check_head_file(standing.head, first)
        except BaseException:
            await self._engine.disconnect()
            raise
        self._seen = None
        self._saw(standing.head)
        self._appender = Appender(self._engine, lambda: self._session, self._saw)
        return standing.head

    async def close(self) -> None:
        """Waits for what was asked before, and lets go."""
        appender, self._appender = self._appender, None
        if appender is None:
            return
        try:
            await appender.end()
        finally:
            self._session = None
            self._held.clear()
            await self._engine.disconnect()

    async def verify(self) -> None:
        """Looks at the server's settings. Raises LedgerRefused, saying what to change."""
        await self._open().verify()

    # --- events --------------------------------------------------------------------------------

    async def head(self) -> Head:
        """The newest head."""
        head = (await self._open().standing()).head
        self._saw(head)
        return head

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
        """Writes all of it, or raises; only LedgerUnavailable leaves open whether it was written."""
        batch = prepare(drafts, expect, marks, secrets, unmark, epoch)
        self._open()
        assert self._appender is not None
        claims: tuple[str, ...] = ()
        fences: tuple[tuple[str, int], ...] = ()
        if self._session is not None:
            claims = tuple(d.erasure for d in drafts if d.type is EventType.REQUESTED)
            fences = fenced([d for d in drafts if d.erasure not in claims], self._held)
        written = await self._appender.append(Asked(batch, fences, claims))
        self._held.update(dict.fromkeys(claims, 1))
        return written

    async def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first; raises LedgerRefused where the chain breaks."""
        engine = self._open()
        last, standing = max(after, 0), await engine.standing()
        first = genesis(standing.head.incarnation, standing.key_ids)
        previous: bytes | None = first if not last or erasure else None
        while True:
            page = (
                await self._page_of(erasure, last, first) if erasure else await self._page(last, previous)
            )
            for event in page:
                yield event
            if len(page) < PAGE:
                return
            last, previous = page[-1].number, bytes.fromhex(page[-1].hash)

    async def _page(self, after: int, previous: bytes | None) -> list[Event]:
        engine = self._open()
        if previous is None:
            before = await engine.rows(after - 1, 1)
            if not before or before[0][0] != after:
                return []  # there is nothing behind the end
            previous = before[0][7]
        return chained(previous, after, await engine.rows(after, PAGE))

    async def _page_of(self, erasure: str, after: int, first: bytes) -> list[Event]:
        found: list[Event] = []
        for row, previous in await self._open().rows_of(erasure, after, PAGE):
            if previous is None and row[0] > 1:
                raise broken(f"event {row[0] - 1} is missing")
            found += chained(previous or first, row[0] - 1, (row,))
        return found

    async def follow(self, after: int, previous: str) -> list[Entry]:
        """The next events with their marks, checked against the chain that is known here."""
        rows = await self._open().rows(after, PAGE)
        events = chained(await self._before(after, previous), after, rows)
        places = [(name, e.number) for e in events for name in e.facts.get(LEDGER, {}).get("marks", {})]
        found = dict(zip(places, await self._engine.marks_of(places), strict=True)) if places else {}
        return [
            Entry(
                event,
                tuple((name, m) for name in said.get("marks", {}) for m in found[name, event.number]),
                tuple(said.get("unmarked", ())),
            )
            for event in events
            for said in (event.facts.get(LEDGER, {}),)
        ]

    async def _before(self, after: int, previous: str) -> bytes:
        if after:
            return bytes.fromhex(previous)
        standing = await self._open().standing()
        return genesis(standing.head.incarnation, standing.key_ids)

    async def marks(self) -> AsyncIterator[Marked]:
        """Every mark with its erasure, each once, sorted."""
        engine = self._open()
        names = sorted(await engine.marked())
        for start in range(0, len(names), PAGE):
            part = names[start : start + PAGE]
            for name, its in zip(part, await engine.marks_of([(n, None) for n in part]), strict=True):
                for mark in sorted(set(its), key=lambda m: (m.kind, m.digest)):
                    yield name, mark

    # --- secrets and keys ----------------------------------------------------------------------

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""
        return await self._open().secret(erasure, name)

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""
        return sorted(await self._open().secret_names(erasure))

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them from what the server answers with; see the engine for what its disk still holds."""
        await self._open().destroy_secrets(erasure)

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with; empty when it is new."""
        return (await self._open().standing()).key_ids

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once, before the first event."""
        for _ in range(TRIES):
            standing = await self._open().standing()
            refuse_binding(standing.key_ids, ids, standing.head)
            first = genesis(standing.head.incarnation, ids)
            if standing.key_ids == ids or await self._engine.bind_keys(standing, ids, first):
                return
        raise LedgerUnavailable("the ledger does not come to rest: try again")

    # --- the roster ----------------------------------------------------------------------------

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster, durably. Work that was held under another session is held no more."""
        muster = await self._open().join(session, seconds)
        self._session = session
        self._held.clear()
        self._saw(muster.head)
        return muster

    async def renew(self, session: str, number: int, undrained: Sequence[int] = ()) -> Muster:
        """Beats once, and says how far it is. Raises Unlisted."""
        muster = await self._open().renew(session, number, undrained)
        if muster is None:
            raise Unlisted(EXPELLED)
        self._saw(muster.head)
        return muster

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that; False when it has lived on."""
        return await self._open().expel(session, beat)

    async def leave(self, session: str) -> None:
        """Goes out of the roster and gives up its work."""
        await self._open().leave(session)

    async def settle_life(self, life: str) -> None:
        """Notes that every member has had the time to join anew in this life of the server."""
        await self._open().settle_life(life)

    async def claim(self, session: str, erasure: str) -> int:
        """The generation under which this session works on an erasure; 0 while another one does."""
        if (generation := self._held.get(erasure, 0)) and session == self._session:
            return generation  # nobody can take it while this session is in the roster
        generation = await self._open().claim(session, erasure)
        if generation < 0:
            raise Unlisted(EXPELLED)
        if generation:
            self._held[erasure] = generation
        return generation

    async def release(self, session: str, erasure: str) -> None:
        """Gives up the work on an erasure that is over."""
        self._held.pop(erasure, None)
        await self._open().release(session, erasure)

    # --- what was seen -------------------------------------------------------------------------

    def _open(self) -> Engine:
        if self._appender is None:
            raise LedgerUnavailable("the ledger is not open")
        return self._engine

    def _saw(self, head: Head) -> None:
        seen = self._seen
        if seen is not None and head.incarnation != seen.incarnation:
            raise LedgerBehind("the server holds another ledger than before: restore the one that was in use")
        if seen is not None and head.number < seen.number:
            return  # an older answer that was overtaken; who follows compares with what is known here
        self._seen = head
        if self._head_file is None or (seen is not None and head.number == seen.number):
            return
        try:
            files.write_head(self._head_file, head)
            self.head_file_fault = None
        except OSError as error:
            self.head_file_fault = f"the head file {self._head_file} cannot be written: {error.strerror}"

    async def _check_head_file(self, head: Head, first: bytes) -> None:
        known = files.read_head(self._head_file) if self._head_file is not None else None
        if known is None or self._head_file is None:
            return
        rows = await self._engine.rows(known.number - 1, 1) if known.number else []
        then = rows[0][7] if rows and rows[0][0] == known.number else first if not known.number else None
        files.compare(self._head_file, head, known, then.hex() if then is not None else None)
