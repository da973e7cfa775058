"""Probes: what they ask with, whose turn it is, and when what they saw counts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quietus.core.probing import (
    BLOCKING,
    PER_SURFACE,
    Controls,
    Failure,
    Finding,
    Probe,
    SurfaceFacts,
    Witness,
    conclude_round,
    failure_of,
    judge,
    plan,
    wording,
)
from tests.core.making import surface

NEUTRAL = "notes"
SEARCH = SurfaceFacts("search", "index", "text")
RECORD = SurfaceFacts("record", "primary", "key")
LIST = SurfaceFacts("list", "index", "subject")
WITNESS = Witness(key="k1", subject="alice", text="alice likes tea")


# Wording

TEXT = "Alice Example lives with her two cats at 12 Rose Street, mail kim.lee@example.org or S-4471 instead."


def test_store_that_keeps_no_queries_is_asked_with_the_text_itself() -> None:
    assert wording(TEXT, False, NEUTRAL) == TEXT


def test_store_that_keeps_queries_is_asked_with_the_neutral_query_only() -> None:
    assert wording(TEXT, True, NEUTRAL) == NEUTRAL


def test_where_that_is_unknown_common_words_are_asked_and_nothing_distinctive() -> None:
    asked = wording(TEXT, None, NEUTRAL)
    assert asked == "lives with her two cats mail instead"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("please write to kim.lee@example.org or call later today", ["kim", "lee", "example"]),
        ("the code is xk-99-alpha and nothing else matters here", ["xk", "alpha"]),
        ("user_alice asked for the weekly report once more today", ["user", "alice"]),
        ("her handle is @somebody everywhere and she knows about that", ["somebody"]),
    ],
)
def test_no_part_of_an_identifier_is_asked(text: str, hidden: list[str]) -> None:
    asked = (wording(text, None, NEUTRAL) or "").split()
    assert not set(hidden) & set(asked)


def test_private_words_are_not_asked_in_any_case() -> None:
    text = "alice likes green tea with plenty of lemon and honey"
    assert "alice" not in (wording(text, None, NEUTRAL, ["Alice"]) or "")
    assert "alice" not in (wording(text, None, NEUTRAL, ["user:ALICE"]) or "")


@given(st.text(max_size=300))
def test_unknown_never_asks_the_whole_text_nor_more_than_half_of_it(text: str) -> None:
    asked = wording(text, None, NEUTRAL)
    assert asked is not None
    if asked != NEUTRAL:
        said = asked.split()
        assert len(said) <= len(text.split()) / 2
        assert asked.strip() != text.strip()
        assert all(word.isalpha() and word.islower() and len(word) > 2 for word in said)
        assert all(re.search(rf"\b{re.escape(word)}\b", text) for word in said if word.isascii())


@pytest.mark.parametrize("text", ["", "Alice", "word", "12 34", "东京天气很好"])
def test_text_that_says_too_little_is_asked_for_neutrally(text: str) -> None:
    assert wording(text, None, NEUTRAL) == NEUTRAL


# Planning


def test_one_probe_a_witness_that_has_what_the_surface_asks_with() -> None:
    witnesses = [Witness(key="k1"), Witness(text="a text"), Witness(key="k2", text="another")]
    assert [p.witness.key for p in plan(RECORD, witnesses)] == ["k1", "k2"]
    assert [p.witness.text for p in plan(SEARCH, witnesses)] == ["a text", "another"]
    assert plan(SurfaceFacts("near", "index", "vector"), witnesses) == []
    assert all(not probe.proven for probe in plan(RECORD, witnesses))


def test_surface_that_asks_with_nothing_is_asked_once() -> None:
    export = SurfaceFacts("export", "index", None)
    assert plan(export, [WITNESS, Witness(key="k2")]) == [Probe("export", WITNESS)]
    assert plan(export, []) == [Probe("export", Witness())]


def test_same_question_is_asked_once() -> None:
    rows = [Witness(key=f"k{n}", subject="alice", path=(f"p{n}",)) for n in range(5)]
    assert len(plan(LIST, rows)) == 1
    assert len(plan(RECORD, [WITNESS, replace(WITNESS, text="a second text of the row")])) == 1


@pytest.mark.parametrize(
    "other",
    [{"path": ("diary",)}, {"tenant": "other"}, {"subject": "bob"}, {"capture": {"collection": "c2"}}],
)
def test_one_key_in_two_places_is_two_records(other: dict[str, Any]) -> None:
    here = Witness("profile", "alice", "acme", path=("notes",), capture={"collection": "c1"})
    assert len(plan(RECORD, [here, replace(here, **other)])) == 2


@given(st.integers(1, 60))
def test_every_witness_has_its_turn(count: int) -> None:
    witnesses = [Witness(key=f"k{number}") for number in range(count)]
    turns = -(-count // PER_SURFACE)
    planned = [plan(RECORD, witnesses, turn) for turn in range(turns)]
    assert all(len(probes) <= PER_SURFACE for probes in planned)
    assert {probe.witness.key for probes in planned for probe in probes} == {w.key for w in witnesses}


def test_witness_fills_the_placeholders_that_it_has() -> None:
    full = Witness("k", "alice", "acme", "ads", ("a", "b"), "text", (0.5, 1.0), {"collection": "c"})
    assert full.values() == {
        "key": "k", "subject": "alice", "tenant": "acme", "purpose": "ads", "path": "a/b", "text": "text",
        "vector": [0.5, 1.0], "collection": "c",
    }  # fmt: skip
    assert Witness().values() == {}


# Judging

PROVEN, UNPROVEN = Probe("search", WITNESS, proven=True), Probe("search", WITNESS)
CLEAN, FOUND = Finding(PROVEN), Finding(PROVEN, found=True, residual=2)
ALIVE = Finding(Probe("search", Witness(key="b")), control=True, found=True)
LOST = Finding(Probe("search", Witness(key="b")), control=True, found=False)
UNREAD = Finding(PROVEN, readable=False, reason="the answer could not be read")
BOTH, POSITIVE = Controls(witnessed=True, live=True), Controls(witnessed=True, live=False)
LIVE, NONE = Controls(witnessed=False, live=True), Controls(witnessed=False, live=False)


@pytest.mark.parametrize(
    ("findings", "controls", "outcome", "control"),
    [
        ([CLEAN, ALIVE], BOTH, "CLEAN", "live"),
        ([CLEAN, Finding(UNPROVEN), ALIVE], BOTH, "CLEAN", "live"),
        ([CLEAN], POSITIVE, "CLEAN", "positive"),
        # a probe that never found its witness shows nothing
        ([Finding(UNPROVEN), ALIVE], BOTH, "INCONCLUSIVE", "live"),
        ([Finding(UNPROVEN)], POSITIVE, "INCONCLUSIVE", "none"),
        # a live control that is no longer found: the route moved, the credential expired
        ([CLEAN, LOST], BOTH, "INCONCLUSIVE", "positive"),
        ([CLEAN], BOTH, "INCONCLUSIVE", "positive"),
        # the snapshot found nothing: the live control alone counts
        ([Finding(UNPROVEN), ALIVE], LIVE, "CLEAN", "live"),
        ([Finding(UNPROVEN), LOST], LIVE, "INCONCLUSIVE", "none"),
        ([Finding(UNPROVEN)], NONE, "INCONCLUSIVE", "none"),
        # an answer that cannot be read is not an empty one
        ([UNREAD, ALIVE], BOTH, "INCONCLUSIVE", "live"),
        ([CLEAN, UNREAD, ALIVE], BOTH, "INCONCLUSIVE", "live"),
        # nothing to ask with
        ([], BOTH, "UNPROBED", "none"),
        ([ALIVE], BOTH, "UNPROBED", "live"),
        # what is found is a leak, whatever the controls
        ([FOUND], NONE, "LEAKING", "none"),
        ([FOUND, LOST], BOTH, "LEAKING", "positive"),
        ([replace(UNREAD, found=True), ALIVE], BOTH, "LEAKING", "live"),
    ],
)
def test_outcome_of_a_surface(
    findings: list[Finding], controls: Controls, outcome: str, control: str
) -> None:
    judged = judge(SEARCH, findings, controls)
    assert (judged["outcome"], judged["control"]) == (outcome, control)
    assert (judged["name"], judged["kind"]) == ("search", "index")
    assert bool(judged["reason"]) == (outcome in ("INCONCLUSIVE", "UNPROBED"))


def test_residual_counts_what_probes_found_and_a_canary_is_named() -> None:
    judged = judge(SEARCH, [FOUND, FOUND, replace(ALIVE, residual=9)], Controls(True, True, "canary"))
    assert (judged["residual"], judged["control"]) == (4, "canary")
    assert judge(SEARCH, [CLEAN], POSITIVE, applicable=False)["outcome"] == "UNPROBED"


findings = st.lists(
    st.builds(
        Finding,
        probe=st.sampled_from([PROVEN, UNPROVEN]),
        control=st.booleans(),
        readable=st.booleans(),
        found=st.booleans(),
        reason=st.just("because"),
    ),
    max_size=5,
)


@given(findings, st.booleans(), st.booleans())
def test_nothing_is_clean_that_could_not_have_been_found(
    seen: list[Finding], witnessed: bool, live: bool
) -> None:
    outcome = judge(SEARCH, seen, Controls(witnessed, live))["outcome"]
    probes = [f for f in seen if not f.control]
    alive = any(f.control and f.found for f in seen)
    if outcome == "CLEAN":
        assert probes
        assert all(f.readable and not f.found for f in probes)
        assert alive if live or not witnessed else any(f.probe.proven for f in probes)
        assert not witnessed or any(f.probe.proven for f in probes)
    assert (outcome == "LEAKING") == any(f.found for f in probes)


# Rounds


@pytest.mark.requirement("R61")
def test_gone_row_is_not_enough_while_the_index_still_finds() -> None:
    assert conclude_round([surface("record"), surface("search", "index", "LEAKING")]) == "leaking"


@pytest.mark.parametrize(
    ("outcomes", "whole"),
    [
        (["CLEAN", "CLEAN"], "clean"),
        (["CLEAN", "UNPROBED"], "clean"),
        (["UNPROBED", "UNPROBED"], "inconclusive"),
        ([], "inconclusive"),
        (["CLEAN", "INCONCLUSIVE"], "inconclusive"),
        (["INCONCLUSIVE", "LEAKING"], "leaking"),
    ],
)
@pytest.mark.parametrize("kind", sorted(BLOCKING))
def test_round_is_as_good_as_its_worst_surface(outcomes: list[str], whole: str, kind: str) -> None:
    assert conclude_round([surface(f"s{n}", kind, o) for n, o in enumerate(outcomes)]) == whole


def test_history_and_what_cannot_be_probed_do_not_block() -> None:
    beside = [surface("log", "history", "LEAKING"), surface("backups", "unprobeable", "OUT_OF_SCOPE")]
    assert conclude_round([surface(), *beside]) == "clean"
    assert conclude_round(beside) == "inconclusive"


@pytest.mark.requirement("R169")
@pytest.mark.parametrize(
    ("leaking", "failure"),
    [
        ({"record"}, "MISSING_DELETE"),
        ({"record", "search", "lineage"}, "MISSING_DELETE"),
        ({"search"}, "ORDERING"),
        ({"cache"}, "ORDERING"),
        ({"lineage"}, "PROPAGATION"),
        ({"lineage", "search"}, "PROPAGATION"),
        (set(), "UNKNOWN"),
    ],
)
def test_a_leak_says_what_kind_of_failure_it_is(leaking: set[str], failure: str) -> None:
    kinds = {"record": "primary", "search": "index", "cache": "cache", "lineage": "derived"}
    round_ = [surface(n, kind, "LEAKING" if n in leaking else "CLEAN") for n, kind in kinds.items()]
    assert failure_of([*round_, surface("log", "history", "LEAKING")]).value == failure


@pytest.mark.requirement("R169")
def test_what_was_not_read_is_not_called_gone() -> None:
    unread = [surface("record", "primary", "INCONCLUSIVE"), surface("search", "index", "LEAKING")]
    assert failure_of(unread) is Failure.UNKNOWN
