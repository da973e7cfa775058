"""How long a forget takes beyond what it waits for: the ledger's commits and the store's answers."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from quietus.app import Sidecar
from quietus.config import load
from quietus.core.exchange import Request

WARM = 5
FORGETS = 40


class Waiting:
    """Where the time goes that is not ours: spans of calls to the ledger and to the store."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def around(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        """The same call, with its span noted."""

        async def noted(*args: Any, **kwargs: Any) -> Any:
            began = time.perf_counter()
            try:
                return await call(*args, **kwargs)
            finally:
                self.spans.append((began, time.perf_counter()))

        return noted

    def total(self, began: float, ended: float) -> float:
        """Seconds of that time in which at least one such call was under way."""
        seconds, reached = 0.0, began
        for start, end in sorted(self.spans):
            start, end = max(start, reached), min(end, ended)
            if end > start:
                seconds += end - start
                reached = end
        return seconds


async def measure(folder: Path, store: int) -> dict[str, float]:
    """Medians over some forgets of subjects that nobody forgot before; milliseconds."""
    sidecar = Sidecar(load(None, {
        "store.profile": "memory-tool",
        "store.http.upstream": f"http://127.0.0.1:{store}",
        "store.http.listen": "127.0.0.1:0",
        "admin.listen": "127.0.0.1:0",
        "ledger.url": f"sqlite:///{folder}/forgets.db",
    }, {}))  # fmt: skip
    waiting = Waiting()
    ledger: Any = sidecar.parts.erasures.ledger
    client: Any = sidecar.client
    for name in ("append", "secret", "head"):
        setattr(ledger, name, waiting.around(getattr(ledger, name)))
    client.open = waiting.around(client.open)
    await sidecar.start()
    whole, own = [], []
    for number in range(WARM + FORGETS):
        body = json.dumps({"tenant": "acme", "subject": f"forgotten-{number}"}).encode()
        request = Request("POST", "/v1/forget", (("Content-Type", "application/json"),), body)
        waiting.spans.clear()
        began = time.perf_counter()
        answer = await sidecar.parts.gateway.handle(request, "anonymous")
        ended = time.perf_counter()
        answer.done()
        if answer.status not in (200, 202):
            raise RuntimeError(f"the forget was answered {answer.status}")
        if number >= WARM:
            whole.append((ended - began) * 1e3)
            own.append((ended - began - waiting.total(began, ended)) * 1e3)
    await sidecar.stop()
    return {"forget_ms": statistics.median(whole), "forget_own_ms": statistics.median(own),
            "forget_own_ms_max": max(own)}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1]), int(sys.argv[2])))))
