"""One round of probes over every surface: what was found, and how it is to be judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quietus.core.erasure import Erasure
from quietus.core.operations import Item
from quietus.core.probing import (
    Controls,
    Finding,
    Probe,
    SurfaceFacts,
    Witness,
    conclude_round,
    judge,
    plan,
    share,
)
from quietus.core.verdict import Outcome
from quietus.permits import Purpose
from quietus.ports import UpstreamError
from quietus.prober import UNREACHED, Prober
from quietus.profiles.faults import Unreadable
from quietus.profiles.surface import Surface
from quietus.recording import Observer
from quietus.snapshots import Snapshot


@dataclass(slots=True)
class Round:
    """The outcome of one round; `began` is the monotonic second of its first request."""

    began: float
    outcome: str = "inconclusive"
    surfaces: list[dict[str, Any]] = field(default_factory=list)
    leaking: list[str] = field(default_factory=list)
    residual: list[tuple[str, Item]] = field(default_factory=list)
    """(surface, item): records of the erased that the store still lists by key."""
    read_epoch: int | None = None
    uncontrolled: set[str] = field(default_factory=set)
    """Surfaces that did not count and had no live control."""
    reached: bool = True
    """Every request was answered."""

    def add(self, surface: dict[str, Any]) -> None:
        """Adds a surface that was looked at apart, and concludes anew."""
        self.surfaces.append(surface)
        self.conclude()

    def conclude(self) -> None:
        """The outcome of the round over the surfaces that were looked at."""
        self.outcome = conclude_round(self.surfaces)
        self.leaking = [s["name"] for s in self.surfaces if s["outcome"] == Outcome.LEAKING.value]


class Rounds:
    """Carries out rounds."""

    def __init__(self, prober: Prober, metrics: Observer, replicas: int = 1) -> None:
        """`replicas` is how many servers stand behind the address: each probe is sent so often, freshly."""
        self._prober = prober
        self._replicas = replicas
        self._metrics = metrics

    async def run(self, erasure: Erasure, snapshot: Snapshot, turn: int, began: float) -> Round:
        """One round over every surface that can be probed."""
        result = Round(began)
        for surface in self._prober.profile.surfaces:
            result.surfaces.append(await self._surface(surface, erasure, snapshot, turn, result))
        result.conclude()
        result.read_epoch = await self._epoch()
        return result

    async def _surface(
        self, surface: Surface, erasure: Erasure, snapshot: Snapshot, turn: int, result: Round
    ) -> dict[str, Any]:
        facts = SurfaceFacts(surface.name, surface.kind, surface.each)
        if not surface.probeable:
            return {"name": surface.name, "kind": surface.kind, "outcome": Outcome.OUT_OF_SCOPE.value,
                    "control": "none", "residual": 0, "reason": surface.note}
        known = snapshot.controls.get(surface.name, [])
        findings: list[Finding] = []
        rounds = erasure.terms.clean_rounds
        most, sampled = share(facts, len(snapshot.witnesses), rounds)
        for probe in self._probes(facts, snapshot, turn, most) * self._replicas:
            finding, items = await self._prober.probe(surface, probe, erasure)
            findings.append(finding)
            if surface.kind == "primary" or surface.enumerates:
                result.residual += [
                    (surface.name, item)
                    for item in items
                    if item.key is not None
                    and not self._prober.of_another(surface, probe.witness, item, erasure)
                ]
        findings += await self._controls(surface, known, turn)
        controls = Controls(bool(snapshot.records), bool(known), snapshot.control_kind)
        applicable = surface.each != "path" or any(w.path is not None for w in snapshot.witnesses)
        outcome = judge(facts, findings, controls, applicable)
        outcome |= {"probed_at": self._prober.now(), **({"sampled": True} if sampled else {})}
        self._metrics.count("probes", surface=surface.name, outcome=outcome["outcome"])
        alive = any(f.found for f in findings if f.control)
        if not alive and outcome["outcome"] == Outcome.INCONCLUSIVE.value:
            result.uncontrolled.add(surface.name)
        result.reached = result.reached and all(f.reason != UNREACHED for f in findings)
        return outcome

    @staticmethod
    def _probes(facts: SurfaceFacts, snapshot: Snapshot, turn: int, most: int) -> list[Probe]:
        proven = set(snapshot.proven.get(facts.name, ()))
        ours = {id(w) for place, w in enumerate(snapshot.witnesses) if place in proven}
        planned = plan(facts, snapshot.witnesses, turn, most)
        first = [w for place, w in enumerate(snapshot.witnesses) if place in proven]
        probes = [Probe(facts.name, p.witness, proven=id(p.witness) in ours) for p in planned]
        if first and not any(probe.proven for probe in probes):
            # A round without one proven probe would prove nothing: its turn comes every time.
            probes += [Probe(facts.name, p.witness, proven=True) for p in plan(facts, first, turn)[:1]]
        return probes

    async def _controls(self, surface: Surface, known: list[Witness], turn: int) -> list[Finding]:
        for offset in range(len(known)):
            witness = known[(turn + offset) % len(known)]
            found = await self._prober.finds(surface, witness)
            self._metrics.count("bystanders", outcome="found" if found else "missing")
            if found:
                return [Finding(Probe(surface.name, witness), control=True, found=True)]
        return []

    async def _epoch(self) -> int | None:
        request = self._prober.profile.epoch_request()
        if request is None:
            return None
        try:
            return self._prober.profile.epoch_value(await self._prober.send(request, Purpose.PROBE))
        except (UpstreamError, Unreadable):
            return None
