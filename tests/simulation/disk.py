"""The ledger's disk: slow, at times unreachable, at times full. What was committed survives every process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from quietus.core.events import Draft, Event
from quietus.ledger.memory import MemoryLedger
from quietus.ports import Head, LedgerUnavailable, Mark
from tests.simulation.virtual import Time

Told = Callable[[Sequence[Event]], None]


class Disk:
    """The state of the disk, seen by one process after the other."""

    def __init__(self, time: Time, delay: float) -> None:
        self.time = time
        self.delay = delay
        self.down_until = 0.0
        self.full_until = 0.0
        self.calls = 0
        """Appends and reads that it was asked for, those that failed too."""

    def check(self, writing: bool = False) -> None:
        """One call. Raises LedgerUnavailable while it is unreachable, or full and written to."""
        self.calls += 1
        if self.time.elapsed < self.down_until:
            raise LedgerUnavailable("the ledger cannot be reached")
        if writing and self.time.elapsed < self.full_until:
            raise LedgerUnavailable("the disk is full")


class DiskLedger:
    """A `ports.Ledger` of one process: `MemoryLedger` behind one writer that takes its time.

    `committed` is called when events are durable, `known` when the process learns of it: between the two it
    may die.
    """

    def __init__(self, inner: MemoryLedger, disk: Disk, committed: Told, known: Told) -> None:
        self._inner = inner
        self._disk = disk
        self._committed = committed
        self._known = known
        self._free_at = 0.0
        self._count = 0
        self._waiting = 0

    async def _pause(self) -> None:
        """One writer: turns come in the order in which they were asked for, also when it gets faster."""
        delay = self._disk.delay or (0.001 if self._waiting else 0.0)
        if not delay:
            return
        self._count += 1
        share = 0.3 + 0.7 * (self._count * 0.618034 % 1.0)
        self._free_at = max(self._free_at, self._disk.time.elapsed) + delay * share
        self._waiting += 1
        try:
            await self._disk.time.sleep(self._free_at - self._disk.time.elapsed)
        finally:
            self._waiting -= 1

    async def open(self) -> Head:
        self._disk.check()
        return await self._inner.open()

    async def head(self) -> Head:
        self._disk.check()
        return await self._inner.head()

    async def append(self, drafts: Sequence[Draft], **more: Any) -> list[Event]:
        await self._pause()
        self._disk.check(writing=True)
        events = await self._inner.append(drafts, **more)  # it never gives way
        self._committed(events)
        await self._pause()
        self._known(events)
        return events

    async def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        self._disk.check()
        async for event in self._inner.events(after, erasure):
            yield event

    async def marks(self) -> AsyncIterator[tuple[str, Mark]]:
        self._disk.check()
        async for marked in self._inner.marks():
            yield marked

    async def secret(self, erasure: str, name: str) -> bytes | None:
        self._disk.check()
        return await self._inner.secret(erasure, name)

    async def secret_names(self, erasure: str) -> list[str]:
        self._disk.check()
        return await self._inner.secret_names(erasure)

    async def destroy_secrets(self, erasure: str) -> None:
        self._disk.check()
        await self._inner.destroy_secrets(erasure)

    async def key_ids(self) -> frozenset[str]:
        self._disk.check()
        return await self._inner.key_ids()

    async def bind_keys(self, ids: frozenset[str]) -> None:
        self._disk.check()
        await self._inner.bind_keys(ids)

    async def close(self) -> None:
        await self._inner.close()
