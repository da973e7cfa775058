"""One port for two wires: the first bytes of a connection say which of them it speaks.

A client that speaks HTTP/2 without being asked sends a fixed preface first. A connection that begins so is
handed on, byte for byte, to the gRPC listener, which listens on a socket that only this process's user can
reach; every other one is HTTP/1.1's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_ENOUGH: Final = 4
"""Bytes that tell the two apart: no method of HTTP/1.1 begins with `PRI `."""

Make = Callable[[], asyncio.Protocol]


class Sharing:
    """The gRPC side of a shared port."""

    def __init__(self, inside: str, *, patience: float = 5.0, connections_max: int = 1024) -> None:
        """`inside` is the path of the socket behind it; `patience` the seconds for the first bytes."""
        self.inside = inside
        self.patience = patience
        self._room = connections_max
        self.open: set[Pipe] = set()

    def around(self, make: Make) -> asyncio.Protocol:
        """The protocol of a new connection; `make` makes the one for HTTP/1.1."""
        return _Door(self, make)

    @property
    def room(self) -> bool:
        """Whether one more connection fits in."""
        return len(self.open) < self._room

    def close(self) -> None:
        """Drops what is open."""
        for pipe in list(self.open):
            pipe.close()


class _Door(asyncio.Protocol):
    """A connection that has not said yet what it speaks."""

    def __init__(self, sharing: Sharing, make: Make) -> None:
        self._sharing = sharing
        self._make = make
        self._held = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._sharing.patience, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._held += data
        if len(self._held) < _ENOUGH and PREFACE.startswith(self._held):
            return
        assert self._transport is not None
        self._done()
        if not self._held.startswith(PREFACE[:_ENOUGH]):
            protocol = self._make()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(self._held)
        elif self._sharing.room:
            Pipe(self._sharing, self._transport, self._held).begin()
        else:
            self._transport.abort()

    def eof_received(self) -> None:
        return None  # closes: nothing was asked

    def connection_lost(self, exc: Exception | None) -> None:
        self._done()

    def _done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Pipe:
    """Two connections joined: what one side sends goes to the other, no faster than that one takes it."""

    def __init__(self, sharing: Sharing, outside: asyncio.Transport, held: bytes) -> None:
        self._sharing = sharing
        self._held = held
        self._outside = _End(self, outside)
        self._inside = _End(self, None)
        self._outside.other, self._inside.other = self._inside, self._outside
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Takes the connection over and opens the one behind it."""
        self._sharing.open.add(self)
        transport = self._outside.transport
        assert transport is not None
        transport.pause_reading()
        transport.set_protocol(self._outside)
        self._task = asyncio.get_running_loop().create_task(self._join())

    async def _join(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_unix_connection(lambda: self._inside, self._sharing.inside)
        except OSError:
            self.close()
            return
        assert self._inside.transport is not None and self._outside.transport is not None
        self._inside.transport.write(self._held)
        self._held = b""
        self._outside.resume()

    def close(self) -> None:
        """Drops both ends."""
        self._sharing.open.discard(self)
        for end in (self._outside, self._inside):
            if end.transport is not None:
                end.transport.abort()

    def finish(self, end: _End) -> None:
        """One end is gone: what it sent still goes out at the other, which then closes."""
        self._sharing.open.discard(self)
        other = end.other
        if other is not None and other.transport is not None:
            other.transport.close()


class _End(asyncio.Protocol):
    """One of the two."""

    def __init__(self, pipe: Pipe, transport: asyncio.Transport | None) -> None:
        self._pipe = pipe
        self.transport = transport
        self.other: _End | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.resume()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._pipe.finish(self)
