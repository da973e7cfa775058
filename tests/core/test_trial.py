"""What follows from the looks at one canary, where there are few of them or none."""

from __future__ import annotations

import pytest

from quietus.core.trial import (
    Acknowledged,
    Case,
    Lag,
    Look,
    Span,
    came_back,
    drift,
    lag_of,
    quantile,
    revived,
    span,
)
from quietus.core.trial_conclusion import ENOUGH, conclude_trial, contradicted
from quietus.core.trial_findings import JUDGES, Observed
from tests.core.test_trial_findings import KINDS, QUIET, case, extra, judged


def test_what_was_never_looked_at_is_not_said_to_be_gone() -> None:
    assert Case("c").gone is False
    assert case({"row": "+-", "search": "---"}).gone is True
    assert case({"row": "+-", "search": "--+"}).gone is False


def test_a_surface_that_tells_again_while_another_never_ceased_was_never_gone() -> None:
    found = span(case({"row": "+-+", "search": "+++"}), "row")
    assert found is not None
    assert (found.high, found.flips) == (None, 1)
    back = span(case({"row": "+-+", "search": "+--"}), "row")
    assert back is not None
    assert back.high == pytest.approx(1.1), "it was gone everywhere: what comes back is told apart"


def test_a_look_that_begins_when_the_last_that_told_ends_ends_the_span() -> None:
    looks = [Look("row", 0.0, 1.0, True, 0), Look("row", 1.0, 1.1, False, 1), Look("row", 2.0, 2.1, False, 2)]
    found = span(Case("c", {"row": 0.1}, forgets=[Acknowledged(-0.1, 0.0)], looks=looks), "row")
    assert found is not None
    assert (found.leaked, found.high) == (True, pytest.approx(1.1))


def test_a_question_in_other_words_is_no_look_like_the_others() -> None:
    one = case({"row": "+-"}, extra("row", 2, True, reworded=True), extra("row", 2, True, client=False))
    one.looks.insert(0, extra("row", -5, True))
    assert [look.turn for look in one.after()] == [0, 1], "one before the acknowledgement is none"
    assert [look.turn for look in one.after(client=False)] == [2]


@pytest.mark.parametrize(
    ("told", "leaked"),
    [(Span(0.0, 5.0), False), (Span(1.0, 2.0), True), (Span(0.0, None), True), (Span(1.0, None), True)],
)
def test_a_surface_leaked_that_told_at_all(told: Span, leaked: bool) -> None:
    assert told.leaked is leaked


def test_only_a_read_by_key_that_tells_what_nothing_else_tells_revives() -> None:
    assert revived(case({"row": "+", "search": "-"}), {"row"})
    assert revived(case({"row": "+-", "search": "--"}), {"row"})
    assert not revived(case({"row": "+", "search": "+"}), {"row"})
    assert revived(case({"row": "+", "copy": "-", "search": "-"}), {"row", "copy"})
    assert not revived(case({"row": "-", "search": "-"}), {"row"})
    assert not revived(case({"row": "+", "search": "+", "copy": "-"}), {"row"})
    assert not revived(case({"row": "+"}), {"row"}), "nothing else was asked"
    assert not revived(case({"row": "-+", "search": "--"}), {"row"}), "it is later than right after"
    assert not revived(Case("c"), {"row"})


def test_a_surface_has_the_lag_of_the_cases_that_it_was_proven_for() -> None:
    quiet, leaking = case({"row": "---"}), case({"row": "+--"})
    assert lag_of([quiet, quiet], "row") == Lag(0.0, 0.0, 0.0, 0.0, cases=2, leaked=0, never=0)
    found = lag_of([quiet, leaking], "row")
    assert found is not None
    assert (found.p50, found.max, found.leaked) == (pytest.approx(1.1), pytest.approx(1.1), 1)
    three = lag_of([quiet, quiet, leaking], "row")
    assert three is not None
    assert three.p50 == 0.0
    of_many = lag_of([quiet] * 199 + [leaking], "row")
    assert of_many is not None
    assert (of_many.p99, of_many.max) == (0.0, pytest.approx(1.1))
    forgets = [Acknowledged(-0.1, 0.0)]
    looks = [Look("row", 0.0, 0.1, True, 0), Look("row", 5.0, 5.1, False, 1)]
    wide = lag_of([leaking, Case("c", {"row": 0.1}, forgets=forgets, looks=looks)], "row")
    assert wide is not None
    assert wide.resolution == pytest.approx(5.1)
    never = lag_of([case({"row": "+++"})], "row")
    assert never is not None
    assert (never.p50, never.max, never.never) == (0.0, 0.0, 1)
    unproven = case({"row": "+--"})
    unproven.proven = {}
    assert lag_of([unproven], "row") is None


def test_what_was_gone_from_everywhere_comes_back_however_few_surfaces_are_asked_between() -> None:
    assert came_back(case({"row": "--+", "search": "-"})) == pytest.approx(2.1)
    assert came_back(case({"row": "+-+", "search": "+++"})) is None
    assert came_back(case({"row": "--", "search": "--"})) is None
    assert came_back(case({"row": "--+", "search": "+"})) is None, "search was not asked again"


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_a_quantile_is_one_of_the_values(share: float, value: float) -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == value


def test_what_differs_between_baselines_by_itself_is_no_drift() -> None:
    baselines = [{"id": "1", "text": "t"}, {"id": "1", "text": "t"}, {"id": "2", "text": "t"}]
    assert drift(baselines, {"id": "3", "text": "t"}) == ()
    assert drift(baselines, {"id": "3", "text": "u"}) == ("text",)
    assert drift(baselines, {"id": "1", "text": "t", "more": "m"}) == ("more",)
    assert drift(baselines[:1], {"id": "3"}) == ()


@pytest.mark.parametrize(("asked", "first"), [(1.0, False), (1.5, False), (1.6, True)])
def test_the_row_is_gone_first_only_if_it_was_surely_gone_when_search_still_told(
    asked: float, first: bool
) -> None:
    looks = [
        Look("row", 0.0, 0.1, True, 0), Look("row", 1.0, 1.5, False, 1), Look("search", asked, 2.0, True, 1),
        Look("search", 3.0, 3.1, False, 2),
    ]  # fmt: skip
    one = Case("c", {"row": 0.1, "search": 0.1}, forgets=[Acknowledged(-0.1, 0.0)], looks=looks)
    assert judged(one)["row_before_index"].found is first


def test_where_nothing_was_measured_nothing_is_said_to_be_too_short() -> None:
    declared = {
        "erasure_model": "async", "settling_interval": 0.5, "keeps_queries": None,
        "write_path_reads_derived": None,
    }  # fmt: skip
    assert contradicted(declared, conclude_trial(Observed(KINDS, frozenset(), [], {}))) == ()
    for cases in ([], [Case("c")] * ENOUGH):
        assert conclude_trial(Observed({}, frozenset(), cases, {})).conditions == ()
    seen = conclude_trial(Observed(KINDS, frozenset(), [case({"row": "+--"})], {}))
    longest = seen.lags["row"].max
    for interval, words in ((longest, 0), (longest - 0.01, 1)):
        assert len(contradicted({**declared, "settling_interval": interval}, seen)) == words


def test_of_what_could_not_be_told_nothing_is_said() -> None:
    assert judged(QUIET)["expired_told"].surfaces == ()
    assert judged(QUIET, repeat_tokens=())["fresh_tokens"].found is None
    unread = [extra("search", turn, None, reworded=True) for turn in range(2)]
    assert judged(case({"search": "++"}, *unread))["answer_cache"].found is None
    usual, again = case({"row": "+--", "search": "---"}), case({"row": "++-", "search": "+--"})
    for after, late in ((2.0, False), (1.0, True)):
        assert judged(usual, repeat=again, repeat_after=after)["repeat_restarts"].found is late
    assert judged(repeat=again, repeat_after=2.0)["repeat_restarts"].found is True
    assert judged(QUIET)["restated_returns"].surfaces == ()
    assert judged(QUIET, many="", many_left=[])["partial_delete"].found is None
    assert judged(Case("c"))["ack_denies"].found is None
    denied = judged(case({"row": "--"}, count=0), case({"row": "++"}, count=0))
    assert denied["ack_denies"].found is True
    probes = [extra("row", turn, False, client=False) for turn in range(3)]
    assert judged(QUIET, case({"row": "+++"}, *probes))["agents_see_more"].found is True
    assert judged(case({"row": "+++"}, *probes), QUIET)["agents_see_more"].found is True
    some = [extra("row", turn, turn == 1, client=False) for turn in range(3)]
    assert judged(case({"row": "+++"}, *some))["agents_see_more"].found is False
    told = [extra("search", turn, False, reworded=True) for turn in range(2)]
    assert judged(case({"search": "++"}, *told))["answer_cache"].found is True


def test_one_of_several_searches_that_tells_later_than_the_row_is_enough() -> None:
    kinds = {"row": "primary", "search": "index", "near": "derived"}
    one = case({"row": "---", "search": "++-", "near": "---"})
    lags = {name: lag for name in kinds if (lag := lag_of([one], name)) is not None}
    found = [judge(Observed(kinds, frozenset(), [one], {}), lags) for judge in JUDGES]
    assert [each.found for each in found if each.name == "row_before_index"] == [True]
    unsteady = case({"row": "+-+-+", "search": "---"})
    assert judged(unsteady, case({"row": "---", "search": "++-"}))["row_before_index"].found is True


def test_a_finding_has_its_name_whatever_was_told() -> None:
    names = set(judged())
    told = {"many": "ab", "many_left": [1], "swallowed_first": False, "repeat": QUIET, "repeat_after": 1.0}
    assert set(judged(QUIET)) == set(judged(QUIET, **told)) == names
    assert names == {
        "leaks", "never_gone", "row_before_index", "others_repeat", "answer_cache", "unsteady",
        "agents_see_more", "comes_back", "read_revives", "partial_delete", "ack_denies", "same_ack",
        "unanswered", "repeat_restarts", "fresh_tokens", "case_differs", "siblings_lost", "swallows",
        "expired_told", "epoch_behind", "bystanders_lost", "restated_returns", "keeps_queries", "inherits",
        "merges", "ids_reused", "queued_writes", "lands_late", "batched",
    }  # fmt: skip
