"""Tombstones are taken away by policy, never by age alone, and never while anything is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from quietus.collecting import EVERY, Collecting
from quietus.core.events import Draft, EventType
from quietus.core.policy import Mode
from quietus.core.scope import Scope
from quietus.core.states import State
from quietus.policies import load_policy
from tests.gateway.scenes import ALICE, reborn, settle, short, two
from tests.world import World

DAY = 86400.0


@pytest.fixture
def policy(tmp_path: Path) -> str:
    document = load_policy("default").model_dump(mode="json", by_alias=True, exclude_none=True)
    document["tombstones"] = {"retain": "10d", "basis": "a test of ten days"}
    document["watch"] = {"for": "2d", "patrol_every": "12h"}
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def looks(world: World) -> Collecting:
    return Collecting(world.parts.erasures, lambda: world.parts.active.policy)


async def forgotten(world: World) -> None:
    await two(world)
    await world.forget(subject="alice")
    await settle(world)


@pytest.mark.requirement("R182")
async def test_it_goes_when_policy_watch_and_last_look_allow_it(policy: str) -> None:
    world = short(policy=policy)
    async with world:
        await forgotten(world)
        look = looks(world)
        assert await look.look() == 0
        await world.clock.advance(9 * DAY)
        assert world.erasure().watch_ended and await look.look() == 0, "not old enough"
        assert (await world.write("new", ALICE, "bob")).status == 409
        await world.clock.advance(2 * DAY)
        assert await look.look() == 1
        found = world.erasure()
        assert found.collected and not found.tombstoned and found.state is State.SETTLED
        assert not world.parts.erasures.gate.kinds, "none of its marks is left"
        assert (await world.write("new", ALICE, "alice")).status == 201
        last = [e async for e in world.parts.erasures.events(found.id)][-1]
        assert (last.type, last.facts["basis"]) == (EventType.COLLECTED, "a test of ten days")
        assert await look.look() == 0
        await world.crash()
    after = await reborn(world, policy=policy)
    async with after:
        assert not after.erasure().tombstoned and not after.parts.erasures.gate.kinds
        assert not after.parts.erasures.gate.concerns(Scope())


@pytest.mark.requirement("R182")
@pytest.mark.parametrize("why", ["unsettled", "watched", "held", "doubtful", "observing"])
async def test_it_stays_while_anything_is_open(policy: str, why: str) -> None:
    async with short(policy=policy) as world:
        await forgotten(world)
        parts, name = world.parts, world.erasure().id

        async def event(kind: EventType, **facts: Any) -> None:
            draft = Draft(kind, name, world.clock.now(), facts=facts, gate=True)
            await parts.erasures.append([draft])

        if why != "watched":
            await event(EventType.WATCH_ENDED)
        if why == "unsettled":
            await event(EventType.LEAKED, surfaces=["recall"])
        if why == "held":
            alice = Scope(subject=frozenset({"alice"}))
            await parts.ordering.hold(alice, "law", world.clock.now() + 99 * DAY, "case 12", "counsel")
        if why == "doubtful":
            surface = {"name": "recall", "kind": "index", "outcome": "INCONCLUSIVE"}
            await event(EventType.ROUND, outcome="inconclusive", counted=False, surfaces=[surface])
        if why == "observing":
            parts.active.policy = parts.active.policy.model_copy(update={"mode": Mode.OBSERVE})
        world.clock.jump(400 * DAY)
        assert await looks(world).look() == 0
        assert world.erasure().tombstoned


async def test_it_looks_once_an_hour(policy: str) -> None:
    async with short(policy=policy) as world:
        await forgotten(world)
        look = looks(world)
        await look.look()
        await world.clock.advance(12 * DAY)
        assert await look.look() == 1
        await world.clock.advance(EVERY - 1)
        await world.forget(subject="bob")
        assert await look.look() == 0
