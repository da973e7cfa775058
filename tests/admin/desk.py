"""Erasures over the in-memory ledger, in whatever state a test needs, and the admin API on top of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from quietus.acts import Acts
from quietus.admin.figures import OwnFigures
from quietus.admin.server import build
from quietus.admin.tokens import Identity, Role, Tokens
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.erasures import Erasures
from quietus.keys import Keyring
from quietus.ledger.memory import MemoryLedger
from quietus.policy_cases import PATHS_TO
from quietus.settings import AdminSettings
from tests.virtual_clock import VirtualClock
from tests.world import World

TOKENS = {Role.VIEWER: "viewer-token-0123456789", Role.PRIVACY: "privacy-token-0123456789",
          Role.OPERATOR: "operator-token-0123456789"}  # fmt: skip


def tokens() -> Tokens:
    return Tokens((token, Identity(f"{role.name.lower()}@example", role)) for role, token in TOKENS.items())


def bearer(role: Role) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[role]}"}


class WatchedClock(VirtualClock):
    """Says when somebody has lain down."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep.set()
        await super().sleep(seconds)


class Desk:
    """An `Erasures` and the acts on it; `woken` are the ids that were made due."""

    def __init__(self, erasures: Erasures, clock: WatchedClock) -> None:
        self.erasures = erasures
        self.clock = clock
        self.woken: list[str] = []
        self.acts = Acts(erasures, self.woken.append)
        self._count = 0

    async def erasure(
        self,
        state: State = State.SETTLING,
        *,
        readmitted: bool = False,
        epoch: int | None = None,
        **scope: Any,
    ) -> Erasure:
        """Begins an erasure and leads it to `state`. The scope is raw."""
        self._count += 1
        name = f"er_{self._count:03d}"
        raw = Scope(**{key: frozenset({value}) for key, value in (scope or {"subject": "alice"}).items()})
        predicate = self.erasures.keyring.pseudonymise(raw)
        await self.event(
            name,
            EventType.REQUESTED,
            store="memories",
            predicate=scope_to_facts(predicate),
            terms=asdict(Terms()),
            basis="gdpr_art17",
        )
        for type_ in PATHS_TO[state]:
            facts = {}
            if type_ is EventType.ACCEPTED:
                claim = {"status": "accepted", "count": 3, "at": self.erasures.clock.now()}
                facts = {"claim": claim, "epoch": epoch}
            if type_ in (EventType.LEAKED, EventType.LEAKED_LATE):
                facts = {"surfaces": ["recall"]}
            await self.event(name, type_, **facts)
        if readmitted:
            await self.event(name, EventType.READMITTED)
        found = self.erasures.get(name)
        assert found is not None
        assert found.state is state
        return found

    async def event(self, name: str, type_: EventType, **facts: Any) -> None:
        draft = Draft(type_, name, self.erasures.clock.now(), facts=facts, gate=True)
        await self.erasures.append([draft])

    async def events(self, name: str | None = None) -> list[Any]:
        return [event async for event in self.erasures.events(name)]


async def opened() -> Desk:
    """A desk over a fresh in-memory ledger."""
    clock = WatchedClock()
    erasures = Erasures(MemoryLedger(), Keyring.fresh(), clock, "memories")
    await erasures.load()
    return Desk(erasures, clock)


@asynccontextmanager
async def office(
    policy: str = "default", clock: WatchedClock | None = None, **settings: Any
) -> AsyncIterator[tuple[Desk, TestClient[Any, Any], World]]:
    """The admin API over the assembled parts, nothing probing."""
    clock = clock or WatchedClock()
    world = World(clock=clock, policy=policy)
    await world.parts.erasures.load()
    app = build(world.parts, OwnFigures(world.parts, world.metrics), tokens(), AdminSettings(**settings))
    async with TestClient(TestServer(app)) as client:
        yield Desk(world.parts.erasures, clock), client, world
