"""Standing orders and operators' demands, over the whole engine in virtual time."""

from __future__ import annotations

import pytest

from quietus.acts import BadAct
from quietus.core.events import EventType
from quietus.core.exchange import Request
from quietus.core.operations import Call, Operation
from quietus.core.scope import Scope, split_path
from quietus.core.states import State
from quietus.demands import Demand, Demands
from quietus.legacy.faults import Faults
from quietus.ordering import LONGEST_OVERRIDE, NoSuchOrder
from quietus.ports import Permit
from tests.gateway.scenes import (
    ALICE,
    Held,
    all_events,
    forgets,
    lost,
    path,
    profiled,
    reborn,
    settle,
    short,
    turn,
    two,
)
from tests.world import World

DAY = 86400.0
SLOW = Faults(lazy_index=30.0)


def of(world: World, **named: str) -> Scope:
    return Scope(**{name: frozenset({value}) for name, value in named.items()})


def demands(world: World) -> Demands:
    parts = world.parts
    return Demands(parts.erasures, parts.forgets, lambda: parts.active.profile, parts.timetable.wake)


async def hold(world: World, days: float = 30.0, **named: str) -> str:
    until = world.clock.now() + days * DAY
    placed = await world.parts.ordering.hold(
        of(world, **named), "gdpr_art17_3_e", until, "case 12", "counsel"
    )
    return placed.id


# --- holds ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R207")
async def test_a_forget_on_a_held_subject_is_refused_recorded_and_taken_up_with_its_date() -> None:
    async with short() as world:
        await two(world)
        name = await hold(world, subject="alice")
        asked_at = world.clock.now()
        for _ in range(2):
            refused = await world.forget(subject="alice")
            assert (refused.status, refused.json["reason"]) == (409, "LEGAL_HOLD")
            assert "until" in refused.json["detail"] and "alice" not in refused.body.decode()
        assert forgets(world) == 0 and not list(world.parts.erasures.all())
        orders = world.parts.erasures.gate.orders
        assert len(orders.deferred) == 1, "the same demand is recorded once"
        assert (await world.recall("key gate")).keys, "a refused forget shuts nothing"
        assert (await world.forget(subject="bob")).status == 202
        await world.clock.advance(5 * DAY)
        await world.parts.ordering.lift(name, "settled out of court", "counsel")
        await settle(world)
        erasure = world.erasure()
        assert erasure.dossier.received_at == pytest.approx(asked_at, abs=5)
        assert erasure.requested_at >= asked_at + 5 * DAY
        assert erasure.dossier.due_at(erasure.requested_at) < asked_at + 31 * DAY
        assert world.upstream.calls("POST", "/v1/forget") == 2 and not orders.deferred


@pytest.mark.requirement("R207")
async def test_a_hold_in_mid_settling_pauses_and_leaves_the_gate_shut() -> None:
    async with short(SLOW) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.clock.advance(3.0)
        name = await hold(world, subject="alice")
        assert world.erasure().held
        await world.clock.advance(5.0)  # a round that was under way ends
        before = world.erasure()
        calls = len(world.upstream.sent)
        await world.clock.advance(3600.0)
        during = world.erasure()
        assert during.state is before.state and during.unsettled and during.remedies == before.remedies
        assert len(world.upstream.sent) == calls, "nothing is probed and nothing removed"
        assert (await world.recall("key", subject="alice")).status == 409
        assert world.parts.verdict(during).word.value == "unconfirmed"
        await world.parts.ordering.lift(name, "over", "counsel")
        await settle(world, 7200.0)


@pytest.mark.requirement("R207")
async def test_two_holds_hold_until_the_last_is_lifted_and_dates_end_them() -> None:
    async with short() as world:
        await two(world)
        first = await hold(world, 10, subject="alice")
        await hold(world, 20, tenant="default")
        assert (await world.forget(subject="alice")).status == 409
        await world.parts.ordering.lift(first, "over", "counsel")
        assert (await world.forget(subject="alice")).status == 409 and forgets(world) == 0
        await world.clock.advance(20 * DAY)
        await world.parts.ordering.expire()
        await settle(world)
        assert forgets(world) == 1
        lifted = [e for e in await all_events(world) if e.type is EventType.HOLD_LIFTED and not e.erasure]
        assert [e.actor for e in lifted] == ["counsel", "quietus"]
        with pytest.raises(NoSuchOrder):
            await world.parts.ordering.lift(first, "again", "counsel")


async def test_a_hold_survives_a_restart_and_so_does_what_waits_behind_it() -> None:
    world = short()
    async with world:
        await two(world)
        name = await hold(world, subject="alice")
        await world.forget(subject="alice")
        await world.crash()
    after = await reborn(world)
    async with after:
        assert (await after.forget(subject="alice")).status == 409
        await after.parts.ordering.lift(name, "over", "counsel")
        await settle(after)
        assert forgets(after) == 1 and (await after.recall("spare key")).keys == ["bobs-key-1"]


async def test_a_hold_wants_a_ground_an_end_and_no_names() -> None:
    async with short() as world:
        place = world.parts.ordering.hold
        ahead = world.clock.now() + DAY
        for exception, until, reason in (("", ahead, "why"), ("law", ahead, ""), ("law", ahead, "Alice sues"),
                                         ("law", world.clock.now(), "why")):  # fmt: skip
            with pytest.raises(BadAct):
                await place(of(world, subject="alice"), exception, until, reason, "counsel")


# --- overrides -----------------------------------------------------------------------------------


async def test_an_override_lets_recalls_pass_marked_and_ends_by_itself() -> None:
    async with short(SLOW) as world:
        await two(world)
        await world.forget(subject="alice")
        assert (await world.recall("key", subject="alice")).status == 409
        before = world.parts.verdict(world.erasure())
        await world.parts.ordering.override(60.0, "incident 12", "eve")
        passed = await world.recall("spare key flower pot", subject="alice")
        assert passed.status == 200 and ALICE in passed.body.decode()
        assert passed["Quietus-Candidate-Set"] == "contaminated"
        assert 'rule="override"' in (passed["Quietus-Decision"] or "")
        assert world.sample("quietus_bypass_total", store="memories", cause="override") == 1
        wide = await world.recall("spare key flower pot")
        assert "alice-key-1" in wide.keys and wide["Quietus-Candidate-Set"] == "contaminated"
        assert (await world.write("new", "a new note of hers", "alice")).status == 409, "writes stay refused"
        assert "override" in " ".join(world.parts.verdict(world.erasure()).missing)
        await world.clock.advance(61.0)
        assert (await world.recall("key", subject="alice")).status in (200, 409)
        if world.erasure().unsettled:
            assert (await world.recall("key", subject="alice")).status == 409
        assert before.word.value == "unconfirmed"


async def test_an_override_is_of_one_tenant_where_it_says_so() -> None:
    async with short(SLOW) as world:
        await two(world, tenant="acme")
        text = "Alice of globex likes her coffee black and hot"
        await world.write("alice-key-9", text, "alice", tenant="globex")
        await world.forget(subject="alice")
        begun = await world.parts.ordering.override(60.0, "incident 12", "eve", tenant="acme")
        assert (await world.recall("key", subject="alice", tenant="acme")).status == 200
        assert (await world.recall("key", subject="alice", tenant="globex")).status == 409
        assert (await world.recall("key", subject="alice")).status == 409, "it may reach another tenant"
        await world.parts.ordering.end_override(begun.id, "over", "eve")
        assert (await world.recall("key", subject="alice", tenant="acme")).status == 409
        with pytest.raises(NoSuchOrder):
            await world.parts.ordering.end_override(begun.id, "again", "eve")


async def test_no_jump_of_the_wall_clock_prolongs_an_override() -> None:
    async with short(SLOW, store={"settling_interval": 600.0, "effectuation_bound": 1800.0}) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.parts.ordering.override(60.0, "incident 12", "eve")
        assert (await world.recall("key", subject="alice")).status == 200
        world.clock.jump(-3600.0)
        await world.clock.advance(61.0)
        assert (await world.recall("key", subject="alice")).status == 409
        for length in (0.0, -1.0, LONGEST_OVERRIDE + 1):
            with pytest.raises(BadAct):
                await world.parts.ordering.override(length, "incident 12", "eve")


@pytest.mark.requirement("R157")
async def test_an_override_opens_nothing_that_a_lost_ledger_has_shut() -> None:
    async with short(SLOW) as world:
        await two(world)
        await world.forget(subject="alice")
        await world.parts.ordering.override(60.0, "incident 12", "eve")
        assert (await world.recall("key", subject="alice")).status == 200
        world.parts.erasures.closed_cause = "ledger"
        assert (await world.recall("key", subject="alice")).status == 503


async def test_an_answer_that_is_leaving_under_an_override_is_aborted_when_it_ends() -> None:
    async with short(SLOW) as world:
        await two(world)
        await world.forget(subject="alice")
        begun = await world.parts.ordering.override(60.0, "incident 12", "eve")
        call = Call(Operation.RECALL, "recall", of(world, subject="alice"))
        gateway, flights = world.parts.gateway, world.parts.flights
        question = gateway.question(call, "somebody")
        flight = flights.open(question, gateway.decide(question), True)
        assert flight.decision.overridden
        flights.release(flight)
        await world.parts.ordering.end_override(begun.id, "over", "eve")
        assert flight.overtaken.is_set()


# --- quarantines by hand -------------------------------------------------------------------------


@pytest.mark.requirement("R195", "R140", "R157")
async def test_a_scope_quarantined_by_hand_is_shut_until_it_is_lifted() -> None:
    world = short()
    async with world:
        await world.write("k1", "the ledger of the first session of the day", "alice", scope="org/a")
        await world.write("k2", "another page from the second session", "bob", scope="org/b")
        ordering = world.parts.ordering
        placed = await ordering.quarantine(
            Scope(path=frozenset({split_path("org/a")})), "under review", "eve"
        )
        inside = await world.recall("session", scope="org/a")
        assert (inside.status, inside.json["reason"]) == (409, "INCOMPLETE_ERASURE")
        wide = await world.recall("session page ledger")
        assert wide.keys == ["k2"] and wide["Quietus-Candidate-Set"] == "contaminated"
        refused = await world.write("k3", "something new", "carol", scope="org/a/deep")
        assert (refused.status, refused.json["reason"]) == (409, "SCOPE_LAUNDERING")
        assert not list(world.parts.erasures.all()), "it is no erasure"
        await world.clock.advance(DAY)
        assert forgets(world) == 0 and world.parts.erasures.quarantines() == [placed]
        await world.crash()
    after = await reborn(world)
    async with after:
        assert (await after.recall("session", scope="org/a")).status == 409
        await after.parts.ordering.lift_quarantine(placed.id, "reviewed", "eve")
        assert (await after.recall("session", scope="org/a")).keys == ["k1"]
        assert (await after.write("k3", "something new", "carol", scope="org/a/deep")).status == 201
        with pytest.raises(NoSuchOrder):
            await after.parts.ordering.lift_quarantine(placed.id, "again", "eve")


async def test_a_forget_inside_a_quarantine_is_an_erasure_of_its_own() -> None:
    async with short() as world:
        await two(world)
        await world.parts.ordering.quarantine(of(world, subject="alice"), "under review", "eve")
        refused = await world.write("k", "of hers", "alice")
        assert (refused.status, refused.json["reason"]) == (409, "INCOMPLETE_ERASURE")
        assert (await world.forget(subject="alice")).status == 202
        await settle(world)
        assert forgets(world) == 1
        assert (await world.recall("key", subject="alice")).status == 409, "the quarantine still stands"


# --- demands -------------------------------------------------------------------------------------


async def test_a_demand_shuts_the_gate_asks_the_store_and_settles() -> None:
    async with short() as world:
        await two(world)
        demand = Demand(("alice",), basis="ccpa_1798_105", reference="t-1", aliases=("Moreau-Lebrun",))
        erasure, new = await demands(world).create(demand, "privacy@example")
        assert new and erasure.state is State.REQUESTED and erasure.actor == "privacy@example"
        assert (await world.recall("key", subject="alice")).status == 409
        again, new = await demands(world).create(demand, "privacy@example")
        assert (again.id, new) == (erasure.id, False)
        wide = await world.write("k", "madame Moreau-Lebrun rang", "bob")
        assert wide.status in (201, 409)
        await settle(world)
        assert forgets(world) == 1 and world.direct("GET", "/v1/memories/alice-key-1").status == 404


async def test_several_identifiers_are_one_erasure_and_one_request_each() -> None:
    async with short() as world:
        await two(world)
        await world.write("am-1", "A. Moreau asked for the long lease on the flat", "a.moreau@example.org")
        demand = Demand(subjects=("alice", "a.moreau@example.org"))
        await demands(world).create(demand, "privacy@example")
        assert (await world.recall("lease", subject="a.moreau@example.org")).status == 409
        assert (await world.recall("key", subject="alice")).status == 409
        await settle(world)
        assert forgets(world) == 2 and len(list(world.parts.erasures.all())) == 1
        assert (await world.recall("lease key train")).keys == ["bobs-key-1"]


@pytest.mark.requirement("R9", "R207")
async def test_a_demand_of_one_purpose_leaves_the_other() -> None:
    async with short() as world:
        await world.write("s-1", "the support call about the broken heater valve", "alice", purpose="support")
        await world.write("b-1", "the invoice of the heater from last November", "alice", purpose="billing")
        demand = Demand(subjects=("alice",), purposes=("support",))
        await demands(world).create(demand, "privacy@example")
        await settle(world)
        assert (await world.recall("heater", subject="alice", purpose="billing")).keys == ["b-1"]
        assert world.direct("GET", "/v1/memories/b-1").status == 200
        assert world.direct("GET", "/v1/memories/s-1").status == 404


async def test_a_demand_that_cannot_be_asked_for_is_refused_in_words() -> None:
    async with short() as world:
        for wrong in (Demand(), Demand(subjects=("a",), keys=("k",)), Demand(subjects=("",)),
                      Demand(subjects=(" a",)), Demand(subjects=("a\nb",)), Demand(path="//"),
                      Demand(subjects=("alice",), reference="for Alice"),
                      Demand(subjects=tuple(map(str, range(101))))):  # fmt: skip
            with pytest.raises(BadAct):
                await demands(world).create(wrong, "privacy@example")
        assert not await all_events(world)


async def test_chroma_needs_to_be_told_the_collection() -> None:
    world = World(profile="chroma")
    async with world:
        with pytest.raises(BadAct, match="capture"):
            await demands(world).create(Demand(subjects=("alice",)), "privacy@example")


async def test_a_store_with_no_forget_is_suppressed_and_never_said_to_be_erased() -> None:
    world = short(profile=profiled(forgets=None))
    async with world:
        await two(world)
        erasure, _ = await demands(world).create(Demand(subjects=("alice",)), "privacy@example")
        await world.clock.advance(3600.0)
        erasure = world.erasure()
        assert erasure.unsettled and erasure.dossier.suppressed and erasure.snapshotted
        assert forgets(world) == 0 and world.upstream.calls("DELETE", "/v1/memories/alice-key-1") == 0
        assert (await world.recall("spare key train")).keys == ["bobs-key-1"]
        assert (await world.recall("key", subject="alice")).status == 409
        assert world.parts.verdict(erasure).word.value == "unconfirmed"


@pytest.mark.requirement("R207")
async def test_a_hold_placed_before_the_store_is_asked_stops_the_forget() -> None:
    async with short() as world:
        await two(world)
        held = Held(path("/v1/recall"))
        world.upstream.hooks.append(held)  # the snapshot is under way
        call = world.start("POST", "/v1/forget", {"subject": "alice"})
        await turn(world)
        assert world.erasure().state is State.REQUESTED and not world.erasure().snapshotted
        name = await hold(world, subject="alice")
        held.gate.set()
        stopped = await world.finish(call)
        assert (stopped.status, stopped.json["reason"]) == (409, "LEGAL_HOLD")
        assert stopped["Quietus-Erasure"] and forgets(world) == 0
        await world.clock.advance(600.0)
        assert forgets(world) == 0 and (await world.recall("key", subject="alice")).status == 409
        await world.parts.ordering.lift(name, "over", "counsel")
        await settle(world)
        assert forgets(world) == 1


async def test_of_several_requests_one_without_an_answer_has_all_sent_again() -> None:
    async with short() as world:
        await two(world)
        asked = 0

        def second_is_lost(request: Request, permit: Permit) -> None:
            nonlocal asked
            if request.path == "/v1/forget":
                asked += 1
                if asked == 2:
                    raise lost()

        world.upstream.hooks.append(second_is_lost)
        await demands(world).create(Demand(subjects=("alice", "bob")), "privacy@example")
        assert (await world.recall("key", subject="bob")).status == 409
        await settle(world)
        assert asked == 4 and world.erasure().forwards == 2
        assert [e.type.value for e in await all_events(world)].count("unclear") == 1
        assert world.direct("GET", "/v1/memories/bobs-key-1").status == 404


async def test_a_hold_during_a_round_stops_the_next_delete() -> None:
    async with short(Faults(idle_ack=True)) as world:
        await two(world)
        await world.forget(subject="alice")
        held = Held(lambda request, permit: request.method == "DELETE")
        world.upstream.hooks.append(held)
        await world.until(lambda: held.waiting > 0)
        await hold(world, subject="alice")
        held.gate.set()
        await world.clock.advance(60.0)
        assert world.upstream.calls("DELETE", "/v1/memories/alice-key-1") + world.upstream.calls(
            "DELETE", "/v1/memories/alice-key-2") == 1  # fmt: skip
