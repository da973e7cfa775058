"""What `quietus scan` says of how far the lineage reaches, and of what it cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.cli.scanning import coverage
from quietus.scan import Seen


@pytest.mark.parametrize(
    ("seen", "percents", "says"),
    [
        (Seen(records=8, derived=2, ownerless=2, complete=True), (75, 25), ["2 records name no subject"]),
        (Seen(records=3, complete=True), (100, 0), ["no record names its sources"]),
        (Seen(records=2, derived=1, dangling=1, complete=True), (100, 50), ["1 edges lead to what"]),
        (Seen(records=2, derived=1, evicted=4, complete=True), (100, 50), ["lineage_records_max"]),
        (Seen(records=2, derived=1), (100, 50), ["run it again"]),
        (Seen(complete=True), (100, 100), []),
    ],
)
def test_coverage_is_told_with_what_limits_it(seen: Any, percents: tuple[int, int], says: list[str]) -> None:
    told = coverage(seen)
    assert (told["with_subject_percent"], told["with_sources_percent"]) == percents
    assert len(told["limits"]) == len(says)
    assert all(word in limit for word, limit in zip(says, told["limits"], strict=True))
