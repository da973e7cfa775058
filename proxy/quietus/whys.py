"""In a sentence, why the gate is shut, or what its being open rests on; and spans of time for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.states import State
from quietus.core.verdict import Verdict


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
