"""The engine for PostgreSQL: tables and one function a commit; NOTIFY is a hint, never the truth.

Beats of the roster are committed without waiting for the disk: a beat that a crash loses makes others wait
and lets nobody answer. Everything else waits. What `destroy_secrets` removes is gone from the tables at once
and vacuumed; the write-ahead log and its archives hold it for as long as they are kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import asyncpg

from quietus.core.fingerprint import Mark
from quietus.ledger import postgresql_sql as sql
from quietus.ledger.chain import Stored, canonical, genesis
from quietus.ledger.packing import unpacked
from quietus.ledger.plan import Plan, Standing
from quietus.ledger.postgresql_forms import DRIVER, arguments, meaning, muster_of, row_of, standing_of
from quietus.ledger.postgresql_settings import faults, refuse
from quietus.ports import LedgerRefused, LedgerUnavailable, Muster

PATIENCE: Final = 3.0
"""Seconds that one statement may take."""
AGAIN: Final = 0.5
"""Seconds before hints are listened for again after the connection for them broke."""


class PostgresqlEngine:
    """`engine.Engine` on one database. `name` is the schema that the ledger lies in."""

    def __init__(self, url: str, *, name: str = "quietus", password: str | None = None) -> None:
        self._url = url
        self._password = password
        self._names = {"q": '"' + name.replace('"', '""') + '"', "n": "'" + name.replace("'", "''") + "'"}
        self._pool: Any = None
        self._roster: Any = None
        self._listening: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def _sql(self, statement: str) -> str:
        return statement.replace("{q}", self._names["q"]).replace("{n}", self._names["n"]).replace(
            "{life}", sql.LIFE
        )  # fmt: skip

    async def connect(self, news: asyncio.Event) -> None:
        """Connects, makes or migrates the ledger, and listens for hints."""
        async with self._guarded():
            self._pool = await self._connected({}, 4)
            self._roster = await self._connected({"synchronous_commit": "off"}, 2)
            await self._migrate()
        self._ended.clear()
        self._listening = asyncio.ensure_future(self._listen(news))

    async def _connected(self, more: dict[str, str], size: int) -> Any:
        # A process that is frozen between two messages must not keep a lock.
        waits = {"idle_in_transaction_session_timeout": "2s", "lock_timeout": "3s"}
        return await asyncpg.create_pool(
            self._url, password=self._password, min_size=1, max_size=size, timeout=PATIENCE,
            command_timeout=PATIENCE, server_settings={**waits, **more, "application_name": "quietus"},
        )  # fmt: skip

    async def _migrate(self) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(self._sql(sql.LOCK))
            if not await connection.fetchval(self._sql(sql.EXISTS)):
                await connection.execute(self._sql(sql.CREATE_SCHEMA))
                await connection.execute(self._sql(sql.MIGRATIONS[0]))
                incarnation = secrets.token_hex(16)
                first = genesis(incarnation, ())
                await connection.execute(self._sql(sql.NEW_LEDGER), incarnation, first, 1)
            found = await connection.fetchrow(self._sql(sql.VERSION))
            if found is None:
                raise LedgerRefused("the ledger's head is gone: restore it from a backup that verifies")
            if found["floor"] > sql.SCHEMA:
                raise LedgerRefused(
                    f"the ledger has schema {found['schema']} and this Quietus knows {sql.SCHEMA}: a newer "
                    "Quietus finalised it; upgrade"
                )
            for place in range(found["schema"], len(sql.MIGRATIONS)):
                await connection.execute(self._sql(sql.MIGRATIONS[place]))
                await connection.execute(self._sql(sql.SET_VERSION), place + 1)

    async def disconnect(self) -> None:
        """Lets go."""
        self._ended.set()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None
        for pool in (self._pool, self._roster):
            if pool is not None:
                with suppress(*DRIVER):
                    async with asyncio.timeout(PATIENCE):
                        await pool.close()
        self._pool = self._roster = None

    async def verify(self) -> None:
        """Raises LedgerRefused when the server's settings may lose what was acknowledged."""
        async with self._guarded():
            refuse(faults(await self._pool.fetchrow(sql.SETTINGS)))

    # --- events --------------------------------------------------------------------------------

    async def standing(self, erasures: Sequence[str] = ()) -> Standing:
        """How the ledger stands."""
        async with self._guarded():
            row = await self._pool.fetchrow(self._sql(sql.STANDING), list(erasures))
        return standing_of(row, dict(zip(erasures, row[8], strict=True)) if row else {})

    async def write(self, made: Plan, session: str | None) -> str:
        """Writes a plan whole, or says why nothing was written."""
        async with self._guarded():
            try:
                said: str = await self._pool.fetchval(self._sql(sql.APPEND), *arguments(made, session))
            except asyncpg.PostgresError as error:
                refused = {"QU001": "unlisted", "QU002": "fenced"}.get(error.sqlstate or "")
                if refused is None:
                    raise
                return refused
        return said

    async def rows(self, after: int, limit: int) -> list[Stored]:
        """Events with a larger number, oldest first."""
        async with self._guarded():
            return [row_of(row) for row in await self._pool.fetch(self._sql(sql.ROWS), after, limit)]

    async def rows_of(self, erasure: str, after: int, limit: int) -> list[tuple[Stored, bytes | None]]:
        """The same of one erasure, each with the hash of the event before it."""
        async with self._guarded():
            found = await self._pool.fetch(self._sql(sql.ROWS_OF), erasure, after, limit)
        return [(row_of(row), row["before"]) for row in found]

    async def marked(self) -> list[str]:
        """The erasures that have marks."""
        async with self._guarded():
            return [row[0] for row in await self._pool.fetch(self._sql(sql.MARKED))]

    async def marks_of(self, places: Sequence[tuple[str, int | None]]) -> list[list[Mark]]:
        """The marks of each erasure, all or those of one event."""
        names, numbers = [name for name, _ in places], [number for _, number in places]
        found: list[list[Mark]] = [[] for _ in places]
        async with self._guarded():
            for place, blob in await self._pool.fetch(self._sql(sql.MARKS_OF), names, numbers):
                found[place - 1] += unpacked(blob)
        return found

    # --- secrets and keys ----------------------------------------------------------------------

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """Sealed bytes, or None."""
        async with self._guarded():
            found: bytes | None = await self._pool.fetchval(self._sql(sql.SECRET), erasure, name)
            return found

    async def secret_names(self, erasure: str) -> list[str]:
        """Their names."""
        async with self._guarded():
            return [row[0] for row in await self._pool.fetch(self._sql(sql.SECRET_NAMES), erasure)]

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them, and has their pages cleared of dead rows."""
        async with self._guarded():
            if await self._pool.fetch(self._sql(sql.DROP_SECRETS), erasure):
                await self._pool.execute(self._sql(sql.VACUUM))

    async def bind_keys(self, standing: Standing, ids: frozenset[str], first: bytes) -> bool:
        """Binds keys to a ledger without events; False when it has moved on."""
        was = bytes.fromhex(standing.head.hash)
        async with self._guarded():
            said = await self._pool.fetchval(self._sql(sql.BIND), was, canonical(sorted(ids)), first)
        return said is not None

    # --- the roster ----------------------------------------------------------------------------

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster, durably."""
        async with self._guarded():
            await self._pool.execute(self._sql(sql.JOIN), session, seconds)
            await self._roster.execute(self._sql(sql.NOTIFY))
            return muster_of(await self._roster.fetchrow(self._sql(sql.MUSTER)))

    async def renew(self, session: str, number: int, undrained: Sequence[int]) -> Muster | None:
        """Beats once; None when the session is not in the roster."""
        async with self._guarded():
            if not await self._roster.fetchval(self._sql(sql.RENEW), session, number, list(undrained)):
                return None
            return muster_of(await self._roster.fetchrow(self._sql(sql.MUSTER)))

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        async with self._guarded():
            gone = await self._pool.fetchval(self._sql(sql.EXPEL), session, beat) is not None
            return gone or not await self._pool.fetchval(self._sql(sql.LISTED), session)

    async def leave(self, session: str) -> None:
        """Goes out of the roster; work of a session that is not in it is free to be taken."""
        async with self._guarded():
            await self._pool.execute(self._sql(sql.LEAVE), session)
            await self._roster.execute(self._sql(sql.NOTIFY))

    async def settle_life(self, life: str) -> None:
        """Notes a life of the server in which everybody has joined anew."""
        async with self._guarded():
            await self._pool.execute(self._sql(sql.SETTLE_LIFE), life)

    async def claim(self, session: str, erasure: str) -> int:
        """The generation, 0 when it is another's, -1 when the session is not in the roster."""
        async with self._guarded():
            return int(await self._pool.fetchval(self._sql(sql.CLAIM), session, erasure))

    async def release(self, session: str, erasure: str) -> None:
        """Gives up a work."""
        async with self._guarded():
            await self._pool.execute(self._sql(sql.RELEASE), session, erasure)

    # --- asking --------------------------------------------------------------------------------

    async def _listen(self, news: asyncio.Event) -> None:
        """Hints, for as long as there is a connection for them; without one, renewals do."""
        channel = self._names["n"][1:-1]
        while not self._ended.is_set():
            with suppress(*DRIVER):
                connection = await asyncpg.connect(self._url, password=self._password, timeout=PATIENCE)
                try:
                    lost = asyncio.Event()
                    connection.add_termination_listener(lambda _, lost=lost: lost.set())
                    await connection.add_listener(channel, lambda *_: news.set())
                    news.set()  # what came before it listened
                    await lost.wait()
                finally:
                    connection.terminate()
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._ended.wait()

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[None]:
        try:
            yield
        except AttributeError:
            raise LedgerUnavailable("the ledger is not open") from None
        except DRIVER as error:
            raise meaning(error) from None
