"""Planning probes and judging what they found.

A probe counts only if the same request found its witness before the forward and a live control finds its
own record in the same round; else it is INCONCLUSIVE. Where the snapshot found nothing, the live control
alone counts. Nothing here sends anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from quietus.core.verdict import Outcome

PER_SURFACE: Final = 8
"""Probes of one surface in one round; further witnesses take their turn in later rounds."""
KEYS_A_ROUND: Final = 350
"""Reads of single records in one round at most: so many that the counted rounds together read each one.
Where there are more, the surface says that it was sampled, and the verdict is capped."""

LINEAGE: Final = "lineage"
"""The surface that is not the profile's: the records that were derived from what is erased."""

BLOCKING: Final = frozenset({"primary", "index", "cache", "derived", "graph"})
"""Kinds of surfaces that must be clean before an erasure settles."""


_EDGES: Final = ".,;:!?()\"'“”‘’«»…"
"""What may stand around a word without being part of it."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A record as it was found, in clear: what a probe asks with and recognises. Sealed at rest."""

    key: str | None = None
    subject: str | None = None
    tenant: str | None = None
    purpose: str | None = None
    path: tuple[str, ...] | None = None
    text: str | None = None
    vector: tuple[float, ...] | None = None
    capture: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The placeholders that it fills."""
        filled: dict[str, Any] = dict(self.capture)
        for name in ("key", "subject", "tenant", "purpose", "text"):
            value = getattr(self, name)
            if value is not None:
                filled[name] = value
        if self.vector is not None:
            filled["vector"] = list(self.vector)
        if self.path is not None:
            filled["path"] = "/".join(self.path)
        return filled


@dataclass(frozen=True, slots=True)
class SurfaceFacts:
    """What planning needs to know of a surface."""

    name: str
    kind: str
    each: str | None


@dataclass(frozen=True, slots=True)
class Probe:
    """One request of one surface about one witness."""

    surface: str
    witness: Witness
    proven: bool = False
    """The same request found its witness before the forward."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one probe, or one control, saw."""

    probe: Probe
    control: bool = False
    readable: bool = True
    found: bool = False
    """For a probe: something of the erased. For a control: its own record."""
    residual: int = 0
    reason: str = ""


def wording(
    text: str, keeps_queries: bool | None, neutral: str, private: Iterable[str] = ()
) -> str | None:
    """What a probe may ask with, or None when it may ask with nothing of this text.

    A store that keeps no queries is asked with the text itself. Where that is unknown, the text's common
    words are used, never a distinctive one and never more than half of them: no names, numbers, addresses
    or identifiers, and no word of `private`. A store that keeps queries gets the fixed neutral query only.
    """
    if keeps_queries is False:
        return text
    if keeps_queries is True:
        return neutral
    hidden = {word for name in private for word in re.findall(r"[^\W_]+", name.casefold())}
    parts = [part.strip(_EDGES) for part in text.split()]
    common = [w for w in parts if w.isalpha() and w.islower() and len(w) > 2 and w not in hidden]
    chosen = common[: len(parts) // 2]
    return " ".join(chosen) if chosen else neutral


def share(surface: SurfaceFacts, witnesses: int, rounds: int) -> tuple[int, bool]:
    """How many probes a round of one surface has, and whether the counted rounds leave some record unread."""
    if surface.each != "key":
        return PER_SURFACE, False
    needed = -(-witnesses // max(rounds, 1))
    return max(PER_SURFACE, min(needed, KEYS_A_ROUND)), needed > KEYS_A_ROUND


def plan(
    surface: SurfaceFacts, witnesses: Sequence[Witness], turn: int = 0, most: int = PER_SURFACE
) -> list[Probe]:
    """The probes of one surface in one round: one a witness that has what the surface asks with."""
    wanted = surface.each
    if wanted is None:
        return [Probe(surface.name, witnesses[0] if witnesses else Witness())]
    having: list[Witness] = []
    seen: set[Any] = set()
    for witness in witnesses:
        value = getattr(witness, wanted, None)
        # One key, or one text, may stand in several places; a subject is listed over all their paths.
        place = None if wanted == "subject" else witness.path
        mark = (value, witness.tenant, witness.subject, place, tuple(sorted(witness.capture.items())))
        if value is None or mark in seen:
            continue
        seen.add(mark)
        having.append(witness)
    if len(having) > most:
        start = (turn * most) % len(having)
        having = (having[start:] + having[:start])[:most]
    return [Probe(surface.name, witness) for witness in having]


@dataclass(frozen=True, slots=True)
class Controls:
    """What stood behind a round: what the snapshot knew, and which controls there are."""

    witnessed: bool
    """The snapshot found records of the erased."""
    live: bool
    """Bystanders or canaries are known that this surface found before."""
    kind: str = "live"


def judge(
    surface: SurfaceFacts, findings: Sequence[Finding], controls: Controls, applicable: bool = True
) -> dict[str, Any]:
    """The outcome of one surface in one round, as it goes into the ledger."""
    probes = [f for f in findings if not f.control]
    answers = [f for f in findings if f.control]
    residual = sum(f.residual for f in probes)
    outcome, control, reason = Outcome.CLEAN, "none", ""
    alive = any(f.found for f in answers)
    if alive:
        control = controls.kind
    elif controls.witnessed and any(f.probe.proven for f in probes):
        control = "positive"
    if any(f.found for f in probes):
        outcome = Outcome.LEAKING
    elif not applicable:
        outcome, reason = Outcome.UNPROBED, "the predicate names nothing that this surface asks for"
    elif not probes:
        outcome, reason = Outcome.UNPROBED, "no witness has what this surface asks with"
    elif not all(f.readable for f in probes):
        outcome = Outcome.INCONCLUSIVE
        reason = next(f.reason for f in probes if not f.readable)
    elif controls.witnessed and not any(f.probe.proven for f in probes):
        outcome, reason = Outcome.INCONCLUSIVE, "no probe of this surface found its witness before the forget"
    elif controls.live and not alive:
        outcome, reason = Outcome.INCONCLUSIVE, "the live control was not found"
    elif not alive and not controls.witnessed:
        outcome, reason = Outcome.INCONCLUSIVE, "nothing was ever found through this surface"
    return {
        "name": surface.name,
        "kind": surface.kind,
        "applies": applicable,
        "outcome": outcome.value,
        "control": control,
        "residual": residual,
        "reason": reason,
    }


def conclude_round(surfaces: Sequence[Mapping[str, Any]]) -> str:
    """Of a whole round: "leaking", "inconclusive" or "clean"."""
    blocking = [s for s in surfaces if s["kind"] in BLOCKING]
    if any(s["outcome"] == Outcome.LEAKING.value for s in blocking):
        return "leaking"
    probed = [s for s in blocking if s["outcome"] != Outcome.UNPROBED.value]
    if not probed or any(s["outcome"] != Outcome.CLEAN.value for s in probed):
        return "inconclusive"
    return "clean"


class Failure(StrEnum):
    """In which way a forget was not done, as far as a leaking round shows it."""

    MISSING_DELETE = "MISSING_DELETE"
    """The record itself stands where it stood."""
    ORDERING = "ORDERING"
    """The record is gone and what was made of it is not yet: the forget was answered before that was."""
    PROPAGATION = "PROPAGATION"
    """Derived records that are known bear it still; deleting those again is the right answer."""
    RESURRECTION = "RESURRECTION"
    """It was settled and is back; deleting it again is not the answer."""
    UNKNOWN = "UNKNOWN"
    """The primary surface could not be read, or a client met it."""


def failure_of(surfaces: Sequence[Mapping[str, Any]]) -> Failure:
    """What a leaking round says of a forget that was never settled: the gravest that it shows."""
    blocking = [s for s in surfaces if s["kind"] in BLOCKING]
    leaking = {s["name"]: s["kind"] for s in blocking if s["outcome"] == Outcome.LEAKING.value}
    if "primary" in leaking.values():
        return Failure.MISSING_DELETE
    if LINEAGE in leaking:
        return Failure.PROPAGATION
    clean = [s for s in blocking if s["kind"] == "primary" and s["outcome"] == Outcome.CLEAN.value]
    return Failure.ORDERING if leaking and clean else Failure.UNKNOWN
