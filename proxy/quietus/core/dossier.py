"""What people said about an erasure when they asked for it, and the date by which the law wants it done.

The date is counted from the day on which the demand was received, which is not always the day on which it was
entered. A basis that names no law known here has the shorter period, so that nobody is late by a spelling.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Period:
    """A span of the calendar."""

    months: int = 0
    days: int = 0

    def after(self, at: float) -> float:
        """So much later. Months keep the day of the month, or take the month's last one."""
        begun = datetime.fromtimestamp(at, UTC)
        whole = begun.year * 12 + begun.month - 1 + self.months
        year, month = whole // 12, whole % 12 + 1
        day = min(begun.day, monthrange(year, month)[1])
        return (begun.replace(year=year, month=month, day=day) + timedelta(days=self.days)).timestamp()


_PERIODS: Final = {
    "gdpr": (Period(months=1), Period(months=3)),
    "ccpa": (Period(days=45), Period(days=90)),
}
"""By law: its period, and the same once extended. GDPR Art. 12(3); CCPA regulations, 11 CCR 7021(b)."""
_SHORTEST: Final = "gdpr"


@dataclass(frozen=True, slots=True)
class Dossier:
    """The demand behind an erasure. Times are Unix seconds."""

    basis: str = ""
    """Why: a law and its article, say "gdpr_art17"; free text without a name in it."""
    reference: str = ""
    """The ticket of whoever asks."""
    received_at: float | None = None
    """When the demand was received, if that was not when it was entered."""
    commitment: str = ""
    """Hexadecimal SHA-256 over a salt and what was named: proves later whom a receipt is about."""
    extended: bool = False
    """The period was extended, once, by an operator who gave a reason."""
    suppressed: bool = False
    """The store has no way to forget: what was erased is kept from every answer, and not erased."""
    observed: bool = False
    """Noted in observe mode: nothing was withheld, and no receipt is given."""

    def longer(self) -> Dossier:
        """The same with its period extended."""
        return replace(self, extended=True)

    def due_at(self, requested_at: float) -> float:
        """The last moment of the legal period, Unix seconds."""
        begun = self.received_at if self.received_at is not None else requested_at
        usual, extended = _PERIODS[law_of(self.basis)]
        return (extended if self.extended else usual).after(begun)


def dossier_of(facts: Mapping[str, Any]) -> Dossier:
    """The dossier in the facts of an intent; what an older ledger does not say is empty."""
    received = facts.get("received_at")
    return Dossier(
        basis=facts.get("basis") or "",
        reference=facts.get("reference") or "",
        received_at=float(received) if received is not None else None,
        commitment=facts.get("commitment") or "",
        suppressed=bool(facts.get("suppressed")),
        observed=bool(facts.get("observed")),
    )


def law_of(basis: str) -> str:
    """The law that a basis names: "gdpr" or "ccpa"."""
    words = basis.casefold().replace("-", "_").split("_")
    return next((law for law in _PERIODS if law in words or words[0].startswith(law)), _SHORTEST)
