"""Time made short for the commands of a page.

`quietus serve` and `quietus legacy serve` run in this process, on a clock that only `sleep` moves; any
other command is the real one.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from quietus.app import Sidecar
from quietus.config import load
from quietus.legacy.faults import parse_faults
from quietus.legacy.loop_clock import LoopClock
from quietus.legacy.server import serve
from quietus.legacy.store import LegacyStore
from tests.virtual_clock import VirtualClock

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
STEP = 60.0
"""Virtual seconds that go by at once, in the first two hours of a sleep; ten times as many after that."""
PAUSE = 0.004
"""Real seconds after each step, in which what was woken gets somewhere."""

SHIM = '''#!{python}
import json, os, signal, sys, urllib.request
def ask(path, told):
    request = urllib.request.Request("http://127.0.0.1:{port}" + path, json.dumps(told).encode())
    with urllib.request.urlopen(request, timeout=600) as got:
        return json.loads(got.read())
words = sys.argv[1:]
if os.path.basename(sys.argv[0]) == "sleep":
    ask("/sleep", {{"for": words[0]}})
    sys.exit(0)
if words[:1] == ["serve"] or words[:2] == ["legacy", "serve"]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    name = ask("/serve", {{"words": words, "folder": os.getcwd()}})["name"]
    try:
        signal.pause()
    finally:
        ask("/stop", {{"name": name}})
sys.argv = ["quietus", *words]
from quietus.cli import main
main()
'''


class Stepping(VirtualClock):
    """Moves in steps, so that a day goes by in seconds."""

    async def pass_by(self, seconds: float) -> None:
        real, goal = LoopClock(), self.monotonic() + seconds
        began = self.monotonic()
        while self.monotonic() < goal:
            step = STEP if self.monotonic() - began < 7200 else 10 * STEP
            self._elapsed = min(goal, self.monotonic() + step)
            while self._sleepers and self._sleepers[0][0] <= self._elapsed:
                _, _, woken = self._sleepers.pop(0)
                self._sleepers.sort()
                if not woken.done():
                    woken.set_result(None)
            await real.sleep(PAUSE)


class Week:
    """What the shims talk to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._running: dict[str, Any] = {}
        self._clock = Stepping(start=time.time())
        self._runner: Any = None
        self._run(self._begin())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _begin(self) -> None:
        app = web.Application()
        app.router.add_post("/sleep", self._sleep)
        app.router.add_post("/serve", self._serve)
        app.router.add_post("/stop", self._stop)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        text = SHIM.format(python=sys.executable, port=self._runner.addresses[0][1])
        for name in ("quietus", "sleep"):
            path = self._folder / name
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    async def _sleep(self, request: web.Request) -> web.Response:
        found = re.fullmatch(r"(\d+)([smhd]?)", (await request.json())["for"])
        assert found is not None
        await self._clock.pass_by(float(found[1]) * UNITS[found[2] or "s"])
        return web.json_response({})

    async def _serve(self, request: web.Request) -> web.Response:
        told = await request.json()
        words, name = told["words"], f"p{len(self._running)}"
        if words[0] == "legacy":
            faults = [words[at + 1] for at, word in enumerate(words) if word == "--fault"]
            host, _, port = words[words.index("--listen") + 1].partition(":")
            store = LegacyStore(self._clock, 0, parse_faults(faults))
            self._running[name] = (await serve(host, int(port), store)).close
        else:
            os.chdir(told["folder"])
            sidecar = Sidecar(load(Path(words[words.index("--config") + 1]), {}, {}), clock=self._clock)
            await sidecar.start()
            self._running[name] = sidecar.stop
        return web.json_response({"name": name})

    async def _stop(self, request: web.Request) -> web.Response:
        end = self._running.pop((await request.json())["name"], None)
        if end is not None:
            await end()
        return web.json_response({})

    def close(self) -> None:
        async def end() -> None:
            for stop in list(self._running.values()):
                await stop()
            await self._runner.cleanup()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
