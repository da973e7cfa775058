"""What the chaos proxy knows of a wire: where a request begins and ends, and which bytes are an answer's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Protocol

CHUNK: Final = 65536
PREFACE: Final = 24
"""Bytes that an HTTP/2 client sends before its first frame."""
DATA, HEADERS, CONTINUATION = 0, 1, 9
END_STREAM: Final = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes as they came."""

    data: bytes
    line: str | None = None
    """The first line of the request that begins here, or None."""
    last: bool = False
    """Whether a request ends here."""
    counts: bool = True
    """Whether it is of a request or an answer; else it is the connection's own."""


class Wire(Protocol):
    """How bytes are cut into pieces, each way."""

    def asked(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        """What the near side sends."""

    def answered(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        """What the far side sends."""


class Http1:
    """Requests with a Content-Length, or without a body; each is one piece."""

    async def asked(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            lengths = [int(line[15:]) for line in lines if line.startswith(b"content-length:")]
            first = head.partition(b"\r\n")[0].decode("latin-1")
            yield Piece(head + await reader.readexactly(sum(lengths)), first, last=True)

    async def answered(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        while data := await reader.read(CHUNK):
            yield Piece(data)


class Http2:
    """Frames. A stream's HEADERS begin a request; their names are packed, so its line is always `call`.

    The connection's own frames (settings, pings, windows) are no part of a request or an answer: what is done
    to those begins where there is something to lose.
    """

    async def asked(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        yield Piece(await reader.readexactly(PREFACE), counts=False)
        async for kind, flags, data in _frames(reader):
            ends = kind in (DATA, HEADERS) and bool(flags & END_STREAM)
            begins = "call" if kind == HEADERS else None
            yield Piece(data, begins, last=ends, counts=kind in (DATA, HEADERS, CONTINUATION))

    async def answered(self, reader: asyncio.StreamReader) -> AsyncIterator[Piece]:
        async for kind, _, data in _frames(reader):
            yield Piece(data, counts=kind in (DATA, HEADERS, CONTINUATION))


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, int, bytes]]:
    """Kind, flags, and the whole frame."""
    while True:
        try:
            head = await reader.readexactly(9)
        except asyncio.IncompleteReadError:
            return
        yield head[3], head[4], head + await reader.readexactly(int.from_bytes(head[:3]))
