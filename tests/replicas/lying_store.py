"""A store for races: it acknowledges a forget at once and goes on telling for a while, and it keeps its log.

Each answer says when it left (`X-Store-At`, monotonic seconds). A recall with `X-Door` waits until that door
is opened; one with `X-Slow` waits for so many milliseconds.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web


def sentence(name: str) -> str:
    """What somebody's memory says; no two people's have a run of words in common."""
    words = "painter keeps seven green lanterns and one silver compass in an old harbour".split()
    return " ".join(f"{word}{name}" for word in words)


@dataclass(frozen=True)
class Arrived:
    """A request that reached the store, and when."""

    what: str
    subject: str
    at: float


class LyingStore:
    """Serves from a thread of its own. `lag` is how long it goes on telling of somebody forgotten."""

    def __init__(self, lag: float = 2.0) -> None:
        self.lag = lag
        self.listing = 0.0
        """Seconds that a listing takes."""
        self.stubborn = False
        """It says that it deletes, and does not."""
        self.log: list[Arrived] = []
        self.rows: dict[str, dict[str, Any]] = {}
        self._of: dict[str, list[str]] = {}
        self._forgotten: dict[str, float] = {}
        self._doors: dict[str, asyncio.Event] = {}
        self._waiting: dict[str, int] = {}
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)

    async def _start(self) -> str:
        app = web.Application()
        app.router.add_post("/v1/recall", self._recall)
        app.router.add_post("/v1/forget", self._forget)
        app.router.add_post("/v1/memories", self._write)
        app.router.add_get("/v1/memories", self._list)
        app.router.add_get("/v1/memories/{key}", self._read)
        app.router.add_delete("/v1/memories/{key}", self._delete)
        app.router.add_get("/v1/epoch", self._epoch)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=512).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def close(self) -> None:
        for door in list(self._doors):
            self.open(door)
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)

    # --- what a test does ------------------------------------------------------------------------

    def put(self, key: str, value: str, subject: str, tenant: str = "bay") -> None:
        """A memory that was always there."""
        self.rows[key] = {"key": key, "value": value, "subject": subject, "tenant": tenant}
        self._of.setdefault(subject, []).append(key)

    def person(self, name: str) -> None:
        """Somebody with one memory."""
        self.put(f"{name}-1", sentence(name), name)

    def open(self, door: str) -> None:
        """Lets through whoever waits, or will wait, at a door."""
        self._loop.call_soon_threadsafe(self._door(door).set)

    def waiting(self, door: str) -> int:
        """How many have come to a door."""
        return self._waiting.get(door, 0)

    def until(self, holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Waits until something holds that a request may bring about."""
        with self._news:
            assert self._news.wait_for(holds, seconds), what

    def _note(self, what: str, subject: str) -> None:
        with self._news:
            self.log.append(Arrived(what, subject, time.monotonic()))
            self._news.notify_all()

    def _came(self, door: str) -> None:
        with self._news:
            self._waiting[door] = self._waiting.get(door, 0) + 1
            self._news.notify_all()

    def arrived(self, what: str, subject: str) -> list[float]:
        """When such requests came."""
        return [one.at for one in list(self.log) if one.what == what and one.subject == subject]

    # --- what it answers -------------------------------------------------------------------------

    def _door(self, name: str) -> asyncio.Event:
        return self._doors.setdefault(name, asyncio.Event())

    def _tells(self, row: dict[str, Any]) -> bool:
        forgotten = self._forgotten.get(row["subject"])
        return forgotten is None or time.monotonic() < forgotten + self.lag

    def _found(self, subject: Any) -> list[dict[str, Any]]:
        keys = self._of.get(subject, []) if subject is not None else list(self.rows)
        return [row for key in keys if (row := self.rows.get(key)) is not None and self._tells(row)][:50]

    @staticmethod
    def _json(value: Any, status: int = 200) -> web.Response:
        return web.json_response(value, status=status, headers={"X-Store-At": repr(time.monotonic())})

    async def _held(self, request: web.Request) -> None:
        door, slow = request.headers.get("X-Door"), request.headers.get("X-Slow")
        if door is not None:
            self._came(door)
            await self._door(door).wait()
        if slow is not None:
            over = asyncio.Event()
            self._loop.call_later(int(slow) / 1000, over.set)
            await over.wait()

    async def _recall(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self._note("recall", str(asked.get("subject")))
        found = self._found(asked.get("subject"))
        await self._held(request)
        return self._json({"results": found})

    async def _forget(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self._note("forget", asked["subject"])
        self._forgotten.setdefault(asked["subject"], time.monotonic())
        await self._held(request)
        return self._json({"status": "erased", "keys": 1})

    async def _write(self, request: web.Request) -> web.Response:
        asked = await request.json()
        subject = asked.get("retention", {}).get("subject", "")
        self._note("write", subject)
        await self._held(request)
        key = asked.get("key") or f"made-{len(self.log)}"
        self.put(key, asked["value"], subject, asked.get("tenant") or "bay")
        return self._json({"key": key, "status": "stored"}, 201)

    async def _list(self, request: web.Request) -> web.Response:
        subject = request.query.get("subject")
        door = f"list:{subject}"
        if door in self._doors:
            self._came(door)
            await self._door(door).wait()
        if self.listing:
            over = asyncio.Event()
            self._loop.call_later(self.listing, over.set)
            await over.wait()
        return self._json({"results": self._found(subject), "next": None})

    def shut(self, subject: str) -> str:
        """Makes listings of somebody wait; returns the name of the door."""
        door = f"list:{subject}"
        self._doors[door] = asyncio.Event()
        return door

    async def _read(self, request: web.Request) -> web.Response:
        row = self.rows.get(request.match_info["key"])
        return self._json(row) if row is not None and self._tells(row) else self._json({}, 404)

    async def _delete(self, request: web.Request) -> web.Response:
        if not self.stubborn:
            self.rows.pop(request.match_info["key"], None)
        return self._json({}, 200)

    async def _epoch(self, _: web.Request) -> web.Response:
        return self._json({})
