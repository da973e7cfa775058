"""Each protection switched off in turn: what is found then, in which seed first, as a table.

`python -m tests.simulation --controls` plays the seeds in their order, the same for each protection, and
writes docs/negative-controls.md. `controls.yaml` holds, for each, a plan that was shrunk from such a seed:
`make test` plays those.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.simulation.calls import Finding
from tests.simulation.families import REPLICAS, family_of, plan_from, simulate
from tests.simulation.many import LEAKS, play
from tests.simulation.plan import Plan
from tests.simulation.replica_switches import OF_REPLICAS
from tests.simulation.shrink import shrunk
from tests.simulation.switches import PROTECTIONS, switched_off

AT_LEAST: Final = 20
"""Seeds that are played without each protection, and as many more as it takes until one fails."""
SHORT: Final = 60
"""Recalls in such a seed: most protections are missed within the first few."""
TRIED: Final = 40
"""Seeds after which the plans that were written for a protection are played instead."""
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "negative-controls.md"
PLANS: Final = Path(__file__).parent / "controls.yaml"
HEAD: Final = """# Each protection is needed

The simulator (`tests/simulation`) plays seeds through the real parts: with every protection on, none of them
fails. Here each protection is switched off in one named place of `tests/simulation/switches.py` (the product
has no such switch), and the same seeds are played again. *Leaks* are tokens of the erased that reached a
client who must not have them; what else was broken stands beside them, in the judge's words. Written by
`make controls`, in seeds of 60 recalls, from 0 on: at least 20, and on until one fails, 40 at most. Where
chance does not meet the one moment that a protection is for, a plan written for it is played (*plan*, in
`tests/simulation/controls.yaml`). `make test` plays a small failing plan of each, with the protection on and
off.

"""
COLUMNS: Final = """| protection | leaks | other broken properties | first seed | seeds that failed |
|---|---:|---|---:|---:|
"""
SEVERAL: Final = f"""
## Several replicas

The same with {REPLICAS} replicas over one shared ledger, in plans of their own (`--replicas {REPLICAS}`).
*Stale*: an answer of a replica that had not read what was older than its lease. *Barrier*: a forget went to
the store while a write of its scope was under way. *Absorbed*: a repeat of a forget became an erasure of its
own.

"""


@dataclass
class Control:
    """What was found without one protection."""

    name: str
    played: int = 0
    failing: list[int] = field(default_factory=list)
    found: Counter[str] = field(default_factory=Counter)
    written: bool = False
    """No seed failed, but a plan that was written for it."""

    def add(self, seed: int, findings: list[Finding]) -> None:
        self.played += 1
        # A mere exception shows that something was taken out, not that it was needed.
        findings = [finding for finding in findings if finding.property != "surprise"]
        if findings:
            self.failing.append(seed)
            self.found.update(finding.property for finding in findings)

    def row(self) -> str:
        """Its line of the table."""
        leaks = sum(self.found[kind] for kind in LEAKS)
        others = ", ".join(f"{kind} {n}" for kind, n in self.found.most_common() if kind not in LEAKS)
        first = str(self.failing[0]) if self.failing else "none"
        first, failed = (f"plan {first}", 0) if self.written else (first, len(self.failing))
        return f"| {self.name} | {leaks} | {others} | {first} | {failed} of {self.played} |"


def measured(name: str, seeds: int, recalls: int) -> Control:
    """Plays seeds in their order without a protection: at least `AT_LEAST`, until one fails."""
    control = Control(name)
    family = family_of(name, recalls)
    for outcome in play(range(seeds), family, name):
        if outcome.findings and not control.failing and simulate(family.make(outcome.seed)).findings:
            raise SystemExit(f"seed {outcome.seed} of {recalls} recalls fails with everything on: first that")
        control.add(outcome.seed, outcome.findings)
        if control.failing and control.played >= AT_LEAST:
            return control
    if not control.failing:
        control.written = True
        with switched_off(name):
            for plan in plans_of(name):
                control.add(plan.seed, simulate(plan).findings)
                control.played -= 1
    return control


def page(controls: list[Control]) -> str:
    """The page of docs/."""
    one = "".join(f"{control.row()}\n" for control in controls if control.name not in OF_REPLICAS)
    several = "".join(f"{control.row()}\n" for control in controls if control.name in OF_REPLICAS)
    return HEAD + COLUMNS + one + SEVERAL + COLUMNS + several


def plans_of(name: str) -> list[Plan]:
    """The plans that fail without a protection: shrunk ones, and those of short seeds."""
    entries: list[dict[str, Any]] = yaml.safe_load(PLANS.read_text(encoding="utf-8"))
    its = [entry for entry in entries if entry["protection"] == name]
    short = family_of(name, SHORT).make
    return [plan_from(entry["plan"]) if "plan" in entry else short(entry["seed"]) for entry in its]


def smallest(name: str, seed: int, recalls: int) -> str:
    """An entry of `controls.yaml`: the plan of a seed, shrunk to what fails without the protection."""
    with switched_off(name):
        plan = shrunk(family_of(name, recalls).make(seed))
    if simulate(plan).findings:
        raise SystemExit(f"seed {seed}, shrunk, fails with the protection on: look at that first")
    entry = [{"protection": name, "plan": plan.document()}]
    return yaml.safe_dump(entry, sort_keys=False, width=110, default_flow_style=None)


def write(name: str = "", seeds: int = TRIED, recalls: int = SHORT) -> None:
    """Plays them all, or one, and writes the page when all were played."""
    controls = []
    for protection in [name] if name else list(PROTECTIONS):
        controls.append(measured(protection, seeds, recalls))
        print(controls[-1].row(), flush=True)
    if not name:
        PAGE.write_text(page(controls), encoding="utf-8")
