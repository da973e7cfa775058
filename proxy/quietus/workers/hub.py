"""One ledger of this process, shared with others: `ports.SharedLedger` over any `ports.Ledger`.

The roster and who works on what are kept in memory, since everybody in them dies with this process or has its
end seen by it. Events are remembered until everybody has read them, so that following costs no read of the
file; whoever is behind by more than `KEPT` follows from the file.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from quietus.core.events import Draft, Event, EventType
from quietus.core.fingerprint import Mark
from quietus.ledger.appender import EXPELLED
from quietus.ledger.chain import LEDGER, broken
from quietus.ledger.plan import FENCED, NOT_HELD
from quietus.ports import (
    Conflict,
    Entry,
    Head,
    Ledger,
    Member,
    Muster,
    Unlisted,
)

KEPT: Final = 10_000
"""Events remembered for those who have not read them."""
PAGE: Final = 500
"""Events in one answer to `follow`."""


@dataclass(slots=True)
class _Work:
    """Who works on an erasure, and how often that has changed hands."""

    session: str | None = None
    generation: int = 0


@dataclass(slots=True)
class _Past:
    """The newest events, by number, with what came with them; `base` is the one before the first."""

    base: int
    base_hash: str
    entries: dict[int, Entry] = field(default_factory=dict)

    def forget(self, read: int) -> None:
        """Lets go of what everybody has read, and of what is too much."""
        while self.base + 1 in self.entries and (self.base < read or len(self.entries) > KEPT):
            self.base += 1
            self.base_hash = self.entries.pop(self.base).event.hash


class View(Protocol):
    """What the hub knows of each who uses it."""

    news: asyncio.Event
    session: str | None
    """Under which it is in the roster."""
    read: int
    """Up to this event nothing needs to be remembered for it."""

    def expelled(self) -> None:
        """Somebody has taken it out of the roster: its beat stood still for longer than its lease."""


class Hub:
    """The ledger, opened once for all of them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._users = 0
        self._opening = asyncio.Lock()
        self._past = _Past(0, "")
        self._members: dict[str, Member] = {}
        self._works: dict[str, _Work] = {}
        self._views: set[View] = set()
        self._writing: set[asyncio.Task[list[Event]]] = set()
        self._life = secrets.token_hex(8)

    # --- open as long as somebody uses it --------------------------------------------------------

    async def open(self, view: View) -> Head:
        """Opens the ledger for the first of them. Raises LedgerError."""
        async with self._opening:
            head = await self.ledger.open() if not self._users else await self.ledger.head()
            if not self._users:
                self._past = _Past(head.number, head.hash)
            self._users += 1
            view.read = head.number
            self._views.add(view)
            return head

    async def close(self, view: View) -> None:
        """Takes a member out, and closes the ledger after the last; what was asked before is written."""
        await asyncio.gather(*self._writing, return_exceptions=True)
        self.leave(view.session)
        async with self._opening:
            self._views.discard(view)
            self._forget()
            self._users -= 1
            if not self._users:
                await self.ledger.close()

    # --- events ----------------------------------------------------------------------------------

    async def append(self, view: View, drafts: Sequence[Draft], **more: Any) -> list[Event]:
        """Writes under the session of that member. Raises LedgerError.

        It goes on when its caller is gone: what is written has to be told to the others.
        """
        session = view.session
        if session is not None:
            self._listed(session)
            asked = {d.erasure for d in drafts if d.type is EventType.REQUESTED}
            fenced = {d.erasure for d in drafts if d.type in FENCED} - asked
            if any(self._works.get(name, _Work()).session != session for name in fenced):
                raise Conflict(NOT_HELD)
        writing = asyncio.ensure_future(self._written(view, drafts, more))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        return await asyncio.shield(writing)

    async def _written(self, view: View, drafts: Sequence[Draft], more: dict[str, Any]) -> list[Event]:
        events = await self.ledger.append(drafts, **more)
        for event in events:
            self._past.entries[event.number] = _entry(event, more.get("marks", ()))
            if event.type is EventType.REQUESTED and view.session in self._members:
                self._works[event.erasure] = _Work(view.session, 1)
        self._forget()
        self._tell(view)
        return events

    async def follow(self, after: int, previous: str) -> list[Entry]:
        """The next events, if they continue what is known there. Raises LedgerError."""
        past = self._past
        if after < past.base:
            return await self._from_file(after, previous)
        known = past.entries.get(after)
        here = known.event.hash if known else past.base_hash if after == past.base else previous
        if after and previous != here:
            raise broken(f"event {after} is another one here")
        found: list[Entry] = []
        while len(found) < PAGE and (entry := past.entries.get(after + len(found) + 1)) is not None:
            found.append(entry)
        return found

    async def _from_file(self, after: int, previous: str) -> list[Entry]:
        """The same with all marks that those erasures have by now: what came later is no less theirs."""
        events: list[Event] = []
        async for event in self.ledger.events(max(after - 1, 0)):
            if event.number == after and event.hash != previous:
                raise broken(f"event {after} is another one here")
            if event.number > after:
                events.append(event)
            if len(events) == PAGE:
                break
        names = {name for event in events for name in event.facts.get(LEDGER, {}).get("marks", {})}
        marks = [marked async for marked in self.ledger.marks() if marked[0] in names] if names else []
        return [_entry(event, marks) for event in events]

    def _forget(self) -> None:
        self._past.forget(min((view.read for view in self._views), default=0))

    def _tell(self, view: View | None) -> None:
        for other in self._views:
            if other is not view:
                other.news.set()

    # --- the roster ------------------------------------------------------------------------------

    async def join(self, view: View, session: str, seconds: float) -> Muster:
        """Enters the roster; what it worked on under another session is free."""
        self.leave(view.session)
        view.session = session
        self._members[session] = Member(session, 1, view.read, seconds)
        return await self._muster(view)

    async def renew(self, view: View, session: str, number: int, undrained: Sequence[int]) -> Muster:
        """Beats once. Raises Unlisted."""
        member = self._listed(session)
        self._members[session] = replace(
            member, beat=member.beat + 1, number=number, undrained=tuple(undrained)
        )
        view.read = max(view.read, number)
        self._forget()
        return await self._muster(view)

    async def _muster(self, view: View) -> Muster:
        self._tell(view)
        head = await self.ledger.head()
        return Muster(head, tuple(self._members.values()), self._life, self._life)

    def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        member = self._members.get(session)
        if member is not None and member.beat != beat:
            return False
        for view in self._views:
            if view.session == session:
                view.expelled()
        self.leave(session)
        return True

    def leave(self, session: str | None) -> None:
        """Takes a member out, and frees its work."""
        if session is None or self._members.pop(session, None) is None:
            return
        for work in self._works.values():
            if work.session == session:
                work.session = None
        self._forget()
        self._tell(None)

    def claim(self, session: str, erasure: str) -> int:
        """The generation under which this session works on an erasure; 0 while another does."""
        self._listed(session)
        work = self._works.setdefault(erasure, _Work())
        if work.session is None:
            work.session, work.generation = session, work.generation + 1
        return work.generation if work.session == session else 0

    def release(self, session: str, erasure: str) -> None:
        """Gives up a work that is over."""
        work = self._works.get(erasure)
        if work is not None and work.session == session:
            del self._works[erasure]

    def _listed(self, session: str) -> Member:
        member = self._members.get(session)
        if member is None:
            raise Unlisted(EXPELLED)
        return member


def _entry(event: Event, marks: Sequence[tuple[str, Mark]]) -> Entry:
    """An event with what came with it, out of marks among which that is."""
    said = event.facts.get(LEDGER, {})
    named = said.get("marks", {})
    its = tuple(dict.fromkeys(marked for marked in marks if marked[0] in named)) if named else ()
    return Entry(event, its, tuple(said.get("unmarked", ())))
