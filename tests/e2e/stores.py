"""The legacy store on a real socket, in this process, with its receipts."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from quietus.legacy.faults import Faults
from quietus.legacy.server import serve
from quietus.legacy.store import LegacyStore


class _Clock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Served:
    """A store served from a thread of its own."""

    def __init__(self, faults: Faults = Faults()) -> None:
        self.store = LegacyStore(_Clock(), 0, faults)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._served: Any = self._run(serve("127.0.0.1", 0, self.store))
        self.url: str = self._served.url

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    def forgets(self) -> int:
        """How many forgets reached the store."""
        return self.store.calls["forget"]

    def close(self) -> None:
        self._run(self._served.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
