"""A client, the sidecar and a store, with a proxy on either side that can mistreat what passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, Response, request, shipped
from tests.e2e.stores import Served
from tests.harness.chaos import Chaos

BOB = {"key": "bob-00001", "value": "Bob Keller prefers the early morning train to Basel"}
LONG = " ".join(f"word{number}" for number in range(4000))
BAY = "bay"
"""The tenant of those who are forgotten; the answers that stream are another's."""
READ, WRITE, FORGET = "GET /v1/memories/bob-00001", "POST /v1/memories ", "POST /v1/forget"


@dataclass
class Parts:
    """client - near - sidecar - far - store."""

    sidecar: Quietus
    store: Served
    far: Chaos
    near: Chaos
    count: int = 0

    def subject(self) -> str:
        """Somebody new with one memory."""
        self.count += 1
        name = f"subject-{self.count}"
        text = f"The {name} owns painting number {self.count} of the bay"
        self.store.store.put(text, key=f"{name}-a", subject=name, tenant=BAY)
        return name

    def receipts(self, line: str) -> int:
        return sum(receipt.startswith(line.strip()) for receipt in self.store._served.receipts)

    def call(self, line: str, body: Any = None) -> Response:
        method, _, path = line.strip().partition(" ")
        return request(method, self.sidecar.data + path, body)


def standing(folder: Path) -> Iterator[Parts]:
    """Starts all of it, and stops it."""
    profile = shipped("memory-tool", folder, settling_interval="1s", effectuation_bound="120s")
    settings = {
        "limits": {"probe_rate_per_second": 500, "response_bytes_max": 20000},
        "timeouts": {"upstream": "1s"},
    }
    store = Served(Faults())
    with Chaos(store.url) as far:
        sidecar = Quietus(folder, far.url, str(profile), settings).start()
        with Chaos(sidecar.data) as near:
            for tenant in (None, BAY):
                store.store.put(BOB["value"], key=BOB["key"], subject="bob", tenant=tenant)
            yield Parts(sidecar, store, far, near)
        assert sidecar.stop() == 0
    store.close()
