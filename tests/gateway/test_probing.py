"""Only evidence settles: controls, rounds, leaks, remedies, patrols, canaries, epochs."""

from __future__ import annotations

import pytest

from quietus.acts import Acts, Signal
from quietus.assembly import Bounds
from quietus.core.exchange import Request
from quietus.core.states import State
from quietus.legacy.faults import Faults
from quietus.ports import Permit
from quietus.snapshotter import SnapshotLimits
from tests.gateway.scenes import (
    ALICE,
    ALSO_ALICE,
    BOB,
    World,
    all_events,
    answering,
    events,
    lost,
    path,
    profiled,
    says,
    settle,
    short,
    turn,
    two,
)


def outcomes(world: World) -> dict[str, tuple[str, str]]:
    return {s["name"]: (s["outcome"], s["control"]) for s in world.erasure().surfaces}


@pytest.mark.requirement("R7", "R32", "R61", "R98", "R120", "R142", "R154", "R155", "R51", "R69", "R26")
async def test_settled_by_three_clean_rounds_all_begun_after_the_interval() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        acked = world.clock.now()
        await settle(world)
        found = await all_events(world)
        counted = [e for e in found if e.type == "round" and e.facts["counted"]]
        assert len(counted) == 3 and all(e.facts["outcome"] == "clean" for e in counted)
        assert all(e.at >= acked + 10.0 for e in counted)
        early = [e for e in found if e.type == "round" and not e.facts["counted"]]
        assert early and all(e.facts["outcome"] == "clean" for e in early), "clean, and it did not count"
        for name in ("record", "list", "recall", "recall-tenant"):
            assert outcomes(world)[name] == ("CLEAN", "live")
        assert outcomes(world)["backups"] == ("OUT_OF_SCOPE", "none")
        verdict = world.parts.verdict(world.erasure())
        assert verdict.word == "partial" and set(verdict.through) == {"record", "list", "recall",
                                                                      "recall-tenant"}
        assert world.erasure().may_assert_non_recallability


@pytest.mark.requirement("R16", "R22", "R37")
async def test_fifteen_minutes_of_compaction_and_a_leak_at_892_seconds() -> None:
    async with World(Faults(lazy_index=900.0)) as world:
        await two(world)
        answer = await world.forget(subject="alice")
        assert answer.status == 202
        await world.clock.advance(892.0)
        assert b"flower" in world.direct("POST", "/v1/recall", {"query": "spare key"}).body
        assert (await world.recall("spare key", subject="alice")).status == 409
        assert world.erasure().state is State.LEAKING and world.erasure().may_assert_erasure
        assert outcomes(world)["record"] == ("CLEAN", "live")
        assert outcomes(world)["recall"] == ("LEAKING", "live")
        await settle(world, 3000.0)
        assert world.clock.monotonic() > 1800.0, "the interval begins again after the last leak"
        assert world.sample("quietus_premature_assurance_total", store="memories", surface="recall") > 0
        assert 800 < (world.erasure().exposure_seconds or 0) <= 900
        assert world.sample("quietus_exposure_seconds_count") == 1


@pytest.mark.requirement("R145", "R149")
async def test_a_bound_that_passes_is_overdue_a_leak_after_it_a_violation() -> None:
    async with short(Faults(idle_ack=True)) as world:
        await two(world)
        down = answering(lambda r, p: str(p.purpose) in ("probe", "remedy"), *[lost()] * 3000)
        await world.forget(subject="alice")
        await turn(world)
        world.upstream.hooks.append(down)
        await world.clock.advance(70.0)
        assert world.erasure().overdue
        assert world.erasure().state not in (State.VIOLATION, State.SETTLED)
        assert (await world.recall("x", subject="alice"))["Retry-After"]
    async with short(Faults(lazy_index=1000.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.clock.advance(100.0)
        assert world.erasure().state is State.VIOLATION
        refused = await world.recall("x", subject="alice")
        assert refused.status == 409 and refused["Retry-After"] is None
        assert refused.json["reason"] == "FORGET_EFFECTUATION_TIMEOUT"
        assert world.sample("quietus_violations_total", store="memories", cause="late_leak") == 1


async def test_what_the_store_left_is_removed_by_key_and_the_interval_begins_again() -> None:
    async with short(Faults(failures=1)) as world:
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        remedies = [r.target for purpose, r in world.upstream.sent if purpose == "remedy"]
        assert sorted(set(remedies)) == ["/v1/memories/alice-key-1", "/v1/memories/alice-key-2"]
        assert len(remedies) == 2, "once per record and round"
        found = await all_events(world)
        last = max(e.at for e in found if e.type == "remedied")
        rounds = [e for e in found if e.type == "round" and e.facts["counted"]]
        assert min(e.at for e in rounds) >= last + 10.0
        assert world.direct("GET", "/v1/memories/bobs-key-1").status == 200


@pytest.mark.requirement("R169")
@pytest.mark.parametrize(
    ("faults", "failure"),
    [(Faults(lazy_index=8.0), "ORDERING"), (Faults(idle_ack=True), "MISSING_DELETE")],
    ids=["ordering", "missing delete"],
)
async def test_a_delete_that_came_too_early_is_told_from_one_that_never_came(
    faults: Faults, failure: str
) -> None:
    async with short(faults) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().state is State.LEAKING, 20.0)
        assert [e.facts["failure"] for e in await all_events(world) if e.type == "leaked"][0] == failure


async def test_a_record_that_goes_while_the_snapshot_is_taken_costs_no_surface_its_proof() -> None:
    async with short() as world:
        for number in range(5):
            text = f"Alice packed parcel number {number} for the harbour on day {number}"
            assert (await world.write(f"n-{number}", text, "alice")).status == 201
        await world.write("b-1", BOB, "bob")
        gone: list[str] = []

        async def after(request: Request, permit: Permit) -> None:
            if not gone and request.method == "GET" and request.path == "/v1/memories":
                gone.append("n-0")
                assert world.direct("DELETE", "/v1/memories/n-0").status == 200

        hook = type("Passing", (), {"__call__": lambda *_: None, "after": staticmethod(after)})()
        world.upstream.hooks.append(hook)
        await world.forget(subject="alice")
        assert gone and world.erasure().snapshot["proven"].get("list"), "any of those that it lists proves it"
        await settle(world)
        assert {name: control for name, (_, control) in outcomes(world).items()}["list"] == "live"


async def test_a_record_that_comes_back_every_time_is_not_deleted_for_ever() -> None:
    async with short(Faults(idle_ack=True)) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.clock.advance(400.0)
        remedies = [r.target for purpose, r in world.upstream.sent if purpose == "remedy"]
        assert 0 < remedies.count("/v1/memories/alice-key-1") <= 3
        assert world.erasure().unsettled


@pytest.mark.requirement("R35", "R37")
async def test_a_client_that_meets_the_erased_is_as_good_as_a_probe() -> None:
    async with short(Faults(probe_liar=1000.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.until(lambda: world.erasure().clean_streak > 0)
        answer = await world.recall("spare key", (("User-Agent", "agent/1"),))
        assert b"flower" not in answer.body
        await world.until(lambda: world.erasure().state is State.LEAKING, 10.0)
        assert world.erasure().clean_streak == 0
        leak = [e for e in await all_events(world) if e.type == "leaked"][0]
        assert leak.facts["seen"] == "client"


async def test_a_recall_that_began_before_the_acknowledgement_is_no_evidence() -> None:
    async with short() as world:
        await two(world)

        async def after(request: object, permit: object) -> None:
            if path("/v1/recall", purpose="client")(request, permit):  # type: ignore[arg-type]
                await world.clock.sleep(5.0)

        hook = type("Slow", (), {"__call__": lambda *_: None, "after": staticmethod(after)})()
        world.upstream.hooks.append(hook)
        call = world.start("POST", "/v1/recall", {"query": "spare key"})
        await turn(world)
        await world.forget(subject="alice")
        await world.clock.advance(8.0)
        assert (await world.finish(call)).keys == ["bobs-key-1"]
        assert "leaked" not in await events(world)


@pytest.mark.requirement("R145")
async def test_a_patrol_finds_a_relapse_and_reopens_it_with_a_new_bound() -> None:
    async with short() as world:
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        world.legacy.put(ALICE, key="alice-key-1", subject="alice")
        await world.until(lambda: world.erasure().state is State.RELAPSED, 8000.0, 2.0)
        assert world.erasure().bound_at > world.clock.now() - 60.0
        assert [e.facts["failure"] for e in await all_events(world) if e.type == "leaked"] == ["RESURRECTION"]
        assert (await world.recall("spare key", subject="alice")).status == 409
        assert world.sample("quietus_resurrections_total", store="memories", vector="relapse") == 1
        await settle(world)
        assert world.direct("GET", "/v1/memories/alice-key-1").status == 404


async def test_the_watch_ends_and_the_key_is_destroyed_with_it() -> None:
    async with short() as world:
        policy = world.parts.active.policy
        watch = policy.watch.model_copy(update={"for_": 7200.0})
        world.parts.active.policy = policy.model_copy(update={"watch": watch})
        await two(world)
        await world.forget(subject="alice")
        await settle(world)
        assert await world.ledger.secret_names(world.erasure().id)
        await world.until(lambda: world.erasure().watch_ended, 20_000.0, 600.0)
        await world.clock.advance(1.0)
        assert await world.ledger.secret_names(world.erasure().id) == []
        asked = len(world.upstream.sent)
        await world.clock.advance(9000.0)
        assert len(world.upstream.sent) == asked
        assert (await world.write("alice-key-3", "new", "alice")).status == 409, "the tombstone stays"
        again = await world.forget(subject="alice")
        assert again.status == 200 and again.json == {"status": "settled"}


@pytest.mark.requirement("R197")
async def test_a_canary_stands_in_where_there_is_no_bystander_and_is_removed() -> None:
    async with short() as world:
        await world.write("alice-key-1", ALICE, "alice")
        await world.forget(subject="alice")
        assert b"quietus-canary" in world.direct("GET", "/v1/memories").body
        seen = await world.call("GET", "/v1/memories")
        assert seen.keys == [], "no client is ever shown one"
        await settle(world)
        assert outcomes(world)["recall"] == ("CLEAN", "canary")
        assert world.direct("GET", "/v1/memories").body.count(b'"key"') == 0
        await world.clock.advance(20_000.0)
        assert world.erasure().state is State.SETTLED
        assert world.direct("GET", "/v1/memories").body.count(b'"key"') == 0, "the patrol writes none"
        assert world.parts.verdict(world.erasure()).word == "partial"


async def test_no_bystander_and_no_canary_settles_on_the_positive_control_alone() -> None:
    async with short(profile=profiled(canary=None)) as world:
        await world.write("alice-key-1", ALICE, "alice")
        await world.forget(subject="alice")
        await settle(world)
        assert outcomes(world)["recall"] == ("CLEAN", "positive")
        assert world.parts.verdict(world.erasure()).word == "partial"


@pytest.mark.requirement("R142")
@pytest.mark.parametrize(
    "limits", [SnapshotLimits(records=1), SnapshotLimits(seconds=0.5)], ids=["records", "seconds"]
)
async def test_a_truncated_snapshot_says_so_and_caps_the_verdict(limits: SnapshotLimits) -> None:
    async with short(bounds=Bounds(snapshots=limits)) as world:
        await two(world)
        if limits.seconds < 1:
            async def slowly(request: object, permit: object) -> None:
                if str(permit.purpose) == "probe":  # type: ignore[attr-defined]
                    await world.clock.sleep(0.2)

            world.upstream.hooks.append(slowly)
        await world.forget(subject="alice")
        assert world.erasure().snapshot["truncated"] is True
        world.upstream.hooks.clear()
        await world.clock.advance(300.0)
        verdict = world.parts.verdict(world.erasure())
        assert verdict.word != "compliant"
        assert "a probe of every declared surface" in verdict.missing


@pytest.mark.requirement("R24", "R25", "R30", "R31", "R44", "R45")
async def test_epochs_of_the_store_must_have_been_reached() -> None:
    async with short(Faults(epochs=True, lazy_index=25.0)) as world:
        await two(world)
        await world.forget(subject="alice")
        assert world.erasure().store_epoch is not None
        world.upstream.hooks.append(answering(path("/v1/epoch"), *[says(200, {"read_epoch": 0})] * 100000))
        await world.clock.advance(90.0)
        assert world.erasure().clean_streak >= 3 and world.erasure().state is not State.SETTLED
        world.upstream.hooks.clear()
        await settle(world)
        assert (world.erasure().read_epoch or 0) >= (world.erasure().store_epoch or 1)


@pytest.mark.requirement("R25")
async def test_an_epoch_that_goes_back_is_a_violation() -> None:
    async with short(Faults(epochs=True)) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.clock.advance(3.0)
        assert world.erasure().read_epoch
        world.upstream.hooks.append(answering(path("/v1/epoch"), *[says(200, {"read_epoch": 0})] * 50))
        await world.until(lambda: world.erasure().state is State.VIOLATION)
        assert world.sample("quietus_violations_total", store="memories", cause="epoch_regression") == 1


@pytest.mark.requirement("R24", "R40")
async def test_a_client_may_ask_for_an_epoch() -> None:
    async with short(Faults(epochs=True)) as world:
        await two(world)
        assert (await world.recall("x", (("Quietus-Min-Epoch", "0"),))).status == 200
        behind = await world.recall("x", (("Quietus-Min-Epoch", "9"),))
        assert behind.status == 409 and behind.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert all("quietus-min-epoch" not in {n.lower() for n, _ in r.headers}
                   for _, r in world.upstream.sent)
    async with short() as world:
        await two(world)
        assert (await world.recall("x", (("Quietus-Min-Epoch", "0"),))).status == 409, "it names none"


@pytest.mark.requirement("R30", "R31")
async def test_a_completion_signal_stands_for_the_interval_never_for_the_probes() -> None:
    slow = {"settling_interval": 900.0, "effectuation_bound": 1800.0}
    for epochs in (False, True):
        async with short(Faults(epochs=epochs), store=slow) as world:
            await two(world)
            await world.forget(subject="alice")
            acts = Acts(world.parts.erasures, world.parts.timetable.wake)
            wanted = world.erasure().store_epoch or 7
            if epochs:
                assert await acts.signal(Signal("compaction_complete", wanted - 1), "store") == []
            assert await acts.signal(Signal("compaction_complete", wanted), "store")
            assert await acts.signal(Signal("compaction_complete", wanted), "store") == []
            assert world.erasure().state is not State.SETTLED
            await settle(world, 120.0)
            assert world.erasure().may_assert_non_recallability
            assert ALSO_ALICE and BOB
