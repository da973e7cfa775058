"""Erasures as people and programs see them: JSON without a raw identifier (`shown` has its types).

Dates are UTC, in RFC 3339. What is not known is null; what was not shown is false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, overload

from quietus.core.erasure import Erasure, PolicyPhase
from quietus.core.events import Event
from quietus.core.problems import Reason
from quietus.core.scope import Scope, Values, Wild
from quietus.core.states import State
from quietus.core.verdict import Outcome, Verdict, Word
from quietus.shown import (
    ClaimView,
    ErasureView,
    EventClass,
    EventView,
    LineageView,
    PredicateView,
    StatusView,
    SurfaceView,
)
from quietus.whys import why

_SHOWN: Final = 16
"""Hexadecimal digits of a pseudonym that are shown: enough to compare, and what logs show too."""


class Declared(NamedTuple):
    """A surface as the profile declares it, for erasures that no round has looked at yet."""

    name: str
    kind: str
    note: str = ""


def erasure_view(
    erasure: Erasure,
    *,
    verdict: Verdict,
    now: float,
    declared: Iterable[Declared] = (),
    estimate: float | None = None,
) -> ErasureView:
    """All that is known of an erasure; `estimate`: seconds until it may be settled, where that is known."""
    surfaces = [surface_view(s) for s in erasure.surfaces] or [_undone(d) for d in declared]
    away = {s["name"] for s in erasure.surfaces if not s.get("applies", True)}
    applying = [surface for surface in surfaces if surface["name"] not in away]
    kinds = {kind: _outcomes(applying, kind) for kind in ("primary", "index", "cache", "derived", "graph")}
    rest = [outcome for kind, found in kinds.items() if kind != "primary" for outcome in found]
    counts = erasure.snapshot.get("lineage") or {}
    due = erasure.dossier.due_at(erasure.requested_at)
    return {
        **status_view(erasure, verdict=verdict),
        "store": erasure.store,
        "overdue": erasure.overdue,
        "held": erasure.held,
        "escalated": erasure.escalated,
        "readmitted_at": stamp(erasure.readmitted_at),
        "predicate": predicate_view(erasure.predicate),
        "tokens": list(erasure.tokens),
        "bound_at": stamp(erasure.bound_at),
        "due_at": stamp(due),
        "seconds_left": round(due - now, 3) if erasure.unsettled else None,
        "estimate_seconds": round(estimate, 3) if estimate is not None and _calm(erasure) else None,
        "exposure_seconds": erasure.exposure_seconds,
        "basis": erasure.dossier.basis or None,
        "reference": erasure.dossier.reference or None,
        "surfaces": surfaces,
        "lineage": lineage_view(erasure),
        "claim": claim_view(erasure.claim) if erasure.claim else None,
        "acknowledged": erasure.policy_phase is PolicyPhase.COMMITTED,
        "primary_removed": _all_clean(kinds["primary"]),
        "reconstruction_paths_severed": bool(counts.get("complete")) and _all_clean(rest) is True,
        "effective_non_recoverability": verdict.word is Word.COMPLIANT,
        "access_paths": len(erasure.leaked_surfaces),
        "suppressed": erasure.unsettled and erasure.policy_phase is PolicyPhase.NONE,
        "received_at": stamp(erasure.dossier.received_at),
        "upstream_calls": erasure.forwards,
        "client_calls": erasure.client_calls, "residual_shared": erasure.snapshot.get("residual_shared", 0),
        "remedies": erasure.remedies,
    }


def _calm(erasure: Erasure) -> bool:
    """Whether nothing but time and clean rounds is awaited."""
    return erasure.state is State.SETTLING and erasure.answered and not (erasure.held or erasure.undrained)


def claim_view(claim: Mapping[str, Any]) -> ClaimView:
    """What the store said it did."""
    return {"status": claim["status"], "count": claim.get("count"), "at": stamp(claim.get("at"))}


def lineage_view(erasure: Erasure) -> LineageView:
    """What was derived from the erased, and what became of it: counts, and the first few one by one."""
    facts = dict(erasure.snapshot.get("lineage") or {})
    seen = next((s for s in erasure.surfaces if s.get("name") == "lineage" and not s.get("sampled")), None)
    if seen is not None:  # the newest round knows better than the snapshot
        facts |= {name: seen.get(name, 0) for name in ("cascaded", "unlinked", "escalated", "quarantined")}

    def count(name: str) -> int:
        return int(facts.get(name, 0))

    return {
        "descendants": count("descendants"),
        "cascaded": count("cascaded"),
        "quarantined": count("quarantined"),
        "unlinked": count("unlinked"),
        "escalated": count("escalated"),
        "suspected": count("suspected"),
        "evicted": count("evicted"),
        "complete": bool(facts.get("complete")),
        "gap": facts.get("gap") or None,
        "logical_unlink": bool(facts.get("quarantined", 0)) and erasure.policy_phase is PolicyPhase.COMMITTED,
        "nodes": list(facts.get("nodes", ())),
    }


def status_view(erasure: Erasure, *, verdict: Verdict) -> StatusView:
    """What whoever holds the id may know: nothing in it tells what was erased."""
    return {
        "id": erasure.id,
        "state": erasure.state,
        "verdict": verdict.word,
        "policy_phase": erasure.policy_phase,
        "read_phase": erasure.read_phase,
        "may_assert_erasure": erasure.may_assert_erasure,
        "may_assert_non_recallability": erasure.may_assert_non_recallability,
        "through": list(verdict.through),
        "missing_for_compliant": list(verdict.missing),
        "epochs": {
            "erasure": erasure.epoch if erasure.store_epoch is None else erasure.store_epoch,
            "read": erasure.read_epoch,
            "source": "sidecar" if erasure.store_epoch is None else "store",
        },
        "requested_at": stamp(erasure.requested_at),
        "acknowledged_at": stamp(erasure.acknowledged_at),
        "settled_at": stamp(erasure.settled_at),
        "reason": _reason(erasure),
        "why": why(erasure, verdict),
    }


def _reason(erasure: Erasure) -> str | None:
    """The machine-readable reason beside the sentence."""
    if erasure.dossier.suppressed:
        return Reason.SUPPRESSED_NOT_ERASED.value
    if erasure.held and erasure.unsettled:
        return Reason.LEGAL_HOLD.value
    if erasure.state is State.VIOLATION:
        return Reason.FORGET_EFFECTUATION_TIMEOUT.value
    return Reason.ERASURE_EPOCH_NOT_SETTLED.value if erasure.unsettled else None


def surface_view(surface: Mapping[str, Any]) -> SurfaceView:
    """One surface as the newest round saw it."""
    return {
        "name": surface["name"],
        "kind": surface.get("kind", ""),
        "outcome": Outcome(surface.get("outcome", Outcome.UNPROBED)),
        "control": surface.get("control", "none"),
        "residual": surface.get("residual", 0),
        "probed_at": stamp(surface.get("probed_at")),
        "reason": surface.get("reason") or None,
    }


def event_view(event: Event) -> EventView:
    """One event of the ledger."""
    return {
        "number": event.number,
        "type": event.type.value,
        "erasure": event.erasure or None,
        "at": stamp(event.at),
        "actor": event.actor,
        "class": _CLASS.get(event.type.value, "record"),
        "gate": event.gate,
        "facts": dict(event.facts),
        "hash": event.hash,
    }


# Policy events say what was asked and acknowledged; read events say what probes and epochs have shown.
_CLASS: Final[dict[str, EventClass]] = {
    "requested": "policy", "forwarded": "policy", "accepted": "policy", "refused": "policy",
    "unclear": "policy", "clean": "read", "leaked": "read", "leaked_late": "read", "round": "read",
    "signalled": "read", "retried": "act", "released": "act", "readmitted": "act", "escalated": "act",
    "verify_asked": "act", "overridden": "act",
}  # fmt: skip


def predicate_view(scope: Scope) -> PredicateView:
    """A digested scope, as pseudonyms; only the dimensions that it names."""
    found: PredicateView = {}
    if (tenant := _pseudonyms(scope.tenant)) is not None:
        found["tenant"] = tenant
    if (subject := _pseudonyms(scope.subject)) is not None:
        found["subject"] = subject
    if (purpose := _pseudonyms(scope.purpose)) is not None:
        found["purpose"] = purpose
    if not isinstance(scope.path, Wild):
        found["path"] = sorted("/".join(pseudonym(segment) for segment in path) for path in scope.path)
    if (key := _pseudonyms(scope.key)) is not None:
        found["key"] = key
    return found


def _pseudonyms(values: Values) -> list[str] | None:
    return None if isinstance(values, Wild) else sorted(pseudonym(atom) for atom in values)


def pseudonym(atom: str | bytes) -> str:
    """A keyed digest as it is shown; never a raw value."""
    return f"hmac:{atom.hex()[:_SHOWN]}" if isinstance(atom, bytes) else "hmac:"


@overload
def stamp(at: float) -> str: ...
@overload
def stamp(at: float | None) -> str | None: ...
def stamp(at: float | None) -> str | None:
    """A Unix time as RFC 3339, UTC, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _undone(declared: Declared) -> SurfaceView:
    outside = declared.kind == "unprobeable"
    return surface_view({
        "name": declared.name, "kind": declared.kind, "reason": declared.note,
        "outcome": Outcome.OUT_OF_SCOPE if outside else Outcome.UNPROBED,
    })  # fmt: skip


def _outcomes(surfaces: Iterable[SurfaceView], kind: str) -> list[Outcome]:
    return [s["outcome"] for s in surfaces if s["kind"] == kind]


def _all_clean(outcomes: list[Outcome]) -> bool | None:
    if Outcome.LEAKING in outcomes:
        return False
    return True if outcomes and all(o is Outcome.CLEAN for o in outcomes) else None
