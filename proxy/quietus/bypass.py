"""The by-pass probe: does the store hold records that never passed the sidecar?

It goes through the listing of all records, some pages a look and within the rate that probes have, and
compares with the lineage, which knows what passed. Where no scan has told what was there before, a first
round takes all of it as known. From then on a record that nobody knows is a suspect, and one that is still
unknown a whole round later is counted, once: the write that is on its way meanwhile is known by then.

It warns, and restricts nothing. Where it cannot tell, it stands aside and says so: with another replica on
the ledger, whose lineage is its own, and while the lineage lets records go at its bound.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from quietus.barrier import Sharing
from quietus.core.operations import Item
from quietus.core.scope import Scope
from quietus.core.screening import Screener
from quietus.erasures import Erasures
from quietus.owners import Owners
from quietus.ports import LineageFault, UpstreamError
from quietus.prober import Prober
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.surface import SurfaceAnswer
from quietus.recording import Log
from quietus.scan import Reach
from quietus.settings import BypassSettings

UNSEEN: Final = "unseen_record"
"""The cause under which a record that never passed is counted."""
DERIVED: Final = "unseen_derived"
"""The same of a record that names sources: stores make such themselves."""
SUSPECTS: Final = 10_000
"""Suspects of one round; what is beyond has its turn a round later."""
ROUND_PAGES: Final = 1_000_000


class Counts(Protocol):
    """Where by-passes are counted, and when the probe last went round is told."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to a counter."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets a gauge."""


@dataclass(slots=True)
class _Round:
    """Where the probe stands in one reach."""

    reach: Reach
    page: object | None = None
    pages: int = 0
    first: bool = True
    """Nothing was gone through yet that a later round could be compared with."""
    let_go: int = 0
    """Records that were let go at a bound when this round began."""
    suspected: frozenset[bytes] = frozenset()
    """The suspects of the round before."""
    suspects: set[bytes] = field(default_factory=set)


class BypassProbe:
    """Goes round and round, as long as it is let."""

    def __init__(
        self,
        prober: Prober,
        owners: Owners,
        erasures: Erasures,
        sharing: Sharing,
        metrics: Counts,
        log: Log,
        wanted: BypassSettings,
    ) -> None:
        keys, gate = erasures.keyring, erasures.gate
        self._prober = prober
        self._owners = owners
        self._lineage = owners.lineage
        self._gate = gate
        self._screener = Screener(gate, keys.pseudonym, keys.digest, keys.digests)
        self._sharing = sharing
        self._clock = erasures.clock
        self._metrics = metrics
        self._log = log
        self._every = wanted.every or 0.0
        self._pages = wanted.pages_max
        reaches = [Reach(r.tenant, r.values, r.segments) for r in wanted.reach]
        self._rounds = [_Round(reach) for reach in reaches or [Reach()]]
        self._nameless: OrderedDict[bytes, None] = OrderedDict()
        """Records that the lineage keeps nothing of, since they name nobody: known all the same."""
        self._forgotten = 0
        self._said = ""

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(self._every)

    async def look(self) -> None:
        """One look into every reach. What goes wrong is told in the log, and tried again at the next one."""
        for each in self._rounds:
            cause = self._aside()
            if cause:
                each.first, each.page = True, None
                self._say(cause)
                continue
            try:
                await self._go_on(each)
            except (MissingValue, CannotQuote):
                cause = "listing_wants_values"
            except Unreadable:
                # The place where it would go on may have expired.
                cause, each.page = "listing_unreadable", None
            except UpstreamError:
                cause = "store_unreachable"
            except LineageFault:
                cause = "lineage_unavailable"
            self._say(cause)

    def _aside(self) -> str:
        """Why nothing can be told at the moment; empty where it can."""
        if self._prober.profile.controls is None:
            return "no_listing"
        return "replicas" if self._sharing.live > 1 else ""

    def _say(self, cause: str) -> None:
        if cause and cause != self._said:
            self._log.error("bypass_probe_blind", cause=cause)
        self._said = cause

    async def _go_on(self, each: _Round) -> None:
        surface = self._prober.profile.controls
        assert surface is not None
        for _ in range(self._pages):
            if each.page is None:
                self._begin(each)
            answer = await self._prober.ask(surface, each.reach.witness(), page=each.page)
            await self._lineage.refresh()
            self._compare(each, answer)
            each.page, each.pages = answer.next_page, each.pages + 1
            if each.page is None or answer.clean or each.pages >= ROUND_PAGES:
                self._end(each)
                return

    def _begin(self, each: _Round) -> None:
        each.pages, each.suspects = 0, set()
        if each.let_go != self._let_go():
            # Those that were let go would now be taken for strangers: what there is counts as known again.
            each.first, each.let_go = True, self._let_go()
            self._say("lineage_full")
        if each.first and self._lineage.coverage(self._digested(each).tenant).complete:
            each.first = False

    def _end(self, each: _Round) -> None:
        each.page = None
        each.suspected = frozenset() if each.first else frozenset(each.suspects)
        each.first = False
        self._metrics.set("bypass_round_timestamp_seconds", self._clock.now())

    def _let_go(self) -> int:
        return self._lineage.records.evicted + self._forgotten

    def _digested(self, each: _Round) -> Scope:
        return self._owners.digested(each.reach.scope)

    # --- comparing -----------------------------------------------------------------------------

    def _compare(self, each: _Round, answer: SurfaceAnswer) -> None:
        found: Counter[str] = Counter()
        for item, name in self._strangers(each, answer):
            if each.first:
                self._know(each, item, name)
            elif name in each.suspected:
                found[DERIVED if item.derived_from else UNSEEN] += 1
                self._know(each, item, name)
            elif len(each.suspects) < SUSPECTS:
                each.suspects.add(name)
        for cause, count in found.items():
            self._metrics.count("bypass", count, cause=cause)
            self._log.error("records_never_passed", cause=cause, count=count)

    def _strangers(self, each: _Round, answer: SurfaceAnswer) -> Iterator[tuple[Item, bytes]]:
        """The rows that are not known, with the names of their records; never what is erased, nor a canary.

        Those are looked for by the erasure's own probes, which count them as what they are.
        """
        call, digested = each.reach.call, self._digested(each)
        owners = self._owners
        hidden = owners.screened(
            answer.items, answer.answered.scalars(), gate=self._gate, screener=self._screener, call=call,
            scope=digested,
        ).dropped  # fmt: skip
        for item in answer.items:
            if item.key is None or item.position in hidden:
                continue
            name = owners.name(item.key, item, call)
            if self._lineage.records.get(name) is None and name not in self._nameless:
                yield item, name

    def _know(self, each: _Round, item: Item, name: bytes) -> None:
        self._owners.learn(item, each.reach.call, self._digested(each))
        if self._lineage.records.get(name) is None:
            self._nameless[name] = None
            if len(self._nameless) > self._lineage.records.bound:
                self._nameless.popitem(last=False)
                self._forgotten += 1
