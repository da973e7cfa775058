"""The engine for Valkey and Redis: a stream of events, and compare-and-set in Lua.

A command is sent once: after a broken connection nobody knows whether it was carried out, and it is said so.
What `destroy_secrets` removes is gone from the data set at once; the append-only file still holds it until it
is rewritten, which is asked for then.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from redis import asyncio as client
from redis import exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from quietus.core.fingerprint import Mark
from quietus.ledger import valkey_scripts as lua
from quietus.ledger.chain import Stored, broken, canonical, genesis
from quietus.ledger.packing import unpacked
from quietus.ledger.plan import Plan, Standing
from quietus.ledger.valkey_forms import (
    UNREACHABLE,
    arguments,
    meaning,
    muster_of,
    row_of,
    standing_of,
    text,
)
from quietus.ledger.valkey_settings import WATCHED, faults, refuse
from quietus.ports import LedgerRefused, LedgerUnavailable, Muster

PATIENCE: Final = 3.0
"""Seconds that one command may take."""
AGAIN: Final = 0.5
"""Seconds before hints are listened for again after the connection for them broke."""


class ValkeyEngine:
    """`engine.Engine` on one server. `name` tells ledgers on one server apart."""

    def __init__(self, url: str, *, name: str = "quietus", password: str | None = None) -> None:
        self._prefix = f"{{{name}}}"
        self._url = url
        self._password = password
        self._client: Any = None
        self._scripts: dict[str, Any] = {}
        self._listening: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._copies = 0
        """How many replicas of the server must have a write before it counts."""

    async def connect(self, news: asyncio.Event) -> None:
        """Connects, makes an empty ledger where there is none, and listens for hints."""
        more: dict[str, Any] = {"password": self._password} if self._password is not None else {}
        self._client = client.Redis.from_url(
            self._url,
            socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, protocol=2,
            retry=Retry(NoBackoff(), 0), retry_on_error=[], max_connections=64,
            **more,
        )  # fmt: skip
        incarnation = secrets.token_hex(16)
        info = await self._info("server")
        made = await self._run(
            lua.MAKE, incarnation, genesis(incarnation, ()), lua.SCHEMA, info.get("run_id", "")
        )
        if made < 0:
            raise LedgerRefused(
                "the server holds parts of a ledger and not its head: restore it from a backup that verifies"
            )
        self._ended.clear()
        self._listening = asyncio.ensure_future(self._listen(news))

    async def disconnect(self) -> None:
        """Lets go."""
        self._ended.set()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None
        if self._client is not None:
            with suppress(exceptions.RedisError, OSError):
                await self._client.aclose()
            self._client = None

    async def verify(self) -> None:
        """Raises LedgerRefused when the server's settings may lose what was acknowledged."""
        async with self._guarded() as server:
            try:
                config = await self._config(server)
            except exceptions.ResponseError:
                raise LedgerRefused(
                    "the ledger's server does not let its settings be read: allow CONFIG GET to this user"
                ) from None
            info = await self._info("replication") | await self._info("persistence")
            refuse(faults(config, info))
            self._copies = int(config.get("min-replicas-to-write") or 0)

    @staticmethod
    async def _config(server: Any) -> dict[str, str]:
        said = await server.execute_command("CONFIG GET", *WATCHED)
        pairs = said.items() if isinstance(said, dict) else zip(said[::2], said[1::2], strict=True)
        return {text(name): text(value) for name, value in pairs}

    # --- events --------------------------------------------------------------------------------

    async def standing(self, erasures: Sequence[str] = ()) -> Standing:
        """How the ledger stands."""
        found = await self._run(lua.STANDING, *erasures)
        newest = found[2] if len(found) > 2 else []
        numbers = {name: int(value or 0) for name, value in zip(erasures, newest, strict=True)}
        return standing_of(found[0], found[1], numbers)

    async def write(self, made: Plan, session: str | None) -> str:
        """Writes a plan whole, or says why nothing was written."""
        said = text(await self._run(lua.WRITE, *arguments(made, session)))
        if not said and self._copies:
            async with self._guarded() as server:
                # The same connection need not have written it: an offset later than the write's covers it.
                copies = await server.execute_command("WAIT", self._copies, int(PATIENCE * 500))
            if int(copies) < self._copies:
                raise LedgerUnavailable("too few replicas of the ledger's server have what was written")
        return said

    async def rows(self, after: int, limit: int) -> list[Stored]:
        """Events with a larger number, oldest first."""
        async with self._guarded() as server:
            found = await server.xrange(self._key("events"), f"{max(after, 0) + 1}-0", "+", count=limit)
        return [row_of(number, fields) for number, fields in found]

    async def rows_of(self, erasure: str, after: int, limit: int) -> list[tuple[Stored, bytes | None]]:
        """The same of one erasure, each with the hash of the event before it."""
        async with self._guarded() as server:
            numbers = [int(n) for n in await server.lrange(self._key(f"of:{erasure}"), 0, -1)]
            wanted = [number for number in numbers if number > after][:limit]
            pipe = server.pipeline(transaction=False)
            for number in wanted:
                pipe.xrange(self._key("events"), f"{number - 1}-0", f"{number}-0")
            pairs = await pipe.execute() if wanted else []
        found: list[tuple[Stored, bytes | None]] = []
        for number, pair in zip(wanted, pairs, strict=True):
            rows = {row[0]: row for row in (row_of(name, fields) for name, fields in pair)}
            if number not in rows:
                raise broken(f"event {number} is missing")
            found.append((rows[number], rows[number - 1][7] if number - 1 in rows else None))
        return found

    async def marked(self) -> list[str]:
        """The erasures that have marks."""
        async with self._guarded() as server:
            return [text(name) async for name in server.sscan_iter(self._key("marked"), count=1000)]

    async def marks_of(self, places: Sequence[tuple[str, int | None]]) -> list[list[Mark]]:
        """The marks of each erasure, all or those of one event."""
        async with self._guarded() as server:
            pipe = server.pipeline(transaction=False)
            for erasure, number in places:
                if number is None:
                    pipe.hvals(self._key(f"marks:{erasure}"))
                else:
                    pipe.hget(self._key(f"marks:{erasure}"), str(number))
            found = await pipe.execute() if places else []
        blobs = (one if isinstance(one, list) else [one] if one else [] for one in found)
        return [[mark for blob in its for mark in unpacked(blob)] for its in blobs]

    # --- secrets and keys ----------------------------------------------------------------------

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """Sealed bytes, or None."""
        async with self._guarded() as server:
            found = await server.hget(self._key(f"secrets:{erasure}"), name)
        return None if found is None else bytes(found)

    async def secret_names(self, erasure: str) -> list[str]:
        """Their names."""
        async with self._guarded() as server:
            return [text(name) for name in await server.hkeys(self._key(f"secrets:{erasure}"))]

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them, and has the append-only file written anew without them."""
        async with self._guarded() as server:
            if not await server.delete(self._key(f"secrets:{erasure}")):
                return
            with suppress(exceptions.ResponseError):  # one is under way or scheduled: the next removes it
                await server.execute_command("BGREWRITEAOF")

    async def bind_keys(self, standing: Standing, ids: frozenset[str], first: bytes) -> bool:
        """Binds keys to a ledger without events; False when it has moved on."""
        was = bytes.fromhex(standing.head.hash)
        return bool(await self._run(lua.BIND, was, canonical(sorted(ids)), first))

    # --- the roster ----------------------------------------------------------------------------

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster."""
        return muster_of(await self._run(lua.JOIN, session, seconds))

    async def renew(self, session: str, number: int, undrained: Sequence[int]) -> Muster | None:
        """Beats once; None when the session is not in the roster."""
        found = await self._run(lua.RENEW, session, number, ",".join(map(str, undrained)))
        return muster_of(found) if found else None

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        return bool(await self._run(lua.EXPEL, session, beat))

    async def leave(self, session: str) -> None:
        """Goes out of the roster; work of a session that is not in it is free to be taken."""
        await self._run(lua.LEAVE, session)

    async def settle_life(self, life: str) -> None:
        """Notes a life of the server in which everybody has joined anew."""
        async with self._guarded() as server:
            await server.hset(self._key("ledger"), "life", life)

    async def claim(self, session: str, erasure: str) -> int:
        """The generation, 0 when it is another's, -1 when the session is not in the roster."""
        return int(await self._run(lua.CLAIM, session, erasure))

    async def release(self, session: str, erasure: str) -> None:
        """Gives up a work."""
        await self._run(lua.RELEASE, session, erasure)

    # --- asking --------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    async def _run(self, script: str, *arguments: Any) -> Any:
        async with self._guarded() as server:
            known = self._scripts.get(script)
            if known is None:
                known = self._scripts[script] = server.register_script(script)
            return await known(keys=[self._prefix], args=arguments, client=server)

    async def _info(self, section: str) -> dict[str, Any]:
        async with self._guarded() as server:
            found: dict[str, Any] = await server.info(section)
            return found

    async def _listen(self, news: asyncio.Event) -> None:
        """Hints, for as long as there is a connection for them; without one, renewals do."""
        while not self._ended.is_set():
            with suppress(exceptions.RedisError, OSError):
                async with self._server().pubsub() as channel:
                    await channel.subscribe(self._key("news"))
                    while not self._ended.is_set():
                        if await channel.get_message(timeout=PATIENCE / 2) is not None:
                            news.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._ended.wait()

    @asynccontextmanager
    async def _guarded(self) -> AsyncIterator[Any]:
        try:
            yield self._server()
        except exceptions.RedisError as error:
            raise meaning(error) from None
        except (OSError, TimeoutError):
            raise LedgerUnavailable(UNREACHABLE) from None

    def _server(self) -> Any:
        if self._client is None:
            raise LedgerUnavailable("the ledger is not open")
        return self._client
