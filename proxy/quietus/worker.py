"""A worker as a process: `python -m quietus.worker FD`, begun by its supervisor and by nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from typing import Any

from quietus import logs
from quietus.app import SystemClock, harden, on_fastest_loop, unhurried
from quietus.ledger.files import lock_for_worker
from quietus.opening import worker_ledger
from quietus.process import Process
from quietus.settings import Settings
from quietus.workers.figures import told
from quietus.workers.line import Line
from quietus.workers.remote import RemoteLedger


class Worker:
    """One worker, at its end of the line."""

    def __init__(self) -> None:
        self.line = Line()
        self._ledger = RemoteLedger(self.line)
        self._process: Process | None = None
        self._stopping = asyncio.Event()
        self.line.answers = {"news": self._ledger.hear, "figures": self._figures, "stop": self._stop}

    async def serve(self, end: socket.socket) -> None:
        """Serves until its supervisor says stop, or is gone."""
        await self.line.begin(end)
        watching = asyncio.ensure_future(self._outlive_nobody())
        try:
            place, document = await self.line.ask("settings")
            settings = Settings.model_validate(document)
            if settings.ledger.path is not None:
                lock_for_worker(settings.ledger.path)
            ledger, keyring = worker_ledger(settings, self._ledger)
            process = Process(settings, ledger, keyring, SystemClock())
            listeners = process.listeners(reuse_port=True)
            await unhurried(process.begin(first=False, place=f".{place}"))
            await listeners.start()
        except Exception as error:
            await self.line.ask("failed", str(error) or type(error).__name__)
            sys.exit(2)
        self._process = process
        await self.line.ask("serves")
        await self._stopping.wait()
        await listeners.close()
        await process.rest()
        await process.end()
        watching.cancel()
        await self.line.end()

    async def _outlive_nobody(self) -> None:
        await self.line.broken.wait()
        os._exit(3)  # somebody else may write the ledger by now, and wait for nobody who is not in the roster

    async def _figures(self) -> dict[str, Any]:
        if self._process is None:
            return {}
        parts = self._process.parts
        return {
            "families": told(self._process.registry),
            "decisions": parts.gateway.decided.listed(),
            "unmapped": parts.shapes.listed(),
            "bypasses": self._process.metrics.bypasses(),
        }

    async def _stop(self) -> None:
        self._stopping.set()


async def _work(end: socket.socket) -> None:
    harden()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: None)  # its supervisor was told, too
    await Worker().serve(end)


def main() -> None:
    """Takes the line that was handed down."""
    logs.setup(SystemClock().now)
    on_fastest_loop(_work(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
