"""A whole Quietus without sockets: the real parts around a store that lies, on a clock that tests move."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from quietus.answers import Answer
from quietus.assembly import Active, Bounds, Parts, Surroundings, assemble
from quietus.core.erasure import Erasure
from quietus.core.exchange import Headers, Reply, Request, header
from quietus.core.policy import Policy
from quietus.keys import Keyring
from quietus.ledger.memory import MemoryLedger
from quietus.legacy.faults import Faults
from quietus.legacy.store import LegacyStore
from quietus.metrics import Metrics
from quietus.policies import load_policy
from quietus.ports import Ledger, LineageLog, OpenReply, Permit, ReplyTooLarge, UpstreamError
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile
from quietus.views import status_view
from tests.virtual_clock import VirtualClock

JSON = ("Content-Type", "application/json")


@dataclass
class Arrived:
    """An answer that is there in full."""

    reply: Reply
    cut_after: int | None = None

    @property
    def status(self) -> int:
        return self.reply.status

    @property
    def headers(self) -> Headers:
        return self.reply.headers

    async def read(self, limit: int) -> Reply:
        if self.cut_after is not None:
            raise UpstreamError("the answer was cut short", sent=True)
        if len(self.reply.body) > limit:
            raise ReplyTooLarge("the answer is larger than the limit", sent=True)
        return self.reply

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.reply.body

    def abort(self) -> None:
        pass


@dataclass
class Embedded:
    """An upstream that is a store in this process. `hooks` run before each request and may delay or fail."""

    store: LegacyStore
    hooks: list[Callable[[Request, Permit], Any]] = field(default_factory=list)
    sent: list[tuple[str, Request]] = field(default_factory=list)

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        for hook in list(self.hooks):
            found = hook(request, permit)
            if asyncio.iscoroutine(found):
                found = await found
            if isinstance(found, Reply):
                return Arrived(found)
        self.sent.append((str(permit.purpose), request))
        reply = self.store.handle(request)
        after = [h for h in self.hooks if hasattr(h, "after")]
        for hook in after:
            await hook.after(request, permit)
        return Arrived(reply)

    async def close(self) -> None:
        pass

    def calls(self, method: str, path: str) -> int:
        """How often the store was asked so."""
        return sum(1 for _, r in self.sent if r.method == method and r.path == path)


class Silent:
    """A log that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def info(self, event: str, **facts: Any) -> None:
        self.lines.append((event, facts))

    error = info


class World:
    """The assembled sidecar in front of the legacy store."""

    def __init__(
        self,
        faults: Faults = Faults(),
        *,
        policy: str | Path | Policy = "default",
        profile: str | Path | Profile = "memory-tool",
        store: dict[str, Any] | None = None,
        ledger: Ledger | None = None,
        keyring: Keyring | None = None,
        clock: VirtualClock | None = None,
        upstream: Any = None,
        seed: int = 0,
        bounds: Bounds = Bounds(),
        lineage: LineageLog | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.legacy = upstream.store if upstream is not None else LegacyStore(self.clock, seed, faults)
        self.upstream = upstream or Embedded(self.legacy)
        self.keyring = keyring or Keyring.fresh()
        self.ledger = ledger or MemoryLedger()
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry, "memories")
        self.log = Silent()
        loaded = profile if isinstance(profile, Profile) else load_profile(profile)
        if store:
            loaded = loaded.with_store(**store)
        ids = itertools.count(1)
        self.parts: Parts = assemble(
            Surroundings(
                Active(loaded, policy if isinstance(policy, Policy) else load_policy(policy)),
                self.ledger,
                self.keyring,
                self.clock,
                self.upstream,
                "memories",
                self.metrics,
                self.log,
                lambda: f"er_{seed}_{next(ids):04d}",
                random.Random(seed),
                lambda erasure, verdict: status_view(erasure, verdict=verdict),
                bounds,
                lineage=lineage,
            )
        )
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> World:
        await self.parts.erasures.load()
        self.parts.timetable.start()
        self._task = asyncio.ensure_future(self.parts.reconciler.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()

    async def crash(self) -> None:
        """Stops everything at once, as a kill would: nothing is flushed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    # --- as an agent ---------------------------------------------------------------------------

    def start(
        self, method: str, target: str, body: Any = None, headers: Headers = ()
    ) -> asyncio.Task[Answer]:
        """Begins a call through the sidecar."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        given = (("Host", "store"), *((JSON,) if body is not None else ()), *headers)
        request = Request(method, target, given, data)
        return asyncio.ensure_future(self.parts.gateway.handle(request, "anonymous"))

    async def call(self, method: str, target: str, body: Any = None, headers: Headers = ()) -> Seen:
        """One call through the sidecar, time moving as far as it needs."""
        return await self.finish(self.start(method, target, body, headers))

    async def finish(self, task: asyncio.Task[Answer], limit: float = 300.0) -> Seen:
        """Waits for an answer, moving the clock to the next sleeper whenever nothing else goes on."""
        await self.clock.settle()
        end = self.clock.monotonic() + limit
        while not task.done():
            waking = self.clock.next_waking
            if waking is None or waking > end:
                raise AssertionError("the call never came back")
            await self.clock.advance(max(waking - self.clock.monotonic(), 0.0))
        return await taken(task.result())

    async def write(self, key: str, value: str, subject: str | None = None, **more: Any) -> Seen:
        retention = {"subject": subject} if subject is not None else {}
        retention |= {k: more.pop(k) for k in ("purpose", "ttl") if k in more}
        return await self.call(
            "POST", "/v1/memories", {"key": key, "value": value, "retention": retention, **more}
        )

    async def recall(self, query: str, headers: Headers = (), **scope: Any) -> Seen:
        return await self.call("POST", "/v1/recall", {"query": query, **scope}, headers)

    async def forget(self, headers: Headers = (), **predicate: Any) -> Seen:
        return await self.call("POST", "/v1/forget", predicate, headers)

    def direct(self, method: str, target: str, body: Any = None) -> Reply:
        """The same call to the store itself, past the sidecar."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.legacy.handle(Request(method, target, (JSON,) if body is not None else (), data))

    # --- looking ---------------------------------------------------------------------------------

    def erasure(self, place: int = -1) -> Erasure:
        return list(self.parts.erasures.all())[place]

    async def until(self, condition: Callable[[], bool], limit: float = 7200.0, step: float = 1.0) -> None:
        """Moves the clock until something holds."""
        end = self.clock.monotonic() + limit
        while not condition():
            if self.clock.monotonic() >= end:
                raise AssertionError("it never came to pass")
            await self.clock.advance(step)

    def sample(self, name: str, **labels: str) -> float:
        """A metric's value; 0 when there is no such series."""
        return self.registry.get_sample_value(name, labels) or 0.0


@dataclass
class Seen:
    """An answer as a client sees it."""

    status: int
    headers: Headers
    body: bytes
    broken: bool = False

    def __getitem__(self, name: str) -> str | None:
        return header(self.headers, name)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def keys(self) -> list[str]:
        return [row["key"] for row in self.json["results"]]


async def taken(answer: Answer) -> Seen:
    """Reads an answer to its end and lets its flight land."""
    broken = False
    try:
        if isinstance(answer.body, bytes):
            body = answer.body
        else:
            parts = []
            try:
                async for piece in answer.body:
                    parts.append(piece)
            except UpstreamError:
                broken = True
            body = b"".join(parts)
        return Seen(answer.status, answer.headers, body, broken)
    finally:
        answer.done()
