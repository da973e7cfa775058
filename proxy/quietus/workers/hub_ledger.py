"""The hub's ledger as one member has it: the supervisor itself, or a worker at the other end of a line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from quietus.core.events import Draft, Event
from quietus.core.fingerprint import Mark
from quietus.ports import Entry, Head, Ledger, LedgerRefused, LedgerUnavailable, Muster
from quietus.workers.hub import Hub


class HubLedger:
    """`ports.SharedLedger`: the hub as one member sees it."""

    def __init__(self, hub: Hub, expelled: Callable[[], None] = lambda: None) -> None:
        """`expelled` is told when somebody has taken it out of the roster."""
        self._hub = hub
        self.expelled = expelled
        self.news = asyncio.Event()
        self.session: str | None = None
        self.read = 0
        """Up to this event nothing needs to be remembered for it."""
        self._is_open = False

    @property
    def full(self) -> bool:
        """Whether the ledger's disk is full."""
        return self._hub.ledger.full

    @property
    def reserve_bytes(self) -> int:
        """What is set aside for that."""
        return self._hub.ledger.reserve_bytes

    async def open(self) -> Head:
        """Opens the ledger, or finds it open. Raises LedgerError."""
        if self._is_open:
            raise LedgerRefused("this ledger is open already: close it first")
        head = await self._hub.open(self)
        self._is_open = True
        return head

    async def close(self) -> None:
        """Leaves, and lets go."""
        if self._is_open:
            self._is_open = False
            await self._hub.close(self)
            self.session = None

    async def verify(self) -> None:
        """There are no settings of a server to be wrong."""

    async def head(self) -> Head:
        """The newest head."""
        return await self._inner.head()

    async def append(self, drafts: Sequence[Draft], **more: Any) -> list[Event]:
        """Writes all of it, durably, or raises and writes nothing."""
        self._check()
        return await self._hub.append(self, drafts, **more)

    def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first."""
        return self._inner.events(after, erasure)

    def marks(self) -> AsyncIterator[tuple[str, Mark]]:
        """Every mark with its erasure."""
        return self._inner.marks()

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""
        return await self._inner.secret(erasure, name)

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""
        return await self._inner.secret_names(erasure)

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them beyond recovery."""
        await self._inner.destroy_secrets(erasure)

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with."""
        return await self._inner.key_ids()

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once."""
        await self._inner.bind_keys(ids)

    async def follow(self, after: int, previous: str) -> list[Entry]:
        """The next events with their marks."""
        self._check()
        return await self._hub.follow(after, previous)

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster."""
        self._check()
        return await self._hub.join(self, session, seconds)

    async def renew(self, session: str, number: int, undrained: Sequence[int] = ()) -> Muster:
        """Beats once, and says how far it is. Raises Unlisted."""
        self._check()
        return await self._hub.renew(self, session, number, undrained)

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        self._check()
        return self._hub.expel(session, beat)

    async def leave(self, session: str) -> None:
        """Goes out of the roster."""
        self._hub.leave(session)

    async def settle_life(self, life: str) -> None:
        """A hub has one life only."""

    async def claim(self, session: str, erasure: str) -> int:
        """The generation under which this session works on an erasure."""
        self._check()
        return self._hub.claim(session, erasure)

    async def release(self, session: str, erasure: str) -> None:
        """Gives up the work on an erasure that is over."""
        self._hub.release(session, erasure)

    @property
    def _inner(self) -> Ledger:
        self._check()
        return self._hub.ledger

    def _check(self) -> None:
        if not self._is_open:
            raise LedgerUnavailable("the ledger is not open")
