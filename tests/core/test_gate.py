"""The gate finds what a walk over all erasures would find, without walking."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quietus.core.decision import Question, decide
from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.fingerprint import Mark
from quietus.core.gate import Gate, Relation, relation
from quietus.core.operations import Call, Operation
from quietus.core.scope import ANY, UNKNOWN, Scope, Wild, covers, overlaps
from quietus.core.states import State, WrongState
from tests.core.making import POLICIES, WAYS, World, pseudonym, scope


class Walking(Gate):
    """The same gate without an index: it looks at every erasure."""

    def restricting(self, scope: Scope, but: str = "") -> list[tuple[Erasure, Relation]]:
        touching = [(e, relation(e, scope)) for e in self.erasures.values() if e.unsettled and e.id != but]
        return [pair for pair in touching if pair[1] is not Relation.NONE]

    def of_subject(self, scope: Scope) -> list[Erasure]:
        def named(erasure: Erasure) -> bool:
            ours, theirs = erasure.predicate.subject, scope.subject
            return not isinstance(ours, Wild) and not isinstance(theirs, Wild) and bool(ours & theirs)

        tombstoned = [e for e in self.erasures.values() if e.tombstoned]
        return [e for e in tombstoned if named(e) and overlaps(e.predicate, scope)]


def small(atoms: str, *open_values: Wild) -> st.SearchStrategy[Any]:
    sets = st.frozensets(st.sampled_from([a.encode() for a in atoms]), min_size=1, max_size=2)
    return st.one_of(*(st.just(value) for value in open_values), sets)


PATHS = [(b"a",), (b"a", b"b"), (b"a", b"b", b"c"), (b"a", b"bc"), (b"d",)]


def scopes(*open_values: Wild) -> st.SearchStrategy[Scope]:
    paths = st.frozensets(st.sampled_from(PATHS), min_size=1, max_size=2)
    return st.builds(
        Scope,
        tenant=small("tu", *open_values),
        subject=small("xyz", *open_values),
        purpose=small("pq", *open_values),
        path=st.one_of(*(st.just(value) for value in open_values), paths),
        key=small("kl", *open_values),
    )


predicates = scopes(ANY)
asked = scopes(ANY, UNKNOWN)
born = st.tuples(predicates, st.sampled_from(list(State)), st.booleans())
later = st.lists(st.tuples(st.integers(0, 11), st.sampled_from([*EventType][:8])), max_size=6)


def lives(gate: Gate, births: list[tuple[Scope, State, bool]], events: list[tuple[int, EventType]]) -> Gate:
    world = World(gate)
    for number, (predicate, state, readmitted) in enumerate(births):
        world.erase(predicate, state, readmitted=readmitted, name=f"e{number}")
    for place, kind in events:
        try:
            world.happen(f"e{place % len(births)}", kind)
        except WrongState:
            continue
    return gate


def classes(pairs: list[tuple[Erasure, Relation]]) -> set[tuple[State, Relation, bool]]:
    return {(erasure.state, how, erasure.readmitted) for erasure, how in pairs}


worlds = given(births=st.lists(born, min_size=1, max_size=12), events=later, reach=asked)
many = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@worlds
def test_restricting_finds_every_class_that_a_walk_finds(
    births: list[tuple[Scope, State, bool]], events: list[tuple[int, EventType]], reach: Scope
) -> None:
    gate, walk = lives(Gate(), births, events), lives(Walking(), births, events)
    assert classes(gate.restricting(reach)) == classes(walk.restricting(reach))
    assert {e.id for e, _ in gate.restricting(reach)} <= {e.id for e, _ in walk.restricting(reach)}
    for name in gate.erasures:
        assert classes(gate.restricting(reach, but=name)) == classes(walk.restricting(reach, but=name))


@many
@worlds
def test_strictest_decision_is_that_of_a_walk(
    births: list[tuple[Scope, State, bool]], events: list[tuple[int, EventType]], reach: Scope
) -> None:
    gate, walk = lives(Gate(), births, events), lives(Walking(), births, events)
    for policy in POLICIES.values():
        for operation in Operation:
            question = Question(Call(operation, route="r"), reach)
            fast, slow = decide(question, gate, policy), decide(question, walk, policy)
            assert (fast.effect, fast.mode) == (slow.effect, slow.mode)
            assert fast.overlaps == slow.overlaps


@many
@worlds
def test_of_subject_covering_and_concerns_agree_with_a_walk(
    births: list[tuple[Scope, State, bool]], events: list[tuple[int, EventType]], reach: Scope
) -> None:
    gate, walk = lives(Gate(), births, events), lives(Walking(), births, events)
    assert {e.id for e in gate.of_subject(reach)} == {e.id for e in walk.of_subject(reach)}
    tombstoned = [e for e in gate.erasures.values() if e.tombstoned]
    assert {e.id for e in gate.covering(reach)} == {e.id for e in tombstoned if covers(e.predicate, reach)}
    tenant = Scope(tenant=reach.tenant)
    assert gate.concerns(reach) == any(overlaps(Scope(tenant=e.predicate.tenant), tenant) for e in tombstoned)
    assert gate.unsettled == sum(e.unsettled for e in tombstoned)


def test_erasures_of_one_subject_and_different_keys_are_each_found_by_key() -> None:
    world = World()
    world.erase(scope(subject="alice", key="k1"))
    world.erase(scope(subject="bob", key="k2"))
    for key in ("k1", "k2"):
        assert [how for _, how in world.gate.restricting(scope(key=key))] == [Relation.WIDER]
    assert not world.gate.restricting(scope(key="k3"))


@pytest.mark.requirement("R17", "R156")
@pytest.mark.parametrize(
    "reach",
    [Scope(), scope(tenant="acme"), scope(tenant="acme", path="chat"), scope(subject=("alice", "bob"))],
    ids=["everything", "tenant", "ancestor", "among others"],
)
def test_recall_over_a_wider_scope_meets_the_erasure_inside_it(reach: Scope) -> None:
    world = World()
    world.erase(scope(tenant="acme", subject="alice", path="chat/session:42"))
    assert [how for _, how in world.gate.restricting(reach)] == [Relation.WIDER]


@pytest.mark.requirement("R137")
def test_predicate_covers_what_was_never_listed() -> None:
    world = World()
    erasure = world.erase(scope(path="org/session:42"))
    assert relation(erasure, scope(path="org/session:42/turn:9001", key="made later")) is Relation.INSIDE
    assert relation(erasure, scope(path="org/session:420", key="made later")) is Relation.NONE


@pytest.mark.parametrize("name", ["tenant", "subject", "purpose", "path", "key"])
def test_what_could_not_be_read_counts_as_inside(name: str) -> None:
    world = World()
    erasure = world.erase(scope(tenant="acme", subject="alice"))
    unread = Scope(**{name: UNKNOWN})  # type: ignore[arg-type]
    assert relation(erasure, unread) is Relation.INSIDE


# Marks


def test_mark_is_held_while_its_erasure_is_tombstoned() -> None:
    world = World()
    mark = Mark("subject", pseudonym("subject", "alice"))
    for state in WAYS:
        erasure = world.erase(scope(subject="alice"), state)
        world.mark(erasure, mark, mark)
        assert (erasure in world.gate.holders(mark)) == (state is not State.REFUSED)
    world.gate.mark("er_unborn", [mark])
    assert len(world.gate.holders(mark)) == len(WAYS) - 1


def test_unmark_takes_back_every_mark_and_no_one_elses() -> None:
    world = World()
    first, second = world.erase(scope(subject="alice")), world.erase(scope(subject="bob"))
    shared, own = Mark("text", b"shared"), Mark("id", b"own")
    world.mark(first, shared, own)
    world.mark(second, shared)
    world.gate.unmark(first.id)
    assert world.gate.holders(shared) == (second,)
    assert world.gate.holders(own) == ()
    assert world.gate.kinds == ("text",)
    world.gate.unmark(second.id)
    world.gate.unmark(second.id)
    assert world.gate.kinds == ()


def test_marks_of_two_kinds_are_two_marks_even_with_one_digest() -> None:
    world = World()
    erasure = world.erase(scope(subject="alice"))
    world.mark(erasure, Mark("canary", b"same"))
    assert world.gate.kinds == ("canary",)
    assert world.gate.holders(Mark("canary", b"same")) == (erasure,)
    assert world.gate.holders(Mark("id", b"same")) == ()


def test_every_change_begins_a_new_generation() -> None:
    world = World()
    erasure = world.erase(scope(subject="alice"))
    seen = [world.gate.generation]
    world.mark(erasure, Mark("id", b"x"))
    seen.append(world.gate.generation)
    world.happen(erasure.id, EventType.READMITTED)
    seen.append(world.gate.generation)
    world.happen(erasure.id, EventType.CLEAN)
    seen.append(world.gate.generation)
    world.gate.unmark(erasure.id)
    seen.append(world.gate.generation)
    assert seen == sorted(set(seen))


# Nothing is O(n) in erasures

SHAPES: dict[str, Callable[[int], Scope]] = {
    "subjects": lambda n: Scope(tenant=frozenset({b"t"}), subject=frozenset({b"s%d" % n})),
    "keys": lambda n: Scope(tenant=frozenset({b"t"}), key=frozenset({b"k%d" % n})),
    "tenants": lambda n: Scope(tenant=frozenset({b"t%d" % n}), subject=frozenset({b"s%d" % n})),
    "subjects and keys": lambda n: Scope(subject=frozenset({b"s%d" % n}), key=frozenset({b"k%d" % n})),
}
REACHES = [
    Scope(),
    Scope(tenant=frozenset({b"t"})),
    Scope(tenant=frozenset({b"t"}), subject=frozenset({b"s0"})),
    Scope(tenant=frozenset({b"t"}), subject=frozenset({b"somebody else"})),
    Scope(tenant=frozenset({b"t"}), key=frozenset({b"k0"})),
    Scope(tenant=frozenset({b"t0"})),
    Scope(subject=UNKNOWN, path=frozenset({(b"a",), (b"b", b"c")})),
]


def filled(shape: Callable[[int], Scope], size: int) -> Gate:
    world = World()
    for number in range(size):
        world.erase(shape(number), State.SETTLED if number % 10 == 1 else State.REQUESTED)
    return world.gate


def calls(what: Callable[[], object]) -> int:
    """Python and C calls that `what` makes."""
    count = 0

    def note(frame: object, kind: str, arg: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(note)
    try:
        what()
    finally:
        sys.setprofile(None)
    return count


def fastest(what: Callable[[], object], tries: int = 30) -> float:
    times = []
    for _ in range(tries):
        start = perf_counter()
        what()
        times.append(perf_counter() - start)
    return min(times)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("shape", "size"),
    [("subjects", 100_000), ("keys", 5_000), ("tenants", 5_000), ("subjects and keys", 5_000)],
)
def test_decision_costs_the_same_among_100_000_erasures(shape: str, size: int) -> None:
    few, lots = filled(SHAPES[shape], 2), filled(SHAPES[shape], size)
    for reach in REACHES:
        for operation in (Operation.RECALL, Operation.WRITE):
            question = Question(Call(operation, route="r"), reach)

            def work(gate: Gate, question: Question = question) -> Callable[[], object]:
                return lambda: decide(question, gate, POLICIES["default"])

            assert calls(work(lots)) <= 2 * calls(work(few)) + 50
            assert fastest(work(lots)) <= 20 * fastest(work(few)) + 0.0005
