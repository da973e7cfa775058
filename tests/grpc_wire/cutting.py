"""A TCP relay between the sidecar and a server that can lose bytes and reset connections."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Cutter:
    """It passes everything on until it is told otherwise."""

    def __init__(self, far: str) -> None:
        host, _, port = far.rpartition(":")
        self._far = (host, int(port))
        self._links: set[asyncio.StreamWriter] = set()
        self.lose_requests = False
        """Takes what the sidecar sends, and passes none of it on."""
        self.lost = asyncio.Event()
        self.address = ""
        self.connections = 0

    def reset(self) -> None:
        """Resets every connection, on both sides."""
        for writer in list(self._links):
            end = writer.transport.get_extra_info("socket")
            if end is not None:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def accepted(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            far, forth = await asyncio.open_connection(*self._far)
        except OSError:
            back.transport.abort()
            return
        self._links |= {back, forth}
        ways = [
            asyncio.ensure_future(self._pass(near, forth, True)),
            asyncio.ensure_future(self._pass(far, back, False)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for writer in (back, forth):
            self._links.discard(writer)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if asks and self.lose_requests:
                    self.lost.set()
                    continue
                writer.write(data)
                await writer.drain()


@asynccontextmanager
async def cutter(far: str) -> AsyncIterator[Cutter]:
    made = Cutter(far)
    server = await asyncio.start_server(made.accepted, "127.0.0.1", 0)
    made.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        made.reset()
