"""The file that a trial leaves, and whether it allows an erasure to wait less.

A profile may declare that a store forgets at once (`erasure_model: synchronous_transactional`), or somebody
may vouch for what comes to the same. Neither is believed: the exemption holds only while a trial of this
very profile stands that passed, has not expired, and was not refuted by a leak since. It sets the settling
interval to nothing. Clean rounds, probes and the check at release stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from quietus.core.trial_conclusion import Conclusion
from quietus.core.trial_findings import Observed
from quietus.erasures import Erasures
from quietus.profiles.profile import Profile
from quietus.recording import Log

VERSION: Final = "quietus/v1"
DAYS: Final = 30
"""How long a trial holds when nobody says otherwise."""
_BYTES_MAX: Final = 1 << 20
_DAY: Final = 86400.0
VOUCHED: Final = ("same_tombstone_index", "sync_purge", "single_writer")
"""Attestations that a trial must bear out before they shorten anything."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a trial's file says that matters afterwards. Times are Unix seconds."""

    profile: str
    fingerprint: str
    """Of how the profile speaks to the store; its `store` block may change, for it is what a trial is for."""
    at: float
    expires: float
    passed: bool
    conditions: frozenset[str]


class TrialFault(Exception):
    """A file that is no trial's result; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether an exemption holds, and why (not). `word` is for a log, `says` for people."""

    holds: bool
    word: str
    says: str


def written(profile: Profile, upstream: str, seen: Observed, found: Conclusion, now: float, days: int) -> str:
    """A trial's file. No text, subject or tenant is in it."""
    result = {
        "apiVersion": VERSION,
        "kind": "Trial",
        "profile": profile.name,
        "fingerprint": profile.mapping_fingerprint,
        "upstream": upstream,
        "at": _date(now),
        "expires": _date(now + days * _DAY),
        "passed": found.complete,
        "conditions": list(found.conditions),
        "canaries": len(seen.cases),
        "requests": seen.requests,
        "seconds": round(seen.seconds, 1),
        "lags": {name: asdict(lag) for name, lag in found.lags.items()},
        "findings": {
            name: {"found": one.found, "says": one.says, "seconds": one.seconds, "surfaces": one.surfaces}
            for name, one in found.findings.items()
        },
        "unproven": list(found.unproven),
        "unread": list(found.unread),
        "left": list(seen.left),
        "copies": list(seen.residue),
        "store": dict(found.store),
    }
    return json.dumps(result, indent=2) + "\n"


def load_trial(path: Path) -> TrialResult:
    """Reads a trial's file. Raises TrialFault."""
    again = "run `quietus profile try` again with --out"
    try:
        data = path.read_bytes()
        if len(data) > _BYTES_MAX:
            raise ValueError
        value = json.loads(data)
        if (value["kind"], value["apiVersion"]) != ("Trial", VERSION):
            raise ValueError
        at, expires = (datetime.fromisoformat(value[name]).timestamp() for name in ("at", "expires"))
        conditions = frozenset(str(one) for one in value["conditions"])
        return TrialResult(
            str(value["profile"]), str(value["fingerprint"]), at, expires, value["passed"] is True, conditions
        )
    except OSError as error:
        raise TrialFault(f"{path}: cannot be read ({type(error).__name__}); {again}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TrialFault(f"{path}: is no result of a trial; {again}") from None


def declared(profile: Profile, now: float) -> tuple[str, ...]:
    """The exemptions that a profile claims: by its erasure model, or by unexpired attestations."""
    claims = []
    if profile.store.erasure_model == "synchronous_transactional":
        claims.append("synchronous_transactional")
    today = datetime.fromtimestamp(now, UTC).date()
    vouched = {one.condition for one in profile.store.attestations if one.expires >= today}
    return (*claims, *(name for name in VOUCHED if name in vouched))


def standing(
    profile: Profile, trial: TrialResult | TrialFault | None, now: float, leaked_at: float | None = None
) -> Standing:
    """Whether an exemption that the profile claims holds now. What is not shown does not hold.

    `leaked_at` is when the store was last seen to tell what it had acknowledged: that refutes every trial
    from before.
    """
    claims = declared(profile, now)
    if not claims:
        return Standing(False, "none_declared", "async: the profile claims no exemption")
    claim = claims[0]
    kept = f"{claim} does not hold, erasures stay async"
    if trial is None:
        return Standing(False, "no_trial", f"{kept}: name a trial's file as store.trial")
    if isinstance(trial, TrialFault):
        return Standing(False, "unreadable_trial", f"{kept}: {trial}")
    if trial.fingerprint != profile.mapping_fingerprint:
        return Standing(False, "other_profile", f"{kept}: the trial was of another profile ({trial.profile})")
    # A trial from the future is a clock that was set back: it would never expire.
    if not trial.at <= now < trial.expires:
        return Standing(False, "expired", f"{kept}: the trial expired {_date(trial.expires)}; run it again")
    if leaked_at is not None and leaked_at >= trial.at:
        return Standing(False, "refuted", f"{kept}: a leak was seen after the trial; mend the store, try it")
    held = [name for name in claims if name in trial.conditions]
    if not trial.passed or not held:
        return Standing(False, "not_passed", f"{kept}: the trial did not show it")
    return Standing(True, held[0], f"{held[0]} holds until {_date(trial.expires)}: no settling interval")


class LastLeak:
    """When a leak was last seen, as the ledger has it: a restart forgets none."""

    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures
        self._read = False
        self._at: float | None = None
        erasures.listen(lambda erasure, _: self._heard(erasure.last_leak_at))

    def __call__(self) -> float | None:
        """Unix seconds; None when none was seen."""
        if not self._read and self._erasures.loaded:
            self._read = True
            for erasure in self._erasures.all():
                self._heard(erasure.last_leak_at)
        return self._at

    def _heard(self, at: float | None) -> None:
        if at is not None:
            self._at = max(at, self._at or at)


class Exemptions:
    """The standing as it is now, told to the log whenever it changes."""

    def __init__(
        self,
        profile: Callable[[], Profile],
        trial: Callable[[], TrialResult | TrialFault | None],
        now: Callable[[], float],
        log: Log,
        leaked_at: Callable[[], float | None] = lambda: None,
    ) -> None:
        self._leaked_at = leaked_at
        self._profile = profile
        self._trial = trial
        self._now = now
        self._log = log
        self._told = "none_declared"

    def now(self) -> Standing:
        """Whether an exemption holds at this moment."""
        found = standing(self._profile(), self._trial(), self._now(), self._leaked_at())
        if found.word != self._told:
            self._told = found.word
            if found.holds:
                self._log.info("exemption_holds", reason=found.word, profile=self._profile().name)
            else:
                self._log.error("exemption_refused", reason=found.word, profile=self._profile().name)
        return found


def found_trial(path: Path | None) -> TrialResult | TrialFault | None:
    """The trial that a setting names; its fault where it cannot be read; None where none is named."""
    if path is None:
        return None
    try:
        return load_trial(path)
    except TrialFault as fault:
        return fault


def as_dict(standing: Standing) -> dict[str, Any]:
    """For machines."""
    return {"holds": standing.holds, "reason": standing.word, "says": standing.says}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
