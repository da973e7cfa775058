"""Seeds through the real parts: no leak, nothing lost, everything settles, nobody else goes missing.

What failed once is played first, from `regressions.yaml`. What is found now is shrunk and printed as an
entry for that file, with the one command that plays the seed again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.simulation.families import Family, plan_from, simulate
from tests.simulation.many import Total, play
from tests.simulation.plan import plan_of
from tests.simulation.run import Simulation
from tests.simulation.shrink import shrunk

FAILED_ONCE = yaml.safe_load((Path(__file__).parent / "regressions.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", FAILED_ONCE, ids=[entry["name"] for entry in FAILED_ONCE])
def test_what_failed_once_holds(entry: dict[str, Any]) -> None:
    found = simulate(plan_from(entry["plan"])).findings
    assert not found, "\n".join(map(str, found))


def test_a_seed_is_the_same_every_time() -> None:
    def played() -> tuple[Any, ...]:
        simulation = Simulation(plan_of(14, 60))
        outcome = simulation.run()
        events = [(event.type, event.erasure, event.at) for event in simulation._events()]
        return outcome.counts, outcome.virtual, events

    assert played() == played()


@pytest.mark.timeout(3600)
@pytest.mark.requirement("R8", "R19", "R39", "R120", "R148", "R157")
def test_seeds(seeds: int, recalls: int, record_property: Any) -> None:
    family = Family(recalls)
    total, began = Total(family), time.monotonic()
    for outcome in play(range(seeds), family):
        total.add(outcome)
    record_property("simulation", total.say(time.monotonic() - began))
    if total.failed:
        first = min(total.failed)
        small = yaml.safe_dump(shrunk(plan_of(first, recalls)).document(), sort_keys=False, width=110)
        pytest.fail(f"{total.complaint()}\nthe first of them, shrunk:\n{small}", pytrace=False)
    # A run in which nothing much happened has shown nothing.
    assert total.answered >= seeds * recalls * 0.85
    assert len(total.kinds) >= (12 if seeds >= 20 else 1)
    assert total.counts["met"] and total.counts["settled"] and total.counts["deaths"] or seeds < 20


@pytest.mark.timeout(300)
def test_a_day_passes_and_nothing_comes_out(record_property: Any) -> None:
    """24 hours of virtual time: patrols, restarts and jumps long after everything has settled."""
    plan = plan_of(8, 100)
    plan.network = {}
    # Copies at other people would leak all day, and be probed for every few seconds.
    said: list[Any] = []
    for step in [step for step in plan.steps if step["do"] == "write"]:
        if step["words"] in said or "derived_from" in step:
            plan.steps.remove(step)
        said.append(step["words"])
    last = plan.steps[-1]["at"]
    hours: list[dict[str, Any]] = []
    for hour in range(1, 25):
        at = last + 3600.0 * hour
        hours.append({"at": at, "do": "recall", "query": "amber basin cedar", "tenant": "acme"})
        if hour % 5 == 0:
            hours.append({"at": at + 1, "do": "crash", "steps": 3, "how": "kill", "for": 20.0})
        if hour % 7 == 0:
            hours.append({"at": at + 2, "do": "jump", "by": -7200.0})
        hours.append({"at": at + 60, "do": "export", "tenant": "acme"})
    plan.steps += hours
    for number, step in enumerate(plan.steps):
        step["n"] = number
    began = time.process_time()  # of this process alone, whatever else the machine does
    outcome = simulate(plan)
    took = time.process_time() - began
    says = f"{outcome.virtual / 3600:.1f} h of virtual time in {took:.1f} s of CPU time"
    record_property("simulation", f"{says}, {len(outcome.findings)} findings")
    assert not outcome.findings, "\n".join(map(str, outcome.findings))
    assert outcome.virtual >= 86_400
    assert outcome.counts["settled"] and took < 90
