"""Profiles and policies change without a restart; a bad new one is refused and the old one stays."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

from watchfiles import awatch

from quietus.assembly import Active
from quietus.documents import DocumentError
from quietus.policies import load_policy, policy_path
from quietus.ports import Clock
from quietus.profiles.faults import ProfileError
from quietus.profiles.loader import find_profile, load_profile
from quietus.recording import Log
from quietus.trials import Exemptions, found_trial

POLL_MS: Final = 30_000
"""Milliseconds after which the documents are looked at though nothing told of a change."""


class Counted(Protocol):
    """Where reloads are counted."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to a counter."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets a gauge."""

    def announce(self, name: str, **labels: str) -> None:
        """Shows a counter's series at 0."""


class Reloader:
    """Watches the folders (not the files: a ConfigMap swaps a symlink above them) and reloads."""

    def __init__(
        self, active: Active, profile: str, policy: str, log: Log, trial: Path | None = None,
        exemptions: Exemptions | None = None, metrics: Counted | None = None, clock: Clock | None = None,
    ) -> None:  # fmt: skip
        self._active = active
        self._profile = profile
        self._policy = policy
        self._log = log
        self._trial = trial
        self._exemptions = exemptions
        self._metrics = metrics
        self._clock = clock
        self._holds()
        self.refused = 0
        """New documents that were not taken over."""
        self._seen = self._bytes()

    def folders(self) -> set[Path]:
        """The folders that are watched."""
        documents = {find_profile(self._profile).parent, policy_path(self._policy).parent}
        return documents if self._trial is None else {*documents, self._trial.absolute().parent}

    async def run(self) -> None:
        """Reloads on every change until cancelled."""
        folders = _existing(self.folders())
        # Also without an event now and then: not every file system that may be mounted here tells of changes.
        async for _ in awatch(*folders, recursive=False, yield_on_timeout=True, rust_timeout=POLL_MS):
            seen = self._bytes()
            if seen != self._seen:  # other files lie in these folders too, the ledger perhaps
                self._seen = seen
                self.reload()

    def _bytes(self) -> tuple[bytes | None, ...]:
        return tuple(
            path.read_bytes() if path.is_file() else None
            for path in (find_profile(self._profile), policy_path(self._policy), self._trial)
            if path is not None
        )

    def reload(self) -> bool:
        """Takes both documents over, or neither; says which it was."""
        try:
            profile = load_profile(
                self._profile, self._active.profile.wires, self._active.profile.told
            )
            policy = load_policy(self._policy)
        except (DocumentError, ProfileError, OSError) as error:
            self.refused += 1
            self._log.error("reload_refused", error=type(error).__name__)
            if self._metrics is not None:
                self._metrics.count("reloads", outcome="refused")
                self._metrics.set("reload_ok", 0)
            return False
        self._active.profile = profile
        self._active.policy = policy
        self._active.trial = found_trial(self._trial)
        if self._exemptions is not None:
            self._exemptions.now()
        self._log.info("reloaded")
        if self._metrics is not None:
            self._metrics.count("reloads", outcome="applied")
        self._holds()
        return True

    def _holds(self) -> None:
        if self._metrics is None:
            return
        self._metrics.set("reload_ok", 1)
        for surface in self._active.profile.surfaces:
            self._metrics.announce("premature_assurance", surface=surface.name)
            self._metrics.announce("probes", surface=surface.name, outcome="LEAKING")
        for route in self._active.profile.routes:
            self._metrics.announce("unreadable_fields", route=route.name)
        if self._clock is not None:
            self._metrics.set("reload_timestamp_seconds", self._clock.now())
        for each in self._active.profile.store.attestations:
            ends = datetime.combine(each.expires + timedelta(days=1), datetime.min.time(), UTC)
            self._metrics.set(
                "attestation_expiry_timestamp_seconds", ends.timestamp(), condition=each.condition
            )


def _existing(folders: Iterable[Path]) -> list[Path]:
    return [folder for folder in folders if folder.is_dir()]


