"""Erasures as people and programs see them: JSON without a raw identifier, and a sentence that says why.

Dates are UTC, in RFC 3339. What is not known is null; what was not shown is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from quietus.core.erasure import Erasure, PolicyPhase
from quietus.core.events import Event
from quietus.core.problems import Reason
from quietus.core.scope import DIMENSIONS, Scope, Wild
from quietus.core.states import State
from quietus.core.verdict import Outcome, Verdict, Word

_SHOWN: Final = 16
"""Hexadecimal digits of a pseudonym that are shown: enough to compare, and what logs show too."""


class Declared(NamedTuple):
    """A surface as the profile declares it, for erasures that no round has looked at yet."""

    name: str
    kind: str
    note: str = ""


def erasure_view(
    erasure: Erasure, *, verdict: Verdict, now: float, declared: Iterable[Declared] = ()
) -> dict[str, Any]:
    """All that is known of an erasure."""
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
        "exposure_seconds": erasure.exposure_seconds,
        "basis": erasure.dossier.basis or None,
        "reference": erasure.dossier.reference or None,
        "surfaces": surfaces,
        "lineage": lineage_view(erasure),
        "claim": dict(erasure.claim, at=stamp(erasure.claim.get("at"))) if erasure.claim else None,
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


def lineage_view(erasure: Erasure) -> dict[str, Any]:
    """What was derived from the erased, and what became of it: counts, and the first few one by one."""
    facts = dict(erasure.snapshot.get("lineage") or {})
    seen = next((s for s in erasure.surfaces if s.get("name") == "lineage" and not s.get("sampled")), None)
    if seen is not None:  # the newest round knows better than the snapshot
        facts |= {name: seen.get(name, 0) for name in ("cascaded", "unlinked", "escalated", "quarantined")}
    names = ("descendants", "cascaded", "quarantined", "unlinked", "escalated", "suspected", "evicted")
    return {
        **{name: int(facts.get(name, 0)) for name in names},
        "complete": bool(facts.get("complete")),
        "gap": facts.get("gap") or None,
        "logical_unlink": bool(facts.get("quarantined", 0)) and erasure.policy_phase is PolicyPhase.COMMITTED,
        "nodes": list(facts.get("nodes", ())),
    }


def status_view(erasure: Erasure, *, verdict: Verdict) -> dict[str, Any]:
    """What whoever holds the id may know: nothing in it tells what was erased."""
    store = erasure.store_epoch is not None
    return {
        "id": erasure.id,
        "state": erasure.state.value,
        "verdict": verdict.word.value,
        "policy_phase": erasure.policy_phase.value,
        "read_phase": erasure.read_phase.value,
        "may_assert_erasure": erasure.may_assert_erasure,
        "may_assert_non_recallability": erasure.may_assert_non_recallability,
        "through": list(verdict.through),
        "missing_for_compliant": list(verdict.missing),
        "epochs": {
            "erasure": erasure.store_epoch if store else erasure.epoch,
            "read": erasure.read_epoch,
            "source": "store" if store else "sidecar",
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


def surface_view(surface: Mapping[str, Any]) -> dict[str, Any]:
    """One surface as the newest round saw it."""
    return {
        "name": surface["name"],
        "kind": surface.get("kind", ""),
        "outcome": surface.get("outcome", Outcome.UNPROBED.value),
        "control": surface.get("control", "none"),
        "residual": surface.get("residual", 0),
        "probed_at": stamp(surface.get("probed_at")),
        "reason": surface.get("reason") or None,
    }


def event_view(event: Event) -> dict[str, Any]:
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
_CLASS: Final = {
    **dict.fromkeys(("requested", "forwarded", "accepted", "refused", "unclear"), "policy"),
    **dict.fromkeys(("clean", "leaked", "leaked_late", "round", "signalled"), "read"),
    **dict.fromkeys(("retried", "released", "readmitted", "escalated", "verify_asked", "overridden"), "act"),
}


def predicate_view(scope: Scope) -> dict[str, Any]:
    """A digested scope, as pseudonyms; only the dimensions that it names."""
    found: dict[str, Any] = {}
    for name in DIMENSIONS:
        values = getattr(scope, name)
        if isinstance(values, Wild):
            continue
        if name == "path":
            found[name] = sorted("/".join(pseudonym(segment) for segment in path) for path in values)
        else:
            found[name] = sorted(pseudonym(atom) for atom in values)
    return found


def pseudonym(atom: str | bytes) -> str:
    """A keyed digest as it is shown; never a raw value."""
    return f"hmac:{atom.hex()[:_SHOWN]}" if isinstance(atom, bytes) else "hmac:"


def stamp(at: float | None) -> str | None:
    """A Unix time as RFC 3339, UTC, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """Seconds as a person reads them: `14m 52s`, `3d 4h`, `0.4s`."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f}s"
    left, parts = round(seconds), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        whole, left = divmod(left, size)
        if whole:
            parts.append(f"{whole}{unit}")
    return " ".join(parts[:2])


def why(erasure: Erasure, verdict: Verdict) -> str:
    """In a sentence, what keeps the gate shut, or what its being open rests on."""
    if erasure.held and erasure.unsettled:
        return "A legal hold stands on it: nothing is removed and nothing is judged clean until it is lifted."
    return _WHY[erasure.state](erasure, verdict)


def _why_requested(erasure: Erasure, _verdict: Verdict) -> str:
    if erasure.dossier.suppressed:
        return "The store has no way to forget it: it is kept from every answer, and it is not erased."
    if erasure.unclear or (erasure.forwards and not erasure.answered):
        return "The store was asked and gave no answer: it may have done it. It is probed and asked again."
    return "The store has not been asked yet; the gate is shut already."


def _why_settling(erasure: Erasure, _verdict: Verdict) -> str:
    terms = erasure.terms
    wait = span(terms.settling_interval)
    if erasure.undrained:
        return "A write whose outcome is unknown may still land in the scope."
    late = " It is overdue: the bound has passed." if erasure.overdue else ""
    if erasure.compacted:
        wait = "the store's completion signal"
    rounds = f"{terms.clean_rounds} clean rounds after {wait}; counted so far: {erasure.clean_streak}"
    return f"The store has acknowledged; that is a claim. Needed: {rounds}.{late}"


def _why_leaking(erasure: Erasure, _verdict: Verdict) -> str:
    names = ", ".join(sorted(erasure.leaked_surfaces)) or "a client's recall"
    return f"The store acknowledged the forget and still returns what was erased, through: {names}."


def _why_violation(erasure: Erasure, verdict: Verdict) -> str:
    bound = span(erasure.terms.effectuation_bound)
    return f"{_why_leaking(erasure, verdict)} Its own bound of {bound} has passed; an operator must act."


def _why_settled(_erasure: Erasure, verdict: Verdict) -> str:
    shown = ", ".join(verdict.through) or "no surface"
    missing = f" Not shown: {', '.join(verdict.missing)}." if verdict.missing else ""
    return f"Nobody recalls it through: {shown}.{missing}"


def _why_relapsed(erasure: Erasure, verdict: Verdict) -> str:
    return f"It was settled and has come back. {_why_leaking(erasure, verdict)}"


_WHY: Final[dict[State, Callable[[Erasure, Verdict], str]]] = {
    State.REQUESTED: _why_requested,
    State.SETTLING: _why_settling,
    State.LEAKING: _why_leaking,
    State.VIOLATION: _why_violation,
    State.SETTLED: _why_settled,
    State.RELAPSED: _why_relapsed,
    State.REFUSED: lambda _e, _v: "The store refused the forget: nothing was erased, nothing is held back.",
    State.RELEASED: lambda _e, _v: "An operator lifted the restriction; nothing was shown about recall.",
}


def _undone(declared: Declared) -> dict[str, Any]:
    outside = declared.kind == "unprobeable"
    return surface_view({
        "name": declared.name, "kind": declared.kind, "reason": declared.note,
        "outcome": (Outcome.OUT_OF_SCOPE if outside else Outcome.UNPROBED).value,
    })  # fmt: skip


def _outcomes(surfaces: Iterable[Mapping[str, Any]], kind: str) -> list[str]:
    return [str(s["outcome"]) for s in surfaces if s["kind"] == kind]


def _all_clean(outcomes: list[str]) -> bool | None:
    if any(outcome == Outcome.LEAKING.value for outcome in outcomes):
        return False
    return True if outcomes and all(o == Outcome.CLEAN.value for o in outcomes) else None
