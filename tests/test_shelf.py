"""Erasures that rest are folded small: who asks for one gets the same, and nothing is decided otherwise."""

from __future__ import annotations

import tracemalloc
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quietus import shelf as shelves
from quietus.core.decision import Question, decide
from quietus.core.dossier import Dossier
from quietus.core.erasure import Erasure, PolicyPhase, replace
from quietus.core.events import EventType
from quietus.core.gate import Gate
from quietus.core.operations import Call, Operation
from quietus.core.scope import Scope
from quietus.core.states import UNSETTLED, State
from quietus.core.terms import Terms
from quietus.shelf import Shelf
from tests.core.making import POLICIES
from tests.core.test_gate import asked, born, later, lives, predicates

FEW = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking one of so many fields takes minutes and tells little."""
texts = st.text("abcü", max_size=4)
numbers = st.one_of(st.none(), st.integers(0, 2**53))
times = st.one_of(st.none(), st.floats(0, 4e9))
plain = st.one_of(st.none(), st.booleans(), st.integers(-5, 2**60), st.floats(allow_nan=False), texts)
facts = st.dictionaries(texts, st.one_of(plain, st.lists(plain, max_size=2)), max_size=3)
dossiers = st.one_of(
    st.just(Dossier()),
    st.builds(Dossier, basis=texts, received_at=times, commitment=texts, extended=st.booleans()),
)
erasures = st.builds(
    Erasure, id=texts.filter(bool), store=texts, predicate=predicates,
    terms=st.builds(Terms, clean_rounds=st.integers(1, 5)), epoch=st.integers(0, 2**40),
    version=st.integers(0, 2**40), base_version=st.integers(0, 9), requested_at=st.floats(0, 4e9),
    bound_at=st.floats(0, 4e9), state=st.sampled_from(list(State)), dossier=dossiers, actor=texts,
    policy_phase=st.sampled_from(list(PolicyPhase)), acknowledged_at=times, claim=facts,
    tokens=st.lists(texts, max_size=2).map(tuple), store_epoch=numbers, read_epoch=numbers, settled_at=times,
    settled_once=st.booleans(), snapshot=facts, snapshotted=st.booleans(), forwards=st.integers(0, 9),
    answered=st.booleans(), unclear=st.booleans(), clean_streak=st.integers(0, 9),
    streak_base=st.integers(0, 9), surfaces=st.lists(facts, max_size=2).map(tuple), first_leak_at=times,
    last_leak_at=times,
    leaked_surfaces=st.frozensets(texts, max_size=2), remedies=st.integers(0, 9),
    client_calls=st.integers(0, 9),
    overdue=st.booleans(), held=st.booleans(), readmitted_at=times, readmission_allows_old=st.booleans(),
    undrained=st.dictionaries(texts, st.floats(0, 4e9), max_size=2), compacted=st.booleans(),
    escalated=st.booleans(), watch_ended=st.booleans(), collected=st.booleans(),
    label=st.sampled_from(["predicate", "subject", "quarantine"]),
)  # fmt: skip


@settings(deadline=None, max_examples=60, phases=FEW, suppress_health_check=[HealthCheck.too_slow])
@given(erasures)
def test_what_is_folded_is_unfolded_as_it_was(erasure: Erasure) -> None:
    shelf = Shelf()
    shelf[erasure.id] = erasure
    kept = {name: fact for name, fact in erasure.snapshot.items() if name != shelves.ANCHOR}
    expected = replace(erasure, snapshot=kept) if shelf.awake() == [] else erasure
    assert repr(shelf[erasure.id]) == repr(expected), "of the same types, in the same order"
    assert (shelf.awake() == []) is not (erasure.unsettled or erasure.by_hand)
    may_be = erasure.settled_at is not None and erasure.settled_at <= 1e9
    assert list(shelf.settled_before(1e9)) == ([expected] if may_be or shelf.awake() else [])
    assert shelf.names_epochs is (erasure.store_epoch is not None)


def test_they_stand_in_the_order_in_which_they_came() -> None:
    shelf, names = Shelf(), [f"er_{number}" for number in range(6)]
    for place, name in enumerate(names):
        shelf[name] = settled(id=name, state=State.SETTLING if place % 2 else State.SETTLED)
    shelf["er_1"] = settled(id="er_1")
    assert list(shelf) == names and list(reversed(shelf)) == names[::-1]
    assert [erasure.id for erasure in shelf.values()] == names
    assert [erasure.id for erasure in shelf.newest_first()] == names[::-1]
    assert [erasure.id for erasure in shelf.awake()] == ["er_3", "er_5"]


operations = st.sampled_from(list(Operation))


@settings(deadline=None, max_examples=60, phases=FEW, suppress_health_check=[HealthCheck.too_slow])
@given(births=st.lists(born, min_size=1, max_size=12), events=later, reach=asked, operation=operations)
def test_a_gate_of_folded_erasures_decides_as_one_of_whole_ones(
    births: list[Any], events: list[tuple[int, EventType]], reach: Scope, operation: Operation
) -> None:
    whole, folded = lives(Gate(), births, events), lives(Gate(Shelf()), births, events)
    assert dict(folded.erasures) == whole.erasures
    assert folded.restricting(reach) == whole.restricting(reach)
    assert folded.of_subject(reach) == whole.of_subject(reach)
    assert folded.standing(whole.erasures) == whole.standing(whole.erasures)
    for predicate, _, _ in births:
        assert list(folded.covering(predicate)) == list(whole.covering(predicate))
    question = Question(Call(operation), reach)
    for policy in POLICIES.values():
        assert decide(question, folded, policy) == decide(question, whole, policy)


def settled(number: int = 1, **changed: Any) -> Erasure:
    predicate = Scope(subject=frozenset({number.to_bytes(16, "big")}))
    known = {
        "id": f"er_{number:024x}", "store": "memories", "predicate": predicate, "terms": Terms(),
        "epoch": number, "version": number + 5, "base_version": number + 5, "requested_at": 1e9 + number,
        "bound_at": 1e9 + 1800.0 + number, "state": State.SETTLED, "settled_at": 2e9 + number,
        "snapshot": {"witnesses": 1, "marks": 9}, "watch_ended": True,
    }  # fmt: skip
    return Erasure(**{**known, **changed})


def test_one_that_rests_takes_little_memory() -> None:
    shelf, many = Shelf(), 2000
    for number in range(many):  # the moulds and the tables of the interpreter are there before
        shelf[f"er_{number:024x}"] = settled(number)
    tracemalloc.start()
    try:
        for number in range(many):
            shelf[f"er_{number:024x}"] = settled(number)
        taken = tracemalloc.get_traced_memory()[0] / many
    finally:
        tracemalloc.stop()
    assert taken < 200, "whole, it would be more than a thousand bytes"
    assert shelf["er_" + "0" * 23 + "7"] == settled(7)


def test_one_that_changes_is_what_it_became() -> None:
    shelf, erasure = Shelf(), settled()
    shelf[erasure.id] = erasure
    assert shelf[erasure.id] == erasure and shelf.awake() == []
    shelf[erasure.id] = relapsed = replace(erasure, state=State.RELAPSED)
    assert shelf[erasure.id] is relapsed and shelf.awake() == [relapsed]
    shelf[erasure.id] = collected = replace(erasure, collected=True)
    assert shelf[erasure.id] == collected and shelf.awake() == []
    assert shelf.pop(erasure.id) == collected
    assert len(shelf) == 0 and erasure.id not in shelf and shelf.get(erasure.id) is None


def test_one_that_is_no_plain_value_stays_whole() -> None:
    shelf, erasure = Shelf(), settled(claim={"said": MappingProxyType({})})
    shelf[erasure.id] = erasure
    assert shelf[erasure.id] is erasure and shelf.awake() == [erasure]
    assert list(shelf.settled_before(0.0)) == [erasure], "who asks looks for themselves"


def test_tables_are_bounded_and_nothing_is_lost_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("MOULDS", "SAID", "UNFOLDED"):
        monkeypatch.setattr(shelves, bound, 3)
    shelf = Shelf()
    several = [settled(n, claim={"token": n}, forwards=n // 2, snapshot={"records": n}) for n in range(20)]
    for erasure in several:
        shelf[erasure.id] = erasure
    assert list(shelf.values()) == several
    assert len(shelf.awake()) == 14, "those of the first three moulds are folded"


def test_the_anchor_of_its_marks_stays_with_the_ledger() -> None:
    shelf, erasure = Shelf(), settled(snapshot={"witnesses": 1, "ledger": {"marks": {"er_1": [9, "00"]}}})
    shelf[erasure.id] = erasure
    assert shelf[erasure.id].snapshot == {"witnesses": 1}


@pytest.mark.parametrize("state", list(State))
def test_only_what_keeps_no_gate_shut_rests(state: State) -> None:
    shelf = Shelf()
    shelf["er_1"] = settled(id="er_1", state=state)
    assert bool(shelf.awake()) is (state in UNSETTLED)
