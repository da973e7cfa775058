"""The families of plans: one replica, or several. Each plays a plan in its own world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.simulation.cluster import Cluster
from tests.simulation.plan import RECALLS, Plan, plan_of
from tests.simulation.replica_plan import ReplicaPlan, replica_plan_of
from tests.simulation.replica_switches import OF_REPLICAS
from tests.simulation.run import Outcome, Simulation

REPLICAS: Final = 3
"""How many there are where nothing else is said."""


def simulate(plan: Plan) -> Outcome:
    """Plays a plan of any family."""
    return Cluster(plan).run() if isinstance(plan, ReplicaPlan) else Simulation(plan).run()


def plan_from(document: dict[str, Any]) -> Plan:
    """The plan that a YAML file holds."""
    return ReplicaPlan(**document) if "replicas" in document else Plan(**document)


@dataclass(frozen=True)
class Family:
    """Which plans a seed stands for."""

    recalls: int = RECALLS
    replicas: int = 1

    @property
    def make(self) -> Callable[[int], Plan]:
        """Makes the plan of a seed."""
        if self.replicas == 1:
            return partial(plan_of, recalls=self.recalls)
        return partial(replica_plan_of, recalls=self.recalls, replicas=self.replicas)

    @property
    def options(self) -> str:
        """What the command line has to say for it."""
        return f"--recalls {self.recalls}" + (f" --replicas {self.replicas}" if self.replicas > 1 else "")

    @property
    def name(self) -> str:
        """Its part of a file's name."""
        return str(self.recalls) + (f"-{self.replicas}-replicas" if self.replicas > 1 else "")


def family_of(protection: str, recalls: int) -> Family:
    """The family whose seeds are played without a protection."""
    return Family(recalls, REPLICAS if protection in OF_REPLICAS else 1)
