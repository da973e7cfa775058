"""What several requests for one erasure come to: neither surely all nor surely none is unclear."""

from __future__ import annotations

from itertools import product

import pytest

from quietus.profiles.acks import Ack, Outcome, summed

OUTCOMES: tuple[Outcome, ...] = ("accepted", "not_found", "refused", "unclear", "queued")


@pytest.mark.parametrize(("one", "other"), list(product(OUTCOMES, OUTCOMES)))
def test_no_pair_claims_more_than_its_weaker_part(one: Outcome, other: Outcome) -> None:
    found = summed([Ack(one), Ack(other)]).outcome
    assert found == summed([Ack(other), Ack(one)]).outcome
    if "unclear" in (one, other) or ("refused" in (one, other) and one != other):
        assert found == "unclear"
    elif one == other:
        assert found == one
    else:
        assert found == ("queued" if "queued" in (one, other) else "accepted")


def test_counts_are_added_and_the_furthest_epoch_counts() -> None:
    found = summed([Ack("accepted", "t1", 3, 7), Ack("accepted", None, None, 9), Ack("not_found", "t3", 2)])
    assert found == Ack("accepted", "t3", 5, 9)
    alone = Ack("refused", "t", 1, 2)
    assert summed([alone]) is alone
