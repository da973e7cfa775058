"""Each protection is needed: without it, the seeds that pass with it fail.

A protection is switched off in one named place of `switches.py`, in this process only. What is then found is
printed as a table: protection, leaks and other broken properties found, the first seed.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.simulation.many import play
from tests.simulation.switches import PROTECTIONS

ENOUGH = 3
"""Failing seeds after which a protection counts as needed; until then every seed of --seeds is played."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", PROTECTIONS)
def test_without_it_the_same_seeds_fail(
    name: str, seeds: int, recalls: int, record_property: Any
) -> None:
    found: Counter[str] = Counter()
    failing: list[int] = []
    played = 0
    for outcome in play(range(seeds), recalls, name):
        played += 1
        if outcome.findings:
            failing.append(outcome.seed)
            found.update(finding.property for finding in outcome.findings)
        if len(failing) >= ENOUGH:
            break
    leaks = sum(found[kind] for kind in ("leak", "inside", "held_back"))
    others = ", ".join(f"{kind} {number}" for kind, number in found.most_common() if kind not in
                       ("leak", "inside", "held_back"))  # fmt: skip
    first = min(failing, default=None)
    record_property(
        "simulation",
        f"{name:34} leaks {leaks:3}  first seed {first}  ({len(failing)} of {played} seeds) {others}",
    )
    assert failing, f"nothing fails in {played} seeds without: {name}"
