"""Small parts of the core at their edges: what is left unsaid, what is unknown, what comes first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quietus.core.common_words import is_telling, telling
from quietus.core.dossier import dossier_of, law_of
from quietus.core.due import Progress, pace
from quietus.core.erasure import advance
from quietus.core.events import EventType, scope_from_facts, scope_to_facts
from quietus.core.fingerprint import joined
from quietus.core.likeness import stem
from quietus.core.orders import Orders
from quietus.core.probing import Failure, failure_of
from quietus.core.scope import ANY, DIMENSIONS, UNKNOWN, Scope, holds, split_path
from quietus.core.soundness import Manners, audited
from quietus.core.states import State
from quietus.core.terms import Terms
from quietus.core.verdict import verdict_of
from tests.core.making import Story, event, requested, scope, surface


@pytest.mark.parametrize(
    ("word", "tells"),
    [("the", False), ("oboe", True), ("xylophone", True), ("1234", False), ("12345", True), ("7", False)],
)
def test_common_words_and_small_numbers_tell_nothing(word: str, tells: bool) -> None:
    assert is_telling(word) is tells
    assert telling([word, "the", word]) == 2 * tells


@pytest.mark.parametrize("name", DIMENSIONS)
def test_a_scope_that_leaves_a_dimension_open_holds_rows_of_which_it_is_not_known(name: str) -> None:
    unsaid: dict[str, Any] = {name: UNKNOWN}
    assert holds(Scope(), replace(Scope(), **unsaid))
    given = scope(tenant="t", subject="s", purpose="p", path="a", key="k")
    assert not holds(given, replace(given, **unsaid))
    assert holds(replace(given, **{name: ANY}), replace(given, **unsaid))


@pytest.mark.parametrize("name", DIMENSIONS)
@pytest.mark.parametrize("wild", [ANY, UNKNOWN])
def test_a_scope_in_a_ledger_is_the_scope_that_was_written(name: str, wild: Any) -> None:
    given = replace(scope(tenant="t", subject="s", purpose="p", path="a/b", key="k"), **{name: wild})
    assert scope_from_facts(scope_to_facts(given)) == given


@pytest.mark.parametrize(
    ("text", "path"),
    [("a/b", ("a", "b")), ("a/b/", ("a", "b")), ("a/b!", ("a", "b!")), ("a", ("a",)), ("/a", ("", "a"))],
)
def test_a_path_is_split_at_its_slashes(text: str, path: tuple[str, ...]) -> None:
    assert split_path(text) == path


@pytest.mark.parametrize(
    ("basis", "law"), [("us-ccpa", "ccpa"), ("ccpa1798", "ccpa"), ("us_ccpa_2", "ccpa"), ("xccpa", "gdpr")]
)
def test_a_law_is_named_by_a_word_or_at_the_beginning(basis: str, law: str) -> None:
    assert law_of(basis) == law


def test_what_people_said_is_kept() -> None:
    facts = {"basis": "gdpr", "reference": "T-1", "commitment": "ab", "suppressed": True, "observed": True}
    found = dossier_of(facts)
    assert {name: getattr(found, name) for name in facts} == facts


def test_an_erasure_is_labelled_and_waited_for_as_its_intent_says() -> None:
    plain = advance(None, requested(1, scope(subject="alice")))
    assert (plain.label, plain.undrained) == ("predicate", {})
    told = advance(None, requested(1, scope(subject="alice"), label="batch", undrained={"w1": 5.0}))
    assert (told.label, told.undrained) == ("batch", {"w1": 5.0})


def test_a_signal_from_before_the_acknowledgement_says_nothing_of_it() -> None:
    story = Story()
    assert story.then(EventType.SIGNALLED).compacted
    assert not story.acknowledged().compacted
    assert story.then(EventType.SIGNALLED).compacted
    assert story.then(EventType.ACCEPTED).compacted, "the same acknowledgement again"


@pytest.mark.parametrize(
    ("failures", "rounds", "wait"),
    [(0, 99, 60.0), (99, 0, 60.0), (0, 0, 0.25), (0, 3, 2.0), (3, 0, 2.0), (0, 7, 32.0), (7, 0, 32.0)],
)
def test_rounds_and_retries_are_at_most_a_minute_apart(failures: int, rounds: int, wait: float) -> None:
    story = Story(terms=Terms(settling_interval=7200.0, effectuation_bound=14400.0, clean_rounds=3))
    story.acknowledged()
    progress = Progress(
        interval_from=1000.0, bound_at=15400.0, next_at=1000.0, failures=failures, rounds=rounds
    )
    assert pace(story.erasure, progress, 1000.0, 0.5) == pytest.approx(1000.0 + wait)


@pytest.mark.parametrize(
    ("kinds", "failure"),
    [
        ({"primary": "CLEAN", "index": "LEAKING"}, Failure.ORDERING),
        ({"cache": "CLEAN", "index": "LEAKING"}, Failure.UNKNOWN),
        ({"primary": "INCONCLUSIVE", "index": "LEAKING"}, Failure.UNKNOWN),
        ({"primary": "LEAKING", "index": "LEAKING"}, Failure.MISSING_DELETE),
        ({"primary": "CLEAN", "index": "CLEAN"}, Failure.UNKNOWN),
        ({"primary": "CLEAN", "history": "LEAKING"}, Failure.UNKNOWN),
    ],
)
def test_in_which_way_a_forget_was_not_done(kinds: dict[str, str], failure: Failure) -> None:
    assert failure_of([surface(kind, kind, outcome) for kind, outcome in kinds.items()]) is failure


def test_a_released_erasure_says_what_stands_in_place_of_evidence() -> None:
    story = Story()
    story.acknowledged()
    before = verdict_of(story.erasure).missing
    released = story.then(EventType.RELEASED)
    assert released.state is State.RELEASED
    more = set(verdict_of(released).missing) - set(before)
    assert [text for text in more if "release" in text]


def test_a_verdict_names_a_tombstone_and_a_primary_surface_that_are_not_there() -> None:
    unseen = Story()
    unseen.then(EventType.ACCEPTED)
    unseen.round()
    assert [text for text in verdict_of(unseen.erasure).missing if "tombstone" in text]
    story = Story()
    story.acknowledged()
    story.round(surfaces=[surface("search", "index")])
    assert [text for text in verdict_of(story.erasure).missing if "probe of every" in text]
    story.round(surfaces=[surface(), surface("search", "index")])
    assert not [text for text in verdict_of(story.erasure).missing if "probe of every" in text]


def test_one_of_several_overrides_is_enough_to_let_recalls_through() -> None:
    orders = Orders()
    assert not orders.overridden(scope(tenant="acme"), 15.0)
    for number, tenant in enumerate(("beta", "acme", "gamma"), 1):
        where = scope_to_facts(scope(tenant=tenant))
        facts = {"override": tenant, "effect": "annotate", "scope": where, "reason": "a fire", "until": 20.0}
        orders.apply(event(number, EventType.OVERRIDDEN, "", 10.0, **facts))
    for tenant, now, expected in (("acme", 15.0, True), ("other", 15.0, False), ("acme", 25.0, False)):
        assert orders.overridden(scope(tenant=tenant, subject="alice"), now) is expected


@pytest.mark.parametrize(("window", "expected"), [(0.0, True), (0.5, False), (900.0, False)])
def test_a_purge_that_is_late_at_all_needs_somebody_who_has_looked(window: float, expected: bool) -> None:
    assert audited(Manners(lazy=True, reads_derived=True, window=window)) is expected


def test_only_a_record_of_a_later_epoch_is_newer_than_an_erasure() -> None:
    erasure = Story().erasure
    assert [erasure.before(erasure.epoch + by) for by in (-1, 0, 1)] == [False, False, True]


def test_clean_rounds_settle_nothing_that_was_not_acknowledged() -> None:
    early = Story().then(EventType.CLEAN)
    assert (early.state, early.settled_at, early.settled_once) == (State.REQUESTED, None, False)


def test_one_ending_goes_and_half_a_character_is_digested_as_it_is() -> None:
    assert [stem(word) for word in ("blessing", "walked", "plays", "gone", "one")] == [
        "bless", "walk", "play", "gone", "one",
    ]  # fmt: skip
    assert joined(["a", "\ud800"]) == b"a \xed\xa0\x80"
