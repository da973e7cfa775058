"""Forgets, recalls and writes race through several replicas while those are frozen, cut off and killed.

Beside each person is somebody who quotes them: only what a snapshot found tells a replica that.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.replicas.cluster import BAY, Cluster
from tests.replicas.lying_store import LyingStore, sentence

PATIENCE = 120.0
RECALLERS = 8
WRITERS = 2
AGAIN = (429, 502, 503, 504)
GONE = (aiohttp.ClientError, OSError, TimeoutError)


@dataclass
class Tally:
    """What a race came to."""

    forgets: int = 0
    recalls: int = 0
    writes: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)
    late_writes: list[str] = field(default_factory=list)
    upstream: Counter[int] = field(default_factory=Counter)
    """How many people's forgets reached the store so often."""
    unexplained: list[str] = field(default_factory=list)
    """People whose forget reached the store more often than the ledger says that it was sent."""
    converged: float = 0.0
    """Seconds after the last fault until every replica answered and gated on the same epoch."""

    def told(self) -> dict[str, Any]:
        """As JSON; of several races the numbers add up, and of `converged_s` the largest counts."""
        return {
            "forgets": self.forgets, "recalls": self.recalls, "writes": self.writes,
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "faults": dict(self.faults), "leaks": len(self.leaks), "late_writes": len(self.late_writes),
            "upstream": {str(times): count for times, count in sorted(self.upstream.items())},
            "unexplained": len(self.unexplained), "converged_s": round(self.converged, 2),
        }  # fmt: skip

    def line(self) -> str:
        """The same in one line."""
        return json.dumps(self.told())


@dataclass(frozen=True)
class _Heard:
    name: str
    replica: int
    began: float
    left_store_at: float


class Race:
    """One race. `seed` chooses who does what; what the machine makes of it is its own."""

    def __init__(self, made: Cluster, store: LyingStore, people: int, recalls: int, seed: int = 0) -> None:
        self.made = made
        self.store = store
        self.tally = Tally(forgets=people)
        self._recalls_left = recalls
        self._random = random.Random(seed)
        self._names = [f"p{seed}x{number}" for number in range(people)]
        self._acknowledged: dict[str, float] = {}
        self._erasures: dict[str, str] = {}
        self._begun: list[str] = []
        self._told: list[_Heard] = []
        self._suspect: int | None = None
        """The replica that something is wrong with now: whoever recalls asks it the most."""
        self._turns = asyncio.Semaphore(0)
        """Forgets that may begin: they are spread over what goes wrong, some before it, some in it."""
        store.listing = 1.0  # a cable that is pulled finds snapshots under way
        self._done = asyncio.Event()
        self._going = asyncio.Event()
        self._going.set()
        for name in self._names:
            store.person(name)
            store.put(f"{self._beside(name)}-1", f"it was told at length: {sentence(name)}; and believed",
                      self._beside(name))  # fmt: skip

    @staticmethod
    def _beside(name: str) -> str:
        return f"near{name[1:]}"

    async def run(self, faults: int = 3) -> Tally:
        """Races to the end, and judges."""
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            self._session = session
            recallers = [asyncio.ensure_future(self._recaller()) for _ in range(RECALLERS)]
            writers = [asyncio.ensure_future(self._writer()) for _ in range(WRITERS)]
            troubles = asyncio.ensure_future(self._trouble(faults))
            try:
                await self._forgetters()
                await troubles
                healed = time.monotonic()
                await self._converge()
                self.tally.converged = time.monotonic() - healed
                await asyncio.gather(*recallers)
                self._done.set()
                await asyncio.gather(*writers)
            finally:
                for task in (*recallers, *writers, troubles):
                    task.cancel()
        self._judge()
        return self.tally

    # --- who races -------------------------------------------------------------------------------

    async def _forgetters(self) -> None:
        waiting = iter(self._names)

        async def some(names: Iterator[str]) -> None:
            for name in names:
                await self._turns.acquire()
                self._begun.append(name)
                await asyncio.gather(*(self._forget(name) for _ in range(2)))

        await asyncio.gather(*(some(waiting) for _ in range(4)))

    async def _forget(self, name: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            # One that fails where the ledger is away has shut that gate: mostly others are asked.
            place = self._some()
            if place == self._suspect and self._random.random() < 0.9:
                place = (place + 1) % len(self.made.replicas)
            answer = await self._call(place, "/v1/forget", {"subject": name, "tenant": BAY})
            if answer is not None and answer[0] in (200, 202):
                self._acknowledged.setdefault(name, time.monotonic())
                told = answer[1].get("Quietus-Erasure", "")
                self._erasures[name] = told.partition(";")[0].strip('"')
                return
        raise AssertionError(f"the forget of {name} was never acknowledged")

    async def _recaller(self) -> None:
        while self._recalls_left > 0:
            self._recalls_left -= 1
            name = self._random.choice(self._begun[-8:] or self._names)
            place = self._some()
            if self._suspect is not None and self._random.random() < 0.7:
                place = self._suspect
            asked = name if self._random.random() < 0.6 else self._beside(name)
            body = {"query": "lanterns", "subject": asked, "tenant": BAY}
            await self._pause(0.02)
            began = time.monotonic()
            slow = {"X-Slow": str(self._random.randrange(60))}
            answer = await self._call(place, "/v1/recall", body, slow)
            self.tally.recalls += 1
            if answer is not None and answer[0] == 200 and name.encode() in answer[2]:
                self._told.append(_Heard(name, place, began, float(answer[1].get("X-Store-At", "0"))))

    async def _writer(self) -> None:
        while not self._done.is_set():
            name = self._random.choice(self._begun[-8:] or self._names)
            number = self.tally.writes
            body = {"key": f"{name}-w{number}", "value": f"note {number}", "tenant": BAY,
                    "retention": {"subject": name}}  # fmt: skip
            await self._pause(0.03)
            await self._call(self._some(), "/v1/memories", body, {"X-Slow": str(self._random.randrange(30))})
            self.tally.writes += 1

    def _some(self) -> int:
        return self._random.randrange(len(self.made.replicas))

    async def _call(
        self, place: int, path: str, body: Any, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, bytes] | None:
        await self._going.wait()
        try:
            url = self.made.replicas[place].data + path
            async with self._session.post(url, json=body, headers=headers) as answer:
                found = answer.status, answer.headers, await answer.read()
        except GONE:
            self.tally.statuses[0] += 1
            await asyncio.sleep(0)
            return None
        self.tally.statuses[found[0]] += 1
        return found

    # --- what goes wrong -------------------------------------------------------------------------

    async def _trouble(self, faults: int) -> None:
        seconds = 2.0 * float(self.made.lease.rstrip("s"))
        share = len(self._names) // (2 * faults) if faults else 0
        for number in range(faults):
            self._let_in(share)
            await self._pause(0.5)
            kind = ("partition", "freeze", "kill")[number % 3]
            place = self._some()
            self.tally.faults[kind] += 1
            self._suspect = place
            if kind == "freeze":
                self.made.freeze(place)
                self._let_in(share)
                await self._pause(seconds)
                self.made.thaw(place)
            elif kind == "partition":
                self.made.cables[place].pull()
                self._let_in(share)
                await self._pause(seconds)
                self.made.cables[place].plug()
            else:
                self.made.replicas[place].kill()
                self._let_in(share)
                await self._start(place)
            self._suspect = None
        self._let_in(len(self._names))

    def _let_in(self, count: int) -> None:
        for _ in range(count):
            self._turns.release()

    async def _start(self, place: int) -> None:
        """Starts a replica again; meanwhile the race leaves the machine to it."""
        self._going.clear()
        try:
            await asyncio.to_thread(self.made.replicas[place].start)
        finally:
            self._going.set()

    @staticmethod
    async def _pause(seconds: float) -> None:
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, over.set)
        await over.wait()

    async def _converge(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            standing = [await self._standing(replica.admin) for replica in self.made.replicas]
            if None not in standing and len(set(standing)) == 1:
                return
            assert time.monotonic() < end, standing

    async def _standing(self, admin: str) -> int | None:
        try:
            async with self._session.get(f"{admin}/readyz") as answer:
                return (await answer.json()).get("epoch") if answer.status == 200 else None
        except GONE:
            return None

    # --- what came of it -------------------------------------------------------------------------

    def _judge(self) -> None:
        for heard in self._told:
            known = self._acknowledged.get(heard.name)
            if known is not None and max(heard.began, heard.left_store_at) > known:
                self.tally.leaks.append(f"{heard.name} through replica {heard.replica}")
        for name in self._names:
            sent = self.store.arrived("forget", name)
            self.tally.upstream[len(sent)] += 1
            late = [at for at in self.store.arrived("write", name) if sent and at > sent[0]]
            self.tally.late_writes += [name] * len(late)
            if len(sent) > 1:
                events = self.made.replicas[0].office(f"/v1/erasures/{self._erasures[name]}/events")["events"]
                if sum(event["type"] == "forwarded" for event in events) < len(sent):
                    self.tally.unexplained.append(name)
