"""What a kind of server has to do to carry a shared ledger: a few whole steps, none of which holds a lock.

`valkey` and `postgresql` are the two. What does not depend on the server stands in `shared`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from quietus.core.fingerprint import Mark
from quietus.ledger.chain import Stored
from quietus.ledger.plan import Plan, Standing
from quietus.ports import Muster


class Engine(Protocol):
    """One kind of server. Every method raises LedgerError and no error of its driver."""

    async def connect(self, news: asyncio.Event) -> None:
        """Connects, makes an empty ledger where there is none, and sets `news` on hints from now on."""

    async def disconnect(self) -> None:
        """Lets go."""

    async def verify(self) -> None:
        """Raises LedgerRefused when the server's settings may lose what was acknowledged."""

    async def standing(self, erasures: Sequence[str] = ()) -> Standing:
        """How the ledger stands. Raises LedgerRefused when it is not there any more."""

    async def write(self, made: Plan, session: str | None) -> str:
        """Writes a plan: "" when it was, "moved", "unlisted" or "fenced" when nothing was."""

    async def rows(self, after: int, limit: int) -> list[Stored]:
        """Events with a larger number, oldest first."""

    async def rows_of(self, erasure: str, after: int, limit: int) -> list[tuple[Stored, bytes | None]]:
        """The same of one erasure, each with the hash of the event before it."""

    async def marked(self) -> list[str]:
        """The erasures that have marks."""

    async def marks_of(self, places: Sequence[tuple[str, int | None]]) -> list[list[Mark]]:
        """The marks of each erasure, all or those of one event."""

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """Sealed bytes, or None."""

    async def secret_names(self, erasure: str) -> list[str]:
        """Their names."""

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them."""

    async def bind_keys(self, standing: Standing, ids: frozenset[str], first: bytes) -> bool:
        """Binds keys to a ledger without events; False when it has moved on."""

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster, durably."""

    async def renew(self, session: str, number: int, undrained: Sequence[int]) -> Muster | None:
        """Beats once; None when the session is not in the roster."""

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""

    async def leave(self, session: str) -> None:
        """Goes out of the roster."""

    async def settle_life(self, life: str) -> None:
        """Notes a life of the server in which everybody has joined anew."""

    async def claim(self, session: str, erasure: str) -> int:
        """The generation, 0 when it is another's, -1 when the session is not in the roster."""

    async def release(self, session: str, erasure: str) -> None:
        """Gives up a work."""
