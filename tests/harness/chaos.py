"""A TCP proxy that fails on purpose: it stands between two parts and mistreats their bytes.

It knows where a request of its wire begins and ends (`chaos_wires`), so that what it does (a `Toxic`) can be
chosen for each request, also on a connection that is kept alive. It runs in a thread of its own: the parts
may be processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlsplit

from tests.harness.chaos_wires import Http1, Wire

PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class Toxic:
    """What is done to one request and its answer. The defaults do nothing. Seconds and bytes."""

    reset_before: bool = False
    """Resets when the request is there; nothing of it reaches the far side."""
    swallow_request: bool = False
    """Takes the request and passes nothing of it on."""
    reset_within: int | None = None
    """Passes so many bytes of the request on, then resets both sides."""
    drop_answer: bool = False
    """Passes the request on, waits for the answer to begin, and resets: the effect is done."""
    swallow_answer: bool = False
    """The same, but says nothing more: the near side has to time out."""
    cut_after: int | None = None
    """Passes so many bytes of the answer on and resets."""
    close_after: int | None = None
    """Passes so many bytes of the answer on and closes in an orderly way."""
    half_close: bool = False
    """Shuts the sending side towards the far end when the request has passed."""
    latency: float = 0.0
    """Before each piece of the answer."""
    bandwidth: float = 0.0
    """Bytes of the answer a second; 0: no limit."""
    slice: int = 0
    """Passes both directions on in pieces of so many bytes."""
    slow_close: float = 0.0
    """Between the end of the answer and the end of the connection."""


CLEAN: Final = Toxic()


@dataclass
class _Link:
    """One connection through the proxy."""

    near: asyncio.StreamReader
    back: asyncio.StreamWriter
    toxic: Toxic = CLEAN
    asked: int = 0
    """Bytes of the newest request that were passed on."""
    passed: int = 0
    """Bytes of the newest answer that were passed on."""


class Chaos:
    """The proxy in front of `url`; `address` is where it listens, as HOST:PORT."""

    def __init__(self, url: str, wire: Wire = Http1()) -> None:  # noqa: B008
        parts = urlsplit(url if "//" in url else f"//{url}")
        self._wire = wire
        self._far = (parts.hostname or "", parts.port or 80)
        self._toxic, self._line = CLEAN, ""
        self._seen: list[str] = []
        self._abandoned = 0
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accepted, "127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.url = f"http://{self.address}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- for tests -------------------------------------------------------------------------------

    def use(self, toxic: Toxic = CLEAN, line: str = "") -> None:
        """What requests get from now on whose first line begins with `line`."""
        with self._news:
            self._toxic, self._line = toxic, line
            self._seen.clear()
            self._abandoned = 0

    def count(self, line: str) -> int:
        """How many such requests came since the last `use`, whatever became of them."""
        with self._news:
            return sum(seen.startswith(line) for seen in self._seen)

    def came(self, line: str) -> None:
        """Waits for such a request."""
        with self._news:
            found = self._news.wait_for(lambda: any(s.startswith(line) for s in self._seen), PATIENCE)
        assert found, f"{line} never came"

    def reset(self) -> None:
        """Resets every connection, on both sides, before it returns."""

        async def all_ends() -> None:
            for end in list(self._ends):
                _reset(end)

        self._run(all_ends())

    def abandoned(self) -> None:
        """Waits until the near side has given up a connection."""
        with self._news:
            assert self._news.wait_for(lambda: self._abandoned > 0, PATIENCE), "nobody gave up"

    # --- one connection --------------------------------------------------------------------------

    async def _accepted(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._relay(_Link(near, back))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._tasks.discard(task)
            back.close()

    async def _relay(self, link: _Link) -> None:
        far, forth = await asyncio.open_connection(*self._far)
        ways = [asyncio.ensure_future(self._forth(link, forth)), asyncio.ensure_future(self._back(link, far))]
        self._ends |= {link.back, forth}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._ends -= {link.back, forth}
            forth.close()

    async def _forth(self, link: _Link, forth: asyncio.StreamWriter) -> None:
        try:
            async for piece in self._wire.asked(link.near):
                if piece.line is not None:
                    self._begins(link, piece.line)
                toxic = link.toxic if piece.counts else CLEAN
                if toxic.reset_before:
                    return _reset(link.back)
                if toxic.swallow_request:
                    continue
                limit = toxic.reset_within
                data = piece.data if limit is None else piece.data[: limit - link.asked]
                for part in _sliced(data, toxic.slice):
                    forth.write(part)
                    await forth.drain()
                link.asked += len(data)
                if limit is not None and (link.asked >= limit or piece.last):
                    _reset(forth)
                    return _reset(link.back)
                if toxic.half_close and piece.last:
                    forth.write_eof()
                    await asyncio.Event().wait()
        finally:
            with self._news:
                self._abandoned += 1
                self._news.notify_all()

    def _begins(self, link: _Link, line: str) -> None:
        with self._news:
            link.toxic = self._toxic if line.startswith(self._line) else CLEAN
            link.asked = link.passed = 0
            self._seen.append(line)
            self._news.notify_all()

    async def _back(self, link: _Link, far: asyncio.StreamReader) -> None:
        async for piece in self._wire.answered(far):
            toxic = link.toxic if piece.counts else CLEAN
            if toxic.drop_answer:
                return _reset(link.back)
            if toxic.swallow_answer:
                await asyncio.Event().wait()
            limit = toxic.cut_after if toxic.cut_after is not None else toxic.close_after
            data = piece.data if limit is None else piece.data[: limit - link.passed]
            for part in _sliced(data, toxic.slice):
                await _after(toxic.latency + (len(part) / toxic.bandwidth if toxic.bandwidth else 0.0))
                link.back.write(part)
                await link.back.drain()
            link.passed += len(data) if piece.counts else 0
            if limit is not None and link.passed >= limit:
                return _reset(link.back) if toxic.cut_after is not None else None
        await _after(link.toxic.slow_close)
        return None


async def _after(seconds: float) -> None:
    """Lets real time pass. The delay is what this proxy makes; nobody waits on it for something else."""
    if seconds > 0:
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, passed.set)
        await passed.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN, whatever is still in the buffers."""
    raw = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _sliced(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
