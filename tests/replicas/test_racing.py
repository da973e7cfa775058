"""Nobody who was forgotten is recalled, through whichever replica, whatever becomes of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.servers import Server
from tests.replicas.cluster import cluster
from tests.replicas.lying_store import LyingStore
from tests.replicas.race import Race


@pytest.mark.timeout(240)
@pytest.mark.requirement("R183", "R189", "R208")
async def test_forgets_and_recalls_race_while_replicas_fail(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 3, upstream=lying.url, lease="2s") as made:
        tally = await Race(made, lying, people=30, recalls=600).run(faults=3)
    print(tally.line())
    assert (tally.leaks, tally.late_writes, tally.unexplained) == ([], [], [])
    assert tally.upstream[0] == 0, "every forget reached the store"
    assert tally.recalls == 600 and tally.statuses[200] > 0 and tally.statuses[409] > 0
    assert tally.faults == {"freeze": 1, "partition": 1, "kill": 1}
