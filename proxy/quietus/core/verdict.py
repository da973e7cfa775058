"""What may be claimed of an erasure, and what is missing for more.

COMPLIANT needs every condition, each with evidence; an unmet one is never assumed. PARTIAL says that what
was probed is clean and names what was not. UNCONFIRMED says that nothing may be claimed (yet).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from quietus.core.erasure import Erasure, PolicyPhase
from quietus.core.states import State


class Word(StrEnum):
    """The three verdicts. Pending and violated are states, not verdicts."""

    COMPLIANT = "compliant"
    PARTIAL = "partial"
    UNCONFIRMED = "unconfirmed"


class Outcome(StrEnum):
    """What is known of one surface."""

    CLEAN = "CLEAN"
    LEAKING = "LEAKING"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNPROBED = "UNPROBED"
    OUT_OF_SCOPE = "OUT_OF_SCOPE"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict with its evidence: the surfaces it was shown through, and what is missing for COMPLIANT."""

    word: Word
    through: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """The conditions of a claim, each true only when it was verified."""

    acknowledged: bool = False
    settled: bool = False
    primary_clean: bool = False
    surfaces_enumerated: bool = False
    lineage_tracked: bool = False
    tombstoned: bool = False
    probed_clean: bool = False
    witnessed: bool = False
    """The snapshot found what was to be erased; without it nothing was ever shown to be gone."""
    controlled: bool = False
    """Every probe that counted had a live control."""
    all_probed: bool = False
    write_path_audited: bool = False
    """Nobody who writes can read what the erased has left behind, as far as somebody vouches for it."""
    released: bool = False


_CONDITIONS = (
    ("acknowledged", "the store's acknowledgement"),
    ("settled", "enough clean rounds in a row, after the settling interval"),
    ("primary_clean", "the record itself gone from the primary surface"),
    ("surfaces_enumerated", "an unexpired attestation that the declared surfaces are all there are"),
    ("lineage_tracked", "lineage of derived records"),
    ("tombstoned", "a tombstone against re-ingestion"),
    ("probed_clean", "clean probe rounds"),
    ("witnessed", "a record found before the forget"),
    ("controlled", "a live control in every round"),
    ("all_probed", "a probe of every declared surface"),
    ("write_path_audited", "an unexpired attestation that the write path was audited for derived reads"),
)


def conclude(evidence: Evidence, through: Iterable[str] = ()) -> Verdict:
    """The verdict over all conditions: total, and never kinder than its weakest evidence."""
    missing = tuple(text for name, text in _CONDITIONS if not getattr(evidence, name))
    if evidence.released:
        missing = (*missing, "evidence in place of an operator's release or override")
    shown = tuple(through)
    if evidence.released or not (evidence.settled and evidence.acknowledged and evidence.probed_clean):
        return Verdict(Word.UNCONFIRMED, (), missing)
    if not (evidence.tombstoned and evidence.witnessed and evidence.primary_clean):
        return Verdict(Word.UNCONFIRMED, shown, missing)
    return Verdict(Word.PARTIAL if missing else Word.COMPLIANT, shown, missing)


def verdict_of(
    erasure: Erasure,
    attested: Iterable[str] = (),
    tombstoned: bool = True,
    *,
    overridden: bool = False,
    audited: bool = True,
) -> Verdict:
    """The verdict on an erasure as it stands. `attested` are the profile's unexpired attestations.

    `overridden`: a break-glass override lets its recalls through now, so that nothing can be claimed of them.
    `audited`: the store's write path is vouched for as far as its features ask for it (`soundness.audited`).
    """
    surfaces = erasure.surfaces
    read = [s for s in surfaces if s.get("kind") not in ("history", "unprobeable") and s.get("applies", True)]
    probed = [s for s in read if s.get("outcome") != Outcome.UNPROBED.value]
    clean = bool(probed) and all(s.get("outcome") == Outcome.CLEAN.value for s in probed)
    history = [s for s in surfaces if s.get("kind") == "history"]
    primary = [s for s in read if s.get("kind") == "primary"]
    evidence = Evidence(
        acknowledged=erasure.policy_phase is PolicyPhase.COMMITTED,
        settled=erasure.state is State.SETTLED,
        primary_clean=not any(s.get("outcome") == Outcome.LEAKING.value for s in primary),
        surfaces_enumerated="surfaces_complete" in set(attested),
        lineage_tracked=bool((erasure.snapshot.get("lineage") or {}).get("complete")),
        tombstoned=tombstoned and erasure.snapshotted,
        probed_clean=clean,
        witnessed=bool(erasure.snapshot.get("witnesses")),
        controlled=clean and all(s.get("control") in ("live", "canary") for s in probed),
        all_probed=len(probed) == len(read)
        and bool(primary)
        and not any(s.get("sampled") for s in surfaces)
        and not erasure.snapshot.get("truncated")
        and all(s.get("outcome") == Outcome.CLEAN.value for s in history),
        write_path_audited=audited,
        released=erasure.state is State.RELEASED or overridden,
    )
    return conclude(evidence, _names(probed) if clean else ())


def _names(surfaces: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(s["name"]) for s in surfaces]
