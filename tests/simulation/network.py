"""The network between the sidecar and the store: slow, lossy, and alive while the sidecar is not.

A request that is under way when its sender dies still arrives. What becomes of each is drawn from the seed,
the step that it belongs to and how many that step sent before, so that a plan without some of its steps
still does to the others what it did to them.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.exchange import Headers, Reply, Request, header
from quietus.legacy.forgetting import NoAnswer
from quietus.legacy.store import LegacyStore
from quietus.ports import OpenReply, Permit, ReplyTooLarge, UpstreamError
from tests.simulation.plan import AILMENTS, Plan
from tests.simulation.virtual import Time

STEP: Final = "X-Step"
"""The header that says which step of the plan a request belongs to; the sidecar passes it on."""
PATIENCE: Final = 30.0
"""Seconds after which the sidecar's client gives an answer up."""
BOUNDED: Final = 20.0
"""A request that the sidecar has given up lands within so many seconds: less than the profile's bound."""
EMPTY: Final = Reply(200, (("Content-Type", "application/json"),), b'{"results": []}')
MISSING: Final = Reply(404, (("Content-Type", "application/json"),), b'{"error": "not_found"}')
BROKEN: Final = (
    Reply(503, (("Content-Type", "application/json"),), b'{"error": "busy"}'),
    Reply(200, (("Content-Type", "application/json"),), b'{"results": [{"key": "zz'),
    Reply(429, (("Content-Type", "application/json"),), b'{"error": "slow down"}'),
)


@dataclass
class Arrived:
    """An answer whose head has arrived."""

    time: Time
    reply: Reply
    gap: float = 0.0
    cut: bool = False

    @property
    def status(self) -> int:
        return self.reply.status

    @property
    def headers(self) -> Headers:
        return self.reply.headers

    async def read(self, limit: int) -> Reply:
        if self.gap:
            await self.time.sleep(self.gap)
        if self.cut:
            raise UpstreamError("the answer was cut short", sent=True)
        if len(self.reply.body) > limit:
            raise ReplyTooLarge("too large", sent=True)
        return self.reply

    async def chunks(self) -> AsyncIterator[bytes]:
        body = self.reply.body
        pieces = [piece + b"\n\n" for piece in body.split(b"\n\n") if piece]
        events = (header(self.headers, "content-type") or "").startswith("text/event-stream")
        if not events or header(self.headers, "content-encoding") is not None:
            pieces = [body[: len(body) // 2], body[len(body) // 2 :]]
        for place, piece in enumerate(pieces):
            if self.gap:
                await self.time.sleep(self.gap)
            if self.cut and place * 2 >= len(pieces):
                raise UpstreamError("the answer was cut short", sent=True)
            yield piece

    def abort(self) -> None:
        pass


class Network:
    """A `ports.Upstream` for every process of a simulation, one after the other."""

    def __init__(self, time: Time, store: LegacyStore, plan: Plan, witness: Witness) -> None:
        self._time = time
        self._store = store
        self._plan = plan
        self._witness = witness
        self._sent: Counter[str] = Counter()
        self.down_until = 0.0
        self.blind_until = 0.0
        self.deaths = 0
        """Of the sidecar: an answer to a dead process has told nobody anything."""
        self.quiet = False
        """No more ailments: the time in which everything has to settle."""
        self.calls: Counter[str] = Counter()
        self.ails: Counter[str] = Counter()

    def _draw(self, label: str) -> float:
        return zlib.crc32(f"{self._plan.seed}/{label}".encode()) / 2**32

    def _ailment(self, name: str, share: float) -> tuple[str, float]:
        """What befalls this request, and a number from 0 to 1 that says how badly."""
        if self.quiet or not self._plan.network:
            return "", 0.5
        at = self._draw(name)
        for ailment in AILMENTS:
            at -= self._plan.network.get(ailment, 0.0) * share
            if at < 0:
                self.ails[ailment] += 1
                return ailment, self._draw(f"{name}!")
        return "", self._draw(f"{name}!")

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        step = header(request.headers, STEP) or ""
        purpose = str(permit.purpose)
        self.calls[purpose] += 1
        label = step or purpose
        self._sent[label] += 1
        ailment, badly = self._ailment(f"{label}/{self._sent[label]}", 1.0 if step else 0.2)
        if ailment == "refused" or self._time.elapsed < self.down_until:
            raise UpstreamError("the store cannot be reached", sent=False)
        self._witness.sent(step, request, purpose)
        answer: asyncio.Future[OpenReply] = asyncio.get_running_loop().create_future()
        there, back = 0.001 + 0.01 * badly, 0.002 + self._witness.patience(step)
        if ailment == "slow":
            there = 3.0 * badly
        elif ailment == "long":
            back += 120.0 * badly
        elif ailment == "late":
            there = BOUNDED * badly
        if ailment == "lost_request":
            self._later(step, answer, PATIENCE * badly, UpstreamError("no answer", sent=True))
            return await answer
        life = self.deaths
        self._time.after(there, lambda: self._deliver(request, step, ailment, badly, back, answer, life))
        if ailment == "late":
            self._later(step, answer, min(PATIENCE, there) * badly, UpstreamError("no answer", sent=True))
        return await answer

    def _deliver(
        self, request: Request, step: str, ailment: str, badly: float, back: float,
        answer: asyncio.Future[OpenReply], life: int,
    ) -> None:  # fmt: skip
        if self._time.elapsed < self.down_until:
            self._later(step, answer, 0.1, UpstreamError("reset", sent=True))
            return
        try:
            reply = self._handled(request, step)
        except NoAnswer:
            self._later(step, answer, PATIENCE, UpstreamError("no answer", sent=True))
            return
        if ailment == "doubled":
            self._time.after(4.0 * badly, lambda: self._again(request, step))
        if ailment == "lost_answer":
            self._later(step, answer, PATIENCE * badly, UpstreamError("no answer", sent=True))
            return
        if ailment == "broken":
            reply = BROKEN[int(badly * 2.99)]
        delay = self._store.faults.latency if request.path.endswith("/forget") else 0.0
        gap = 0.4 * badly if ailment in ("slow", "long") else 0.0
        if life == self.deaths:
            self._witness.answered(step, request, reply)
        self._later(step, answer, back + delay, Arrived(self._time, reply, gap, ailment == "cut"))

    def _again(self, request: Request, step: str) -> None:
        try:
            self._handled(request, step)
        except NoAnswer:
            pass

    def _handled(self, request: Request, step: str) -> Reply:
        reads = request.method == "GET" or request.path.endswith("/recall")
        if reads and self._time.elapsed < self.blind_until:
            return MISSING if request.path.count("/") > 2 else EMPTY
        reply = self._store.handle(request)
        self._witness.handled(step, request, reply)
        return reply

    def _later(self, step: str, answer: asyncio.Future[OpenReply], seconds: float, what: Any) -> None:
        def settle() -> None:
            if not answer.done() and not answer.get_loop().is_closed():
                if step:
                    self._witness.arrived(step)
                if isinstance(what, Exception):
                    answer.set_exception(what)
                else:
                    answer.set_result(what)

        self._time.after(seconds, settle)

    async def close(self) -> None:
        pass


class Witness:
    """Sees what passes between the sidecar and the store."""

    def patience(self, step: str) -> float:
        """How many seconds the store takes over this answer."""
        return 0.0

    def sent(self, step: str, request: Request, purpose: str) -> None:
        """A request has left the sidecar."""

    def handled(self, step: str, request: Request, reply: Reply) -> None:
        """The store has acted on a request."""

    def answered(self, step: str, request: Request, reply: Reply) -> None:
        """An answer is on its way to the sidecar."""

    def arrived(self, step: str) -> None:
        """The sidecar has an answer, or knows that there will be none."""


def body_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request."""
    found = json.loads(request.body) if request.body else {}
    return found if isinstance(found, dict) else {}
