"""The default ledger: one SQLite file in WAL mode, one process, one writer thread.

Everything that touches the file happens on the writer thread, in the order it was asked for.
Appends that wait together are committed together (one sync for all of them), each judged after
those before it; none is answered before the commit is durable. A cancelled append may or may not
have been written: its events tell.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from quietus.core.events import Draft, Event
from quietus.ledger.chain import Batch, Marked, Secret, prepare
from quietus.ledger.database import Database, MarkRow
from quietus.ledger.opening import Connect, connect_file
from quietus.ports import Head, LedgerError, LedgerRefused, LedgerUnavailable, Mark

WAITING: Final = 4096
"""Calls that may wait for the writer; more are refused as LedgerUnavailable."""
GROUP: Final = 256
"""Appends in one commit."""
PAGE: Final = 2000
"""Rows read at a time: some ten milliseconds in which no append is written."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Job:
    """One call for the writer thread. An append has a batch; anything else has its work."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any] | None = None
    batch: Batch | None = None
    last: bool = False


_Outcome = tuple[_Job, Any, BaseException | None]


class SqliteLedger:
    """`ports.Ledger` on a file. `head_file` may lie on another disk; `max_bytes` bounds the file.

    `reserve_bytes` are set aside beside it, so that on a full disk the gate can still be shut.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        head_file: str | os.PathLike[str] | None = None,
        max_bytes: int | None = None,
        reserve_bytes: int = 0,
        connect: Connect = connect_file,
    ) -> None:
        self.path = Path(path)
        self._head_file = Path(head_file) if head_file is not None else None
        self._max_bytes = max_bytes
        self._reserve_bytes = reserve_bytes
        self._connect = connect
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._database: Database | None = None
        self._waiting = 0
        self._closing = False

    @property
    def head_file_fault(self) -> str | None:
        """Why the head file is older than the ledger; None while it is current or not asked for."""
        return self._database.head_file_fault if self._database else None

    @property
    def waiting(self) -> int:
        """Calls that the writer has not answered yet."""
        return self._waiting

    @property
    def full(self) -> bool:
        """Whether its disk is full: then only what shuts the gate may still be written, or nothing."""
        return self._database is not None and self._database.full

    @property
    def reserve_bytes(self) -> int:
        """Bytes set aside for that; 0 where there is no reserve, or it is spent."""
        return self._reserve_bytes if self._database is not None and self._database.reserve.held else 0

    async def open(self) -> Head:
        """Opens or creates the file and starts the writer. Raises LedgerError."""
        if self._database is not None:
            raise LedgerRefused("this ledger is open already: close it first")
        loop = asyncio.get_running_loop()
        self._database = await loop.run_in_executor(
            None, Database, self.path, self._head_file, self._max_bytes, self._reserve_bytes, self._connect
        )
        self._closing, self._waiting = False, 0
        self._jobs = SimpleQueue()
        # A daemon: a process that ends without closing loses nothing that was answered.
        threading.Thread(
            target=_write, args=(self._jobs, self._database), name="quietus-ledger", daemon=True
        ).start()
        return await self.head()

    async def head(self) -> Head:
        """The newest head, read from the file: shows that the ledger is there and answers."""
        return await self._call(self._open_database().head)

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
        """Writes all of it, durably, or raises and writes nothing."""
        batch = prepare(drafts, expect, marks, secrets, unmark, epoch)
        found: list[Event] = await self._submit(batch=batch)
        return found

    async def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first; raises LedgerRefused where the chain breaks."""
        last = max(after, 0)
        while True:
            database = self._open_database()
            page = await self._call(partial(database.events, last, erasure, PAGE))
            for event in page:
                yield event
            if len(page) < PAGE:
                return
            last = page[-1].number

    async def marks(self) -> AsyncIterator[Marked]:
        """Every mark with its erasure, each once, sorted."""
        after: MarkRow = ("", "", b"", 0)
        while True:
            database = self._open_database()
            page = await self._call(partial(database.marks, after, PAGE))
            for row in page:
                if row[:3] != after[:3]:  # the same mark may have come with several events
                    yield row[0], Mark(row[1], row[2])
                after = row
            if len(page) < PAGE:
                return

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""
        database = self._open_database()
        return await self._call(lambda: database.secret(erasure, name))

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""
        database = self._open_database()
        return await self._call(lambda: database.secret_names(erasure))

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them, empties the journal and looks that no trace is left in the file.

        Raises LedgerUnavailable when that cannot be made sure now; call it again then.
        """
        database = self._open_database()
        await self._call(lambda: database.destroy_secrets(erasure))

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with; empty when it is new."""
        return await self._call(self._open_database().key_ids)

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once, before the first event."""
        database = self._open_database()
        await self._call(lambda: database.bind_keys(frozenset(ids)))

    async def close(self) -> None:
        """Waits for what was asked before, empties the journal and lets go."""
        if self._database is None or self._closing:
            return
        self._closing = True
        try:
            await self._submit(work=self._database.close, last=True)
        finally:
            self._database = None

    def _open_database(self) -> Database:
        if self._database is None or self._closing:
            raise LedgerUnavailable("the ledger is not open")
        return self._database

    async def _call(self, work: Callable[[], T]) -> T:
        found: T = await self._submit(work=work)
        return found

    async def _submit(
        self, *, work: Callable[[], Any] | None = None, batch: Batch | None = None, last: bool = False
    ) -> Any:
        if not last:
            self._open_database()
            if self._waiting >= WAITING:
                raise LedgerUnavailable("too many calls wait for the ledger; nothing was written: try again")
        loop = asyncio.get_running_loop()
        job = _Job(loop, loop.create_future(), work, batch, last)
        self._waiting += 1
        job.future.add_done_callback(self._count_down)
        self._jobs.put(job)
        return await job.future

    def _count_down(self, _: asyncio.Future[Any]) -> None:
        self._waiting -= 1


def _write(jobs: SimpleQueue[_Job], database: Database) -> None:
    """The writer thread: takes what waits, commits neighbouring appends together, answers."""
    ended = False
    while not ended:
        taken = [jobs.get()]
        while len(taken) < GROUP:
            try:
                taken.append(jobs.get_nowait())
            except Empty:
                break
        group: list[_Job] = []
        for job in taken:
            if job.batch is not None:
                group.append(job)
                continue
            _answer(_append(database, group))
            group = []
            _answer([_run(job)])
            ended = ended or job.last
        _answer(_append(database, group))


def _append(database: Database, group: Sequence[_Job]) -> list[_Outcome]:
    if not group:
        return []
    try:
        found = database.append_all([job.batch for job in group if job.batch is not None])
    except LedgerError as error:
        # One instance for all would gather the tracebacks of all.
        return [(job, None, type(error)(*error.args)) for job in group]
    except Exception as error:
        return [(job, None, error) for job in group]
    return [
        (job, None, outcome) if isinstance(outcome, LedgerError) else (job, outcome, None)
        for job, outcome in zip(group, found, strict=True)
    ]


def _run(job: _Job) -> _Outcome:
    try:
        return job, job.work() if job.work else None, None
    except Exception as error:
        return job, None, error


def _answer(outcomes: Iterable[_Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome[0].loop, []).append(outcome)
    for loop, found in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, found)
        except RuntimeError:
            continue  # the loop has ended: nobody waits any more


def _settle(outcomes: Sequence[_Outcome]) -> None:
    for job, result, error in outcomes:
        if job.future.done():
            continue  # cancelled
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
