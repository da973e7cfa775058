"""A client that speaks HTTP/2 by hand, so that it can say what no library would."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4

Pairs = tuple[tuple[bytes, bytes], ...]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(pairs: Pairs) -> bytes:
    """Header fields as literals that nobody remembers."""
    return b"".join(b"\x00" + _sized(name) + _sized(value) for name, value in pairs)


def _sized(data: bytes) -> bytes:
    size = len(data)
    if size < 127:
        return bytes([size]) + data
    size, out = size - 127, b"\x7f"
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size]) + data


def head(path: bytes, *more: tuple[bytes, bytes]) -> Pairs:
    """What a client of gRPC sends first."""
    return (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"localhost"),
        (b"te", b"trailers"), (b"content-type", b"application/grpc"), *more,
    )  # fmt: skip


def message(data: bytes, packed: int = 0, size: int | None = None) -> bytes:
    """A message with its prefix; `size` is what the prefix says where that is not the truth."""
    return struct.pack(">BI", packed, len(data) if size is None else size) + data


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> bool:
        """False: the other side has gone."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return False
        return True

    async def frames(self) -> AsyncIterator[tuple[int, int, int, bytes]]:
        """Kind, flags, stream and payload of each, until the other side ends; pings are answered."""
        while True:
            try:
                start = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(start[:3]))
            except (OSError, asyncio.IncompleteReadError):
                return
            kind, flags = start[3], start[4]
            if kind == PING and not flags & 1:
                await self.send(frame(PING, 1, 0, payload))
            if kind == SETTINGS and not flags & 1:
                await self.send(frame(SETTINGS, 1, 0))
            yield kind, flags, int.from_bytes(start[5:]), payload

    async def ended(self, stream: int) -> bool:
        """Waits for the end of a stream, or of the connection; True: it was the connection's."""
        async for kind, flags, of, _ in self.frames():
            if kind == GOAWAY:
                return True
            if of == stream and (kind == RESET or (kind in (DATA, HEADERS) and flags & END_STREAM)):
                return False
        return True


@asynccontextmanager
async def wire(address: str) -> AsyncIterator[Wire]:
    """A connection on which the preface has been sent."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    made = Wire(reader, writer)
    await made.send(PREFACE + frame(SETTINGS, 0, 0))
    try:
        yield made
    finally:
        writer.transport.abort()
