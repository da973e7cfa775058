"""`quietus scan`: goes through all that a store holds, so that lineage begins with what was there before.

It only reads, page by page, at the rate that probes have, and notes after each page where it goes on. With
`reapply` it also removes what is erased and is back, after a store was restored from a backup: each record
once, and never one that was written after its forget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.erasure import Erasure
from quietus.core.gate import Gate
from quietus.core.lineage import Detector
from quietus.core.operations import Call, Item, Operation
from quietus.core.probing import Witness
from quietus.core.scope import ANY, Scope
from quietus.core.screening import Screener
from quietus.lineage import Lineage
from quietus.owners import Owners
from quietus.permits import Purpose
from quietus.ports import Clock, UpstreamError
from quietus.prober import Prober
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.surface import SurfaceAnswer

PAGES_MAX: Final = 1_000_000


class CannotScan(Exception):
    """The store cannot be gone through; the message says what to add or to do."""


@dataclass(slots=True)
class Seen:
    """What a scan has found. Counts; no identifier is among them."""

    pages: int = 0
    records: int = 0
    ownerless: int = 0
    """Records that name no subject: they count as everybody's."""
    derived: int = 0
    """Records that name sources."""
    dangling: int = 0
    """Edges to a source that the store does not hold, and records that say so themselves."""
    complete: bool = False
    evicted: int = 0
    returned: Counter[str] = field(default_factory=Counter)
    """Records of the erased that are back, by erasure."""
    removed: int = 0
    refused: int = 0
    """Removals that the store would not do, or that a profile without a remedy cannot ask for."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a scan goes: a tenant (None: wherever the listing goes), and what the listing asks for."""

    tenant: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] | None = None
    """The path of all that is listed, where rows do not say theirs: a record is known by it."""

    @property
    def scope(self) -> Scope:
        """The scope of what is listed."""
        tenant = ANY if self.tenant is None else frozenset({self.tenant})
        return Scope(tenant=tenant, path=ANY if self.path is None else frozenset({self.path}))

    @property
    def call(self) -> Call:
        """The listing as a call that recalls all of it."""
        return Call(Operation.RECALL, route="scan", scope=self.scope, capture=dict(self.values))

    def witness(self) -> Witness:
        """What the listing is asked with."""
        return Witness(tenant=self.tenant, path=self.path, capture=dict(self.values))


class Scan:
    """One scan."""

    def __init__(
        self,
        prober: Prober,
        owners: Owners,
        lineage: Lineage,
        clock: Clock,
        reach: Reach,
        told: Callable[[Seen], None] = lambda seen: None,
        *,
        gate: Gate | None = None,
        screener: Screener | None = None,
    ) -> None:
        """With `gate` and `screener` what is erased and back is removed."""
        self._prober = prober
        self._owners = owners
        self._lineage = lineage
        self._clock = clock
        self._reach = reach
        self._told = told
        self._gate = gate
        self._screener = screener
        self._call = reach.call
        self._digested = owners.digested(reach.scope)
        self.seen = Seen()

    @property
    def tenant(self) -> str:
        """The digest of the tenant, hexadecimal; empty where none is named."""
        return self._owners.tenant_digest(self._reach.tenant).hex()

    async def run(self, *, resume: bool = True) -> Seen:
        """Goes through the store. Raises CannotScan, UpstreamError, LineageFault; what was read is kept."""
        surface = self._prober.profile.controls
        if surface is None:
            name = self._prober.profile.name
            raise CannotScan(f"the profile {name} has no `controls`, a listing of all records: add one")
        witness = self._reach.witness()
        began, page = self._begin(resume)
        for _ in range(PAGES_MAX):
            try:
                answer = await self._prober.ask(surface, witness, page=page)
            except MissingValue as error:
                raise CannotScan(f"the listing asks for {error}: give it by --tenant or --set") from None
            except (CannotQuote, Unreadable) as error:
                raise CannotScan(f"the listing cannot be read: {error}") from None
            await self._lineage.refresh()
            await self._page(answer)
            page = answer.next_page
            if page is None or answer.clean:
                return await self._end(began)
            self._lineage.pause({"tenant": self.tenant, "began": began, "seen": self._counts()}, page)
            await self._lineage.write()
            self._told(self.seen)
        raise CannotScan(f"the store has more than {PAGES_MAX} pages, or its pages do not end")

    def _begin(self, resume: bool) -> tuple[float, object | None]:
        left = self._lineage.checkpoint
        if not resume or left is None or left.get("tenant") != self.tenant:
            return self._clock.now(), None
        for name, count in left["seen"].items():
            setattr(self.seen, name, count)
        return float(left["began"]), self._lineage.cursor()

    def _counts(self) -> dict[str, int]:
        return {name: getattr(self.seen, name) for name in ("pages", "records", "ownerless", "derived")}

    async def _end(self, began: float) -> Seen:
        self._lineage.scanned(self.tenant, began)
        await self._lineage.write()
        self.seen.dangling += self._unknown_sources()
        coverage = self._lineage.coverage(self._digested.tenant)
        self.seen.complete, self.seen.evicted = coverage.complete, coverage.evicted
        self._told(self.seen)
        return self.seen

    def _unknown_sources(self) -> int:
        links = {record.link for record in self._lineage.records}
        return sum(
            edge.source not in links
            for record in self._lineage.records
            for edge in record.parents
            if edge.detector is Detector.DECLARED
        )

    async def _page(self, answer: SurfaceAnswer) -> None:
        self.seen.pages += 1
        gone = await self._reapply(answer)
        for item in answer.items:
            if item.key is None or item.position in gone:
                continue
            self.seen.records += 1
            self.seen.ownerless += item.subject is None
            self.seen.derived += bool(item.derived_from)
            self.seen.dangling += item.provenance_resolved is False
            self._owners.learn(item, self._call, self._digested)

    # --- what is erased and back -------------------------------------------------------------------

    async def _reapply(self, answer: SurfaceAnswer) -> set[int]:
        if self._gate is None or self._screener is None:
            return set()
        gone: set[int] = set()
        for item in answer.items:
            held = self._erasures_of(item, answer)
            if not held:
                continue
            gone.add(item.position)
            self.seen.returned.update(erasure.id for erasure in held)
            if await self._remove(item):
                self.seen.removed += 1
            else:
                self.seen.refused += 1
        return gone

    def _erasures_of(self, item: Item, answer: SurfaceAnswer) -> tuple[Erasure, ...]:
        """The erasures whose erased record, or content, a row is; those that were let in again have none."""
        assert self._gate is not None and self._screener is not None
        scalars = [(at, text) for at, text in answer.answered.scalars() if at == item.position]
        found = self._owners.screened(
            [item], scalars, gate=self._gate, screener=self._screener, call=self._call, scope=self._digested
        )
        return tuple(e for e in found.erased if not e.readmitted and not self._newer(item, e))

    def _newer(self, item: Item, erasure: Erasure) -> bool:
        return erasure.before(self._owners.born(item, self._call))

    async def _remove(self, item: Item) -> bool:
        if item.key is None:
            return False
        tenant = self._owners.tenant_of(item, self._call)
        values: dict[str, Any] = {**self._reach.values, **item.capture, "key": item.key}
        values |= {} if tenant is None else {"tenant": tenant}
        values |= {} if item.path is None else {"path": "/".join(item.path)}
        try:
            request = self._prober.profile.remedy("delete_record", values)
            if request is None:
                return False
            reply = await self._prober.send(request, Purpose.REMEDY)
        except (UpstreamError, CannotQuote, MissingValue):
            return False
        return reply.status < 400 or reply.status in (404, 410)
