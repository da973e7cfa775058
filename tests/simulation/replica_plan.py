"""Plans for two and more replicas: a family of its own, beside the plans of one.

Clients and stores are drawn as for one replica. Then every step is given a replica to go through, forgets are
asked for twice at once through two of them, writes and recalls race them, and what may befall a replica is
drawn: it is cut off from the ledger, stands still, dies or leaves at any of its steps; its clocks are off,
drift and jump; the ledger's server is slow, away, full, or restarts without a part of its roster.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.plan import Plan, Planner, Step, sentence
from tests.simulation.views import DRIFT

LEASES: Final = (1.5, 3.0, 6.0)
_OF_ONE: Final = frozenset({"crash", "ledger_down", "disk_full", "jump", "blind"})
"""Ills of a single process and its disk; `blind` stores are tried enough there."""


@dataclass
class ReplicaPlan(Plan):
    """One seed of several replicas. `ledger_delay` is the most that a call at the server takes each way."""

    replicas: int = 3
    lease: float = 3.0
    clocks: list[dict[str, float]] = field(default_factory=list)
    """How each machine's clocks are off: `rate`, `boot` and `wall`."""


class ReplicaPlanner(Planner):
    """Draws such a plan."""

    def __init__(self, seed: int, recalls: int, replicas: int) -> None:
        super().__init__(seed, recalls)
        self.replicas = replicas
        self.more = random.Random(f"{replicas} replicas {seed}")

    def draw(self) -> ReplicaPlan:
        more, one = self.more, super().draw()
        delay = more.choice((0.002, 0.002, 0.05, 0.4))
        plan = ReplicaPlan(one.seed, one.faults, one.network, delay, one.hasty, replicas=self.replicas)
        plan.lease = more.choice(LEASES)
        plan.clocks = [self._clock() for _ in range(self.replicas)]
        steps = [step for step in one.steps if step["do"] not in _OF_ONE]
        forgets = [step for step in steps if step["do"] == "forget"]
        for forget in forgets:
            forget["via"] = more.randrange(self.replicas)
            steps += self._race(forget)
        for step in steps:
            if "replica" not in step:
                step.setdefault("via", more.randrange(self.replicas))
        steps += self._troubles([forget["at"] for forget in forgets], steps[-1]["at"])
        plan.steps = sorted(steps, key=lambda step: float(step["at"]))
        for number, step in enumerate(plan.steps):
            step["n"] = number
        for step in plan.steps:
            if (forget := step.pop("after", None)) is not None and "epochs" not in plan.faults:
                step["epoch_of"] = forget["n"]
        return plan

    # --- what races a forget -----------------------------------------------------------------------

    def _race(self, forget: Step) -> list[Step]:
        more, at, said = self.more, forget["at"], _predicate(forget)
        found: list[Step] = []
        if more.random() < 0.5:
            other = (forget["via"] + 1 + more.randrange(self.replicas - 1)) % self.replicas
            found.append(self._step(at + more.random() * 0.3, "forget", again=True, via=other, **said))
        known = [step for step in self.texts if _lies_in(step, said) and step["at"] < at - 2.0]
        if known:
            found.append(self._quote(at - 1.5, more.choice(known)))
        for _ in range(2 if "subject" in said else 0):
            write = self._write(round(at + more.uniform(-0.5, 1.5), 3))
            write["subject"], write["tenant"] = said["subject"], said.get("tenant", write["tenant"])
            if more.random() < 0.5:
                write["answered_after"] = round(more.random() * 3.0, 2)
            found.append(write)
        asked: list[Step] = [said] if "keys" not in said else []
        asked += [{name: step[name] for name in ("tenant", "subject")} for step in found if "quotes" in step]
        victim = self._victim(forget, found)
        for _ in range(8):
            scope = more.choice([*asked, *asked, {"tenant": said.get("tenant", "acme")}])
            query = sentence(more.choice(known)) if known else "amber basin cedar"
            within = more.choice((1.0, 2.0, 6.0))
            recall = self._step(at + more.uniform(0.0, within), "recall", query=query, **scope)
            if more.random() < 0.6:
                recall["via"] = victim
            if more.random() < 0.3:
                recall["after"] = forget
            found.append(recall)
        return found

    def _victim(self, forget: Step, found: list[Step]) -> int:
        """A replica that hears of the forget late, or not at all: it is slow, cut off, or stands still."""
        more, at = self.more, forget["at"]
        victim: int = (forget["via"] + 1 + more.randrange(self.replicas - 1)) % self.replicas
        do = more.choice(("", "cut_off", "cut_off", "lag", "lag", "freeze"))
        seconds = round(more.choice(LEASES) * more.uniform(0.5, 3), 2)
        step: Step = {"do": do, "replica": victim, "for": seconds}
        if do == "cut_off":
            step["at"] = round(at + more.choice((more.uniform(-0.5, 0.0), more.uniform(0.0, 0.5))), 3)
        elif do == "lag":
            step |= {"at": round(at - 0.5, 3), "delay": round(more.uniform(0.3, 1.4), 2)}
        elif do == "freeze":
            step |= {"at": round(at - 0.1, 3), "steps": more.randrange(60)}
        if do:
            found.append(step)
        return victim

    def _quote(self, at: float, text: Step) -> Step:
        """Somebody else says what a text says."""
        quote = self._write(round(at, 3))
        quote["quotes"], quote["words"] = text.get("quotes") or text["token"], text["words"]
        quote["tenant"] = text["tenant"]
        quote["subject"] = next(s for s in self.subjects[text["tenant"]] if s != text["subject"])
        quote.pop("derived_from", None)
        return quote

    # --- what befalls replicas ---------------------------------------------------------------------

    def _troubles(self, forgets: list[float], end: float) -> list[Step]:
        return [self._trouble(forgets, end) for _ in range(self.more.choice((1, 2, 3, 5, 7)))]

    def _trouble(self, forgets: list[float], end: float) -> Step:
        more = self.more
        at = more.uniform(4.0, end)
        if forgets and more.random() < 0.7:
            at = more.choice(forgets) + more.uniform(-1.0, 1.0)
        do = more.choices(
            ("cut_off", "freeze", "crash", "jump", "ledger_down", "ledger_full", "ledger_restart"),
            (6, 6, 4, 1, 1, 1, 1),
        )[0]
        seconds = round(more.choice(LEASES) * more.uniform(0.2, 3), 2)
        step: Step = {"at": round(at, 3), "do": do, "for": seconds}
        if do in ("cut_off", "freeze", "crash", "jump"):
            step["replica"] = more.randrange(self.replicas)
        if do in ("freeze", "crash"):
            step["steps"] = more.randrange(more.choice((10, 100, 400)))
        if do == "crash":
            step["how"] = more.choice(("kill", "kill", "leave"))
        if do == "jump":
            step["by"] = more.choice((-3600.0, -60.0, 61.0, 3600.0, 86400.0))
        if do == "ledger_restart":
            step["lost"] = [number for number in range(self.replicas) if more.random() < 0.5]
        return step

    def _clock(self) -> dict[str, float]:
        more = self.more
        return {
            "rate": round(1.0 + more.uniform(-DRIFT, DRIFT), 4),
            "boot": round(more.uniform(0.0, 1e6), 1),
            "wall": more.choice((0.0, 0.0, -600.0, 600.0)),
        }


def _predicate(step: Step) -> Step:
    return {name: step[name] for name in ("tenant", "subject", "keys", "path") if name in step}


def _lies_in(text: Step, said: Step) -> bool:
    return all(text.get(name) == said[name] for name in ("tenant", "subject") if name in said)


def replica_plan_of(seed: int, recalls: int, replicas: int) -> ReplicaPlan:
    """The plan of a seed for so many replicas; the same for the same three numbers."""
    return ReplicaPlanner(seed, recalls, replicas).draw()
