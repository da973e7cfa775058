"""The ledger as a worker has it: every step is asked of the supervisor over the line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from quietus.core.events import Draft, Event
from quietus.core.fingerprint import Mark
from quietus.ledger.chain import prepare
from quietus.ports import Entry, Head, LedgerUnavailable, Muster
from quietus.workers.forms import marked_of
from quietus.workers.hub_ledger import HubLedger
from quietus.workers.line import Line

READINGS_MAX: Final = 16
"""Readings of the ledger that one worker may have begun and not ended."""
PAGE: Final = 2000
"""Events or marks in one answer."""

_STEPS: Final = (
    "open", "close", "head", "secret", "secret_names", "destroy_secrets", "key_ids", "bind_keys", "follow",
    "join", "renew", "expel", "leave", "claim", "release",
)  # fmt: skip


class RemoteLedger:
    """`ports.SharedLedger` over a line."""

    def __init__(self, line: Line) -> None:
        self.news = asyncio.Event()
        self._line = line
        self._full = False
        self._reserve = 0

    @property
    def full(self) -> bool:
        """Whether the ledger's disk is full, as the supervisor said last."""
        return self._full

    @property
    def reserve_bytes(self) -> int:
        """What is set aside for that, as the supervisor said last."""
        return self._reserve

    async def hear(self, full: bool, reserve: int) -> None:
        """The supervisor says that something was written, and how the disk is."""
        self._full, self._reserve = full, reserve
        self.news.set()

    async def open(self) -> Head:
        """Finds it open. Raises LedgerError."""
        head: Head = await self._line.ask("open")
        return head

    async def close(self) -> None:
        """Leaves; where the supervisor is gone there is nothing to leave."""
        if not self._line.broken.is_set():
            await self._line.ask("close")

    async def verify(self) -> None:
        """The supervisor looks after it."""

    async def head(self) -> Head:
        """The newest head."""
        head: Head = await self._line.ask("head")
        return head

    async def append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: tuple[str, int] | None = None,
        epoch: int | None = None,
        marks: Sequence[tuple[str, Mark]] = (),
        secrets: Sequence[tuple[str, str, bytes]] = (),
        unmark: Sequence[str] = (),
    ) -> list[Event]:
        """Writes all of it, durably, or raises."""
        prepare(drafts, expect, marks, secrets, unmark, epoch)  # a bug of the caller shows here, not there
        given = (list(drafts), expect, epoch, list(marks), list(secrets), list(unmark))
        events: list[Event] = await self._line.ask("append", *given)
        return events

    async def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first."""
        async for event in self._read("events", after, erasure):
            yield event

    async def marks(self) -> AsyncIterator[tuple[str, Mark]]:
        """Every mark with its erasure."""
        async for raw in self._read("marks"):
            yield marked_of(raw)

    async def _read(self, name: str, *given: Any) -> AsyncIterator[Any]:
        reading = await self._line.ask("read", name, *given)
        try:
            while page := await self._line.ask("more", reading):
                for one in page:
                    yield one
        finally:
            self._line.tell("enough", reading)

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""
        sealed: bytes | None = await self._line.ask("secret", erasure, name)
        return sealed

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""
        names: list[str] = await self._line.ask("secret_names", erasure)
        return names

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them beyond recovery."""
        await self._line.ask("destroy_secrets", erasure)

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with."""
        ids: frozenset[str] = await self._line.ask("key_ids")
        return ids

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once."""
        await self._line.ask("bind_keys", frozenset(ids))

    async def follow(self, after: int, previous: str) -> list[Entry]:
        """The next events with their marks."""
        entries: list[Entry] = await self._line.ask("follow", after, previous)
        return entries

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster."""
        muster: Muster = await self._line.ask("join", session, seconds)
        return muster

    async def renew(self, session: str, number: int, undrained: Sequence[int] = ()) -> Muster:
        """Beats once, and says how far it is. Raises Unlisted."""
        muster: Muster = await self._line.ask("renew", session, number, list(undrained))
        return muster

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        gone: bool = await self._line.ask("expel", session, beat)
        return gone

    async def leave(self, session: str) -> None:
        """Goes out of the roster."""
        await self._line.ask("leave", session)

    async def settle_life(self, life: str) -> None:
        """A hub has one life only."""

    async def claim(self, session: str, erasure: str) -> int:
        """The generation under which this session works on an erasure."""
        generation: int = await self._line.ask("claim", session, erasure)
        return generation

    async def release(self, session: str, erasure: str) -> None:
        """Gives up the work on an erasure that is over."""
        await self._line.ask("release", session, erasure)


class Served:
    """The supervisor's side: one worker's view of the hub, as questions that its line may ask."""

    def __init__(self, view: HubLedger) -> None:
        self.view = view
        self._readings: dict[int, AsyncIterator[Any]] = {}
        self._count = 0

    def answers(self) -> dict[str, Callable[..., Awaitable[Any]]]:
        """By name."""
        own = {"append": self._append, "read": self._read, "more": self._more, "enough": self._enough}
        return {name: getattr(self.view, name) for name in _STEPS} | own

    async def tell(self, line: Line) -> None:
        """Passes hints on until cancelled."""
        while True:
            await self.view.news.wait()
            self.view.news.clear()
            line.tell("news", self.view.full, self.view.reserve_bytes)

    async def _append(
        self,
        drafts: list[Draft],
        expect: list[Any] | None,
        epoch: int | None,
        marks: list[Any],
        secrets: list[Any],
        unmark: list[str],
    ) -> list[Event]:
        return await self.view.append(
            drafts,
            expect=(expect[0], expect[1]) if expect is not None else None,
            epoch=epoch,
            marks=[marked_of(raw) for raw in marks],
            secrets=[(erasure, name, sealed) for erasure, name, sealed in secrets],
            unmark=unmark,
        )

    async def _read(self, name: str, *given: Any) -> int:
        if len(self._readings) >= READINGS_MAX:
            raise LedgerUnavailable("too many readings of the ledger at one time: try again")
        self._count += 1
        self._readings[self._count] = self.view.marks() if name == "marks" else self.view.events(*given)
        return self._count

    async def _more(self, reading: int) -> list[Any]:
        found: list[Any] = []
        source = self._readings.get(reading)
        while source is not None and len(found) < PAGE:
            try:
                found.append(await anext(source))
            except StopAsyncIteration:
                break
        return found

    async def _enough(self, reading: int) -> None:
        self._readings.pop(reading, None)
