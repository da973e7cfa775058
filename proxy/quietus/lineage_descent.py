"""Before a forget leaves: everything that was derived from what it names, read, and its fate decided.

A walk afterwards could not pass the gap that the source leaves. What the lineage knows is walked; the store
is also asked with the texts of the erased, because a derivation that it made itself was told to nobody. A
snapshot is bounded, and so is this: what was not reached is said, and caps the verdict.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from quietus.core.fingerprint import Mark, joined, marks_of, words
from quietus.core.lineage import DESCENDANTS, Address, Detector, Kin, Record
from quietus.core.operations import Call, Item, Operation
from quietus.core.prints import SHARED, prints_of
from quietus.core.probing import Witness
from quietus.core.scope import Scope
from quietus.core.screening import record_name
from quietus.core.severance import NON_RECONSTRUCTIVE, Fate, Severance, Sources, Span, decide
from quietus.keys import Keyring
from quietus.lineage import Lineage
from quietus.owners import Owners
from quietus.ports import Clock, UpstreamError
from quietus.prober import Prober
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.surface import Surface
from quietus.snapshots import Descendant, Predicate, Snapshot, facts_of

SEARCHES: Final = 20
"""Texts of the erased that the store is asked with, on each surface."""
SECONDS: Final = 5.0
READS_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Payload:
    """What the store returned for a record."""
    row: Item | None
    texts: tuple[str, ...] = ()
    readable: bool = True


class Descent:
    """Finds descendants and decides about them."""

    def __init__(
        self,
        prober: Prober,
        lineage: Lineage,
        owners: Owners,
        keyring: Keyring,
        clock: Clock,
        attested: Callable[[], frozenset[str]],
        seconds: float = SECONDS,
    ) -> None:
        self._prober = prober
        self._lineage = lineage
        self._owners = owners
        self._keyring = keyring
        self._clock = clock
        self._attested = attested
        self._seconds = seconds

    async def follow(
        self, predicate: Predicate, scope: Scope, snapshot: Snapshot
    ) -> tuple[list[Mark], dict[str, Any]]:
        """Adds the descendants to a snapshot; the marks that they leave, and what the ledger keeps of them.

        `scope` is the predicate's, digested.
        """
        whole = await self._within(self._follow(predicate, scope, snapshot), self._seconds)
        coverage = self._lineage.coverage(scope.tenant)
        return self._marks(snapshot.descendants), facts_of(snapshot.descendants, coverage, whole)

    async def _within(self, work: Coroutine[Any, Any, bool], seconds: float) -> bool:
        """The outcome of some work; False where there was no time for it."""
        task = asyncio.ensure_future(work)
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
            await asyncio.wait({task})
            return not task.cancelled() and task.result()
        finally:
            task.cancel()
            timer.cancel()

    async def _follow(self, predicate: Predicate, scope: Scope, snapshot: Snapshot) -> bool:
        sources = self.sources(predicate, snapshot)
        roots = self._roots(scope, snapshot.witnesses)
        searched = self._search(predicate, snapshot, sources, roots)
        whole = await self._within(searched, self._seconds / 2)  # what is known must be read, too
        twins = frozenset(snapshot.twins)
        suspected = (Detector.QUOTE, Detector.CONTAINMENT, Detector.SEARCH)
        kin = [
            each for each in self._lineage.records.descendants(roots)
            if each.detector not in suspected or each.record.whole not in twins
        ]  # fmt: skip
        erased = erased_keys(snapshot)
        slots = asyncio.Semaphore(READS_AT_ONCE)
        found: dict[bytes, Descendant] = {}

        async def one(each: Kin) -> None:
            async with slots:
                descendant = await self._one(each, sources, erased)
            found[each.record.name] = descendant

        try:
            await asyncio.gather(*(one(each) for each in kin))
        except asyncio.CancelledError:  # no time left: of the others it is not known
            found |= {k.record.name: self._unread(k) for k in kin if k.record.name not in found}
            self._take(kin, found, roots, snapshot)
            raise
        self._take(kin, found, roots, snapshot)
        return whole and len(kin) < DESCENDANTS

    def _unread(self, kin: Kin) -> Descendant:
        declared = kin.detector is Detector.DECLARED
        fate = Fate.ESCALATE if declared else Fate.DISMISSED
        where = witness_at(self._lineage.address(kin.record) or Address(key=""))
        reason = "there was no time to read it"
        return Descendant(where, kin.record.name.hex(), fate.value, reason, kin.detector.value, kin.depth)

    @staticmethod
    def _take(
        kin: list[Kin], found: dict[bytes, Descendant], roots: Iterable[bytes], snapshot: Snapshot
    ) -> None:
        # A suspicion that was not borne out leads nowhere: what hangs on it alone is no descendant either.
        reached = set(roots)
        for each in kin:  # nearest first
            descendant = found[each.record.name]
            led = not reached.isdisjoint(edge.source for edge in each.record.parents)
            if led and descendant.fate != Fate.DISMISSED.value:
                reached.add(each.record.link)
                if descendant.fate != Fate.GONE.value:
                    snapshot.descendants.append(descendant)

    def _roots(self, scope: Scope, witnesses: Iterable[Witness]) -> list[bytes]:
        roots = {
            self._lineage.link(w.key, tenant): None
            for w in witnesses
            if w.key is not None
            for tenant in (w.tenant, None)
        }
        roots |= {record.link: None for record in self._lineage.held(scope)}
        return list(roots)

    async def _one(self, kin: Kin, sources: Sources, erased: frozenset[str]) -> Descendant:
        address = self._lineage.address(kin.record)
        payload = Payload(None, readable=False)
        if address is not None:
            payload = await self.payload(witness_at(address))
        decided = self.judged(payload, sources, erased, declared=kin.detector is Detector.DECLARED)
        return Descendant(
            witness=witness_at(address or Address(key="")),
            record=kin.record.name.hex(),
            fate=decided.fate.value,
            reason=decided.reason,
            detector=kin.detector.value,
            depth=kin.depth,
            text=max(payload.row.texts, key=len, default=None) if payload.row is not None else None,
        )

    def sources(self, predicate: Predicate, snapshot: Snapshot) -> Sources:
        """The texts, vectors and names of the erased, to be looked for in what was derived from them.

        A text or sentence that several other live subjects hold is common property, and proves nothing.
        """
        held = snapshot.witnesses
        erased = [self._keyring.pseudonym("subject", subject) for subject in predicate.subject]
        texts = [". ".join(self._own(w.text, erased)) for w in held if w.text is not None]
        names = predicate.subject if not (predicate.purpose or predicate.key or predicate.path) else ()
        return Sources(dict.fromkeys(texts), [w.vector for w in held if w.vector is not None], names)

    def _own(self, text: str, erased: list[bytes]) -> list[str]:
        sharing = self._lineage.records.sharing
        return [
            part for part in re.split(r"(?<=[.!?。！？\n])\s+", text)
            if sharing.live(self._keyring.digest("text", joined(words(part))), erased) < SHARED
        ]  # fmt: skip

    def judged(
        self, payload: Payload, sources: Sources, erased: frozenset[str], *, declared: bool
    ) -> Severance:
        """The fate of a descendant that was read; `erased` are the keys that no edge may point at."""
        return decide(
            payload.row, payload.texts, sources, readable=payload.readable,
            erased_edge=payload.row is not None and dangles(payload.row, erased), declared=declared,
            attested=NON_RECONSTRUCTIVE in self._attested(),
        )  # fmt: skip

    async def payload(self, witness: Witness) -> Payload:
        """What the store returns for a record, asked by key."""
        surface = by_key(self._prober.profile.surfaces)
        if surface is None:
            return Payload(None, readable=False)
        try:
            answer = await self._prober.ask(surface, witness, paced=False)
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            return Payload(None, readable=False)
        rows = [item for item in answer.items if item.key in (None, witness.key)]
        if answer.clean or not rows:
            return Payload(None)
        row = replace(rows[0], key=witness.key)
        texts = [t for at, t in answer.answered.scalars() if at in (None, rows[0].position)]
        return Payload(row, tuple(dict.fromkeys((*row.texts, *texts))))

    # --- what the store itself gives back for the texts of the erased -----------------------------

    async def _search(
        self, predicate: Predicate, snapshot: Snapshot, sources: Sources, roots: list[bytes]
    ) -> bool:
        known = {w.key for w in snapshot.witnesses}
        asked = [w for w in snapshot.witnesses if w.text is not None or w.vector is not None][:SEARCHES]
        for surface in self._prober.profile.surfaces:
            if not surface.probeable or surface.each not in ("text", "vector"):
                continue
            for witness in asked:
                if getattr(witness, surface.each) is None:
                    continue
                wide = replace(witness, subject=None, path=None, purpose=None)
                try:
                    answer = await self._prober.ask(surface, wide, paced=False)
                except (UpstreamError, Unreadable, CannotQuote, MissingValue):
                    continue
                for item in answer.items:
                    if item.key is None or item.key in known or item.subject in predicate.subject:
                        continue
                    # Somebody may have said the same by themselves, if it is not much.
                    texts = [text for text in item.texts if not self._twin(text, snapshot)]
                    if any(sources.span(text) is Span.QUOTE for text in texts):
                        known.add(item.key)
                        self._found(item, wide, roots)
        return True

    def _twin(self, text: str, snapshot: Snapshot) -> bool:
        prints = prints_of(text, self._keyring.digest, 0)
        return prints is not None and prints.whole in snapshot.twins

    def _found(self, item: Item, asked: Witness, roots: list[bytes]) -> None:
        assert item.key is not None
        tenant = asked.tenant
        scope = Scope() if tenant is None else Scope(tenant=frozenset({tenant}))
        call = Call(Operation.RECALL, scope=scope, capture=asked.capture)
        its = self._owners.scope_of(item, call, self._owners.digested(scope))
        tenant = self._owners.tenant_of(item, call)
        record = Record(
            self._owners.name(item.key, item, call), self._lineage.link(item.key, tenant),
            self._owners.tenant_digest(tenant), its.subject, its.purpose, its.path,
        )  # fmt: skip
        address = Address(item.key, tenant, item.path, {**asked.capture, **item.capture})
        self._lineage.found_by_search(record, roots, address)

    # --- what is kept of it ------------------------------------------------------------------------

    def _marks(self, descendants: Iterable[Descendant]) -> list[Mark]:
        """By these a descendant is held back: for good where it bears the erased, else until settled."""
        found: dict[Mark, None] = {}
        for each in descendants:
            witness = each.witness
            if each.fate == Fate.UNLINK.value or witness.key is None:
                continue
            kind = "descendant" if each.fate == Fate.CASCADE.value else "escalated"
            found[Mark(kind, self._keyring.pseudonym("key", witness.key))] = None
            if witness.path is not None:
                name = record_name(witness.path, witness.key)
                found[Mark(kind, self._keyring.pseudonym("record", name))] = None
            if kind == "descendant" and each.text is not None:
                whole = (m for m in marks_of(each.text, self._keyring.digest) if m.kind == "text")
                found.update(dict.fromkeys(whole))
        return list(found)


def erased_keys(snapshot: Snapshot) -> frozenset[str]:
    """The keys that no edge of a surviving record may point at: of the erased, and of what goes with them."""
    own = {w.key for w in snapshot.witnesses if w.key is not None}
    gone = {d.witness.key for d in snapshot.descendants if d.fate == Fate.CASCADE.value and d.witness.key}
    return frozenset(own | gone)


def dangles(row: Item, erased: frozenset[str]) -> bool:
    """Whether a row names an erased source, or says that its provenance does not resolve."""
    return row.provenance_resolved is False or not erased.isdisjoint(row.derived_from)


def by_key(surfaces: Iterable[Surface]) -> Surface | None:
    """The surface that a single record is read through."""
    return next((s for s in surfaces if s.probeable and s.kind == "primary" and s.each == "key"), None)


def witness_at(address: Address) -> Witness:
    """What a record is asked for with."""
    return Witness(key=address.key, tenant=address.tenant, path=address.path, capture=address.capture)
