"""A store for every tenant behind one address, each with its own faults, clock and scripted answers."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from quietus.core.exchange import Reply, Request
from quietus.legacy.faults import Faults
from quietus.legacy.server import serve
from quietus.legacy.store import LegacyStore


class Shifted:
    """Real time, and what a transcript added to it. A `ports.Clock`."""

    def __init__(self) -> None:
        self.offset = 0.0

    def now(self) -> float:
        return time.time() + self.offset

    def monotonic(self) -> float:
        return time.monotonic() + self.offset

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError("the store itself never sleeps")


@dataclass
class House:
    """One tenant's store."""

    store: LegacyStore
    clock: Shifted
    script: dict[str, deque[Reply]] = field(default_factory=dict)
    """Answers given in the store's place, by "METHOD /path"; the store does nothing then."""
    received: list[Request] = field(default_factory=list)


class Town:
    """Every tenant's store; a request goes to the tenant that it names."""

    faults = Faults()

    def __init__(self) -> None:
        self.clock = Shifted()
        self.houses: dict[str, House] = {}
        self._nobody = LegacyStore(self.clock)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        work: Any = serve("127.0.0.1", 0, self)  # type: ignore[arg-type]
        self._served = asyncio.run_coroutine_threadsafe(work, self._loop).result(20)
        self.url: str = self._served.url

    def settle(self, tenant: str, faults: Faults) -> House:
        """Builds a tenant's store."""
        clock = Shifted()
        house = House(LegacyStore(clock, 0, faults), clock)
        self.houses[tenant] = house
        return house

    def handle(self, request: Request) -> Reply:
        """Answers one request; on the server's thread."""
        house = self.houses.get(_tenant(request))
        if house is None:
            return self._nobody.handle(request)
        house.received.append(request)
        waiting = house.script.get(f"{request.method} {request.path}")
        if waiting:
            return waiting.popleft()
        return house.store.handle(request)

    def do(self, act: Callable[[], Any]) -> Any:
        """Does something to a store where nothing races with it: on the server's thread."""

        async def here() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(here(), self._loop).result(20)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._served.close(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def _tenant(request: Request) -> str:
    named = parse_qs(request.query).get("tenant")
    if named:
        return named[0]
    try:
        document = json.loads(request.body or b"null")
    except ValueError:
        return ""
    if not isinstance(document, dict):
        return ""
    rows = document.get("memories")
    inner = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    return str(document.get("tenant") or inner.get("tenant") or "")
