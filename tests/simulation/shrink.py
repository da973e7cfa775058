"""Making a failing plan smaller: as few steps and faults as still fail in the same way."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.families import simulate
from tests.simulation.plan import Plan, Step

TRIES = 400


class Shrinker:
    """Leaves out halves, quarters, ... as long as the first finding's property still fails."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tries = 0
        first = simulate(plan).findings
        self.property = first[0].property if first else ""

    def fails(self, plan: Plan) -> bool:
        self.tries += 1
        return any(finding.property == self.property for finding in simulate(plan).findings)

    def steps(self) -> None:
        size = max(len(self.plan.steps) // 2, 1)
        while self.tries < TRIES:
            at, before = 0, len(self.plan.steps)
            while at < len(self.plan.steps) and self.tries < TRIES:
                rest: list[Step] = [*self.plan.steps[:at], *self.plan.steps[at + size :]]
                if rest and self.fails(self.plan.kept(rest)):
                    self.plan = self.plan.kept(rest)
                else:
                    at += size
            if size == 1 and len(self.plan.steps) == before:
                return
            size = max(size // 2, 1)

    def surroundings(self) -> None:
        for name in list(self.plan.faults):
            less = replace(self.plan, faults={k: v for k, v in self.plan.faults.items() if k != name})
            if self.fails(less):
                self.plan = less
        for name in list(self.plan.network):
            calm = replace(self.plan, network={k: v for k, v in self.plan.network.items() if k != name})
            if self.fails(calm):
                self.plan = calm


def shrunk(plan: Plan) -> Plan:
    """The smallest plan found that fails as the given one does; the given one if it does not fail."""
    shrinker = Shrinker(plan)
    if shrinker.property:
        shrinker.steps()
        shrinker.surroundings()
        shrinker.steps()
    return shrinker.plan
