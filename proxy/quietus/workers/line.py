"""A line between two processes of ours: each may ask the other, and hear its answer or that it is gone."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from quietus.ports import LedgerError, LedgerUnavailable
from quietus.workers.forms import error_form, error_of, plain, whole

FRAME_MAX: Final = 256 * 1024 * 1024
"""Bytes of one message; a larger one is refused by who sends it."""
ASKED_MAX: Final = 4096
"""Questions of one end that wait for their answer; more are refused as LedgerUnavailable."""

Answering = Callable[..., Awaitable[Any]]


class LineBroken(LedgerUnavailable):
    """The other process is gone, or going."""


class Line:
    """One end. `answers` are the questions that it answers, by name."""

    def __init__(self, answers: Mapping[str, Answering] | None = None) -> None:
        self.answers = answers or {}
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._count = 0
        self._reading: asyncio.Task[None] | None = None
        self.broken = asyncio.Event()
        """Set once the other end is gone."""

    async def begin(self, end: socket.socket) -> None:
        """Reads what comes from now on."""
        reader, self._writer = await asyncio.open_connection(sock=end)
        self._reading = asyncio.ensure_future(self._read(reader))

    async def ask(self, name: str, *given: Any) -> Any:
        """The other end's answer. Raises the LedgerError that it raised; LineBroken when it is gone."""
        if self.broken.is_set() or self._writer is None:
            raise LineBroken("the process at the other end is gone")
        if len(self._asked) >= ASKED_MAX:
            raise LedgerUnavailable("too many calls wait for the ledger; nothing was written: try again")
        self._count += 1
        number = self._count
        self._asked[number] = answer = asyncio.get_running_loop().create_future()
        try:
            self._send([number, name, given])
            return await answer
        finally:
            self._asked.pop(number, None)

    def tell(self, name: str, *given: Any) -> None:
        """Asks, and wants no answer."""
        if not self.broken.is_set() and self._writer is not None:
            self._send([0, name, given])

    async def end(self) -> None:
        """Hangs up."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._break()

    def _send(self, message: list[Any]) -> None:
        assert self._writer is not None
        body = json.dumps(message, default=plain, separators=(",", ":")).encode()
        if len(body) > FRAME_MAX:
            raise LedgerUnavailable("too much at once for one message between processes; nothing was written")
        self._writer.write(len(body).to_bytes(4, "big") + body)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                message = json.loads(await reader.readexactly(size), object_hook=whole)
                self._take(*message)
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass  # it is gone
        finally:
            self._break()

    def _take(self, number: int, name: str, given: Any) -> None:
        if name not in ("answer", "error"):
            task = asyncio.ensure_future(self._answer(number, name, given))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        asked = self._asked.get(number)
        if asked is None or asked.done():
            return  # whoever asked has gone away
        if name == "error":
            asked.set_exception(error_of(given))
        else:
            asked.set_result(given)

    async def _answer(self, number: int, name: str, given: list[Any]) -> None:
        try:
            said = [number, "answer", await self.answers[name](*given)]
        except LedgerError as error:
            said = [number, "error", error_form(error)]
        except Exception as error:  # a fault of ours: whoever asked must not wait for ever
            said = [number, "error", error_form(LedgerError(f"a fault of ours: {type(error).__name__}"))]
        if number and not self.broken.is_set():
            self._send(said)

    def _break(self) -> None:
        self.broken.set()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(LineBroken("the process at the other end is gone"))
        if self._writer is not None:
            self._writer.close()
