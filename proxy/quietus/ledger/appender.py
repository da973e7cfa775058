"""The appends of one replica: those that wait together are planned and written together, in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from quietus.core.events import Event
from quietus.ledger.engine import Engine
from quietus.ledger.plan import NOT_HELD, Asked, Plan, erasures_of, plan
from quietus.ports import Conflict, Head, LedgerError, LedgerUnavailable, Unlisted

WAITING: Final = 4096
"""Appends that may wait; more are refused as LedgerUnavailable."""
GROUP: Final = 256
"""Appends in one commit."""
TRIES: Final = 200
"""How often a commit is planned anew because another replica was faster."""
EXPELLED: Final = "this replica was taken out of the roster: it catches up before it writes again"

Waiting = tuple[Asked, "asyncio.Future[list[Event]]"]


class Appender:
    """One task that writes. `saw` is told each head before anybody is answered."""

    def __init__(
        self, engine: Engine, session: Callable[[], str | None], saw: Callable[[Head], None]
    ) -> None:
        self._engine = engine
        self._session = session
        self._saw = saw
        self._queue: asyncio.Queue[Waiting | None] = asyncio.Queue()
        self._task = asyncio.ensure_future(self._run())

    async def append(self, asked: Asked) -> list[Event]:
        """Writes one append. Raises LedgerError."""
        if self._queue.qsize() >= WAITING:
            raise LedgerUnavailable("too many calls wait for the ledger; nothing was written: try again")
        future: asyncio.Future[list[Event]] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((asked, future))
        return await future

    async def end(self) -> None:
        """Writes what waits, and stops."""
        self._queue.put_nowait(None)
        await self._task

    async def _run(self) -> None:
        ended = False
        while not ended:
            taken = [await self._queue.get()]
            while len(taken) < GROUP and not self._queue.empty():
                taken.append(self._queue.get_nowait())
            ended = None in taken
            group = [one for one in taken if one is not None]
            if group:
                await self._group(group)

    async def _group(self, group: Sequence[Waiting]) -> None:
        try:
            made = await self._commit([asked for asked, _ in group])
        except _Refused as error:
            if len(group) == 1:
                _answer(group[0][1], error.cause)
                return
            for one in group:  # whose it is shows when each is written alone
                await self._group([one])
        except Exception as error:
            for _, future in group:
                _answer(future, type(error)(*error.args))
        else:
            for (_, future), outcome in zip(group, made.outcomes, strict=True):
                _answer(future, outcome)

    async def _commit(self, asked: Sequence[Asked]) -> Plan:
        for _ in range(TRIES):
            made = plan(await self._engine.standing(erasures_of(asked)), asked)
            said = "" if made.empty else await self._engine.write(made, self._session())
            if not said:
                self._saw(made.after)
                return made
            if said == "unlisted":
                raise Unlisted(EXPELLED)
            if said == "fenced":
                raise _Refused(Conflict(NOT_HELD))
        raise LedgerUnavailable("too many replicas write at once; nothing was written: try again")


class _Refused(Exception):
    """A plan was refused for one of its appends."""

    def __init__(self, cause: LedgerError) -> None:
        super().__init__()
        self.cause = cause


def _answer(future: asyncio.Future[list[Event]], outcome: list[Event] | BaseException) -> None:
    if future.done():
        return  # cancelled
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
