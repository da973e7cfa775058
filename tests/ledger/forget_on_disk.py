"""One forget through the gateway with its ledger on a disk that can fail, and what a restart then finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietus.core.policy import Watch
from quietus.core.states import State
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.verify import verify_chain
from quietus.policies import load_policy
from quietus.ports import LedgerError
from quietus.profiles.loader import load_profile
from tests.gateway.scenes import ALICE, ALSO_ALICE, SHORT, World, forgets, two
from tests.harness.failing_disk import Disk
from tests.virtual_clock import TURNS, VirtualClock
from tests.world import Seen

PROFILE = load_profile("memory-tool").with_store(**{**SHORT, "effectuation_bound": 30.0})
# A watch of some seconds: the forget runs to its end, where its secrets are destroyed.
POLICY = load_policy("default").model_copy(
    update={"watch": Watch.model_validate({"for": "10s", "patrol_every": "5s"})}
)
ENDED_BY = 60.0
"""Virtual seconds after which the erasure has settled, its watch is over, and its secrets are destroyed."""


class Patient(VirtualClock):
    """Time does not move while the ledger's writer is at work."""

    ledger: SqliteLedger | None = None

    async def settle(self) -> None:
        calm = 0
        while calm < TURNS:
            await asyncio.sleep(0)
            calm = 0 if self.ledger is not None and self.ledger.waiting else calm + 1


@dataclass
class Outcome:
    """What a client was told, and what was found to be wrong."""

    told: int = 0
    """The status of the forget; 0 when the process did not even open its ledger."""
    wrong: list[str] = field(default_factory=list)


def life(folder: Path, disk: Disk, before: World | None = None, **ledger: Any) -> World:
    """One process over a folder and a disk; a later one has the store and the keys of the one `before`."""
    clock = before.clock if before is not None else Patient()
    clock.ledger = SqliteLedger(folder / "ledger.db", connect=disk.connect, **ledger)
    return World(
        ledger=clock.ledger,
        clock=clock,
        keyring=before.keyring if before is not None else None,
        upstream=before.upstream if before is not None else None,
        seed=0 if before is None else 9,
        profile=PROFILE,
        policy=POLICY,
    )


async def forgotten(world: World, outcome: Outcome) -> None:
    """Two people write, one is forgotten, and time goes on to the end of the watch."""
    async with world:
        await two(world)
        outcome.told = (await world.forget(subject="alice")).status
        for _ in range(int(ENDED_BY / 5)):
            looked(await world.recall("flower pot sister", subject="alice"), "in its scope", outcome)
            await world.clock.advance(5.0)


def looked(seen: Seen, where: str, outcome: Outcome) -> None:
    """Nothing of the erased may be in an answer once the client has been told that it is forgotten."""
    if outcome.told in (200, 202) and (ALICE.encode() in seen.body or ALSO_ALICE.encode() in seen.body):
        outcome.wrong.append(f"leaked {where}")


async def run(folder: Path, disk: Disk) -> tuple[Outcome, World]:
    """The forget on a disk that fails; then the process dies."""
    outcome = Outcome()
    world = life(folder, disk)
    try:
        await forgotten(world, outcome)
    except LedgerError:
        assert not outcome.told
    await ended()
    disk.dead = True
    await world.ledger.close()  # nothing reaches the disk: it lets go of its descriptors
    return outcome, world


async def ended() -> None:
    """The process dies: no task of it does another step."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def restarted(
    folder: Path, world: World, told: int, *, to_the_end: bool, asked: int | None = None
) -> list[str]:
    """What the next process finds that is wrong: something acknowledged lost, an open gate, a standstill.

    `asked` forgets had reached the store when the process died: with several disks that may be left of one
    death the store hears of each of them, and only one of them has happened.
    """
    before = forgets(world)
    path = folder / "ledger.db"
    outcome = Outcome(told)
    report = verify_chain(path) if path.exists() and path.stat().st_size else None
    never = not told and report is not None and "no ledger was ever in it" in str(report.fault)
    if report is not None and not report.ok and not never:
        outcome.wrong.append(f"does not verify: {report.fault}")
    again = life(folder, Disk(), world)
    async with again:
        found = list(again.parts.erasures.all())
        if told in (200, 202) and not found:
            outcome.wrong.append("acknowledged and lost")
        # Whatever the client was told: an intent that is durable holds.
        outcome.told = 202 if found else told
        unsettled = any(erasure.unsettled for erasure in found)
        seen = await again.recall("flower pot sister", subject="alice")
        looked(seen, "after restart", outcome)
        if unsettled and seen.status != 409:
            outcome.wrong.append(f"open gate after restart: {seen.status}")
        if found and to_the_end:
            await again.clock.advance(120.0)
            last = again.erasure()
            if last.state is not State.SETTLED or not last.watch_ended:
                outcome.wrong.append(f"stuck: {last.state}")
        reached = forgets(again) - before + (before if asked is None else asked)
        if reached > 2:
            outcome.wrong.append(f"{reached} forgets reached the store")
    await ended()
    await again.ledger.close()
    return outcome.wrong
