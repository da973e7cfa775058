"""What the tests of the gateway have in common: two people, a store with short intervals, kills."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import yaml

from quietus.core.events import Event
from quietus.core.exchange import Reply, Request
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import Permit, UpstreamError
from quietus.profiles.loader import find_profile, parse_profile
from quietus.profiles.profile import Profile
from tests.world import Arrived, World

ALICE = "Alice Moreau keeps her spare key under the third flower pot by the gate"
ALSO_ALICE = "Her sister rings every Thursday evening around half past eight"
BOB = "Bob Keller prefers the early morning train to Basel on weekdays"
CAROL = "Carol waters the tomatoes twice a day when it has not rained"

SHORT: dict[str, Any] = {"settling_interval": 10.0, "effectuation_bound": 60.0, "clean_rounds": 3}
"""A store that is compacted every ten seconds."""


def short(faults: Faults = Faults(), **more: Any) -> World:  # noqa: B008
    """A world whose store settles fast."""
    return World(faults, store={**SHORT, **more.pop("store", {})}, **more)


async def two(world: World, **more: Any) -> None:
    """Alice has two memories, Bob one."""
    assert (await world.write("alice-key-1", ALICE, "alice", **more)).status == 201
    assert (await world.write("alice-key-2", ALSO_ALICE, "alice", **more)).status == 201
    assert (await world.write("bobs-key-1", BOB, "bob", **more)).status == 201


async def events(world: World) -> list[str]:
    """The kinds of events in the ledger, oldest first."""
    return [event.type.value async for event in world.parts.erasures.events()]


async def all_events(world: World) -> list[Event]:
    """The events in the ledger, oldest first."""
    return [event async for event in world.parts.erasures.events()]


async def settle(world: World, limit: float = 600.0) -> None:
    """Moves time on until the newest erasure is settled."""
    await world.until(lambda: world.erasure().state is State.SETTLED, limit)


def forgets(world: World) -> int:
    """Forgets that reached the store."""
    return world.upstream.calls("POST", "/v1/forget")


async def kill(world: World) -> None:
    """Kill -9: no task of the process does another step."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def reborn(world: World, **more: Any) -> World:
    """A new process over the same ledger, keys, store and clock."""
    await world.ledger.close()  # in memory nothing is flushed by that: it only lets the next process in
    world.upstream.hooks.clear()
    return short(
        upstream=world.upstream, ledger=world.ledger, keyring=world.keyring, clock=world.clock, seed=9, **more
    )


class Pieces(Arrived):
    """A stream that comes event by event, each when its time has come."""

    world: World
    gap: float = 0.0

    async def chunks(self) -> AsyncIterator[bytes]:
        *events, _ = self.reply.body.split(b"\n\n")
        for event in events:
            if self.gap:
                await self.world.clock.sleep(self.gap)
            yield event + b"\n\n"


def in_pieces(world: World, gap: float) -> None:
    """From here the store's streams come in pieces."""
    real = world.upstream.open

    async def open_(request: Request, permit: Permit, *, fresh: bool = False) -> Any:
        opened = await real(request, permit, fresh=fresh)
        pieces = Pieces(opened.reply)
        pieces.world, pieces.gap = world, gap
        return pieces

    world.upstream.open = open_


class Held:
    """A hook that holds back requests until it is told to let them go."""

    def __init__(self, wanted: Callable[[Request, Permit], bool], *, after: bool = False) -> None:
        self._wanted = wanted
        self._late = after
        self.gate = asyncio.Event()
        self.waiting = 0
        if after:
            self.after = self._hold

    async def __call__(self, request: Request, permit: Permit) -> None:
        if not self._late:
            await self._hold(request, permit)

    async def _hold(self, request: Request, permit: Permit) -> None:
        if self._wanted(request, permit):
            self.waiting += 1
            await self.gate.wait()


def path(*wanted: str, purpose: str | None = None) -> Callable[[Request, Permit], bool]:
    """Requests of these paths."""

    def check(request: Request, permit: Permit) -> bool:
        return request.path in wanted and purpose in (None, str(permit.purpose))

    return check


def answering(wanted: Callable[[Request, Permit], bool], *replies: Reply | Exception) -> Any:
    """A hook that answers in the store's place: each reply once, the last one for ever; then the store."""
    left = list(replies)

    def hook(request: Request, permit: Permit) -> Reply | None:
        if not wanted(request, permit) or not left:
            return None
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return hook


def says(status: int, document: Any, kind: str = "application/json") -> Reply:
    """An answer of a store."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Reply(status, (("Content-Type", kind),), body)


def lost() -> UpstreamError:
    """An answer that never came, to a request that was sent."""
    return UpstreamError("no answer", sent=True)


def profiled(**changes: Any) -> Profile:
    """The memory tool's profile with other sections; None takes one out."""
    document = yaml.safe_load(find_profile("memory-tool").read_text())
    for name, value in changes.items():
        if value is None:
            document.pop(name)
        else:
            document[name] = value(document[name]) if callable(value) else value
    document["store"].update(SHORT)
    return parse_profile(yaml.safe_dump(document))


async def turn(world: World) -> None:
    """Lets everything run that can, without moving time."""
    await world.clock.settle()
