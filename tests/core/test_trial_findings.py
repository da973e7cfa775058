"""What each judge of a trial makes of what was observed: true, false, or that it could not be told."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.trial import Acknowledged, Case, Look, lag_of
from quietus.core.trial_findings import JUDGES, Finding, Observed

KINDS = {"row": "primary", "search": "index"}
FIRST, TOLD, GONE = 10.0, True, False


def case(told: dict[str, str], *extra: Look, name: str = "c", **acked: Any) -> Case:
    """Looks a second apart from 10 s on: "+" tells, "-" does not, "o" is another record that repeats it."""
    looks = [
        Look(surface, FIRST + turn, FIRST + turn + 0.1, sign != "-", turn, foreign=sign == "o")
        for surface, signs in told.items()
        for turn, sign in enumerate(signs)
    ]
    looks.sort(key=lambda look: look.asked)
    forget = Acknowledged(FIRST - 0.1, FIRST, **acked)
    return Case(name, dict.fromkeys(told, 0.1), forgets=[forget], looks=[*looks, *extra])


def judged(*cases: Case, by_key: frozenset[str] = frozenset({"row"}), **facts: Any) -> dict[str, Finding]:
    seen = Observed(KINDS, by_key, cases, facts, patience=60.0, watched=36.0)
    lags = {name: lag for name in KINDS if (lag := lag_of(cases, name)) is not None}
    found = [judge(seen, lags) for judge in JUDGES]
    assert len({one.name for one in found}) == len(JUDGES)
    return {one.name: one for one in found}


QUIET = case({"row": "---", "search": "---"})


def extra(surface: str, turn: int, seen: bool, **how: Any) -> Look:
    return Look(surface, FIRST + turn, FIRST + turn + 0.1, seen, turn, **how)


def test_nothing_is_told_of_a_trial_without_cases() -> None:
    found = judged()
    known = {name for name, one in found.items() if one.found is not None}
    assert known == {"unanswered", "answer_cache"}
    assert (found["unanswered"].found, found["answer_cache"].found) == (False, False)


def test_store_that_is_quiet_at_once_has_no_finding_against_it() -> None:
    found = judged(QUIET)
    assert not [name for name, one in found.items() if one.found]
    for name in ("leaks", "never_gone", "others_repeat", "unsteady", "comes_back", "read_revives"):
        assert found[name].found is False


def test_leaks_are_named_with_the_longest_lag_and_those_that_never_ended() -> None:
    found = judged(case({"row": "+--", "search": "+++"}), case({"row": "---", "search": "++-"}))
    leaks, never = found["leaks"], found["never_gone"]
    assert (leaks.found, leaks.surfaces, leaks.seconds) == (True, ("row", "search"), pytest.approx(2.1))
    assert (never.found, never.surfaces) == (True, ("search",))
    assert "60 s" in never.says
    only = judged(case({"row": "---", "search": "+--"}))
    assert (only["leaks"].surfaces, only["never_gone"].found) == (("search",), False)


@pytest.mark.parametrize(
    ("row", "search", "expected"),
    [
        ("---", "++-", True),
        ("+--", "+++", True),
        ("++-", "+--", False),
        ("---", "---", False),
        ("+++", "+++", False),
    ],
)
def test_row_goes_before_the_index_when_search_tells_later_than_the_row(
    row: str, search: str, expected: bool
) -> None:
    assert judged(case({"row": row, "search": search}))["row_before_index"].found is expected


def test_row_before_index_needs_both_and_no_record_of_others() -> None:
    assert judged(case({"row": "---"}))["row_before_index"].found is None
    assert judged(case({"search": "---"}))["row_before_index"].found is None
    repeated = judged(case({"row": "---", "search": "oo-"}))
    assert repeated["row_before_index"].found is None
    assert (repeated["others_repeat"].found, repeated["others_repeat"].surfaces) == (True, ("search",))
    late, early = case({"row": "---", "search": "++-"}), case({"row": "---", "search": "---"})
    assert judged(late, early)["row_before_index"].found is True
    assert judged(early, late)["row_before_index"].found is True
    assert judged(case({"row": "-+-+-", "search": "+++++"}))["row_before_index"].found is None


def test_answer_cache_tells_the_usual_words_and_not_other_words_twice() -> None:
    other = [extra("search", turn, GONE, reworded=True) for turn in (0, 1)]
    cached = case({"row": "---", "search": "++-"}, *other)
    found = judged(cached)["answer_cache"]
    assert (found.found, found.surfaces) == (True, ("search",))
    assert judged(case({"row": "---", "search": "++-"}, *other[:1]))["answer_cache"].found is False
    once = [other[0], extra("search", 1, TOLD, reworded=True)]
    assert judged(case({"row": "---", "search": "++-"}, *once))["answer_cache"].found is False
    late = [extra("search", turn, GONE, reworded=True) for turn in (2, 3)]
    assert judged(case({"row": "---", "search": "++-"}, *late))["answer_cache"].found is None
    odd = [extra("search", turn, GONE, reworded=True) for turn in (1, 3)]
    flicker = case({"row": "-----", "search": "-+-+-"}, *odd)
    assert judged(flicker)["answer_cache"].found is False
    assert judged(case({"row": "---", "search": "oo-"}, *other))["answer_cache"].found is None


def test_reads_that_disagree_and_records_that_come_back_are_two_findings() -> None:
    flicker = judged(case({"row": "-+-+-"}))
    assert (flicker["unsteady"].found, flicker["unsteady"].surfaces) == (True, ("row",))
    assert flicker["comes_back"].found is False
    back = judged(QUIET, case({"row": "+--+"}), case({"row": "-+"}))["comes_back"]
    assert (back.found, back.seconds) == (True, pytest.approx(3.1))
    assert "36 s" in back.says


@pytest.mark.parametrize(
    ("agents", "probe", "expected"),
    [("+++", GONE, True), ("++", GONE, False), ("+++", TOLD, False), ("---", GONE, False)],
)
def test_agents_see_more_when_three_are_told_what_no_probe_is(
    agents: str, probe: bool, expected: bool
) -> None:
    probes = [extra("row", turn, probe, client=False) for turn in range(3)]
    assert judged(case({"row": agents}, *probes), QUIET)["agents_see_more"].found is expected


def test_guise_is_only_told_of_walks_on_which_probes_were_sent() -> None:
    assert judged(case({"row": "+++"}))["agents_see_more"].found is None
    one = extra("row", 0, GONE, client=False)
    assert judged(case({"row": "+++"}, one))["agents_see_more"].found is False
    hit = case({"row": "+++"}, *[extra("row", turn, GONE, client=False) for turn in range(3)])
    assert judged(hit, case({"row": "---"}, one))["agents_see_more"].found is True


def test_read_by_key_revives_in_more_than_half_of_the_cases() -> None:
    revived = case({"search": "-", "row": "+"})
    assert judged(revived, revived, QUIET)["read_revives"].found is True
    assert judged(revived, QUIET)["read_revives"].found is False
    assert judged(revived, by_key=frozenset())["read_revives"].found is None


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([{"count": 0}], True),
        ([{"outcome": "not_found"}], True),
        ([{"count": 1}], False),
        ([{"count": 0}, {"count": 3}], False),
        ([{"count": 0}, {"count": 0}, {"count": 3}], True),
        ([{"answered": False, "count": 0}], None),
    ],
)
def test_acknowledgement_denies_when_most_say_that_nothing_was_removed(
    answers: list[dict[str, Any]], expected: bool | None
) -> None:
    assert judged(*(case({"row": "+-"}, **answer) for answer in answers))["ack_denies"].found is expected


def test_what_is_denied_and_stays_is_another_fault() -> None:
    assert judged(case({"row": "++"}, count=0))["ack_denies"].found is False


@pytest.mark.parametrize(
    ("facts", "expected", "word"),
    [
        ({}, None, "some"),
        ({"many": "abcd"}, None, "some"),
        ({"many": "abcd", "many_left": []}, False, "some"),
        ({"many": "abcd", "many_left": [0, 1, 2, 3]}, False, "some"),
        ({"many": "abcd", "many_left": [2, 3]}, True, "the first 2 of 4 went"),
        ({"many": "abcd", "many_left": [3]}, True, "the first 3 of 4 went"),
        ({"many": "abcd", "many_left": [0, 3]}, True, "2 of 4 stayed, here and there"),
    ],
)
def test_partial_delete_leaves_some_and_not_all(
    facts: dict[str, Any], expected: bool | None, word: str
) -> None:
    found = judged(QUIET, **facts)["partial_delete"]
    assert found.found is expected
    assert word in found.says
    assert found.says.endswith(word) or word == "some"
    assert (":" in found.says) is (expected is True)


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        ("same_ack", {}, None),
        ("same_ack", {"same_ack": True}, True),
        ("unanswered", {"unanswered": 2}, True),
        ("unanswered", {}, False),
        ("fresh_tokens", {}, None),
        ("fresh_tokens", {"repeat_tokens": ("a", None)}, None),
        ("fresh_tokens", {"repeat_tokens": ("a", "a")}, False),
        ("fresh_tokens", {"repeat_tokens": ("a", "b")}, True),
        ("case_differs", {"reads_fold": True}, None),
        ("case_differs", {"forget_folds": True}, None),
        ("case_differs", {"reads_fold": True, "forget_folds": True}, False),
        ("case_differs", {"reads_fold": True, "forget_folds": False}, True),
        ("siblings_lost", {"lost": {}}, None),
        ("siblings_lost", {"lost": {"a": False}}, False),
        ("siblings_lost", {"lost": {"b": True, "c": False, "a": True}}, True),
        ("swallows", {"swallowed_first": True}, False),
        ("swallows", {"swallowed_first": False}, True),
        ("swallows", {"swallowed_first": False, "queued": True}, False),
        ("expired_told", {"expired": ("row",)}, None),
        ("expired_told", {"expired": ("row",), "expired_of": 0}, None),
        ("expired_told", {"expired": (), "expired_of": 3}, False),
        ("expired_told", {"expired": ("row",), "expired_of": 3}, True),
        ("epoch_behind", {"epoch": {"read": 1, "acked": 2}}, True),
        ("epoch_behind", {"epoch": {"read": 2, "acked": 2}}, False),
        ("bystanders_lost", {"bystanders_lost": 0, "bystanders": 9}, False),
        ("bystanders_lost", {"bystanders_lost": 1, "bystanders": 9}, True),
        ("restated_returns", {"restated": ()}, False),
        ("restated_returns", {"restated": ("row",)}, True),
        ("keeps_queries", {"kept": False}, False),
        ("keeps_queries", {"kept": ("row",)}, True),
        ("inherits", {"drift": ("salience",)}, True),
        ("merges", {"merge_lost": True}, True),
        ("ids_reused", {"reused": True}, True),
        ("queued_writes", {"queued": True}, True),
        ("lands_late", {"race_landed": True}, True),
        ("batched", {"batched": 4}, True),
    ],
)
def test_findings_from_single_facts(name: str, facts: dict[str, Any], expected: bool | None) -> None:
    assert judged(QUIET, **facts)[name].found is expected


def test_places_and_numbers_go_with_their_findings() -> None:
    lost = judged(QUIET, lost={"b": True, "c": False, "a": True})["siblings_lost"]
    assert lost.surfaces == ("a", "b")
    assert judged(QUIET, drift=("salience",))["inherits"].surfaces == ("salience",)
    assert judged(QUIET, reused=True)["ids_reused"].surfaces == ()
    assert judged(QUIET, expired=("row",), expired_of=1)["expired_told"].surfaces == ("row",)
    assert judged(QUIET, restated=("row",))["restated_returns"].surfaces == ("row",)
    assert judged(QUIET, restated=())["restated_returns"].surfaces == ()
    assert judged(QUIET, swallowed_first=False, swallowed_for=4.0)["swallows"].seconds == 4.0
    assert judged(QUIET, QUIET, unanswered=1)["unanswered"].says.endswith("1 of 2")
    assert judged(QUIET, QUIET)["unanswered"].says.endswith("0 of 2")
    assert judged(QUIET, bystanders_lost=2, bystanders=9)["bystanders_lost"].says.endswith("2 of 9")
    assert judged(QUIET)["bystanders_lost"].says.endswith("0 of 0")


def test_unsteady_surface_says_nothing_of_what_was_restated() -> None:
    flicker = case({"row": "-+-+-", "search": "-----"})
    assert judged(flicker, restated=("row",))["restated_returns"].found is None
    assert judged(flicker, restated=("search",))["restated_returns"].found is True


def test_epoch_is_behind_only_where_all_is_gone_or_nothing_leaked() -> None:
    epoch = {"read": 1, "acked": 2}
    assert judged(case({"row": "+-"}), epoch=epoch)["epoch_behind"].found is True
    assert judged(case({"row": "++"}), epoch=epoch)["epoch_behind"].found is None
    assert judged(case({"row": "+-"}), case({"row": "++"}), epoch=epoch)["epoch_behind"].found is None


@pytest.mark.parametrize(
    ("repeated", "expected", "took"),
    [
        ("-----", False, 0.0),
        ("+----", False, 1.1),
        ("++---", False, 2.1),
        ("+++--", True, 3.1),
        ("+++++", True, None),
    ],
)
def test_repeated_forget_starts_the_clock_again_when_it_takes_longer_than_usual_and_the_wait(
    repeated: str, expected: bool, took: float | None
) -> None:
    usual = case({"row": "+--"})
    found = judged(usual, repeat=case({"row": repeated}), repeat_after=2.0)["repeat_restarts"]
    assert found.found is expected
    assert found.seconds == (None if took is None else pytest.approx(took))
    assert judged(usual, repeat=Case("c"), repeat_after=2.0)["repeat_restarts"].found is None
    assert judged(usual)["repeat_restarts"].found is None
