"""The surfaces of the legacy store, and what happens to each when a record comes or goes.

`World` is plain state: the rows (the primary store), the vector index, the chunk cache, the digest,
the traces that the write path reads, and the ghosts that some reads still see. `add` and `drop`
are the only ways in and out; each fault that concerns a surface stands where that surface is kept.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from quietus.legacy import digest
from quietus.legacy.afterlife import Ghost, Trace, ghosts_of, traces_of
from quietus.legacy.faults import Faults
from quietus.legacy.records import Record
from quietus.legacy.schedule import Schedule
from quietus.ports import Clock

KEPT_MAX: Final = 200_000
"""Bound on records, ghosts, traces and the disk image."""


class World:
    """Everything that the store holds at one moment."""

    def __init__(self, clock: Clock, faults: Faults, seed: int) -> None:
        self.clock = clock
        self.faults = faults
        self.rng = random.Random(seed)
        self.schedule = Schedule()
        self.rows: dict[tuple[str | None, str], Record] = {}
        self.index: dict[int, Record] = {}
        self.doomed: set[int] = set()
        """Index entries whose record is gone and which the next compaction removes."""
        self.chunks: dict[str, Record] = {}
        self.hash_rows: dict[tuple[str | None, str], Record] = {}
        self.ghosts: list[Ghost] = []
        self.traces: list[Trace] = []
        self.swallowed: list[tuple[str | None, str, float]] = []
        self.histories: dict[tuple[str | None, str], deque[dict[str, Any]]] = {}
        self.digests: dict[str | None, deque[tuple[str, str]]] = {}
        self.disk: dict[tuple[str | None, str], Record] = {}
        self.free_keys: deque[str] = deque(maxlen=1000)
        self.answers: dict[tuple[Any, ...], tuple[float, list[dict[str, Any]]]] = {}
        self.tokens: dict[Any, str] = {}
        self.epoch = 0
        """Number of the last forget that was acknowledged."""
        self.read_epoch = 0
        """Number of the last forget that the read path has caught up with."""
        self.removed_since_compaction = 0
        self.reads = 0
        self.lost = 0
        """Answers that were lost so far."""
        self.issued = 0
        """Deletion tokens that were given out so far."""
        self._uid = 0
        self._keys = 0

    # --- time ------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The monotonic time: of the background job that runs, or of the clock."""
        return self.schedule.time(self.clock.monotonic())

    def stamp(self) -> float:
        """Unix seconds, as rows carry them."""
        return round(self.clock.now(), 3)

    def later(self, name: str, delay: float, job: Callable[[], None], *, again: bool = False) -> None:
        """Sets background work; see `Schedule.set`."""
        self.schedule.set(name, self.clock.monotonic(), delay, job, again=again)

    def next_uid(self) -> int:
        """A number that no record had before."""
        self._uid += 1
        return self._uid

    def next_key(self) -> str:
        """A key for a record that came without one."""
        if self.faults.id_reuse and self.free_keys:
            return self.free_keys.popleft()
        self._keys += 1
        return f"mem_{self._keys:04d}{self.rng.getrandbits(32):08x}"

    # --- in --------------------------------------------------------------------------------------

    def add(self, record: Record, *, event: str = "ADD") -> None:
        """Puts a record on every surface; an older one at its place is replaced."""
        if len(self.rows) >= KEPT_MAX:
            raise MemoryError("the legacy store is full")
        older = self.rows.get(record.place)
        if older is not None:
            self.index.pop(older.uid, None)
            event = "UPDATE"
        self.rows[record.place] = record
        self.index[record.uid] = record
        if self.faults.chunk_cache:
            self.chunks[record.digest] = record
        if self.faults.hash_rows:
            self._revive_hash_row(record)
        if self.faults.restart_resurrection and len(self.disk) < KEPT_MAX:
            self.disk[record.place] = record
        self._note(record, event)
        if record.expires_at is not None:
            self.later(f"ttl:{record.uid}", record.expires_at - self.now, lambda: self._expire(record))
        digest.tell(self, record)

    def _revive_hash_row(self, record: Record) -> None:
        """The embedding row of an erased text still bears its subject: the new id joins it."""
        old = self.hash_rows.get((record.tenant, record.digest))
        if old is None or old.subject == record.subject:
            return
        alias = Record(
            uid=self.next_uid(),
            key=record.key,
            value=record.value,
            tenant=record.tenant,
            subject=old.subject,
            purpose=old.purpose,
            scope=old.scope,
            created_at=record.created_at,
        )
        self.index[alias.uid] = alias

    def _note(self, record: Record, event: str) -> None:
        log = self.histories.setdefault(record.place, deque(maxlen=50))
        log.append(
            {
                "event": event,
                "key": record.key,
                "value": record.value,
                "subject": record.subject,
                "at": self.stamp(),
            }
        )

    def _expire(self, record: Record) -> None:
        if self.rows.get(record.place) is not record:
            return
        if not self.faults.soft_ttl:
            self.drop([record])
            return
        self.removed_since_compaction += 1
        if self.faults.lazy_index:
            self.later("compaction", self.faults.lazy_index, self.compact)
        if 0 < self.faults.compact_count <= self.removed_since_compaction:
            self.compact()

    # --- out -------------------------------------------------------------------------------------

    def drop(self, records: Iterable[Record]) -> int:
        """Removes records from the surfaces, as thoroughly as the faults allow; says how many."""
        gone = [record for record in records if self.rows.get(record.place) is record]
        for record in gone:
            del self.rows[record.place]
            self._drop_from_index(record)
            self._drop_from_chunks(record)
            self._linger(record)
            if self.faults.history:
                self._note(record, "DELETE")
            else:
                self.histories.pop(record.place, None)
            if self.faults.id_reuse:
                self.free_keys.append(record.key)
            self.removed_since_compaction += 1
        if gone:
            self._break_provenance({record.place for record in gone})
            self._after_removal(gone[-1])
        return len(gone)

    def _after_removal(self, newest: Record) -> None:
        faults = self.faults
        if faults.late_rewrite:
            self.later("rewrite", faults.late_rewrite, lambda: self._write_back(newest), again=True)
        if faults.service_digest:
            self.later("digest", faults.service_digest, lambda: digest.rebuild(self))
        if faults.compact_count and self.removed_since_compaction >= faults.compact_count:
            self.compact()

    def _drop_from_index(self, record: Record) -> None:
        if self.faults.hash_rows:
            self.hash_rows[record.tenant, record.digest] = record
        if self.faults.lazy_index:
            self.doomed.add(record.uid)
            self.later("compaction", self.faults.lazy_index, self.compact)
        else:
            self.index.pop(record.uid, None)

    def _drop_from_chunks(self, record: Record) -> None:
        if record.digest in self.chunks:
            self.chunks[record.digest] = record
            self.later(f"chunk:{record.digest}", self.faults.chunk_cache, lambda: self._evict(record.digest))

    def _evict(self, content: str) -> None:
        if not any(record.digest == content for record in self.rows.values()):
            self.chunks.pop(content, None)

    def _linger(self, record: Record) -> None:
        if len(self.ghosts) < KEPT_MAX and len(self.traces) < KEPT_MAX:
            self.ghosts.extend(ghosts_of(record, self.faults, self.now))
            self.traces.extend(traces_of(record, self.faults, self.now))

    def _break_provenance(self, lost: set[tuple[str | None, str]]) -> None:
        """Descendants that survive point at nothing now, however far they are from the source."""
        while lost:
            children = [
                row
                for row in self.rows.values()
                if row.derived_from
                and not row.broken
                and any((row.tenant, key) in lost for key in row.derived_from)
            ]
            for child in children:
                child.broken = True
            lost = {child.place for child in children}

    def _write_back(self, record: Record) -> None:
        if record.place not in self.rows:
            self.revive(record)

    def revive(self, record: Record) -> None:
        """Brings a removed record back to life under its old id, as if it had never been gone."""
        self.rows[record.place] = record
        self.index[record.uid] = record
        self.doomed.discard(record.uid)
        self._note(record, "ADD")

    # --- background ------------------------------------------------------------------------------

    def compact(self) -> None:
        """Removes what waits: expired rows, index entries, traces; the read path has caught up."""
        self.removed_since_compaction = 0
        self.drop([row for row in self.rows.values() if self.expired(row)])
        for uid in self.doomed:
            self.index.pop(uid, None)
        self.doomed.clear()
        self.traces.clear()
        self.removed_since_compaction = 0
        self.caught_up()

    def expired(self, record: Record) -> bool:
        """Whether its time to live is over (with soft_ttl such rows are still there)."""
        return record.expires_at is not None and record.expires_at <= self.now

    def caught_up(self) -> None:
        """Moves the read epoch, unless index entries still wait for a compaction."""
        if not self.doomed:
            self.read_epoch = self.epoch - 1 if self.faults.epoch_regresses and self.epoch else self.epoch

    def forget_the_past(self) -> None:
        """Lets go of ghosts, traces and cached answers whose time is over."""
        now = self.now
        if self.ghosts:
            self.ghosts = [ghost for ghost in self.ghosts if ghost.until > now]
        if self.traces:
            self.traces = [trace for trace in self.traces if trace.until > now]
        if self.swallowed:
            self.swallowed = [item for item in self.swallowed if item[2] > now]
        if len(self.answers) > 1000:
            self.answers.clear()
