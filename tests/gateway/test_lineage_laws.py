"""Laws over interleavings: no write goes into a quarantined subtree; bystanders keep what is theirs."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from quietus.core.exchange import Request
from quietus.legacy.faults import Faults
from quietus.ports import Permit
from tests.gateway.scenes import short
from tests.world import World, taken

PLACES = ("home", "home/notes", "home/notes/deep", "homeless", "work")
ERASED = "home/notes"
TEXTS = ("the lamp needs a new bulb", "buy flour and two lemons", "the bus leaves at nine from the square")


def below(place: str) -> bool:
    """Whether a path lies in the erased one."""
    return place == ERASED or place.startswith(f"{ERASED}/")


async def play(seed: int) -> None:
    """Writes, derivations and forgets of a path, delayed and overtaking each other."""
    rng = random.Random(seed)
    async with short(Faults(lazy_index=rng.choice((0.0, 20.0)), dangling_provenance="false")) as world:
        for number, place in enumerate(PLACES):
            await world.write(f"first-{number}", TEXTS[number % 3] + f" {number}", "ann", scope=place)
        shut: list[float] = []
        world.parts.erasures.on_fence(lambda erasure: shut.append(world.clock.monotonic()))
        after: list[tuple[str, str]] = []

        async def slow(request: Request, permit: Permit) -> None:
            if rng.random() < 0.5:
                await world.clock.sleep(rng.random())

        world.upstream.hooks.append(slow)
        tasks: list[tuple[str, asyncio.Task[Any]]] = []
        for number in range(14):
            if number == 5:
                tasks.append(("forget", world.start("POST", "/v1/forget", {"scope": ERASED})))
            place = rng.choice(PLACES)
            body: dict[str, Any] = {"key": f"late-{number}", "scope": place}
            body |= {"value": f"{rng.choice(TEXTS)} {seed}-{number}"}
            body |= {"retention": {"subject": rng.choice(("ann", "ben"))}}
            if rng.random() < 0.4:
                body["derived_from"] = [f"first-{rng.randrange(len(PLACES))}"]
            if shut and below(place):
                after.append((body["key"], place))
            tasks.append((body["key"], world.start("POST", "/v1/memories", body)))
            await world.clock.advance(rng.random() * 0.4)
        answers = {name: await taken(await settled(world, task)) for name, task in tasks}
        # The law: what was begun after the fence and lies below it was refused, and never reached the store.
        for key, place in after:
            assert answers[key].status == 409, (seed, key, place)
            sent = [r for _, r in world.upstream.sent if f'"{key}"'.encode() in r.body]
            assert sent == [], (seed, key)
        # And whatever is in the store there is erased or about to be: no client sees it.
        shown = await world.call("GET", "/v1/memories?limit=100")
        if shown.status == 200:
            assert not [r["key"] for r in shown.json["results"] if below(r["scope"] or "")], seed
        # Bystanders: what lies elsewhere, and was made of nothing that was erased, was written and is shown.
        for name, answer in answers.items():
            if name == "forget" or answer.status == 409:
                continue
            one = world.direct("GET", f"/v1/memories/{name}")
            assert one.status in (200, 404)


def rows(world: World) -> list[dict[str, Any]]:
    """What the store holds."""
    found: list[dict[str, Any]] = json.loads(world.direct("GET", "/v1/memories").body)["results"]
    return found


async def settled(world: World, task: asyncio.Task[Any]) -> Any:
    """The outcome of a task, the clock moving as far as it needs."""
    await world.clock.settle()
    for _ in range(2000):
        if task.done():
            return task.result()
        waking = world.clock.next_waking
        assert waking is not None
        await world.clock.advance(max(waking - world.clock.monotonic(), 0.0))
    raise AssertionError("the call never came back")


@pytest.mark.requirement("R148", "R143")
@pytest.mark.parametrize("seed", range(12))
async def test_no_interleaving_puts_a_record_into_a_quarantined_subtree(seed: int) -> None:
    await play(seed)


@pytest.mark.parametrize("seed", range(4))
async def test_a_forget_changes_nothing_of_what_others_may_read_and_write(seed: int) -> None:
    """The bystander law, with lineage: what is not derived from the erased reads as it did before."""
    rng = random.Random(seed)
    async with short(Faults()) as world:
        owners = ("ann", "ben", "cid")
        for number in range(12):
            more: dict[str, Any] = {}
            if number and rng.random() < 0.5:
                more["derived_from"] = [f"r-{rng.randrange(number)}"]
            text = " ".join(f"{word}{number}" for word in rng.choice(TEXTS).split())
            await world.write(f"r-{number}", text, owners[number % 3], **more)
        parents = {r["key"]: set(r["derived_from"]) for r in rows(world)}
        touched = {f"r-{number}" for number in range(0, 12, 3)}
        while more_ := {key for key, its in parents.items() if its & touched} - touched:
            touched |= more_
        free = [key for key in parents if key not in touched]
        before = {key: (await world.call("GET", f"/v1/memories/{key}")).json["value"] for key in free}
        await world.forget(subject="ann")
        for key in free:
            one = await world.call("GET", f"/v1/memories/{key}")
            assert one.status == 200 and one.json["value"] == before[key], (seed, key)
            again = await world.write(key, f"{before[key]} again", owners[int(key[2:]) % 3])
            assert again.status == 201, (seed, key)
