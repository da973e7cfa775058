"""Laws of the scope algebra, checked over every scope that a few small values can make."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from quietus.core.scope import (
    ANY,
    DIMENSIONS,
    UNKNOWN,
    Path,
    Paths,
    Scope,
    Values,
    Wild,
    covers,
    holds,
    is_prefix,
    overlaps,
    split_path,
    values,
)


def subsets(atoms: list[str]) -> list[Values]:
    return [frozenset(chosen) for size in (1, 2, 3) for chosen in combinations(atoms, size)]


SETS: list[Values] = [ANY, UNKNOWN, *subsets(["a", "b", "c"])]
SEGMENTS: list[Path] = [("a",), ("a", "b"), ("a", "b", "c"), ("a", "bc"), ("d",)]
PATHS: list[Paths] = [
    ANY,
    UNKNOWN,
    *(frozenset(chosen) for size in (1, 2) for chosen in combinations(SEGMENTS, size)),
]

# One dimension at a time, each alone in an otherwise open scope ...
SINGLE = {
    name: [Scope(**{name: value}) for value in (PATHS if name == "path" else SETS)]  # type: ignore[arg-type]
    for name in DIMENSIONS
}
# ... and products of two dimensions with each kind of value, so that the laws hold across dimensions too.
FEW_SETS: list[Values] = [ANY, UNKNOWN, frozenset("a"), frozenset("b"), frozenset("ab")]
FEW_PATHS: list[Paths] = [ANY, UNKNOWN, frozenset({("a",)}), frozenset({("a", "b")}), frozenset({("d",)})]
MIXED = [Scope(subject=subject, path=path) for subject, path in product(FEW_SETS, FEW_PATHS)]
MIXED += [Scope(tenant=tenant, key=key) for tenant, key in product(FEW_SETS, FEW_SETS)]

WORLDS = [*SINGLE.values(), MIXED]
NAMES = [*SINGLE, "mixed"]
everywhere = pytest.mark.parametrize("scopes", WORLDS, ids=NAMES)


@everywhere
def test_covers_implies_overlaps(scopes: list[Scope]) -> None:
    assert all(overlaps(a, b) for a, b in product(scopes, scopes) if covers(a, b))


@everywhere
def test_overlaps_is_symmetric(scopes: list[Scope]) -> None:
    assert all(overlaps(a, b) == overlaps(b, a) for a, b in product(scopes, scopes))


@everywhere
def test_overlaps_is_reflexive(scopes: list[Scope]) -> None:
    assert all(overlaps(a, a) for a in scopes)


@everywhere
def test_covers_is_reflexive_where_everything_was_read(scopes: list[Scope]) -> None:
    assert all(covers(a, a) == (not a.unknown) for a in scopes)


@everywhere
def test_covers_is_transitive(scopes: list[Scope]) -> None:
    held = {a: [b for b in scopes if covers(a, b)] for a in scopes}
    assert all(covers(a, c) for a in scopes for b in held[a] for c in held[b])


@pytest.mark.requirement("R117")
@everywhere
def test_what_touches_a_part_touches_the_whole(scopes: list[Scope]) -> None:
    for a, b in product(scopes, scopes):
        if covers(a, b):
            assert all(overlaps(a, c) for c in scopes if overlaps(b, c))


@everywhere
def test_covers_both_ways_means_the_same_reach(scopes: list[Scope]) -> None:
    for a, b in product(scopes, scopes):
        if covers(a, b) and covers(b, a):
            assert all(overlaps(a, c) == overlaps(b, c) for c in scopes)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_unknown_touches_everything_and_covers_nothing(name: str) -> None:
    unknown = Scope(**{name: UNKNOWN})  # type: ignore[arg-type]
    assert unknown.unknown == (name,)
    for other in SINGLE[name]:
        assert overlaps(unknown, other)
        assert not covers(unknown, other)
        assert not covers(other, unknown)


@pytest.mark.parametrize("name", DIMENSIONS)
def test_any_holds_all_that_was_read(name: str) -> None:
    for other in SINGLE[name]:
        assert covers(Scope(), other) == (not other.unknown)
        assert covers(other, Scope()) == (getattr(other, name) is ANY)


@everywhere
def test_a_row_is_held_by_what_covers_it(scopes: list[Scope]) -> None:
    assert all(holds(a, b) for a, b in product(scopes, scopes) if covers(a, b))


@everywhere
def test_a_row_is_held_only_where_it_touches(scopes: list[Scope]) -> None:
    assert all(overlaps(a, b) for a, b in product(scopes, scopes) if holds(a, b))


def test_row_may_leave_unsaid_only_what_the_erasure_leaves_open() -> None:
    alice = Scope(subject=frozenset({"alice"}))
    assert holds(alice, Scope(subject=frozenset({"alice"}), path=UNKNOWN, key=frozenset({"k"})))
    assert not holds(alice, Scope(key=frozenset({"k"})))
    assert not holds(alice, Scope(subject=UNKNOWN))
    assert not holds(Scope(subject=UNKNOWN), Scope(subject=frozenset({"alice"})))


def test_sets_are_judged_as_sets() -> None:
    for a, b in product(subsets(["a", "b", "c"]), repeat=2):
        assert not isinstance(a, Wild)
        assert not isinstance(b, Wild)
        assert overlaps(Scope(subject=a), Scope(subject=b)) == bool(a & b)
        assert covers(Scope(subject=a), Scope(subject=b)) == (b <= a)


@pytest.mark.requirement("R153")
@pytest.mark.parametrize(
    ("ancestor", "path", "inside"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/b/c", True),
        ("a/b", "a/bc", False),
        ("a/b/", "a/b/c", True),
        ("a/b", "a/b/", True),
        ("session:42", "session:420", False),
        ("session:42", "session:42/summaries", True),
        ("a/b/c", "a/b", False),
    ],
)
def test_paths_are_judged_by_segment(ancestor: str, path: str, inside: bool) -> None:
    above, below = split_path(ancestor), split_path(path)
    assert is_prefix(above, below) is inside
    assert covers(Scope(path=frozenset({above})), Scope(path=frozenset({below}))) is inside


@pytest.mark.parametrize(
    "wider",
    [
        Scope(),
        Scope(tenant=frozenset({"acme"})),
        Scope(tenant=frozenset({"acme"}), path=frozenset({("chat",)})),
        Scope(tenant=frozenset({"acme"}), subject=frozenset({"alice", "bob"})),
    ],
    ids=["everything", "tenant", "ancestor", "two subjects"],
)
def test_wider_recall_touches_what_was_erased_inside_it(wider: Scope) -> None:
    erased = Scope(
        tenant=frozenset({"acme"}), subject=frozenset({"alice"}), path=frozenset({("chat", "session:42")})
    )
    assert overlaps(erased, wider)
    assert not covers(erased, wider)


def test_unrelated_recall_touches_nothing() -> None:
    erased = Scope(tenant=frozenset({"acme"}), subject=frozenset({"alice"}))
    assert not overlaps(erased, Scope(tenant=frozenset({"acme"}), subject=frozenset({"bob"})))
    assert not overlaps(erased, Scope(tenant=frozenset({"other"}), subject=frozenset({"alice"})))


def test_subjects_compare_by_their_exact_bytes() -> None:
    kim = Scope(subject=frozenset({"kim"}))
    for other in ("Kim", "kim ", "kim\u200b", "k\u0456m"):
        assert not overlaps(kim, Scope(subject=frozenset({other})))


def test_empty_set_is_refused() -> None:
    for name in DIMENSIONS:
        with pytest.raises(ValueError, match=name):
            Scope(**{name: frozenset()})  # type: ignore[arg-type]


def test_nothing_found_is_any() -> None:
    assert values([]) is ANY
    assert values(["a", "a"]) == frozenset({"a"})


def test_scope_that_names_only_a_tenant_is_open() -> None:
    assert Scope().open
    assert Scope(tenant=frozenset({"acme"}), purpose=frozenset({"chat"})).open
    for name in ("subject", "key"):
        assert not Scope(**{name: frozenset({"a"})}).open  # type: ignore[arg-type]
    assert not Scope(path=frozenset({("a",)})).open
