"""The index of erasures: what a scope finds in it, how few, and that nothing stays of what was taken out."""

from __future__ import annotations

import pickle

import pytest

from quietus.core.erasure import Erasure
from quietus.core.index import Index
from quietus.core.scope import Scope, Wild
from quietus.core.states import State
from tests.core.making import World, scope

ERASED: dict[str, Scope] = {
    "alice": scope(tenant="acme", subject="alice"),
    "key": scope(tenant="acme", key="k"),
    "both": scope(tenant="acme", subject="bob", key="k2"),
    "a": scope(tenant="acme", path="a"),
    "b": scope(tenant="acme", path="b"),
    "deep": scope(tenant="acme", path="a/b/c"),
    "whole": scope(tenant="acme"),
    "everywhere": scope(subject="carol"),
}


def made(*names: str, state: State = State.SETTLING) -> list[Erasure]:
    world = World()
    return [world.erase(ERASED[name], state, name=name) for name in names]


def index(*names: str, state: State = State.SETTLING) -> Index:
    found = Index()
    for erasure in made(*names, state=state):
        found.add(erasure)
    return found


@pytest.mark.parametrize(
    ("reach", "found"),
    [
        (scope(tenant="acme", subject="alice"), {"alice", "key", "a", "whole", "deep"}),
        (scope(tenant="acme", key="k"), {"key", "alice", "a", "whole", "deep", "everywhere"}),
        (scope(tenant="acme"), {"alice", "key", "both", "a", "whole", "deep", "everywhere"}),
        (scope(tenant="acme", path="a"), {"alice", "key", "both", "a", "whole", "deep", "everywhere"}),
        (scope(tenant="acme", path="a/b/c/d"), {"alice", "key", "both", "a", "whole", "deep", "everywhere"}),
        (scope(tenant="acme", path="b"), {"alice", "key", "both", "b", "whole", "everywhere"}),
        (scope(tenant="acme", path=("a", "b")), {"alice", "key", "both", "a", "b", "whole", "everywhere"}),
        (scope(tenant="other"), {"everywhere"}),
        (scope(tenant="other", subject="carol"), {"everywhere"}),
    ],
)
def test_every_erasure_that_may_touch_a_scope_is_found_when_it_stands_alone(
    reach: Scope, found: set[str]
) -> None:
    """Alone, because of several that lie alike one speaks for all."""
    for name in ERASED:
        names = set(index(name).candidates(reach))
        assert names == {name} if name in found else names <= {name}, name


@pytest.mark.parametrize("names", [("alice", "whole"), ("whole", "alice"), ("key", "a"), ("a", "key")])
def test_what_is_found_exactly_hides_nobody_behind_it(names: tuple[str, ...]) -> None:
    reach = scope(tenant="acme", subject="bob", key="k9", path="a")
    far = {"alice", "key"}
    assert set(index(*names).candidates(reach)) - far == set(names) - far


def test_of_those_that_lie_alike_one_is_found_and_of_several_paths_all() -> None:
    found = Index()
    world = World()
    for number in range(3):
        found.add(world.erase(scope(tenant="acme", path="a"), name=f"a{number}"))
    assert set(found.candidates(scope(tenant="acme", path="a"))) == {"a0"}
    assert set(found.candidates(scope(tenant="acme", path="a"), but="a0")) == {"a1"}
    assert set(found.candidates(scope(tenant="acme", path=("a", "b")))) == {"a0", "a1", "a2"}
    for number in range(2):
        found.add(world.erase(scope(tenant="acme", key=f"k{number}"), name=f"k{number}"))
        found.add(world.erase(scope(tenant="acme", subject=f"s{number}"), name=f"s{number}"))
    assert set(found.candidates(scope(tenant="acme", path=("a", "b")))) == {"a0", "a1", "a2", "k0", "s0"}
    assert set(index("a", "b").candidates(scope(tenant="acme", path=("a", "b")))) == {"a", "b"}


def test_to_a_call_that_leaves_the_tenant_open_those_of_all_tenants_lie_alike() -> None:
    found = Index()
    world = World()
    for number in range(3):
        found.add(world.erase(scope(tenant=f"t{number}"), name=f"t{number}"))
    found.add(world.erase(scope(tenant=("t0", "t9")), name="two"))
    assert set(found.candidates(Scope())) == {"t0"}
    assert set(found.candidates(scope(tenant="t0"))) == {"t0", "two"}
    assert set(found.candidates(scope(tenant="t2"))) == {"t2"}


def test_which_may_hold_all_of_a_predicate() -> None:
    every = index(*ERASED)
    assert {"a", "deep", "whole"} <= set(every.holding(scope(tenant="acme", path="a/b/c/d")))
    assert "b" not in every.holding(scope(tenant="acme", path="a/b/c/d"))
    assert {"alice", "whole"} <= set(every.holding(scope(tenant="acme", subject="alice")))
    assert "everywhere" in every.holding(scope(tenant="other", subject="carol"))


def test_whether_any_may_stand_in_a_tenant() -> None:
    assert not Index().in_tenant(Wild.ANY)
    assert index("alice").in_tenant(Wild.ANY)
    assert index("alice").in_tenant(ERASED["alice"].tenant)
    assert not index("alice").in_tenant(scope(tenant="other").tenant)
    assert index("alice").in_tenant(scope(tenant=("acme", "other")).tenant)
    assert index("everywhere").in_tenant(scope(tenant="other").tenant), "it leaves the tenant open"


@pytest.mark.parametrize("state", [State.SETTLING, State.SETTLED])
def test_nothing_stays_of_what_is_taken_out(state: State) -> None:
    found = Index()
    several = made(*ERASED, state=state)
    for erasure in several:
        found.add(erasure)
    assert found.unsettled == (len(ERASED) if state is State.SETTLING else 0)
    for erasure in several:
        found.remove(erasure)
    assert found.unsettled == 0
    assert pickle.dumps(found) == pickle.dumps(Index())


def test_a_settled_erasure_of_a_path_or_a_tenant_is_found_by_it_and_one_of_a_subject_by_them_alone() -> None:
    settled = index("alice", "a", state=State.SETTLED)
    assert set(settled.candidates(scope(tenant="acme", path="a/x"))) == {"a"}
    assert set(settled.candidates(ERASED["alice"])) == {"alice", "a"}
    keyed = index("key", "both", state=State.SETTLED)
    assert keyed.candidates(scope(tenant="acme", path="a")) == {}
    assert set(keyed.candidates(ERASED["key"])) == {"key"}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_of_several_erasures_of_one_subject_or_key_each_is_found_until_it_is_taken_out(
    order: tuple[int, ...]
) -> None:
    found, world = Index(), World()
    several = [world.erase(scope(subject="alice", key="k", path=f"p{n}"), name=f"e{n}") for n in range(3)]
    for erasure in (*several, *several):
        found.add(erasure)
    left = {erasure.id for erasure in several}
    for number in order:
        assert set(found.of_subjects(scope(subject="alice").subject)) == left
        assert set(found.of_keys(scope(key=("k", "other")).key)) == left
        found.remove(several[number])
        left.discard(several[number].id)
    assert found.of_subjects(scope(subject="alice").subject) == {}
    assert found.of_keys(scope(key="k").key) == {}
