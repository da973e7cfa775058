"""Two and three replicas over one simulated ledger: what one has forgotten, no other tells.

A plan that failed once stands in `regressions.yaml` with those of one replica; what makes replicas safe is
switched off in `test_negative_controls.py`.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml

from tests.simulation.cluster import Cluster
from tests.simulation.families import Family
from tests.simulation.many import Total, play
from tests.simulation.replica_plan import replica_plan_of
from tests.simulation.shrink import shrunk

SHORT = 60
"""Recalls in a seed here."""


@pytest.mark.timeout(600)
@pytest.mark.requirement("R183", "R189", "R208", "R209")
@pytest.mark.parametrize(("replicas", "seeds"), [(2, 6), (3, 12)])
def test_seeds_of_several_replicas(replicas: int, seeds: int, record_property: Any) -> None:
    family = Family(SHORT, replicas)
    total, began = Total(family), time.monotonic()
    for outcome in play(range(seeds), family):
        total.add(outcome)
    record_property("simulation", total.say(time.monotonic() - began))
    if total.failed:
        first = min(total.failed)
        small = yaml.safe_dump(shrunk(family.make(first)).document(), sort_keys=False, width=110)
        pytest.fail(f"{total.complaint()}\nthe first of them, shrunk:\n{small}", pytrace=False)
    # A run in which nothing much happened has shown nothing.
    assert total.counts["met"] and total.counts["expelled"] and total.counts["settled"]
    assert total.counts["cut_off"] and total.counts["freeze"] and total.counts["deaths"]
    assert total.answered >= seeds * SHORT * 0.6


def test_a_seed_of_replicas_is_the_same_every_time() -> None:
    def played() -> tuple[Any, ...]:
        cluster = Cluster(replica_plan_of(3, SHORT, 3))
        outcome = cluster.run()
        events = [(event.type, event.erasure, event.at) for event in cluster.server.events()]
        return outcome.counts, outcome.virtual, events

    assert played() == played()
