"""Nobody can ask so fast that the admin API has no time for others: per actor, refused with 429."""

from __future__ import annotations

import asyncio

import pytest

from quietus.admin.paces import BURST, KEPT, RATE, WAITING, Paces
from quietus.admin.tokens import Role
from quietus.core.states import State
from tests.admin.desk import bearer, office


def test_a_bucket_is_filled_as_time_goes_by() -> None:
    paces = Paces()
    assert all(paces.allows("eve", 5.0) for _ in range(int(BURST)))
    assert not paces.allows("eve", 5.0)
    assert paces.allows("bob", 5.0), "each actor has a pace of its own"
    allowed = sum(paces.allows("eve", 6.0) for _ in range(int(BURST)))
    assert allowed == RATE
    assert paces.allows("eve", 1e9)
    for name in range(KEPT + 1):
        paces.allows(f"actor-{name}", 1e9)
    assert sum(paces.allows("eve", 1e9) for _ in range(int(BURST) + 5)) == BURST, "it was forgotten"


async def test_what_settles_says_how_long_it_may_take() -> None:
    async with office() as (desk, client, world):
        settling, leaking = await desk.erasure(), await desk.erasure(State.LEAKING)
        world.parts.timetable.start()

        async def estimate(name: str) -> float | None:
            answer = await client.get(f"/v1/erasures/{name}", headers=bearer(Role.VIEWER))
            found: float | None = (await answer.json())["estimate_seconds"]
            return found

        terms = settling.terms
        assert await estimate(leaking.id) is None, "nobody can say when a leak ends"
        whole = terms.settling_interval + terms.clean_rounds * terms.spacing
        assert await estimate(settling.id) == pytest.approx(whole, abs=1.0)
        await desk.clock.advance(10.0)
        assert await estimate(settling.id) == pytest.approx(whole - 10.0, abs=1.0)


async def test_who_asks_too_fast_is_told_to_wait_and_others_are_not() -> None:
    async with office() as (desk, client, _):
        while (answer := await client.get("/v1/unmapped", headers=bearer(Role.VIEWER))).status == 200:
            pass
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["type"] == "urn:quietus:problem:overloaded"
        assert (await client.get("/v1/unmapped", headers=bearer(Role.PRIVACY))).status == 200
        assert (await client.get("/healthz")).status == 200
        await desk.clock.advance(1.0)
        assert (await client.get("/v1/unmapped", headers=bearer(Role.VIEWER))).status == 200


@pytest.mark.requirement("R123")
async def test_an_actor_waits_for_so_many_changes_at_a_time() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure()
        path = f"/v1/erasures/{erasure.id}?wait=30"
        viewer = bearer(Role.VIEWER)
        waiting = [asyncio.ensure_future(client.get(path, headers=viewer)) for _ in range(WAITING)]
        while desk.clock.sleepers < WAITING:
            await asyncio.sleep(0)
        refused = await client.get(path, headers=bearer(Role.VIEWER))
        assert refused.status == 429
        await desk.clock.advance(30)
        assert {(await task).status for task in waiting} == {200}
        again = asyncio.ensure_future(client.get(path, headers=bearer(Role.VIEWER)))
        while desk.clock.sleepers == 0:
            await asyncio.sleep(0)
        await desk.clock.advance(30)
        assert (await again).status == 200
