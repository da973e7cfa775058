"""The snapshot before a forget leaves: enumerate, capture witnesses and marks, prove each probe.

Bounded by a number of records and by seconds; what was not reached is said and caps the verdict. Nothing
here fails a forget: a store that cannot be read now cannot be shown clean later either, and the erasure
then stays unsettled until it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from quietus.core.fingerprint import Digest, Mark
from quietus.core.operations import Item
from quietus.core.probing import SurfaceFacts, Witness, plan
from quietus.core.scope import Scope
from quietus.core.screener import Pseudonym
from quietus.marking import Holding, Marking, nobody
from quietus.permits import Purpose
from quietus.ports import Clock, UpstreamError
from quietus.prober import PAGES_MAX, Prober
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.surface import Surface
from quietus.snapshots import Predicate, Snapshot

PROOFS: Final = 3
"""Probes of one surface that are proven; one is enough for the surface to count."""
BYSTANDERS: Final = 3
CONTROL_PAGES: Final = 10
"""Pages of a collection that are gone through for bystanders."""
CANARY_TEXT: Final = "notes for a routine check of this memory"


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """How far a snapshot goes."""

    records: int = 100_000
    seconds: float = 10.0


class Snapshotter:
    """Takes snapshots and finds controls."""

    def __init__(
        self,
        prober: Prober,
        clock: Clock,
        limits: SnapshotLimits,
        pseudonym: Pseudonym,
        digest: Digest,
        is_erased: Callable[[Witness], bool],
        new_id: Callable[[], str],
        holding: Holding = nobody,
    ) -> None:
        self._prober = prober
        self._clock = clock
        self._limits = limits
        self._pseudonym = pseudonym
        self._marking = Marking(pseudonym, digest, holding)
        self._is_erased = is_erased
        self._new_id = new_id

    async def take(self, predicate: Predicate) -> tuple[Snapshot, list[Mark]]:
        """The snapshot and the marks that it leaves."""
        snapshot = Snapshot(witnesses=predicate.seeds())
        met: list[Witness] = []
        work = asyncio.ensure_future(self._take(predicate, snapshot, met))
        timer = asyncio.ensure_future(self._clock.sleep(self._limits.seconds))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                snapshot.truncated = True
                work.cancel()
            await asyncio.wait({work})
            if not work.cancelled():
                work.result()
        finally:
            work.cancel()
            timer.cancel()
        marked = self._marking.of(predicate, snapshot.witnesses, met)
        snapshot.residual_shared, snapshot.twins = marked.residual_shared, marked.twins
        return snapshot, [*marked.marks, *self.canary_marks(snapshot)]

    def canary_marks(self, snapshot: Snapshot) -> list[Mark]:
        """The marks by which no client is ever shown a canary."""
        return [Mark("canary", self._pseudonym("key", key)) for key in snapshot.canaries]

    def first_marks(self, predicate: Predicate) -> list[Mark]:
        """The marks that a predicate leaves before anything was read: who, and which keys."""
        return self._marking.first(predicate)

    async def _take(self, predicate: Predicate, snapshot: Snapshot, met: list[Witness]) -> None:
        await self._enumerate(predicate, snapshot)
        await self._prove(snapshot)
        await self.find_controls(predicate, snapshot, met)

    async def _enumerate(self, predicate: Predicate, snapshot: Snapshot) -> None:
        seeds = list(snapshot.witnesses)
        for surface in self._prober.profile.surfaces:
            reads = surface.enumerates or (surface.each == "key" and surface.kind == "primary")
            if not surface.probeable or not reads:
                continue
            for seed in seeds:
                if surface.each is not None and getattr(seed, surface.each, None) is None:
                    continue
                await self._list(surface, seed, predicate, snapshot)

    async def _list(
        self, surface: Surface, seed: Witness, predicate: Predicate, snapshot: Snapshot
    ) -> None:
        page: object | None = None
        known = {(w.path, w.key, w.text) for w in snapshot.witnesses}
        try:
            for _ in range(PAGES_MAX):
                answer = await self._prober.ask(surface, seed, page=page, paced=False)
                for item in answer.items:
                    if snapshot.records >= self._limits.records:
                        snapshot.truncated = True
                        return
                    found = [w for w in _witnesses(item, seed, surface) if predicate.may_hold(w)]
                    fresh = [w for w in found if (w.path, w.key, w.text) not in known]
                    known.update((w.path, w.key, w.text) for w in fresh)
                    snapshot.witnesses += fresh
                    snapshot.records += bool(fresh)
                page = answer.next_page
                if page is None or answer.clean:
                    return
            snapshot.truncated = True
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            snapshot.failed.append(surface.name)

    async def _prove(self, snapshot: Snapshot) -> None:
        if not snapshot.records:
            return
        for surface in self._prober.profile.surfaces:
            if not surface.probeable:
                continue
            facts = SurfaceFacts(surface.name, surface.kind, surface.each)
            known = [w for w in snapshot.witnesses if w.text is not None or w.key is not None]
            for turn in range(PROOFS):
                # Each time with others: a record may be gone by now that was there when it was listed.
                start = turn * PROOFS % max(len(known), 1)
                for probe in plan(facts, known[start:] + known[:start], turn)[:PROOFS]:
                    if await self._prober.finds(surface, probe.witness, paced=False):
                        place = snapshot.witnesses.index(probe.witness)
                        proven = snapshot.proven.setdefault(surface.name, [])
                        if place not in proven:
                            proven.append(place)
                if snapshot.proven.get(surface.name):
                    break

    # --- controls ------------------------------------------------------------------------------

    async def find_controls(
        self, predicate: Predicate, snapshot: Snapshot, met: list[Witness] | None = None
    ) -> None:
        """Bystanders that are found now, by surface; a canary for those without, where one can be written.

        `met` takes in every bystander's record that was seen on the way.
        """
        candidates = await self._bystanders(predicate, snapshot, met if met is not None else [])
        snapshot.control_kind = "live"
        snapshot.controls.clear()
        await self._try_controls(candidates, snapshot)
        if not self._uncontrolled(snapshot):
            return
        canary = await self._canary(predicate, snapshot)
        await self._try_controls([canary] if canary is not None else [], snapshot)
        if any(canary in its for its in snapshot.controls.values()):
            snapshot.control_kind = "canary"
        else:
            await self.remove_canaries(predicate, snapshot)  # it proves nothing: it does not stay

    def _uncontrolled(self, snapshot: Snapshot) -> bool:
        """Whether a surface that will be asked has no control, and a canary could be one."""
        canary = Witness(key="", subject="", text="", path=())
        for surface in self._prober.profile.surfaces:
            facts = SurfaceFacts(surface.name, surface.kind, surface.each)
            asked = surface.probeable and plan(facts, snapshot.witnesses) and plan(facts, [canary])
            if asked and surface.name not in snapshot.controls:
                return True
        return not snapshot.controls

    async def _try_controls(self, candidates: list[Witness], snapshot: Snapshot) -> None:
        for surface in self._prober.profile.surfaces:
            if not surface.probeable or surface.name in snapshot.controls:
                continue
            facts = SurfaceFacts(surface.name, surface.kind, surface.each)
            for probe in plan(facts, candidates)[:BYSTANDERS]:
                if await self._prober.finds(surface, probe.witness, paced=False):
                    snapshot.controls.setdefault(surface.name, []).append(probe.witness)

    async def _bystanders(
        self, predicate: Predicate, snapshot: Snapshot, met: list[Witness]
    ) -> list[Witness]:
        surface = self._prober.profile.controls
        if surface is None:
            return []
        seed = replace(predicate.seeds()[0], key=None, subject=None)
        ours: set[object] = {(w.path, w.key) for w in snapshot.witnesses}
        found: list[Witness] = []
        page: object | None = None
        try:
            for _ in range(CONTROL_PAGES):
                answer = await self._prober.ask(surface, seed, page=page, paced=False)
                for each in (_witnesses(item, seed, surface) for item in answer.items):
                    if each and self._stands_by(each[0], predicate, ours):
                        found.append(each[0])
                        met += each
                page = answer.next_page
                if len(found) >= BYSTANDERS or page is None:
                    break
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            snapshot.failed.append("controls")
        # Those that lie somewhere first: they are a control also for surfaces that are asked by path.
        return sorted(found, key=lambda witness: witness.path is None)[:BYSTANDERS]

    def _stands_by(self, witness: Witness, predicate: Predicate, ours: set[object]) -> bool:
        if (witness.path, witness.key) in ours or witness.subject is None:
            return False
        return witness.subject not in predicate.subject and not self._is_erased(witness)

    async def _canary(self, predicate: Predicate, snapshot: Snapshot) -> Witness | None:
        profile = self._prober.profile
        seed = replace(predicate.seeds()[0], key=None)
        subject = f"quietus-canary-{self._new_id()}"
        if "path" in (profile.canary_values or ()) and any(w.path for w in snapshot.witnesses):
            seed = replace(seed, path=(subject,))  # in the path that is erased it would be a leak itself
        values = {**seed.values(), "subject": subject, "text": CANARY_TEXT, "key": subject}
        try:
            request = profile.canary_write(values)
            if request is None:
                return None
            reply = await self._prober.send(request, Purpose.PROBE, paced=False)
            key = profile.canary_key(reply, subject)
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            return None
        if key is None:
            return None
        snapshot.canaries.append(key)
        return replace(seed, key=key, subject=subject, text=CANARY_TEXT)

    async def remove_canaries(self, predicate: Predicate, snapshot: Snapshot) -> bool:
        """Removes what was written as a control; False when the store would not."""
        for key in list(snapshot.canaries):
            values = {**predicate.seeds()[0].values(), "key": key}
            try:
                request = self._prober.profile.remedy("delete_record", values)
                if request is None:
                    return False
                reply = await self._prober.send(request, Purpose.REMEDY, paced=False)
            except (UpstreamError, CannotQuote, MissingValue):
                return False
            if reply.status >= 500:
                return False
            snapshot.canaries.remove(key)
        return True


def erased_check(
    digested: Callable[[Scope], Scope], named: Callable[[Scope], bool]
) -> Callable[[Witness], bool]:
    """A test of whether a would-be bystander is itself erased."""

    def check(witness: Witness) -> bool:
        if witness.subject is None:
            return True
        return named(digested(Scope(subject=frozenset({witness.subject}))))

    return check


def _witnesses(item: Item, seed: Witness, surface: Surface) -> list[Witness]:
    """One witness for each text of a row, or one for its key alone; none for a row that says nothing."""
    key = item.key if item.key is not None else (seed.key if surface.each == "key" else None)
    texts: tuple[str | None, ...] = item.texts or ((None,) if key is not None else ())
    return [
        Witness(
            key=key,
            subject=item.subject if item.subject is not None else seed.subject,
            tenant=item.tenant if item.tenant is not None else seed.tenant,
            purpose=item.purpose,
            path=item.path if item.path is not None else seed.path,
            text=text,
            vector=item.vector,
            capture={**seed.capture, **item.capture},
        )
        for text in texts
    ]
