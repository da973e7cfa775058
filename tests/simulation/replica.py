"""One replica of several: a machine, its cable to the ledger's server, and the lives of its process.

The parts are the product's: the shared ledger, the lease and its barrier, the gateway and the reconciler.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quietus.acts import Acts
from quietus.assembly import Active, Bounds, Parts, Surroundings, assemble
from quietus.core.erasure import Erasure
from quietus.core.events import Event
from quietus.forgets import ForgetLimits
from quietus.keys import Keyring
from quietus.ledger.shared import SharedServerLedger
from quietus.legacy.store import LegacyStore
from quietus.ports import LedgerUnavailable, Muster, Unlisted
from quietus.profiles.profile import Profile
from quietus.views import status_view
from tests.simulation.clients import Client
from tests.simulation.machines import Cable, Machine, MachineClock
from tests.simulation.passing import ReplicaClient, ReplicaNetwork
from tests.simulation.plan import Step
from tests.simulation.process import Tally, policy
from tests.simulation.replica_plan import ReplicaPlan
from tests.simulation.served import ServedEngine
from tests.simulation.server import LedgerServer
from tests.simulation.views import Seat, SharedJudge
from tests.simulation.virtual import Time

BARRIER: Final = 5.0
"""Seconds that a forget waits for the others."""


class ReplicaTally(Tally):
    """A server that does not answer for a while is no surprise."""

    def error(self, event: str, **facts: Any) -> None:
        if event != "ledger_fault" or not isinstance(facts["error"], LedgerUnavailable | Unlisted):
            super().error(event, **facts)


class ListedEngine(ServedEngine):
    """Tells under which name a replica goes into the roster."""

    def __init__(self, server: LedgerServer, cable: Cable, listed: Callable[[str], None]) -> None:
        super().__init__(server, cable)
        self._listed = listed

    async def join(self, session: str, seconds: float) -> Muster:
        self._listed(session)
        return await super().join(session, seconds)


@dataclass(frozen=True)
class World:
    """What all replicas of a simulation have in common."""

    plan: ReplicaPlan
    time: Time
    store: LegacyStore
    server: LedgerServer
    judge: SharedJudge
    keyring: Keyring
    profile: Profile
    tally: Tally
    counts: Counter[str]
    learned: Callable[[int, Event], None]
    listed: Callable[[int, str], None]


class Replica:
    """One of several."""

    def __init__(self, number: int, world: World) -> None:
        self.number = number
        self._world = world
        clock = world.plan.clocks[number]
        self.clock = MachineClock(world.time, **clock)
        self.cable = Cable(world.time, f"{world.plan.seed}/{number}", world.plan.ledger_delay)
        seat = Seat(world.judge, number)
        self.network = ReplicaNetwork(number, world.time, world.store, world.plan, seat)
        self.machine: Machine | None = None
        self.parts: Parts | None = None
        """None until it has joined."""
        self.taking = False
        """Whether it takes calls."""
        self.down_for = 0.0
        """Seconds for which there is no process after the next end."""
        self._ledger: SharedServerLedger | None = None
        self._engine: ServedEngine | None = None
        self._lives = 0
        self._leaving = False
        self._open = 0
        self._work: list[asyncio.Task[None]] = []

    @property
    def read(self) -> int:
        """The newest event that it has read."""
        return 0 if self.parts is None else self.parts.erasures.number

    @property
    def serving(self) -> bool:
        """Whether it takes calls and does not stand still."""
        return self.taking and self.machine is not None and not self.machine.still

    @property
    def current(self) -> bool:
        """Whether it answers, and gates on all that was written."""
        parts = self.parts
        return parts is not None and not parts.erasures.lapsed and self.read == self._world.server.number

    # --- lives -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins a life."""
        self._lives += 1
        self.machine = Machine(self._world.time)
        self.machine.create_task(self._live()).add_done_callback(self._ended)

    def go(self) -> bool:
        """Takes a turn; False when it has nothing to do. Raises Killed."""
        return self.machine is not None and self.machine.go()

    def end(self) -> None:
        """Its process is gone, between two steps."""
        machine = self.machine
        assert machine is not None
        self._world.tally.wrong.extend(machine.surprises)
        self.machine, self.parts, self.taking, self._leaving = None, None, False, False
        if self._engine is not None:
            self._engine.unplug()
        machine.kill()
        self.network.deaths += 1

    def _assembled(self) -> Parts:
        world, ids = self._world, itertools.count(1)
        name = f"e{self.number}v{self._lives}x"
        self._engine = ListedEngine(
            world.server, self.cable, lambda session: world.listed(self.number, session)
        )
        self._ledger = SharedServerLedger(self._engine)
        parts = assemble(Surroundings(
            Active(world.profile, policy()),
            self._ledger,
            world.keyring,
            self.clock,
            self.network,
            "memories",
            world.tally,
            world.tally,
            lambda: f"{name}{next(ids):03d}",
            random.Random(f"{world.plan.seed}/{self.number}/{self._lives}"),
            lambda erasure, verdict: status_view(erasure, verdict=verdict),
            Bounds(forgets=ForgetLimits(barrier=BARRIER), lease=world.plan.lease),
        ))  # fmt: skip
        parts.erasures.listen(self._heard)
        return parts

    def _heard(self, erasure: Erasure, event: Event) -> None:
        self._world.learned(self.number, event)

    async def _live(self) -> None:
        """Reads the ledger, as often as it takes, joins, and works until it ends."""
        while True:
            parts = self._assembled()
            try:
                await parts.erasures.load()
                self._world.judge.loaded(self.number, self._read_so_far(parts.erasures.number))
                parts.timetable.start()
                await parts.sharing.start()
                break
            except (LedgerUnavailable, Unlisted):
                assert self._ledger is not None
                await self._ledger.close()
                await self.clock.sleep(1.0)
        self.parts, self.taking = parts, True
        self._work = [asyncio.ensure_future(work) for work in (parts.reconciler.run(), parts.sharing.run())]
        for task in self._work:
            task.add_done_callback(self._ended)

    def _read_so_far(self, number: int) -> Sequence[Event]:
        return self._world.server.events()[:number]

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._world.tally.error("background_work_ended", exc_info=error)

    def hurry(self) -> None:
        """Its cable is as fast as before."""
        self.cable.delay = min(self.cable.delay, self._world.plan.ledger_delay)

    def heal(self) -> None:
        """Nothing befalls it any more."""
        self.network.quiet, self.network.down_until = True, 0.0
        self.cable.cut_until, self.cable.delay = 0.0, 0.002
        if self.machine is not None and not self._leaving:
            self.machine.kill_at = self.machine.stop_at = None

    def leave(self) -> None:
        """Ends as the product does on SIGTERM: what is open gets its time, then the others are told."""
        assert self.machine is not None
        self.taking, self._leaving = False, True
        self.machine.create_task(self._leave())

    async def _leave(self) -> None:
        parts, ledger, machine = self.parts, self._ledger, self.machine
        assert parts is not None and ledger is not None and machine is not None
        for _ in range(20):
            if self._open:
                await self.clock.sleep(0.25)
        for task in self._work:
            task.cancel()
        await parts.sharing.stop()
        await ledger.close()
        machine.kill_at = machine.steps

    # --- calls -----------------------------------------------------------------------------------

    def call(self, step: Step) -> None:
        """A client's call."""
        assert self.machine is not None and self.parts is not None
        world, gateway = self._world, self.parts.gateway
        client = ReplicaClient(world.time, world.judge, gateway, step, world.counts, self.machine)
        self.machine.create_task(self._taken(client))

    async def _taken(self, client: Client) -> None:
        self._open += 1
        try:
            await client.live()
        finally:
            self._open -= 1

    @property
    def acts(self) -> Acts:
        """What an operator may do through it."""
        assert self.parts is not None
        return Acts(self.parts.erasures, self.parts.timetable.wake)
