"""Kill -9 at every step of a forget: the gate stays shut, nothing is lost, and the work goes on."""

from __future__ import annotations

import asyncio

import pytest

from quietus.core.states import State
from quietus.ports import LedgerUnavailable
from tests.gateway.scenes import (
    Held,
    World,
    answering,
    events,
    forgets,
    kill,
    lost,
    path,
    reborn,
    says,
    settle,
    short,
    turn,
    two,
)

FORGET = path("/v1/forget")


async def _killed(at: str) -> World:
    """A world that was killed when its forget had come so far."""
    world = short()
    await world.__aenter__()
    await two(world)
    holds = {
        "requested": Held(lambda r, p: str(p.purpose) == "probe"),
        "snapshotted": None,
        "forwarded": Held(FORGET),
        "sent": Held(FORGET, after=True),
        "answered": None,
        "probing": None,
    }
    held = holds[at]
    if held is not None:
        world.upstream.hooks.append(held)
    if at == "snapshotted":
        real = world.ledger.append

        async def append(drafts: list, **more: object) -> object:  # type: ignore[type-arg]
            if drafts[0].type == "forwarded":
                await asyncio.Event().wait()
            return await real(drafts, **more)  # type: ignore[arg-type]

        world.ledger.append = append  # type: ignore[method-assign,assignment]
    call = world.start("POST", "/v1/forget", {"subject": "alice"})
    await turn(world)
    if at == "probing":
        await call
        world.upstream.hooks.append(Held(lambda r, p: str(p.purpose) == "probe"))
        await world.clock.advance(5.0)
    await kill(world)
    if at == "snapshotted":
        world.ledger.append = real  # type: ignore[method-assign]
    return world


LEFT = {
    "requested": (["requested"], 0),
    "snapshotted": (["requested", "snapshotted"], 0),
    "forwarded": (["requested", "snapshotted", "forwarded"], 0),
    "sent": (["requested", "snapshotted", "forwarded"], 1),
    "answered": (["requested", "snapshotted", "forwarded", "accepted"], 1),
    "probing": (["requested", "snapshotted", "forwarded", "accepted"], 1),
}


@pytest.mark.parametrize("at", LEFT)
@pytest.mark.requirement("R39", "R144", "R157")
async def test_killed_anywhere_it_goes_on(at: str) -> None:
    dead = await _killed(at)
    kinds, sent = LEFT[at]
    assert (await events(dead))[: len(kinds)] == kinds and forgets(dead) == sent
    next_life = await reborn(dead)
    shut = await next_life.recall("spare key", subject="alice")
    assert shut.status == 503, "before the ledger is read nothing is known"
    async with next_life as world:
        assert (await world.recall("spare key", subject="alice")).status == 409
        assert (await world.recall("train")).keys == ["bobs-key-1"]
        assert (await world.write("alice-key-3", "again", "alice")).status == 409
        await settle(world)
        assert forgets(world) == max(1, sent) if at != "sent" else forgets(world) == 2
        assert world.parts.verdict(world.erasure()).word == "partial"
        assert b"alice" not in world.direct("GET", "/v1/memories").body


async def test_killed_after_forwarded_a_refusal_of_the_second_send_is_unclear() -> None:
    dead = await _killed("sent")
    async with await reborn(dead) as world:
        world.upstream.hooks.append(answering(FORGET, says(403, {})))
        await world.clock.advance(2.0)
        assert "refused" not in await events(world) and "unclear" in await events(world)
        await settle(world)


@pytest.mark.requirement("R7", "R32")
async def test_a_restart_begins_interval_and_rounds_again() -> None:
    world = short()
    await world.__aenter__()
    await two(world)
    await world.forget(subject="alice")
    await world.until(lambda: world.erasure().clean_streak == 2)
    await kill(world)
    async with await reborn(world) as again:
        began = again.clock.monotonic()
        await again.clock.advance(9.0)
        assert again.erasure().state is State.SETTLING
        await settle(again)
        assert again.clock.monotonic() - began >= 10.0
        rounds = [e async for e in again.parts.erasures.events() if e.type == "round"]
        assert all(e.facts["outcome"] == "clean" for e in rounds[-3:])
        kinds = await events(again)
        assert "restarted" in kinds and kinds[::-1].index("restarted") > 2, "three rounds after the restart"


@pytest.mark.requirement("R7", "R209")
async def test_no_jump_of_the_wall_clock_settles_anything() -> None:
    async with short(store={"settling_interval": 900.0, "effectuation_bound": 1800.0}) as world:
        await two(world)
        await world.forget(subject="alice")
        for jump in (3600.0, -7200.0, 86400.0 * 400):
            world.clock.jump(jump)
            await world.clock.advance(30.0)
            assert world.erasure().state is State.SETTLING
        await world.clock.advance(800.0)
        assert world.erasure().state is State.SETTLING


async def test_an_unclear_forget_is_taken_up_by_the_next_process() -> None:
    world = short()
    await world.__aenter__()
    await two(world)
    world.upstream.hooks.append(answering(FORGET, lost()))
    assert (await world.forget(subject="alice")).status == 504
    await kill(world)
    async with await reborn(world) as again:
        await again.clock.advance(2.0)
        assert again.erasure().state is State.SETTLING
        (sent,) = [p for p, r in again.upstream.sent if r.path == "/v1/forget"]
        assert sent == "forget"


async def test_a_refusal_is_cleaned_up_after_a_crash() -> None:
    world = short()
    await world.__aenter__()
    await world.write("alice-key-1", "Alice alone is here", "alice")
    world.upstream.hooks.append(answering(FORGET, says(400, {})))
    call = world.start("POST", "/v1/forget", {"subject": "alice"})
    while "refused" not in await events(world):
        await asyncio.sleep(0)
    await kill(world)
    del call
    async with await reborn(world) as again:
        await again.clock.advance(2.0)
        assert again.erasure().state is State.REFUSED
        assert await again.ledger.secret_names(again.erasure().id) == []
        assert b"canary" not in again.direct("GET", "/v1/memories").body


@pytest.mark.requirement("R202")
async def test_an_unreadable_ledger_keeps_the_gate_shut() -> None:
    dead = await _killed("answered")
    next_life = await reborn(dead)

    async def broken() -> None:
        raise LedgerUnavailable("gone")

    real = dead.ledger.open
    dead.ledger.open = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(LedgerUnavailable):
        await next_life.parts.erasures.load()
    for answer in (await next_life.recall("x"), await next_life.forget(subject="bob")):
        assert answer.status == 503
    assert (await next_life.write("b", "x", "bob")).status == 503
    dead.ledger.open = real  # type: ignore[method-assign]
