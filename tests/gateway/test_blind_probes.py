"""A probe that could not have found anything settles nothing."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.exchange import Reply, Request
from quietus.core.states import State
from quietus.ports import Permit
from tests.gateway.scenes import (
    ALICE,
    World,
    all_events,
    profiled,
    says,
    settle,
    short,
    two,
)

LONG = 1500.0


def denied(request: Request, permit: Permit) -> Reply | None:
    """The sidecar's own credential is not (or no longer) good."""
    own = str(permit.purpose) in ("probe", "remedy")
    return says(401, {"error": "unauthorized"}) if own else None


def moved(*names: str) -> Any:
    """A profile some of whose surfaces ask where nothing is."""

    def change(surfaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for surface in surfaces:
            if surface["name"] in names or not names and "http" in surface:
                http = surface["http"]
                surface["http"] = {**http, "path": http["path"].replace("/v1/", "/v0/")}
        return surfaces

    return change


def missing(surfaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows are not where the profile says."""
    for surface in surfaces:
        if surface["name"] == "recall":
            surface["items"] = "$.body.hits"
    return surfaces


async def _people(world: World, bystanders: bool) -> None:
    if bystanders:
        await two(world)
    else:
        await world.write("alice-key-1", ALICE, "alice")


async def _never_settles(world: World) -> None:
    await world.clock.advance(LONG)
    assert world.erasure().unsettled and world.erasure().overdue
    assert world.erasure().clean_streak == 0
    assert world.parts.verdict(world.erasure()).word == "unconfirmed"
    assert (await world.recall("spare key", subject="alice")).status == 409
    rounds = [e for e in await all_events(world) if e.type == "round"]
    assert rounds and not any(e.facts["outcome"] == "clean" for e in rounds)


WITH_AND_WITHOUT = pytest.mark.parametrize("bystanders", [True, False], ids=["bystanders", "alone"])


@WITH_AND_WITHOUT
@pytest.mark.requirement("R98")
async def test_a_wrong_credential_from_the_start(bystanders: bool) -> None:
    async with short() as world:
        await _people(world, bystanders)
        world.upstream.hooks.append(denied)
        await world.forget(subject="alice")
        await _never_settles(world)


@WITH_AND_WITHOUT
@pytest.mark.requirement("R98")
async def test_a_credential_revoked_later(bystanders: bool) -> None:
    async with short() as world:
        await _people(world, bystanders)
        await world.forget(subject="alice")
        world.upstream.hooks.append(denied)
        await _never_settles(world)
        world.upstream.hooks.clear()
        await settle(world)
        assert world.parts.verdict(world.erasure()).word == "partial"


@WITH_AND_WITHOUT
async def test_a_credential_that_reads_nothing_later(bystanders: bool) -> None:
    """Worse than 401: everything is answered, as if there were nothing."""

    def empty(request: Request, permit: Permit) -> Reply | None:
        if str(permit.purpose) != "probe":
            return None
        if request.method == "GET" and request.path.count("/") == 3:
            return says(404, {"error": "not_found"})
        return says(200, {"results": [], "next": None})

    async with short() as world:
        await _people(world, bystanders)
        await world.forget(subject="alice")
        world.upstream.hooks.append(empty)
        await _never_settles(world)
        world.upstream.hooks.clear()
        await settle(world)


async def test_a_store_that_shows_the_sidecar_nothing_from_the_start() -> None:
    def empty(request: Request, permit: Permit) -> Reply | None:
        if str(permit.purpose) != "probe" or request.path == "/v1/epoch":
            return None
        if request.method == "GET" and request.path.count("/") == 3:
            return says(404, {"error": "not_found"})
        return says(200, {"results": [], "next": None}) if request.method != "POST" or "recall" in (
            request.path) else None

    async with short() as world:
        await two(world)
        world.upstream.hooks.append(empty)
        await world.forget(subject="alice")
        await _never_settles(world)
        assert b"canary" not in world.direct("GET", "/v1/memories").body, "none is left behind"


@WITH_AND_WITHOUT
@pytest.mark.parametrize("which", [("record",), ("recall",), ()], ids=["primary", "recall", "all"])
@pytest.mark.requirement("R98")
async def test_a_moved_route(bystanders: bool, which: tuple[str, ...]) -> None:
    async with short(profile=profiled(surfaces=moved(*which))) as world:
        await _people(world, bystanders)
        await world.forget(subject="alice")
        await _never_settles(world)


@WITH_AND_WITHOUT
@pytest.mark.requirement("R98")
async def test_a_missing_items_path(bystanders: bool) -> None:
    async with short(profile=profiled(surfaces=missing)) as world:
        await _people(world, bystanders)
        await world.forget(subject="alice")
        await _never_settles(world)


async def test_a_forget_by_key_of_what_was_never_found_needs_a_control() -> None:
    def primary(surfaces: list[dict[str, Any]]) -> list[dict[str, Any]]:
        kept = [s for s in surfaces if s["name"] == "record" or s["kind"] == "unprobeable"]
        return moved("record")(kept)

    async with short(profile=profiled(surfaces=primary, canary=None)) as world:
        await two(world)
        await world.forget(keys=["alice-key-1"])
        await world.clock.advance(LONG)
        assert world.erasure().unsettled, "404 everywhere is what a moved route says, too"


async def test_the_store_is_down_for_a_while_and_comes_back() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().clean_streak == 2)

        def down(request: Request, permit: Permit) -> None:
            from quietus.ports import UpstreamError

            raise UpstreamError("refused", sent=False)

        world.upstream.hooks.append(down)
        await world.clock.advance(100.0)
        assert world.erasure().state is State.SETTLING and world.erasure().clean_streak == 0
        answer = await world.recall("train", subject="bob")
        assert answer.status == 502 and answer.json["type"].endswith("upstream-unavailable")
        world.upstream.hooks.clear()
        back = world.clock.monotonic()
        await settle(world)
        assert world.clock.monotonic() - back >= 10.0, "a reconnect begins the interval again"


@pytest.mark.requirement("R154")
async def test_probes_are_bounded_in_rate_and_number() -> None:
    async with short() as world:
        for number in range(30):
            await world.write(f"alice-key-{number}", f"{ALICE} number {number}", "alice")
        await world.write("bobs-key-1", "Bob is here", "bob")
        await world.forget(subject="alice")
        before = len([1 for p, _ in world.upstream.sent if p == "probe"])
        await world.clock.advance(60.0)
        after = len([1 for p, _ in world.upstream.sent if p == "probe"])
        assert after - before <= 60 * 5 + 5
