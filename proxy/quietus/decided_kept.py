"""The decision counts over a restart: read at the start, written now and then and at the end.

They lie beside the ledger, sealed: tenants and purposes stand in them by name, since rules can name them. A
name that an erased subject has, too, is left out of what is written. Nothing depends on these counts: where
they cannot be read they begin anew, and that is told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final, Protocol

from quietus.core.scope import Scope
from quietus.decided import Decided, Tally
from quietus.erasures import Erasures
from quietus.keys import SealBroken, SealKey
from quietus.recording import Log
from quietus.shapes import Shapes

EVERY: Final = 10.0
"""Seconds after which what was counted is written, where anything was: a kill loses no more."""
SLOWER: Final = 1000
"""So many kinds of calls make it as many seconds again: what is written a second stays bounded."""
FORM: Final = 1
_NAME: Final = "decided"


class Blob(Protocol):
    """Where the counts lie at rest. Raises OSError."""

    async def read(self) -> bytes | None:
        """What was written last; None where nothing was."""

    async def write(self, blob: bytes) -> None:
        """Replaces it, durably and as a whole."""


class DecidedKept:
    """Keeps the counts of one sidecar."""

    def __init__(self, decided: Decided, shapes: Shapes, erasures: Erasures, log: Log, file: Blob) -> None:
        self._decided = decided
        self._shapes = shapes
        self._erasures = erasures
        self._log = log
        self._file = file
        keyring = erasures.keyring
        halves = (keyring.digest("decided-counts", b"1"), keyring.digest("decided-counts", b"2"))
        self._seal = SealKey(b"".join(halves))
        self._written: tuple[int, int] | None = None
        self._failing = False

    async def load(self) -> None:
        """Goes on from what was written; where that cannot be read, begins anew and says so."""
        try:
            blob = await self._file.read()
            if blob is None:
                cause = "missing"
            else:
                tally, shapes = await asyncio.to_thread(self._read, blob)
                self._decided.go_on(tally)
                self._shapes.go_on(shapes)
                self._log.info("decisions_kept", count=tally.count)
                self._written = (0, 0)
                return
        except OSError:
            cause = "unreadable"
        except SealBroken:
            cause = "damaged_or_of_other_keys"
        except (ValueError, KeyError, TypeError, AttributeError):
            cause = "damaged"
        tell: Callable[..., None] = self._log.info if cause == "missing" else self._log.error
        tell("decisions_begun_anew", cause=cause)

    async def run(self) -> None:
        """Writes until cancelled, and once more then."""
        try:
            while True:
                kinds = self._decided.kinds
                await self._erasures.clock.sleep(EVERY * (1 + kinds / SLOWER))
                await self.write()
        finally:
            await self.write()

    async def write(self) -> None:
        """Writes what was counted since, if anything was, or when counting began.

        A fault is logged once, until it is over.
        """
        now = self._now()
        if now == self._written:
            return
        tally, shapes = self._decided.tally(), self._shapes.listed()
        erased = {name for name in tally.names if self._erased(name)}
        try:
            blob = await asyncio.to_thread(self._sealed, tally, shapes, erased)
            await self._file.write(blob)
        except OSError:
            if not self._failing:
                self._log.error("decisions_not_written", cause="disk")
            self._failing = True
            return
        self._failing, self._written = False, now

    def _now(self) -> tuple[int, int]:
        return self._decided.seen, self._shapes.seen

    def _erased(self, name: str) -> bool:
        """Whether somebody of that name was erased: some stores call a tenant after the one person in it."""
        who = self._erasures.keyring.pseudonymise(Scope(subject=frozenset({name})))
        return bool(self._erasures.gate.of_subject(who))

    def _sealed(self, tally: Tally, shapes: list[Any], erased: set[str]) -> bytes:
        said = {"form": FORM, "since": tally.since, "counts": tally.told(erased), "shapes": shapes}
        return self._seal.seal(_NAME, json.dumps(said, separators=(",", ":")).encode())

    def _read(self, blob: bytes) -> tuple[Tally, list[tuple[str, int]]]:
        said = json.loads(self._seal.open(_NAME, blob))
        if said["form"] != FORM:
            raise ValueError("a form that is not known here")
        shapes = [(str(each["shape"]), int(each["count"])) for each in said["shapes"]]
        return Tally.read(float(said["since"]), said["counts"]), shapes
