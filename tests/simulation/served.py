"""One replica's connection to the ledger's server, as an engine of the product's own shared ledger.

What lies between the two is a `Wire`: in a simulation it is slow, and at times cut; in the conformance suite
there is none. Everything above it is the product: appends are planned, followed and fenced by the same code
as on a real server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from quietus.core.fingerprint import Mark
from quietus.ledger.chain import Stored
from quietus.ledger.plan import Plan, Standing
from quietus.ports import Muster
from tests.simulation.server import LedgerServer

T = TypeVar("T")


class Wire(Protocol):
    """What lies between a replica and the server."""

    async def ask(self, step: Callable[[], T]) -> T:
        """Has the server take a step, and brings its answer back. Raises LedgerUnavailable."""

    def tell(self, hint: Callable[[], None]) -> None:
        """Brings a hint to the replica, or loses it."""


class Wireless:
    """Nothing in between: a step is taken at once."""

    async def ask(self, step: Callable[[], T]) -> T:
        """Takes it."""
        return step()

    def tell(self, hint: Callable[[], None]) -> None:
        """Gives it."""
        hint()


class ServedEngine:
    """`engine.Engine`: one replica's connection to the server."""

    def __init__(self, server: LedgerServer, wire: Wire) -> None:
        self._server = server
        self._wire = wire
        self._end: Callable[[], None] = lambda: None

    async def connect(self, news: asyncio.Event) -> None:
        """Asks once whether it is there, and listens for hints."""
        await self._wire.ask(lambda: None)
        self._end = self._server.subscribe(lambda: self._wire.tell(news.set))

    async def disconnect(self) -> None:
        """Listens no more."""
        self.unplug()

    def unplug(self) -> None:
        """Gets no more hints."""
        end, self._end = self._end, lambda: None
        end()

    async def verify(self) -> None:
        """Its settings are as they should be."""
        await self._wire.ask(lambda: None)

    async def standing(self, erasures: Sequence[str] = ()) -> Standing:
        return await self._wire.ask(lambda: self._server.standing(erasures))

    async def write(self, made: Plan, session: str | None) -> str:
        return await self._wire.ask(lambda: self._server.write(made, session))

    async def rows(self, after: int, limit: int) -> list[Stored]:
        return await self._wire.ask(lambda: self._server.rows(after, limit))

    async def rows_of(self, erasure: str, after: int, limit: int) -> list[tuple[Stored, bytes | None]]:
        return await self._wire.ask(lambda: self._server.rows_of(erasure, after, limit))

    async def marked(self) -> list[str]:
        return await self._wire.ask(self._server.marked)

    async def marks_of(self, places: Sequence[tuple[str, int | None]]) -> list[list[Mark]]:
        return await self._wire.ask(lambda: self._server.marks_of(places))

    async def secret(self, erasure: str, name: str) -> bytes | None:
        return await self._wire.ask(lambda: self._server.secrets(erasure).get(name))

    async def secret_names(self, erasure: str) -> list[str]:
        return await self._wire.ask(lambda: list(self._server.secrets(erasure)))

    async def destroy_secrets(self, erasure: str) -> None:
        await self._wire.ask(lambda: self._server.destroy(erasure))

    async def bind_keys(self, standing: Standing, ids: frozenset[str], first: bytes) -> bool:
        return await self._wire.ask(lambda: self._server.bind(standing.head, ids, first))

    async def join(self, session: str, seconds: float) -> Muster:
        return await self._wire.ask(lambda: self._server.join(session, seconds))

    async def renew(self, session: str, number: int, undrained: Sequence[int]) -> Muster | None:
        return await self._wire.ask(lambda: self._server.renew(session, number, undrained))

    async def expel(self, session: str, beat: int) -> bool:
        return await self._wire.ask(lambda: self._server.expel(session, beat))

    async def leave(self, session: str) -> None:
        await self._wire.ask(lambda: self._server.leave(session))

    async def settle_life(self, life: str) -> None:
        await self._wire.ask(lambda: self._server.settle_life(life))

    async def claim(self, session: str, erasure: str) -> int:
        return await self._wire.ask(lambda: self._server.claim(session, erasure))

    async def release(self, session: str, erasure: str) -> None:
        await self._wire.ask(lambda: self._server.release(session, erasure))
