"""What is known of the store's records, kept up by traffic and scans, and written down beside the ledger.

At rest there are keyed digests; the address by which a derived record is asked for is sealed. What was
learned is written within `EVERY` seconds; a process that ends without closing says so at its next start,
and what may be missing then caps verdicts until a scan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from quietus.core.lineage import PARENTS, RECORDS, Detector, Edge, Record, Records
from quietus.core.lineage_form import BadForm, pack, unpack
from quietus.core.prints import ASKED, KEPT, Prints, prints_of
from quietus.core.scope import Scope, Wild
from quietus.keys import Keyring, SealBroken, SealKey
from quietus.ports import Clock, LineageFault, LineageLog

EVERY: Final = 0.5
"""Seconds after which what was learned is written down."""
_BATCH: Final = 2000


@dataclass(frozen=True, slots=True)
class Address:
    """Where a record lies, in clear: what a probe or a remedy asks with."""

    key: str
    tenant: str | None = None
    path: tuple[str, ...] | None = None
    capture: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the store the lineage knows."""

    records: int
    derived: int
    evicted: int
    scanned_at: float | None
    gap: str
    """Why it may not be whole; empty when a scan was completed and nothing was lost since."""

    @property
    def complete(self) -> bool:
        """Whether every record that the store held is known."""
        return not self.gap


class Lineage:
    """The graph of records, its keys, and its place on disk."""

    def __init__(self, keyring: Keyring, bound: int = RECORDS, log: LineageLog | None = None) -> None:
        self.records = Records(bound)
        self.log = log
        self.scanned_at: float | None = None
        self.unclean = False
        """The last process ended without writing down all that it had learned."""
        self.fault = ""
        """Why what was learned could not be written down last time."""
        self._keyring = keyring
        self._said: dict[str, Any] = {}
        halves = (keyring.digest("lineage-address", b"1"), keyring.digest("lineage-address", b"2"))
        self._seal = SealKey(b"".join(halves))

    # --- names ---------------------------------------------------------------------------------

    def link(self, key: str, tenant: str | None) -> bytes:
        """What a `derived_from` of that key names in a tenant; None: no tenant was named."""
        return self._keyring.digest("lineage-link", json.dumps([tenant, key]).encode())

    def seal(self, name: bytes, address: Address) -> bytes:
        """An address as it is kept."""
        return self._seal.seal(name.hex(), json.dumps(asdict(address)).encode())

    def address(self, record: Record) -> Address | None:
        """Where a derived record lies; None where that is not known."""
        if record.address is None:
            return None
        try:
            raw = json.loads(self._seal.open(record.name.hex(), record.address))
        except SealBroken:
            return None
        raw["path"] = tuple(raw["path"]) if raw["path"] is not None else None
        return Address(**raw)

    # --- learning ------------------------------------------------------------------------------

    def learn(self, record: Record, texts: tuple[str, ...], sources: list[bytes], address: Address) -> None:
        """Adds a record with the texts and sources that came with it; what was known of it before stays."""
        known = self.records.get(record.name)
        edges = {edge.source: edge for edge in known.parents} if known is not None else {}
        edges |= {source: Edge(source) for source in sources if source != record.link}
        prints = self.prints(texts) if texts else []
        for each in prints:
            for edge in self.records.suspects(each, record):
                edges.setdefault(edge.source, edge)
        parents = tuple(edges.values())[:PARENTS]
        sealed = known.address if known is not None else None
        if parents and sealed is None:
            sealed = self.seal(record.name, address)
        runs = tuple(dict.fromkeys(number for each in prints for number in each.runs[:KEPT]))[:KEPT]
        record = replace(
            record,
            parents=parents,
            whole=prints[0].whole if prints else known.whole if known is not None else 0,
            prints=runs if prints else known.prints if known is not None else (),
            address=sealed,
        )
        if record != known:
            self.records.put(record)
        if prints:
            self.records.held(record, prints)

    def prints(self, texts: tuple[str, ...]) -> list[Prints]:
        """The prints of the texts of one record."""
        found = (prints_of(text, self._keyring.digest, ASKED) for text in texts)
        return [each for each in found if each is not None]

    def found_by_search(self, record: Record, roots: list[bytes], address: Address) -> Record:
        """A record that the store gave back for a text of the erased: an edge nobody had told of."""
        known = self.records.get(record.name)
        edges = {edge.source: edge for edge in known.parents} if known is not None else {}
        for root in roots[:PARENTS]:
            edges.setdefault(root, Edge(root, Detector.SEARCH))
        base = known or record
        sealed = base.address or self.seal(record.name, address)
        found = replace(base, parents=tuple(edges.values())[:PARENTS], address=sealed)
        self.records.put(found)
        return found

    def held(self, predicate: Scope) -> list[Record]:
        """The records that surely belong to what a predicate names, by their subject. Digested."""
        if isinstance(predicate.subject, Wild):
            return []
        return [r for r in self.records.of_subjects(predicate.subject) if _inside(r, predicate)]

    def forget(self, predicate: Scope) -> int:
        """Lets go of every record that surely belonged to what was erased; how many."""
        held = self.held(predicate)
        for record in held:
            self.records.drop(record.name)
        return len(held)

    # --- coverage ------------------------------------------------------------------------------

    def coverage(self) -> Coverage:
        """How much is known now, and what is missing."""
        gap = ""
        if self.scanned_at is None:
            gap = "no scan has gone through what the store held before"
        elif self.records.evicted:
            gap = "records were let go at the bound"
        elif self.unclean:
            gap = "the process ended without writing down all that it had learned"
        elif self.fault:
            gap = "what was learned could not be written down"
        derived = sum(1 for record in self.records if record.parents)
        return Coverage(len(self.records), derived, self.records.evicted, self.scanned_at, gap)

    def scanned(self, at: float) -> None:
        """A scan went through the whole store: from here what is learned is added to something whole."""
        self.scanned_at = at
        self.unclean = False
        self.records.evicted = 0
        self._said = {"scanned_at": at}

    # --- on disk -------------------------------------------------------------------------------

    async def load(self, *, serving: bool = True) -> None:
        """Reads what was written down. Raises LineageFault. `serving`: until closed it counts as unclean."""
        if self.log is None:
            return
        meta = await self.log.open(self._keyring.digest("lineage-check", b"").hex(), serving)
        self._meta(meta)
        self.unclean = bool(meta.get("unclean"))
        await self._read(await self.log.rows())

    async def refresh(self) -> None:
        """Takes in what another process, a scan, has written meanwhile. Raises LineageFault."""
        if self.log is None:
            return
        rows, meta = await self.log.newer()
        await self._read(rows)
        if meta.get("scanned_at") != self.scanned_at:
            self.records.evicted = 0
            self.unclean = False
            self._meta(meta)

    def _meta(self, meta: Mapping[str, Any]) -> None:
        self.scanned_at = meta.get("scanned_at")
        self.records.evicted = int(meta.get("evicted") or 0)

    async def _read(self, rows: list[tuple[bytes, bytes]]) -> None:
        for name, data in rows:
            if not data:
                self.records.drop(name, written=True)
                continue
            try:
                record = unpack(name, data)
            except BadForm as error:
                raise LineageFault(f"{error}: move the lineage file away and scan again") from None
            self.records.put(record, written=True)
            for subject in () if isinstance(record.subject, Wild) else record.subject:
                if record.whole and isinstance(subject, bytes):
                    self.records.sharing.held(record.whole, subject)

    async def write(self) -> int:
        """Writes down what is new; how many records. Raises LineageFault; it is then still new."""
        if self.log is None:
            self.records.changed.clear()
            return 0
        changed, self.records.changed = self.records.changed, {}
        rows = [(name, pack(record) if record is not None else b"") for name, record in changed.items()]
        # What a scan in another process has said is not said again: it may be newer than what is known here.
        meta = {**self._said, "evicted": self.records.evicted}
        try:
            for start in range(0, max(len(rows), 1), _BATCH):
                await self.log.write(rows[start : start + _BATCH], meta)
        except LineageFault:
            self.records.changed = changed | self.records.changed
            raise
        self.fault, self._said = "", {}
        return len(rows)

    async def keep(self, clock: Clock) -> None:
        """Writes down and takes in until cancelled."""
        while True:
            await clock.sleep(EVERY)
            try:
                await self.refresh()
                if self.records.changed:
                    await self.write()
            except LineageFault as error:
                self.fault = str(error)

    async def close(self) -> None:
        """Writes down the rest and says that nothing is missing. Raises LineageFault."""
        if self.log is not None:
            await self.write()
            await self.log.close()


def _inside(record: Record, predicate: Scope) -> bool:
    if not isinstance(predicate.tenant, Wild) and record.tenant not in predicate.tenant:
        return False
    for name in ("purpose", "path"):
        wanted, its = getattr(predicate, name), getattr(record, name)
        if not isinstance(wanted, Wild) and (isinstance(its, Wild) or not its <= wanted):
            return False
    return isinstance(predicate.key, Wild)
