"""Runs the sidecar as `quietus serve` does, and can kill it (SIGKILL) at a named point.

    python -m tests.e2e.armed CONFIG READY [POINT[@N]]

POINT is `before:EVENT` or `after:EVENT` around the ledger's commit of an event type, `sending` when a
forget's bytes are about to go, `sent` when its answer is there and nothing was recorded yet, or `probing`
when the first probe after the acknowledgement is about to go. `unsafe:release` kills nothing: it switches off
the check at release, so that a test can show what it is for. `clock:SECONDS` sets the wall clock off by so
much, and `clock:wild` has it jump by ten minutes, forth and back, each time that it is looked at.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

from quietus import replicas
from quietus.adapters.http_client import HttpUpstream
from quietus.app import Sidecar, SystemClock, harden
from quietus.arrivals import Arrivals
from quietus.config import load
from quietus.flights import Flights
from quietus.ledger.shared import SharedServerLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.logs import setup
from tests.replicas.unsafe import switch_off


def arm(point: str) -> None:
    """Puts the kill where it is to happen: the first time that it comes there, or the N-th."""
    point, _, count = point.partition("@")
    left = [int(count or 1)]
    when, _, event = point.partition(":")
    if when == "unsafe" and switch_off(event):
        return
    if when == "verify":  # the settings of the ledger's server are looked at so often, in seconds
        replicas.VERIFY_EVERY = float(event)  # type: ignore[misc]
        return
    if when == "clock":
        off = [600.0, -600.0] if event == "wild" else [float(event)]
        ways = cycle(off)
        SystemClock.now = lambda self: time.time() + next(ways)  # type: ignore[method-assign]
        return
    if when == "unsafe":
        Arrivals.blocked = lambda self, flight: False  # type: ignore[method-assign]
        Arrivals._concerned = lambda self, flight: flight.concerned  # type: ignore[method-assign]
        Flights.fence = lambda self, erasure, decide: None  # type: ignore[method-assign]
        return

    def die() -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    opening = HttpUpstream.open
    acknowledged: list[bool] = []

    def killing(append: Any) -> Any:
        async def killing_append(self: Any, drafts: Any, **more: Any) -> Any:
            armed = any(draft.type.value == event for draft in drafts)
            if armed and when == "before":
                die()
            written = await append(self, drafts, **more)
            if armed and when == "after":
                die()
            if any(draft.type.value == "accepted" for draft in drafts):
                acknowledged.append(True)
            return written

        return killing_append

    async def killing_open(self: HttpUpstream, request: Any, permit: Any, **more: Any) -> Any:
        forgets = "/forget" in request.target
        probes = permit.purpose == "probe" and bool(acknowledged)
        if (when == "sending" and forgets) or (when == "probing" and probes):
            die()
        opened = await opening(self, request, permit, **more)
        if when == "sent" and forgets:
            await opened.read(1 << 20)
            die()
        return opened

    SqliteLedger.append = killing(SqliteLedger.append)  # type: ignore[method-assign]
    SharedServerLedger.append = killing(SharedServerLedger.append)  # type: ignore[method-assign]
    HttpUpstream.open = killing_open  # type: ignore[method-assign]


async def main(config: Path, ready: Path) -> None:
    sidecar = Sidecar(load(config))
    await sidecar.start()
    part = ready.with_suffix(".part")
    urls = {"data": sidecar.data_url, "grpc": sidecar.grpc_address, "admin": sidecar.admin_url}
    part.write_text(json.dumps(urls))
    part.rename(ready)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await sidecar.stop()


if __name__ == "__main__":
    harden()
    setup(time.time)
    if len(sys.argv) > 3 and sys.argv[3]:
        arm(sys.argv[3])
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
