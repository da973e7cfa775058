"""What is written under a key or into a path once its erasure is settled is new: shown, and never removed."""

from __future__ import annotations

import pytest

from quietus.core.states import State
from tests.gateway.scenes import ALICE, BOB, CAROL, all_events, kill, reborn, settle, short, two


async def _patrolled(world: object) -> None:
    await world.clock.advance(9000.0)  # type: ignore[attr-defined]
    assert world.erasure().state is State.SETTLED  # type: ignore[attr-defined]


@pytest.mark.requirement("R11")
@pytest.mark.parametrize("subject", ["alice", "bob", None])
async def test_a_key_is_written_again_after_it_was_forgotten(subject: str | None) -> None:
    async with short() as world:
        await two(world)
        await world.forget(keys=["alice-key-1"])
        assert (await world.write("alice-key-1", CAROL, subject)).status == 409, "not while it settles"
        await settle(world)
        assert (await world.write("alice-key-1", CAROL, subject)).status == 201
        if subject is not None:
            assert "alice-key-1" in (await world.recall("tomatoes", subject=subject)).keys
            assert (await world.call("GET", "/v1/memories/alice-key-1")).json["value"] == CAROL
        await _patrolled(world)
        assert world.direct("GET", "/v1/memories/alice-key-1").status == 200
        assert not any(purpose == "remedy" for purpose, _ in world.upstream.sent)


async def test_the_old_text_under_the_old_key_is_a_relapse_all_the_same() -> None:
    async with short() as world:
        await two(world)
        await world.forget(keys=["alice-key-1"])
        await settle(world)
        world.legacy.put(ALICE, key="alice-key-1", subject="alice")
        assert (await world.call("GET", "/v1/memories/alice-key-1")).status == 409
        await world.clock.advance(9000.0)
        assert "leaked" in [e.type for e in await all_events(world)]
        assert world.direct("GET", "/v1/memories/alice-key-1").status == 404


async def test_a_path_is_used_again_after_it_was_forgotten() -> None:
    async with short() as world:
        await world.write("k1", ALICE, "alice", scope="tenant/session:42")
        await world.write("k2", BOB, "bob", scope="tenant/session:43")
        await world.forget(scope="tenant/session:42")
        await settle(world)
        assert (await world.write("k3", CAROL, "bob", scope="tenant/session:42")).status == 201
        assert (await world.recall("tomatoes", scope="tenant/session:42")).keys == ["k3"]
        await _patrolled(world)
        assert world.direct("GET", "/v1/memories/k3").status == 200


async def test_after_a_restart_the_patrol_still_removes_nothing_new() -> None:
    world = short()
    await world.__aenter__()
    await world.write("a-long-key-1", ALICE, "alice", scope="tenant/session:42")
    await world.write("k2", BOB, "bob", scope="tenant/session:43")
    await world.forget(scope="tenant/session:42")
    await settle(world)
    await world.write("a-long-key-1", CAROL, "bob", scope="tenant/session:42")
    await kill(world)
    async with await reborn(world) as again:
        await _patrolled(again)
        assert again.direct("GET", "/v1/memories/a-long-key-1").status == 200


@pytest.mark.requirement("R190")
async def test_a_key_belongs_to_its_owner_within_its_tenant_only() -> None:
    """The same key in two tenants is two records: neither lends the other its owner or its age."""
    async with short() as world:
        await two(world, tenant="acme")
        await world.forget(subject="alice", tenant="acme")
        # Later, and in another tenant, somebody else uses the same key.
        assert (await world.write("alice-key-1", BOB, "bob", tenant="other")).status == 201
        read = await world.call("GET", "/v1/memories/alice-key-1?tenant=acme")
        assert read.status == 409
        assert (await world.call("GET", "/v1/memories/alice-key-1?tenant=other")).status == 200
        world.legacy.put(ALICE, key="alice-key-1", subject="alice", tenant="acme")  # the store brings it back
        await world.until(lambda: world.erasure().remedies > 0, limit=60.0)
        await settle(world)
        assert world.direct("GET", "/v1/memories/alice-key-1?tenant=other").status == 200
