"""What follows from the looks at one canary."""

from __future__ import annotations

import pytest

from quietus.core.trial import Acknowledged, Case, Look, came_back, drift, lag_of, quantile, span, unsteady


def case(*told: str, surface: str = "s") -> Case:
    """A case with one look a second after the acknowledgement at 10: "+" tells, "-" does not, "?" unread."""
    seen = {"+": True, "-": False, "?": None}
    looks = [
        Look(surface, 10.0 + at, 10.1 + at, seen[sign], at)
        for at, sign in enumerate("".join(told))
    ]  # fmt: skip
    return Case("c", {surface: 0.1}, forgets=[Acknowledged(9.9, 10.0)], looks=looks)


@pytest.mark.parametrize(
    ("told", "low", "high"),
    [
        ("---", 0.0, 0.1),
        ("+--", 1e-9, 1.1),
        ("+++-", 2.0, 3.1),
        ("++?-", 1.0, 3.1),
        ("+++", 2.0, None),
        ("+-+-+--", 4.0, 5.1),
        ("++--+++", 1.0, 2.1),
    ],
)
def test_a_lag_lies_between_the_last_sight_and_the_first_look_without(
    told: str, low: float, high: float | None
) -> None:
    found = span(case(told), "s")
    assert found is not None and found.low == pytest.approx(low)
    assert found.high == (None if high is None else pytest.approx(high))


def test_what_was_never_looked_at_has_no_lag() -> None:
    assert span(case(), "s") is None and span(case("??"), "s") is None and lag_of([case("?")], "s") is None
    assert span(Case("c"), "s") is None


def test_a_return_is_no_late_removal_and_a_flicker_is_no_return() -> None:
    back = case("+---+++")
    assert came_back(back) == pytest.approx(4.1) and not unsteady(back)
    assert unsteady(case("-+-+-")) == {"s"} and came_back(case("+++---")) is None


def test_lags_over_many_cases() -> None:
    lag = lag_of([case("---"), case("+-"), case("++-"), case("+++")], "s")
    assert lag is not None and (lag.cases, lag.leaked, lag.never) == (4, 3, 1)
    assert lag.max == pytest.approx(2.1) and lag.p50 == pytest.approx(1.1) and lag.resolution < 1.2
    assert quantile([1, 2, 3, 4], 0.99) == 4 and quantile([1], 0.5) == 1


def test_drift_is_what_two_fresh_records_agree_on_and_a_third_does_not() -> None:
    one = {"a": "1", "at": "5", "who": "x"}
    two = {"a": "1", "at": "6", "who": "y"}
    assert drift([one, two], {"a": "1", "at": "7", "who": "z"}) == ()
    assert drift([one, two], {"a": "2", "at": "7", "salience": "0.91"}) == ("a", "salience")
    assert drift([one], {"a": "2"}) == ()
