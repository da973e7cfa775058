"""The predicate of the fourth founding document, over every combination of what it speaks of."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from quietus.core.soundness import Manners, Rating, audited, must_wait, rated, synchronous
from quietus.profiles.loader import find_profile, load_profile, parse_profile


@pytest.mark.requirement("R171", "R179")
@pytest.mark.parametrize(
    ("lazy", "reads", "window"), list(product((True, False), (True, False, None), (0.0, 1.0, 1e9)))
)
def test_at_risk_if_and_only_if_all_three_hold(lazy: bool, reads: bool | None, window: float) -> None:
    found = rated(Manners(lazy, reads, window))
    if not lazy or reads is False or window == 0:
        assert found is Rating.SOUND
    else:
        assert found is (Rating.UNSOUND if reads else Rating.UNKNOWN)


@pytest.mark.requirement("R179")
@pytest.mark.parametrize("features", [(), ("ttl",), ("ttl", "salience", "dedup")])
def test_no_ttl_makes_up_for_derived_reads(features: tuple[str, ...]) -> None:
    manners = Manners(True, True, 900.0, frozenset(features), frozenset({"no_derived_reads"}))
    assert rated(manners) is Rating.UNSOUND and not audited(manners)
    assert audited(replace(manners, attested=frozenset({"write_path_audited"})))


@pytest.mark.requirement("R158", "R161", "R184")
@pytest.mark.parametrize("feature", ["salience", "dedup"])
def test_who_ranks_or_merges_needs_an_audit(feature: str) -> None:
    manners = Manners(True, None, 900.0, frozenset({feature}))
    assert not audited(manners)
    for condition in ("write_path_audited", "no_derived_reads"):
        assert audited(replace(manners, attested=frozenset({condition})))
    for condition in ("surfaces_complete", "single_writer"):
        assert not audited(replace(manners, attested=frozenset({condition})))
    assert audited(replace(manners, features=frozenset({"ttl"})))


def featured(*features: str, reads: bool | None = None) -> Manners:
    return Manners(True, reads, 900.0, frozenset(features))


SIGNAL = "completion_signal"


@pytest.mark.requirement("R158", "R175", "R176", "R177")
@pytest.mark.parametrize("promise", ["hard_erasure", "dedup", "salience"])
def test_a_forget_waits_where_the_store_promises_more_and_says_when(promise: str) -> None:
    assert synchronous(featured(promise, SIGNAL)) and not must_wait(featured(promise, SIGNAL))
    assert must_wait(featured(promise, "ttl")) and not synchronous(featured(promise, "ttl"))
    for manners in (featured(SIGNAL), featured("ttl", SIGNAL), featured("ttl"), featured()):
        assert not synchronous(manners) and not must_wait(manners)


@pytest.mark.requirement("R172", "R176", "R177")
def test_nothing_is_held_for_the_sake_of_writes_that_read_nothing_derived() -> None:
    for feature in ("dedup", "salience"):
        for reads in (True, None):
            assert must_wait(featured(feature, reads=reads))
        assert not must_wait(featured(feature, reads=False))
        assert not synchronous(featured(feature, SIGNAL, reads=False))
        assert rated(featured(feature, reads=False)) is Rating.SOUND
    assert must_wait(featured("hard_erasure", reads=False)), "a promise to people, whatever is written"


@pytest.mark.requirement("R158", "R184")
def test_a_profile_declares_it_and_check_says_so() -> None:
    said = load_profile("memory-tool")
    assert {"ttl", "salience", "dedup"} == set(said.store.features)
    assert any("no verdict is COMPLIANT" in lint for lint in said.lints)
    assert any(lint.startswith("forgets should wait") for lint in said.lints)
    text = find_profile("chroma").read_text()
    assert load_profile("chroma").lints == ()
    unsound = text.replace("write_path_reads_derived: unknown", "write_path_reads_derived: true")
    assert any(lint.startswith("UNSOUND") for lint in parse_profile(unsound, "chroma.yaml").lints)


@pytest.mark.requirement("R1")
def test_what_is_not_declared_is_the_distrustful_one() -> None:
    store = load_profile("chroma").store
    assert "erasure_model" not in store.model_fields_set and store.erasure_model == "async"
    assert store.manners().lazy and not type(store)().knows_purposes
    assert type(store)().write_path_reads_derived == "unknown" and type(store)().keeps_queries == "unknown"
