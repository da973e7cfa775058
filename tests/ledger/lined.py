"""Ledgers of workers: views of one hub, each at the end of a line over a real socket."""

from __future__ import annotations

import asyncio
import socket

from quietus.ports import Head
from quietus.workers.hub import Hub
from quietus.workers.hub_ledger import HubLedger
from quietus.workers.line import Line
from quietus.workers.remote import RemoteLedger, Served


class LinedLedger(RemoteLedger):
    """One worker's ledger, with the supervisor's end of its line in the same process."""

    def __init__(self, hub: Hub) -> None:
        self._far = Served(HubLedger(hub))
        self._far_end = Line(self._far.answers())
        self._near = Line({"news": self.hear})
        self._telling: asyncio.Task[None] | None = None
        super().__init__(self._near)

    async def open(self) -> Head:
        """Lays the line, and opens over it."""
        if self._telling is None:
            ends = socket.socketpair()
            await self._far_end.begin(ends[0])
            await self._near.begin(ends[1])
            self._telling = asyncio.ensure_future(self._far.tell(self._far_end))
        return await super().open()

    async def close(self) -> None:
        """Closes over it, and takes it down."""
        if self._telling is None:
            return
        await super().close()
        self._telling.cancel()
        self._telling = None
        await self._near.end()
        await self._far_end.end()
        self._near, self._far_end = Line({"news": self.hear}), Line(self._far.answers())
        self._line = self._near
