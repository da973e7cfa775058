"""What is known of the store's records, kept up by traffic and scans, and written down beside the ledger.

At rest there are keyed digests; the address by which a derived record is asked for is sealed. What was
learned is written within `EVERY` seconds; a process that ends without closing says so at its next start,
and what may be missing then caps verdicts until a scan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from quietus.core.erasure import Erasure
from quietus.core.events import Event, EventType
from quietus.core.lineage import PARENTS, RECORDS, Address, Coverage, Detector, Edge, Record, Records
from quietus.core.lineage_form import BadForm, pack, unpack
from quietus.core.prints import ASKED, KEPT, Prints, prints_of
from quietus.core.replacing import replacer
from quietus.core.scope import ANY, Scope, Values, Wild
from quietus.keys import Keyring, SealBroken, SealKey
from quietus.ports import Clock, LineageFault, LineageLog

EVERY: Final = 0.5
"""Seconds after which what was learned is written down."""
_BATCH: Final = 2000
replace: Final = replacer(Record)


class Lineage:
    """The graph of records, its keys, and its place on disk."""

    def __init__(
        self,
        keyring: Keyring,
        bound: int = RECORDS,
        log: LineageLog | None = None,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`now` gives Unix seconds: when something was lost, and when a scan began."""
        self.records = Records(bound)
        self.log = log
        self.fault = ""
        """Why what was learned could not be written down last time."""
        self.checkpoint: dict[str, Any] | None = None
        """Where a scan that was broken off goes on."""
        self._now = now
        self._scanned: dict[str, float] = {}
        self._lost: dict[str, Any] = {"at": -1.0, "why": ""}
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
            self._put(record)
        if prints:
            self.records.held(record, prints)

    def _put(self, record: Record) -> None:
        before = self.records.evicted
        self.records.put(record)
        if self.records.evicted > before:
            self.lose("records were let go at the bound")

    def lose(self, why: str) -> None:
        """Says that something was learned that is not known any more: verdicts are capped by it."""
        self._lost = {"at": self._now(), "why": why}
        self._said["lost"] = self._lost

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
        self._put(found)
        return found

    def held(self, predicate: Scope) -> list[Record]:
        """The records that surely belong to what a predicate names, by their subject. Digested."""
        if isinstance(predicate.subject, Wild):
            return []
        return [r for r in self.records.of_subjects(predicate.subject) if _inside(r, predicate)]

    def noticed(self, erasure: Erasure, event: Event) -> None:
        """What has settled is gone: the lineage keeps nothing of it, the tombstone does."""
        if event.type is EventType.CLEAN and not erasure.readmitted:
            self.forget(erasure.predicate, erasure.epoch)

    def forget(self, predicate: Scope, epoch: int) -> int:
        """Lets go of every record that surely belonged to what was erased at that gate epoch; how many."""
        held = [record for record in self.held(predicate) if record.born <= epoch]
        for record in held:
            self.records.drop(record.name)
        return len(held)

    # --- coverage ------------------------------------------------------------------------------

    def coverage(self, tenant: Values = ANY) -> Coverage:
        """How much is known now of a tenant (digested; ANY: of all), and what is missing."""
        at = self._scanned.get("")
        if not isinstance(tenant, Wild):
            own = [self._scanned.get(each.hex()) for each in tenant if isinstance(each, bytes)]
            times = [each for each in own if each is not None]
            if times and len(times) == len(own):
                at = max(min(times), at if at is not None else 0.0)
        gap = ""
        if at is None:
            gap = "no scan has gone through what the store held before"
        elif self._lost["at"] >= at:
            gap = self._lost["why"]
        elif self.fault:
            gap = "what was learned could not be written down"
        derived = sum(1 for record in self.records if record.parents)
        return Coverage(len(self.records), derived, self.records.evicted, at, gap)

    def scanned(self, tenant: str, began: float) -> None:
        """A scan that began then went through a whole tenant (digest, hexadecimal; empty: through all)."""
        self._scanned[tenant] = began
        self.checkpoint = None
        self._said |= {"scanned": self._scanned, "checkpoint": None}

    def pause(self, checkpoint: dict[str, Any], cursor: object) -> None:
        """Notes where a scan goes on if it is broken off; the cursor may be somebody's id, and is sealed."""
        sealed = self._seal.seal("scan-cursor", json.dumps(cursor).encode()).hex()
        self.checkpoint = {**checkpoint, "cursor": sealed}
        self._said["checkpoint"] = self.checkpoint

    def cursor(self) -> object:
        """Where the scan that was broken off goes on."""
        assert self.checkpoint is not None
        return json.loads(self._seal.open("scan-cursor", bytes.fromhex(self.checkpoint["cursor"])))

    # --- on disk -------------------------------------------------------------------------------

    async def load(self, *, serving: bool = True) -> None:
        """Reads what was written down. Raises LineageFault. `serving`: until closed it counts as unclean."""
        if self.log is None:
            return
        meta = await self.log.open(self._keyring.digest("lineage-check", b"").hex(), serving)
        self._meta(meta)
        if serving and meta.get("unclean"):
            self.lose("the process ended without writing down all that it had learned")
        self._read(await self.log.rows())

    async def refresh(self) -> None:
        """Takes in what another process, a scan, has written meanwhile. Raises LineageFault."""
        if self.log is None:
            return
        rows, meta = await self.log.newer()
        self._read(rows)
        if not self._said:
            self._meta(meta)

    def _meta(self, meta: Mapping[str, Any]) -> None:
        self._scanned = dict(meta.get("scanned") or {})
        self._lost = meta.get("lost") or self._lost
        self.checkpoint = meta.get("checkpoint")

    def _read(self, rows: list[tuple[bytes, bytes]]) -> None:
        for name, data in rows:
            try:
                record = unpack(name, data)
            except BadForm as error:
                raise LineageFault(f"{error}: move the lineage file away and scan again") from None
            known = self.records.get(name)
            merged = record if known is None else _together(known, record)
            self.records.put(merged, written=merged == record)
            for subject in () if isinstance(merged.subject, Wild) else merged.subject:
                if merged.whole and isinstance(subject, bytes):
                    self.records.sharing.held(merged.whole, subject)

    async def write(self) -> int:
        """Writes down what is new; how many records. Raises LineageFault; it is then still new."""
        if self.log is None:
            self.records.changed.clear()
            return 0
        changed, self.records.changed = self.records.changed, {}
        rows = [(name, pack(record) if record is not None else b"") for name, record in changed.items()]
        said, self._said = self._said, {}
        try:
            for start in range(0, max(len(rows), 1), _BATCH):
                await self.log.write(rows[start : start + _BATCH], said)
        except LineageFault:
            self.records.changed = changed | self.records.changed
            self._said = said | self._said
            raise
        self.fault = ""
        return len(rows)

    async def keep(self, clock: Clock) -> None:
        """Writes down and takes in until cancelled."""
        while True:
            await clock.sleep(EVERY)
            await self.hear()
            await self.tell()

    @property
    def untold(self) -> bool:
        """Whether something was learned here that other processes over the same file do not know."""
        return self.log is not None and bool(self.records.changed or self._said)

    async def tell(self) -> None:
        """Writes it down for them; a fault caps verdicts, and stops nothing."""
        try:
            if self.records.changed or self._said:
                await self.write()
        except LineageFault as error:
            self.fault = str(error)

    async def hear(self) -> None:
        """Takes in what they have written down, likewise."""
        try:
            await self.refresh()
        except LineageFault as error:
            self.fault = str(error)

    async def close(self) -> None:
        """Writes down the rest and says that nothing is missing. Raises LineageFault."""
        if self.log is not None:
            await self.write()
            await self.log.close()


def _together(known: Record, other: Record) -> Record:
    """One record as two processes have learned of it: nothing that either knows is lost."""
    edges = {edge.source: edge for edge in (*other.parents, *known.parents)}
    return replace(
        other,
        born=max(known.born, other.born),
        parents=tuple(edges.values())[:PARENTS],
        whole=other.whole or known.whole,
        prints=other.prints or known.prints,
        address=known.address or other.address,
    )


def _inside(record: Record, predicate: Scope) -> bool:
    if not isinstance(predicate.tenant, Wild) and record.tenant not in predicate.tenant:
        return False
    for name in ("purpose", "path"):
        wanted, its = getattr(predicate, name), getattr(record, name)
        if not isinstance(wanted, Wild) and (isinstance(its, Wild) or not its <= wanted):
            return False
    return isinstance(predicate.key, Wild)
