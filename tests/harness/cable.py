"""A cable between a replica and its server: pulled out and plugged in again, slow, deaf one way, or moved."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any
from urllib.parse import urlsplit


class Cable:
    """Relays bytes to a server; while it is pulled nothing passes, and nobody is told.

    `latency` is how many seconds each piece is held up, in each direction.
    """

    def __init__(self, url: str) -> None:
        self._far = urlsplit(url)
        self.latency = 0.0
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._plugged: Any = None
        self._hearing: Any = None
        self._server: Any = self._run(self._start())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> asyncio.Server:
        self._plugged, self._hearing = asyncio.Event(), asyncio.Event()
        self._plugged.set()
        self._hearing.set()
        return await asyncio.start_server(self._relay, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._far.username}@" if self._far.username else ""
        return f"{self._far.scheme}://{user}127.0.0.1:{port}{self._far.path}"

    def pull(self) -> None:
        """From now on bytes vanish in both directions; connections look as if they stood."""
        self._loop.call_soon_threadsafe(self._plugged.clear)

    def deafen(self) -> None:
        """From now on the server is heard no more: what is asked of it is done, and no answer comes."""
        self._loop.call_soon_threadsafe(self._hearing.clear)

    def move(self, url: str) -> None:
        """Another server stands at the far end from now on."""
        self._far = urlsplit(url)
        self.plug()

    def plug(self) -> None:
        """Connections from before are gone; new ones work."""

        def again() -> None:
            self._hearing.set()
            for writer in list(self._writers):
                writer.transport.abort()
            self._plugged.set()

        self._loop.call_soon_threadsafe(again)

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _relay(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self._writers.add(back)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._plugged.wait()
            far, forth = await asyncio.open_connection(self._far.hostname, self._far.port)
            self._writers.add(forth)
            pairs = ((near, forth, self._plugged), (far, back, self._hearing))
            ways = [asyncio.ensure_future(self._pass(*pair)) for pair in pairs]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                self._writers.discard(forth)
                forth.close()
        self._writers.discard(back)
        back.close()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, open_: asyncio.Event
    ) -> None:
        while piece := await source.read(65536):
            if self.latency:
                over = asyncio.Event()
                self._loop.call_later(self.latency, over.set)
                await over.wait()
            await self._plugged.wait()
            await open_.wait()
            sink.write(piece)
            await sink.drain()
