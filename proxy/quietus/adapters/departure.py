"""Has the client that finished sending gone away, or is it waiting for its answer?

Both look alike: the end of its stream. A client that has only shut its sending side is owed the
answer; for one that has closed, a recall should be stopped. What tells them apart is to send something:
a closed socket answers with a reset. An unasked `100 Continue` is what HTTP/1.1 lets every client skip.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final, Protocol

from quietus.adapters.http_wire import CONTINUE

PATIENCE: Final = 0.1
"""Seconds before it asks: most answers are there sooner."""
LOOKS: Final = (0.02, 0.1, 0.5, 2.0)
"""Seconds from one look for the reset to the next; a sidecar's clients are near."""


class Watched(Protocol):
    """The connection that is asked about."""

    transport: asyncio.Transport | None

    def abort(self) -> None:
        """Drops it."""


class Departure:
    """Asks once, while a request is handled and nothing of its answer has been written."""

    __slots__ = ("_connection", "_handle", "_looks", "_open")

    def __init__(self, connection: Watched) -> None:
        self._connection = connection
        self._handle: asyncio.TimerHandle | None = None
        self._looks = 0
        self._open = False

    def watch(self, ended: bool) -> None:
        """From here on an interim answer may be sent; `ended`: the client has finished sending already."""
        self._open = True
        if ended:
            self._ask_later()

    def half_closed(self) -> None:
        """The client has finished sending."""
        if self._open:
            self._ask_later()

    def clear(self) -> None:
        """The answer begins: from here on writing it shows whether somebody is there."""
        self._open = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ask_later(self) -> None:
        if self._handle is None:
            self._handle = asyncio.get_running_loop().call_later(PATIENCE, self._ask)

    def _ask(self) -> None:
        transport = self._connection.transport
        if transport is not None and not transport.is_closing():
            transport.write(CONTINUE)
            self._looks = 0
            self._look_later()

    def _look_later(self) -> None:
        if self._looks < len(LOOKS):
            self._handle = asyncio.get_running_loop().call_later(LOOKS[self._looks], self._look)
            self._looks += 1

    def _look(self) -> None:
        self._handle = None
        transport = self._connection.transport
        if transport is None:
            return
        # The loop stops reading after the end of the stream, so it does not see the reset; the socket does.
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._connection.abort()
        else:
            self._look_later()
