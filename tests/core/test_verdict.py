"""Verdicts: never kinder than the weakest evidence."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.states import State
from quietus.core.verdict import Evidence, Outcome, Verdict, Word, conclude, verdict_of
from tests.core.making import Story, surface

CONDITIONS = [item.name for item in fields(Evidence) if item.name != "released"]
RANK = {Word.UNCONFIRMED: 0, Word.PARTIAL: 1, Word.COMPLIANT: 2}
COMPLETE = ["surfaces_complete"]
SURFACES = [surface(), surface("search", "index"), surface("backups", "unprobeable", "OUT_OF_SCOPE", "none")]


def evidence(values: tuple[bool, ...], released: bool = False) -> Evidence:
    return Evidence(**dict(zip(CONDITIONS, values, strict=True)), released=released)


ALL = list(product([False, True], repeat=len(CONDITIONS)))


@pytest.mark.requirement("R62")
def test_any_unmet_condition_of_all_combinations_is_never_compliant() -> None:
    words = {values: conclude(evidence(values), ["search"]) for values in ALL}
    assert len(words) == 2 ** len(CONDITIONS) == 2048
    for values, verdict in words.items():
        assert (verdict.word is Word.COMPLIANT) == all(values)
        assert bool(verdict.missing) == (not all(values))
        assert len(verdict.missing) == values.count(False)


@pytest.mark.requirement("R77", "R86")
@pytest.mark.parametrize(
    "name", ["acknowledged", "settled", "probed_clean", "tombstoned", "witnessed", "primary_clean"]
)
def test_what_no_claim_can_do_without_leaves_it_unconfirmed(name: str) -> None:
    for values in ALL:
        found = evidence(values)
        if not getattr(found, name):
            assert conclude(found, ["search"]).word is Word.UNCONFIRMED


@pytest.mark.parametrize("name", ["surfaces_enumerated", "lineage_tracked", "controlled", "all_probed"])
def test_what_was_not_looked_at_makes_it_partial_and_is_named(name: str) -> None:
    complete = evidence((True,) * len(CONDITIONS))
    verdict = conclude(replace(complete, **{name: False}), ["search"])
    assert verdict.word is Word.PARTIAL
    assert len(verdict.missing) == 1


def test_more_evidence_never_makes_a_verdict_worse() -> None:
    for values in ALL:
        word = conclude(evidence(values)).word
        for place, held in enumerate(values):
            if not held:
                more = (*values[:place], True, *values[place + 1 :])
                assert RANK[conclude(evidence(more)).word] >= RANK[word]


def test_released_erasure_is_unconfirmed_whatever_was_seen_and_says_why() -> None:
    for values in ALL:
        verdict = conclude(evidence(values, released=True), ["search"])
        assert verdict.word is Word.UNCONFIRMED
        assert verdict.missing
        assert verdict.through == ()


@pytest.mark.requirement("R72")
def test_there_are_three_words_and_states_are_none_of_them() -> None:
    assert {word.value for word in Word} == {"compliant", "partial", "unconfirmed"}
    assert not {word.value for word in Word} & {state.value for state in State}


# Verdicts on erasures


def settled(surfaces: list[dict[str, Any]] | None = None, **snapshot: Any) -> Erasure:
    story = Story()
    story.then(EventType.SNAPSHOTTED, **{"witnesses": 3, "lineage": {"complete": True}, **snapshot})
    story.then(EventType.FORWARDED)
    story.then(EventType.ACCEPTED)
    for _ in range(3):
        story.round(surfaces=SURFACES if surfaces is None else surfaces)
    return story.then(EventType.CLEAN)


def test_with_every_condition_met_it_is_compliant_and_says_through_what() -> None:
    verdict = verdict_of(settled(), COMPLETE)
    assert verdict == Verdict(Word.COMPLIANT, ("record", "search"), ())


def test_store_that_cannot_enumerate_its_surfaces_is_partial() -> None:
    verdict = verdict_of(settled())
    assert verdict.word is Word.PARTIAL
    assert "attestation" in " ".join(verdict.missing)


@pytest.mark.requirement("R78")
@pytest.mark.parametrize("surfaces", [[], [surface("backups", "unprobeable", "OUT_OF_SCOPE")],
                                      [surface(outcome="UNPROBED")]])  # fmt: skip
def test_without_a_surface_that_was_probed_nothing_is_claimed(surfaces: list[dict[str, Any]]) -> None:
    verdict = verdict_of(settled(surfaces), COMPLETE)
    assert (verdict.word, verdict.through) == (Word.UNCONFIRMED, ())


@pytest.mark.requirement("R79")
def test_forget_of_somebody_unknown_claims_nothing() -> None:
    verdict = verdict_of(settled(witnesses=0), COMPLETE)
    assert verdict.word is Word.UNCONFIRMED
    assert "found before" in " ".join(verdict.missing)


@pytest.mark.requirement("R76", "R77")
def test_without_a_tombstone_it_is_unconfirmed_and_says_so() -> None:
    verdict = verdict_of(settled(), COMPLETE, tombstoned=False)
    assert verdict.word is Word.UNCONFIRMED and verdict.missing == ("a tombstone against re-ingestion",)


@pytest.mark.requirement("R26", "R58", "R102")
@pytest.mark.parametrize(
    ("surfaces", "snapshot"),
    [
        ([surface(), surface("near", "index", "UNPROBED", "none")], {}),
        ([surface(control="positive")], {}),
        ([surface(), surface("log", "history", "LEAKING")], {}),
        ([surface(), surface("log", "history", "UNPROBED")], {}),
        (SURFACES, {"lineage": {"complete": False}}),
        (SURFACES, {"truncated": True}),
    ],
    ids=["unprobed", "positive control only", "history leaks", "history unprobed", "no lineage", "cut short"],
)
def test_less_than_everything_is_partial(surfaces: list[dict[str, Any]], snapshot: dict[str, Any]) -> None:
    verdict = verdict_of(settled(surfaces, **snapshot), COMPLETE)
    assert verdict.word is Word.PARTIAL
    assert verdict.missing


def test_canary_is_a_live_control() -> None:
    assert verdict_of(settled([surface(control="canary")]), COMPLETE).word is Word.COMPLIANT


kinds = st.sampled_from(["primary", "index", "cache", "derived", "graph"])
outcomes = st.sampled_from([o.value for o in Outcome if o is not Outcome.OUT_OF_SCOPE])
some_surfaces = st.lists(st.builds(surface, st.text(min_size=1, max_size=3), kinds, outcomes), max_size=5)
WORST = {"CLEAN": Word.COMPLIANT, "UNPROBED": Word.PARTIAL, "INCONCLUSIVE": Word.UNCONFIRMED,
         "LEAKING": Word.UNCONFIRMED}  # fmt: skip


@pytest.mark.requirement("R51")
@given(some_surfaces)
def test_verdict_is_that_of_the_worst_surface(surfaces: list[dict[str, Any]]) -> None:
    word = verdict_of(settled(surfaces), COMPLETE).word
    worst = min((RANK[WORST[s["outcome"]]] for s in surfaces), default=0)
    if all(s["outcome"] == "UNPROBED" for s in surfaces):
        worst = 0
    if not any(s["kind"] == "primary" for s in surfaces):
        worst = min(worst, RANK[Word.PARTIAL])  # nobody looked at the record itself
    assert RANK[word] == worst


@pytest.mark.parametrize("state", [s for s in State if s is not State.SETTLED])
def test_no_other_state_claims_anything(state: State) -> None:
    verdict = verdict_of(replace(settled(), state=state), COMPLETE)
    assert verdict.word is Word.UNCONFIRMED
    assert verdict.missing


@pytest.mark.requirement("R5")
def test_acknowledgement_alone_changes_no_surface_and_no_verdict() -> None:
    story = Story()
    before = verdict_of(story.erasure, COMPLETE)
    erasure = story.acknowledged(claim={"status": "erased", "count": 412})
    assert erasure.surfaces == ()
    assert verdict_of(erasure, COMPLETE).word is before.word is Word.UNCONFIRMED


def test_overridden_erasure_is_unconfirmed() -> None:
    assert verdict_of(settled(), COMPLETE, overridden=True).word is Word.UNCONFIRMED
