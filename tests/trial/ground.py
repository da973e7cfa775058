"""A trial against a store in this process, on a clock that nobody has to wait for."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from quietus.core.exchange import Request
from quietus.core.trial_conclusion import Conclusion, conclude_trial
from quietus.core.trial_findings import Observed
from quietus.legacy.faults import parse_faults
from quietus.legacy.forgetting import NoAnswer
from quietus.legacy.store import LegacyStore
from quietus.ports import OpenReply, Permit, UpstreamError
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile
from quietus.trial.run import Plan, Trial
from quietus.trial.watching import Patience
from tests.virtual_clock import VirtualClock
from tests.world import Arrived

PATIENCE = Patience(proof=5.0, gone=60.0, watch=36.0)


class Hasty(VirtualClock):
    """Nobody waits: a sleep moves the time on, for there is one task only."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.move(max(seconds, 0.0))


class Reached:
    """The store, as an upstream; each request takes two milliseconds."""

    def __init__(self, store: LegacyStore, clock: Hasty) -> None:
        self._store = store
        self._clock = clock

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        self._clock.move(0.002)
        try:
            return Arrived(self._store.handle(request))
        except NoAnswer:
            raise UpstreamError("no answer", sent=True) from None

    async def close(self) -> None:
        pass


class Ground:
    """A store with bystanders of its own in it, and a trial of it."""

    def __init__(
        self, *faults: str, profile: Profile | None = None, seed: int = 7, **plan: Any
    ) -> None:  # fmt: skip
        self.clock = Hasty()
        self.store = LegacyStore(self.clock, seed, parse_faults(faults))
        for number in range(5):
            self.store.put(f"Bob number {number} likes green tea", tenant="acme", subject=f"bob{number}")
        self.plan = Plan(
            **{
                "values": {"tenant": "acme"},
                "patience": PATIENCE,
                "rate": 100.0,
                "trials": 10,
                "records": 12,
                **plan,
            }
        )
        self.profile = profile or load_profile("memory-tool")
        self.parts: list[str] = []

    async def observe(self) -> Observed:
        upstream = Reached(self.store, self.clock)
        self.trial = Trial(
            self.profile, upstream, self.clock, self.plan, random.Random(3), self.told
        )  # fmt: skip
        return await self.trial.run()

    async def run(self) -> Conclusion:
        self.seen = await self.observe()
        return conclude_trial(self.seen)

    def told(self, part: str, done: float, of: float) -> None:
        if part not in self.parts:
            self.parts.append(part)

    def left(self) -> list[str]:
        """The texts of canaries that the store still holds as records."""
        self.store.tick()
        world = self.store._world
        ours = self.plan.prefix
        return [row.value for row in world.rows.values() if (row.subject or "").startswith(ours)]


def found(conclusion: Conclusion) -> set[str]:
    """The names of what was found."""
    return {name for name, finding in conclusion.findings.items() if finding.found}
