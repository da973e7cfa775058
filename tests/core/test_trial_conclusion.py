"""Which conditions a trial shows, what it proposes for the `store:` block, and what it contradicts."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.trial_conclusion import ENOUGH, HARM, UNTRUE, Conclusion, conclude_trial, contradicted
from quietus.core.trial_findings import JUDGES, Observed
from tests.core.test_trial_findings import KINDS, case

GOOD: dict[str, Any] = {
    "drift": (), "restated": (), "kept": False, "expired": (), "expired_of": 3, "bystanders_lost": 0,
}  # fmt: skip
ALL = (
    "synchronous_transactional", "single_writer", "same_tombstone_index", "sync_purge", "no_derived_reads",
    "keeps_no_queries", "expiry_purges",
)  # fmt: skip


def concluded(
    *told: dict[str, str], times: int = ENOUGH, left: tuple[str, ...] = (), **facts: Any
) -> Conclusion:
    """A trial of that many quiet cases and of those given."""
    quiet = [case({"row": "---", "search": "---"}) for _ in range(times - len(told))]
    cases = [*quiet, *(case(one) for one in told)]
    return conclude_trial(Observed(KINDS, frozenset({"row"}), cases, {**GOOD, **facts}, left))


def test_honest_store_shows_every_condition() -> None:
    found = concluded()
    assert found.conditions == ALL
    assert (found.complete, found.unproven, found.unread) == (True, (), ())
    assert found.store == {
        "erasure_model": "synchronous_transactional", "settling_interval": "5s", "effectuation_bound": "30s",
        "write_path_reads_derived": False, "keeps_queries": False,
    }  # fmt: skip
    assert len(found.findings) == len(JUDGES)


@pytest.mark.parametrize(
    ("facts", "lacking"),
    [
        ({"expired": ("row",)}, {"same_tombstone_index", "expiry_purges"}),
        ({"expired": None}, {"same_tombstone_index", "expiry_purges"}),
        ({"drift": ("salience",)}, {"sync_purge", "no_derived_reads"}),
        ({"restated": ("row",)}, {"sync_purge", "no_derived_reads"}),
        ({"restated": None}, {"sync_purge", "no_derived_reads"}),
        ({"drift": None}, {"sync_purge", "no_derived_reads"}),
        ({"kept": True}, {"keeps_no_queries"}),
        ({"kept": None}, {"keeps_no_queries"}),
    ],
)
def test_condition_that_was_not_shown_is_not_passed(facts: dict[str, Any], lacking: set[str]) -> None:
    assert set(ALL) - set(concluded(**facts).conditions) == lacking


AT_ONCE = set(ALL[:4])
"""What rests on an acknowledgement that is a fact of the read path."""


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        ({"unanswered": 1}, {"unanswered"}),
        ({"many": "abcd", "many_left": [3]}, {"partial_delete"}),
        ({"race_landed": True}, {"lands_late"}),
        ({"epoch": {"read": 1, "acked": 2}}, {"epoch_behind"}),
        ({"bystanders_lost": 1}, {"bystanders_lost"}),
        ({"lost": {"a": True}}, {"siblings_lost"}),
        ({"merge_lost": True}, {"merges"}),
    ],
)
def test_acknowledgement_with_harm_or_without_truth_is_no_fact_of_the_read_path(
    facts: dict[str, Any], names: set[str]
) -> None:
    found = concluded(**facts)
    assert {name for name in (*UNTRUE, *HARM) if found.findings[name].found} == names
    assert set(ALL) - set(found.conditions) == AT_ONCE
    assert found.store["erasure_model"] == "async"


@pytest.mark.parametrize("told", ["+--", "-+-", "+++", "ooo"])
def test_one_leak_of_one_case_is_enough_against_it(told: str) -> None:
    assert set(ALL) - set(concluded({"row": "---", "search": told}).conditions) == AT_ONCE


def test_few_canaries_pass_nothing_that_shortens_a_wait() -> None:
    assert concluded(times=ENOUGH - 1).conditions == ("keeps_no_queries", "expiry_purges")
    one_short = concluded({"row": "---", "search": ""})
    assert set(ALL) - set(one_short.conditions) == AT_ONCE, "a surface that was looked at too seldom"


def test_what_is_left_behind_unread_or_unproven_passes_nothing() -> None:
    left = concluded(left=("canary",))
    assert (left.complete, left.conditions) == (False, ())
    unproven = concluded(*[{"row": "---"} for _ in range(ENOUGH)])
    assert (unproven.complete, unproven.unproven, unproven.conditions) == (False, ("search",), ())
    cases = [case({"row": "---", "search": "---"}) for _ in range(ENOUGH)]
    cases[0].unread = frozenset({"search", "row"})
    unread = conclude_trial(Observed(KINDS, frozenset(), cases, GOOD))
    assert (unread.complete, unread.unread, unread.conditions) == (False, ("row", "search"), ())
    nothing = conclude_trial(Observed(KINDS, frozenset(), [], GOOD))
    assert (nothing.complete, nothing.unproven, nothing.lags) == (False, ("row", "search"), {})
    assert "settling_interval" not in nothing.store


@pytest.mark.parametrize(
    ("told", "interval", "bound"),
    [
        ("---", "5s", "30s"),
        ("+++-", "5s", "30s"),
        ("+" * 9 + "-", "14s", "30s"),
        ("+" * 20 + "-", "31s", "62s"),
    ],
)
def test_interval_is_half_as_long_again_as_the_longest_lag(told: str, interval: str, bound: str) -> None:
    store = concluded({"row": told, "search": "---"}).store
    assert (store["settling_interval"], store["effectuation_bound"]) == (interval, bound)


def test_return_counts_as_a_lag_and_what_never_ended_has_none() -> None:
    back = {"row": "-" * 20 + "+-", "search": "-" * 22}
    assert concluded(back).store["settling_interval"] == "31s"
    never = concluded({"row": "+++", "search": "---"})
    assert never.findings["never_gone"].found
    assert "settling_interval" not in never.store


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, {"write_path_reads_derived": False, "keeps_queries": False}),
        ({"drift": ("a",), "restated": None}, {"write_path_reads_derived": True, "keeps_queries": False}),
        ({"restated": ("row",)}, {"write_path_reads_derived": True, "keeps_queries": False}),
        ({"restated": None}, {"keeps_queries": False}),
        ({"kept": None}, {"write_path_reads_derived": False}),
        ({"kept": True}, {"write_path_reads_derived": False, "keeps_queries": True}),
    ],
)
def test_what_was_not_told_is_not_spoken_of(facts: dict[str, Any], expected: dict[str, bool]) -> None:
    store = concluded(**facts).store
    assert {name: told for name, told in store.items() if isinstance(told, bool)} == expected


DECLARED = {
    "erasure_model": "async", "settling_interval": 900.0, "keeps_queries": False,
    "write_path_reads_derived": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "told", "facts", "words"),
    [
        ({}, "---", {}, []),
        ({"erasure_model": "synchronous_transactional"}, "---", {}, []),
        ({"erasure_model": "synchronous_transactional"}, "+--", {}, ["was not shown"]),
        ({"settling_interval": 1.0}, "+--", {}, ["longest lag, 1.1 s"]),
        ({"settling_interval": 1.2}, "+--", {}, []),
        ({}, "+++", {}, ["no settling_interval is long enough"]),
        ({}, "---", {"kept": True}, ["keeps_queries is true"]),
        ({"keeps_queries": True}, "---", {"kept": True}, []),
        ({}, "---", {"drift": ("a",)}, ["write_path_reads_derived is true"]),
        ({}, "---", {"kept": None, "drift": None}, []),
    ],
)
def test_promises_that_a_trial_contradicts(
    declared: dict[str, Any], told: str, facts: dict[str, Any], words: list[str]
) -> None:
    found = contradicted({**DECLARED, **declared}, concluded({"row": told, "search": "---"}, **facts))
    assert len(found) == len(words)
    assert all(word in said for word, said in zip(words, found, strict=True))
