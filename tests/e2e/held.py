"""A store that answers when it is told to: recalls wait at named doors, streams between two events."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

from aiohttp import web

ROWS = [
    {"key": "alice-1", "value": "Alice lives at 12 Elm Street in Lisbon", "subject": "alice"},
    {"key": "bob-1", "value": "Bob likes green tea in the morning", "subject": "bob"},
]


class Held:
    """Serves both rows for ever, whatever was forgotten; a request with `X-Door` waits until it is opened."""

    def __init__(self) -> None:
        self.arrived: dict[str, int] = {}
        self.forgets = 0
        self._loop = asyncio.new_event_loop()
        self._doors: dict[str, asyncio.Event] = {}
        self._gone = False
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_post("/v1/recall", self._recall)
        app.router.add_post("/v1/forget", self._forget)
        app.router.add_get("/v1/memories", self._list)
        app.router.add_get("/v1/memories/{key}", self._read)
        app.router.add_get("/v1/epoch", self._epoch)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def open(self, door: str) -> None:
        """Lets everybody through who waits, or will wait, at a door."""
        self._loop.call_soon_threadsafe(self._door(door).set)

    def clean(self) -> None:
        """From now on the store has forgotten, except for those who wait at a door already."""
        self._gone = True

    def close(self) -> None:
        for door in list(self._doors):
            self.open(door)
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _door(self, name: str) -> asyncio.Event:
        return self._doors.setdefault(name, asyncio.Event())

    def _found(self, subject: Any) -> list[dict[str, Any]]:
        rows = [row for row in ROWS if subject in (None, row["subject"])]
        return [row for row in rows if not (self._gone and row["subject"] == "alice")]

    async def _recall(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        found = self._found(asked.get("subject"))
        door = request.headers.get("X-Door")
        if door is not None:
            self.arrived[door] = self.arrived.get(door, 0) + 1
        if request.headers.get("Accept") == "text/event-stream":
            stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await stream.prepare(request)
            await stream.write(b": the first event is a comment\n\n")
            if door is not None:
                await self._door(door).wait()
            for row in found:
                await stream.write(f"data: {json.dumps(row)}\n\n".encode())
            return stream
        if door is not None:
            await self._door(door).wait()
        return web.json_response({"results": found})

    async def _epoch(self, _: web.Request) -> web.Response:
        return web.json_response({})

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"results": self._found(request.query.get("subject")), "next": None})

    async def _read(self, request: web.Request) -> web.Response:
        rows = [row for row in self._found(None) if row["key"] == request.match_info["key"]]
        return web.json_response(rows[0]) if rows else web.json_response({}, status=404)

    async def _forget(self, request: web.Request) -> web.Response:
        self.forgets += 1
        return web.json_response({"status": "erased", "keys": 1})
