"""What a gate makes of each event: its epoch, its generation, proposals, and the orders of people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quietus.core.events import EventType, scope_to_facts
from quietus.core.fingerprint import Mark
from quietus.core.gate import Gate
from quietus.core.orders import MOST, Override
from quietus.core.scope import UNKNOWN, Scope
from quietus.core.states import State
from tests.core.making import World, event, requested, scope

E = EventType
ALICE = scope(tenant="acme", subject="alice")


def quarantined(number: int, predicate: Scope, name: str) -> Any:
    asked = requested(number, predicate, name, label="quarantine")
    return event(number, E.QUARANTINED, name, gate=True, **asked.facts)


def test_epoch_is_the_number_of_the_last_event_that_changes_the_gate() -> None:
    gate = Gate()
    assert (gate.epoch, gate.generation) == (0, 0)
    gate.apply(requested(7, ALICE))
    assert gate.epoch == 7
    before = gate.generation
    gate.apply(event(9, E.ROUND, outcome="clean", counted=False))
    assert (gate.epoch, gate.generation) == (7, before)
    gate.apply(event(11, E.SIGNALLED, gate=True))
    assert gate.epoch == 11
    assert gate.generation > before


@pytest.mark.parametrize(
    ("kind", "facts"),
    [(E.ACCEPTED, {}), (E.RELEASED, {}), (E.READMITTED, {}), (E.REFUSED, {}), (E.QUARANTINE_LIFTED, {})],
)
def test_what_moves_an_erasure_to_another_class_begins_a_generation(
    kind: EventType, facts: dict[str, Any]
) -> None:
    gate = Gate()
    by_hand = kind is E.QUARANTINE_LIFTED
    gate.apply(quarantined(1, ALICE, "er_1") if by_hand else requested(1, ALICE))
    before = gate.generation
    gate.apply(event(2, kind, **facts))
    assert gate.generation > before
    expected = [] if kind in (E.RELEASED, E.REFUSED, E.QUARANTINE_LIFTED) else ["er_1"]
    assert [erasure.id for erasure, _ in gate.restricting(ALICE)] == expected


def test_what_is_collected_leaves_no_tombstone_and_another_generation() -> None:
    world = World()
    erasure = world.erase(ALICE, State.SETTLED)
    assert world.gate.of_subject(ALICE) == [erasure]
    before = world.gate.generation
    world.gate.apply(event(9, E.COLLECTED, erasure.id))
    assert (world.gate.of_subject(ALICE), world.gate.concerns(ALICE)) == ([], False)
    assert world.gate.generation > before


def test_proposal_shuts_the_gate_until_it_is_withdrawn_and_once_when_it_is_folded_in() -> None:
    gate, intent = Gate(), requested(3, ALICE)
    gate.propose(intent)
    assert (gate.unsettled, len(gate.restricting(ALICE)), gate.generation) == (1, 1, 1)
    gate.withdraw(intent.erasure)
    assert (gate.unsettled, gate.restricting(ALICE), gate.erasures, gate.generation) == (0, [], {}, 2)
    gate.withdraw(intent.erasure)
    assert gate.generation == 2, "there was nothing to take back"
    gate.propose(intent)
    gate.apply(requested(5, ALICE))
    assert (gate.unsettled, len(gate.restricting(ALICE)), gate.erasures["er_1"].epoch) == (1, 1, 5)
    gate.apply(event(6, E.REFUSED))
    assert (gate.unsettled, gate.restricting(ALICE)) == (0, [])


def test_marks_added_and_taken_back_begin_a_generation_each() -> None:
    gate = Gate()
    gate.mark("er_1", [Mark("id", b"x")])
    assert gate.generation == 1
    gate.unmark("er_1")
    assert gate.generation == 2


def test_repeated_forget_joins_an_erasure_and_never_a_quarantine_by_hand() -> None:
    gate = Gate()
    gate.apply(quarantined(1, ALICE, "q_1"))
    assert gate.erasures["q_1"].by_hand
    assert list(gate.covering(ALICE)) == []
    gate.apply(requested(2, ALICE, "er_2"))
    assert [erasure.id for erasure in gate.covering(ALICE)] == ["er_2"]


@pytest.mark.parametrize("subject", ["alice", UNKNOWN])
def test_subject_erased_for_one_purpose_is_not_met_by_a_call_of_another(subject: Any) -> None:
    world = World()
    world.erase(scope(subject="alice", purpose="ads"))
    elsewhere = scope(subject="alice", purpose="billing")
    assert world.gate.of_subject(elsewhere) == []
    assert len(world.gate.of_subject(scope(subject="alice", purpose="ads"))) == 1


# Orders


def held(number: int, where: Scope, name: str = "h_1", until: float = 50.0) -> Any:
    return event(
        number, E.HELD, "", 10.0, gate=True,
        hold=name, scope=scope_to_facts(where), exception="GDPR 17(3)(e)", reason="a claim", until=until,
    )  # fmt: skip


def overridden(number: int, where: Scope, at: float, until: float, name: str = "o_1") -> Any:
    facts = {"override": name, "effect": "annotate", "scope": scope_to_facts(where), "reason": "a fire"}
    return event(number, E.OVERRIDDEN, "", at, gate=True, until=until, **facts)


def standing(now: float) -> Callable[[Override], bool]:
    return lambda override: override.during(now, now)


def test_hold_stands_over_its_scope_until_it_is_lifted_whatever_its_date() -> None:
    gate = Gate()
    assert gate.apply(held(1, ALICE)) is None
    [hold] = gate.orders.holding(scope(tenant="acme"))
    assert (hold.id, hold.scope, hold.exception, hold.reason) == ("h_1", ALICE, "GDPR 17(3)(e)", "a claim")
    assert (hold.until, hold.placed_at, hold.actor) == (50.0, 10.0, "test")
    assert gate.orders.holding(scope(tenant="acme", subject="bob")) == []
    gate.apply(event(2, E.HOLD_LIFTED, "", hold="h_1"))
    assert gate.orders.holding(ALICE) == []
    gate.apply(event(3, E.HOLD_LIFTED, "", hold="h_1"))


def test_deferred_forget_waits_until_its_intent_is_written() -> None:
    gate, intent = Gate(), requested(5, ALICE, "er_9")
    facts = dict(intent.facts)
    gate.apply(event(4, E.DEFERRED, "", 20.0, **{"as": "er_9", "intent": facts}))
    waiting = gate.orders.waiting(ALICE)
    assert waiting is not None
    assert (waiting.erasure, waiting.scope, waiting.asked_at, waiting.actor) == ("er_9", ALICE, 20.0, "test")
    assert waiting.facts == facts
    assert gate.orders.waiting(scope(tenant="acme")) is None
    gate.apply(requested(5, ALICE, "er_other"))
    assert gate.orders.waiting(ALICE) is waiting
    gate.apply(intent)
    assert gate.orders.waiting(ALICE) is None


def test_override_stands_from_its_beginning_to_its_end_over_its_own_tenant() -> None:
    orders = Gate().orders
    acme = scope(tenant="acme")
    assert orders.overriding(acme, standing(10.0)) is None
    orders.apply(overridden(1, acme, at=10.0, until=20.0))
    for now, stands in [(9.9, False), (10.0, True), (19.9, True), (20.0, False)]:
        assert (orders.overriding(ALICE, standing(now)) is not None) is stands
        assert orders.overridden(ALICE, now) is stands
    several = scope(tenant=("acme", "other"))
    for reach in (several, scope(tenant="other"), Scope(), Scope(tenant=UNKNOWN)):
        assert orders.overriding(reach, standing(15.0)) is None
    assert orders.overridden(several, 15.0)
    assert not orders.overridden(scope(tenant="other"), 15.0)
    orders.apply(overridden(2, Scope(), at=12.0, until=18.0, name="o_2"))
    for reach in (several, Scope(), ALICE):
        found = orders.overriding(reach, standing(15.0))
        assert found is not None
        assert (found.id, found.effect, found.reason, found.actor) == ("o_2", "annotate", "a fire", "test")


def test_override_that_is_ended_early_keeps_when_it_began_and_who_began_it() -> None:
    orders = Gate().orders
    orders.apply(overridden(1, ALICE, at=10.0, until=20.0))
    orders.apply(overridden(2, ALICE, at=14.0, until=14.0))
    ended = orders.overrides["o_1"]
    assert (ended.begun_at, ended.until) == (10.0, 14.0)
    assert ended.during(0.0, 10.0)
    assert ended.during(13.9, 30.0)
    assert not ended.during(0.0, 9.9)
    assert not ended.during(14.0, 30.0)
    orders.apply(overridden(3, ALICE, at=10.0, until=20.0, name="o_2"))
    assert orders.overriding(ALICE, lambda _: True) is not None
    facts = {"override": "o_2", "effect": "annotate", "scope": scope_to_facts(ALICE), "reason": "a fire"}
    orders.apply(event(4, E.OVERRIDDEN, "", 14.0, gate=True, until=14.0, ended="over", **facts))
    assert orders.overriding(ALICE, lambda o: o.id == "o_2") is None, "whatever a clock says"


def test_of_too_many_overrides_the_oldest_is_forgotten_and_one_known_takes_no_new_place() -> None:
    orders = Gate().orders
    names = [f"o_{number}" for number in range(MOST)]
    for number, name in enumerate([*names, names[1]]):
        orders.apply(overridden(number, ALICE, at=1.0, until=2.0, name=name))
    assert list(orders.overrides) == names
    orders.apply(overridden(MOST + 1, ALICE, at=1.0, until=2.0, name="one more"))
    assert list(orders.overrides) == [*names[1:], "one more"]


def test_event_that_is_no_order_changes_none() -> None:
    gate = Gate()
    gate.apply(event(1, E.ACCESSED, ""))
    orders = gate.orders
    assert (orders.holds, orders.deferred, orders.overrides) == ({}, {}, {})
