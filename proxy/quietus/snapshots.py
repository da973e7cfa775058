"""What an erasure knows in clear while it is watched: its predicate, its witnesses, its controls.

Sealed under the erasure's own key at rest, unsealed only to probe, and destroyed when the watch ends.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from quietus.core.lineage import Coverage, Detector
from quietus.core.operations import Call
from quietus.core.probing import Witness
from quietus.core.scope import Values, Wild, is_prefix
from quietus.core.severance import Fate

PREDICATE = "predicate"
SNAPSHOT = "snapshot"
REQUEST = "request"
ANSWER = "answer"
"""Names of the secrets of an erasure."""
NODES: Final = 50
"""Descendants that the ledger names one by one; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is to be forgotten, in clear. An empty tuple leaves the dimension open."""

    tenant: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    purpose: tuple[str, ...] = ()
    path: tuple[tuple[str, ...], ...] = ()
    key: tuple[str, ...] = ()
    capture: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    """Other names of the subject, as they may stand in texts: they are screened for, not asked with."""

    def named(self) -> dict[str, Any]:
        """What it names, as a receipt commits to it."""
        return {
            "tenant": list(self.tenant),
            "subject": list(self.subject),
            "purpose": list(self.purpose),
            "path": ["/".join(path) for path in self.path],
            "key": list(self.key),
        }

    @property
    def kind(self) -> str:
        """What it names first: "subject", "keys" or "path"."""
        return "subject" if self.subject else "keys" if self.key else "path"

    def seeds(self) -> list[Witness]:
        """A witness for each thing that it names, before anything was read."""
        tenant = self.tenant[0] if self.tenant else None
        purpose = self.purpose[0] if self.purpose else None
        path = self.path[0] if self.path else None
        common: dict[str, Any] = {
            "tenant": tenant,
            "purpose": purpose,
            "path": path,
            "capture": self.capture,
        }
        if self.key:
            subject = self.subject[0] if len(self.subject) == 1 else None
            return [Witness(key=key, subject=subject, **common) for key in self.key]
        if self.subject:
            return [Witness(subject=subject, **common) for subject in self.subject]
        return [Witness(**{**common, "path": each}) for each in self.path]

    def may_hold(self, witness: Witness) -> bool:
        """Whether a record is what was meant; what it leaves unsaid does not speak against it."""
        named = (
            (self.tenant, witness.tenant),
            (self.subject, witness.subject),
            (self.purpose, witness.purpose),
            (self.key, witness.key),
        )
        if any(values and value is not None and value not in values for values, value in named):
            return False
        path = witness.path
        return not self.path or path is None or any(is_prefix(each, path) for each in self.path)

    def seal(self) -> bytes:
        """As bytes to be sealed."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unseal(cls, plain: bytes) -> Predicate:
        """The inverse of `seal`."""
        raw = json.loads(plain)
        return cls(
            tenant=tuple(raw["tenant"]),
            subject=tuple(raw["subject"]),
            purpose=tuple(raw["purpose"]),
            path=tuple(tuple(path) for path in raw["path"]),
            key=tuple(raw["key"]),
            capture=raw["capture"],
            aliases=tuple(raw.get("aliases", ())),
        )


def predicate_of(call: Call) -> Predicate:
    """The predicate of a forget. Its scope has no UNKNOWN: the profile refuses those."""

    def texts(values: Values) -> tuple[str, ...]:
        return () if isinstance(values, Wild) else tuple(sorted(str(v) for v in values))

    scope = call.scope
    paths: tuple[tuple[str, ...], ...] = ()
    if not isinstance(scope.path, Wild):
        paths = tuple(sorted(tuple(str(s) for s in path) for path in scope.path))
    return Predicate(
        tenant=texts(scope.tenant),
        subject=texts(scope.subject),
        purpose=texts(scope.purpose),
        path=paths,
        key=texts(scope.key),
        capture=dict(call.capture),
    )


@dataclass(frozen=True, slots=True)
class Descendant:
    """A record that was derived from the erased, as it was found before the forget."""

    witness: Witness
    """How it is asked for; its key is empty where nobody knows."""
    record: str
    """Its digest, hexadecimal."""
    fate: str
    """A word of `core.severance.Fate`."""
    reason: str
    detector: str
    """How the edge became known: a word of `core.lineage.Detector`."""
    depth: int = 1
    text: str | None = None


@dataclass(slots=True)
class Snapshot:
    """What was found before the forget left, and which requests found it."""

    witnesses: list[Witness] = field(default_factory=list)
    """Records of the erased; those that only name the predicate come first and have no text."""
    records: int = 0
    """How many records were found; 0 when the store did not know what it was to forget."""
    proven: dict[str, list[int]] = field(default_factory=dict)
    """By surface: the witnesses (by position) that a probe of it found."""
    controls: dict[str, list[Witness]] = field(default_factory=dict)
    """By surface: the bystanders or canaries that a probe of it found."""
    control_kind: str = "live"
    canaries: list[str] = field(default_factory=list)
    """Keys of canaries that were written and must be removed."""
    truncated: bool = False
    """The bound of records or seconds was met: what was not reached caps the verdict."""
    failed: list[str] = field(default_factory=list)
    """Surfaces that could not be read while the snapshot was taken."""
    descendants: list[Descendant] = field(default_factory=list)
    """What was derived from the erased and is there."""
    residual_shared: int = 0
    """Texts and sentences that were left alone: too many others hold them, too."""
    twins: list[int] = field(default_factory=list)
    """Prints of texts that a bystander may hold word for word: their record is no descendant."""

    def seal(self) -> bytes:
        """As bytes to be sealed."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unseal(cls, plain: bytes) -> Snapshot:
        """The inverse of `seal`."""
        raw = json.loads(plain)
        raw["witnesses"] = [_witness(each) for each in raw["witnesses"]]
        raw["controls"] = {name: [_witness(w) for w in its] for name, its in raw["controls"].items()}
        kin = raw.get("descendants", [])
        raw["descendants"] = [Descendant(**{**each, "witness": _witness(each["witness"])}) for each in kin]
        return cls(**raw)


def _witness(raw: dict[str, Any]) -> Witness:
    for name in ("path", "vector"):
        if raw[name] is not None:
            raw[name] = tuple(raw[name])
    return Witness(**raw)


def facts_of(descendants: list[Descendant], coverage: Coverage, whole: bool) -> dict[str, Any]:
    """What the ledger keeps of the descendants: counts, and the first ones by their digests."""
    fates = Counter(each.fate for each in descendants)
    gap = coverage.gap or ("" if whole else "the walk was cut short")
    return {
        "descendants": len(descendants),
        "quarantined": fates[Fate.CASCADE.value] + fates[Fate.ESCALATE.value],
        "cascaded": 0,
        "unlinked": fates[Fate.UNLINK.value],
        "escalated": fates[Fate.ESCALATE.value],
        "suspected": sum(1 for each in descendants if each.detector != Detector.DECLARED.value),
        "evicted": coverage.evicted,
        "complete": not gap,
        "gap": gap,
        "nodes": [
            {"record": f"hmac:{d.record[:16]}", "depth": d.depth, "detector": d.detector, "fate": d.fate,
             "reason": d.reason}
            for d in descendants[:NODES]
        ],
    }  # fmt: skip
