"""kill -9 at every step of a forget: the gate is shut when it comes back, nothing acknowledged is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kills import POINTS, RANDOM, kill_all, table, total

TIMES, ANYWHERE = 5, 10


@pytest.mark.timeout(1800)
@pytest.mark.requirement("R39", "R119", "R157", "R186")
def test_killed_at_every_point_again_and_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = kill_all(tmp_path, TIMES, ANYWHERE)
    with capsys.disabled():
        print("\n" + "\n".join(table(rows)))
    every = total(rows)
    assert every.kills == TIMES * len(POINTS) + ANYWHERE
    assert (every.lost, every.leaks, every.wrong) == (0, 0, [])
    by_point = {row.point: row for row in rows}
    # The one window in which nobody can know whether the store has done it; the token is the same.
    unknowable = {point.name for point in POINTS if point.forgets == (2,)}
    assert {name for name, row in by_point.items() if row.twice} - {RANDOM} == unknowable
    assert all(by_point[name].twice == TIMES for name in unknowable)
    assert by_point["after:clean"].acknowledged == TIMES
    assert by_point["before:requested"].acknowledged == 0
