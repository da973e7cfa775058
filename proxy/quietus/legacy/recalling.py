"""How the legacy store reads: by key, by list, by likeness; and whom it lets see what is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from quietus.legacy.afterlife import Ghost
from quietus.legacy.embedding import Vector, embed, likeness
from quietus.legacy.records import Predicate, Record, below, row
from quietus.legacy.world import World

REPLICAS: Final = 3
QUERIES_KEPT: Final = 20


@dataclass(frozen=True, slots=True)
class Reader:
    """One read: whose it seems to be, and which replica serves it."""

    client: bool
    """It carries a User-Agent, as what agents send does and what a sidecar's probe sends does not."""
    replica: int

    @property
    def stale(self) -> bool:
        """Whether the replica that serves it lags."""
        return self.replica == REPLICAS - 1


@dataclass(frozen=True, slots=True)
class Ask:
    """A recall."""

    query: str
    within: Predicate
    top_k: int = 10
    vector: Vector | None = None
    vectors: bool = False


def reader(world: World, *, client: bool) -> Reader:
    """The next read; replicas take turns."""
    world.reads += 1
    return Reader(client=client, replica=(world.reads - 1) % REPLICAS)


def get(world: World, by: Reader, tenant: str | None, key: str) -> Record | None:
    """The record with that key, in one tenant or in any."""
    if tenant is not None:
        found = world.rows.get((tenant, key))
    else:
        found = next((record for place, record in world.rows.items() if place[1] == key), None)
    if found is not None:
        return None if _swallowed(world, found) else found
    for ghost in _ghosts(world, by):
        if ghost.record.key == key and tenant in (None, ghost.record.tenant):
            return ghost.record
    return _repaired(world, tenant, key)


def listing(world: World, by: Reader, within: Predicate) -> list[Record]:
    """The rows that a predicate matches, oldest first. Lists read rows, never the index."""
    fold = world.faults.case_sensitive_forget
    found = {
        record.uid: record
        for record in world.rows.values()
        if within.matches(record, fold=fold) and _visible(world, record)
    }
    for ghost in _ghosts(world, by):
        if within.matches(ghost.record, fold=fold) and ghost.record.place not in world.rows:
            found[ghost.record.uid] = ghost.record
    return [found[uid] for uid in sorted(found) if not _swallowed(world, found[uid])]


def recall(world: World, by: Reader, ask: Ask) -> list[dict[str, Any]]:
    """The rows of the nearest records, best first. Candidates come from the index, not from the rows."""
    slot = (ask.query, ask.within, ask.top_k, ask.vector, ask.vectors)
    if world.faults.query_cache and slot in world.answers:
        until, kept = world.answers[slot]
        if until > world.now:
            return kept
    wanted = dict(ask.vector if ask.vector is not None else embed(ask.query))
    fold = world.faults.case_sensitive_forget
    scored = [
        (likeness(wanted, record.vector), record.uid, record)
        for record in _candidates(world, by)
        if ask.within.matches(record, fold=fold) and _visible(world, record)
    ]
    scored.sort(key=lambda hit: (-hit[0], hit[1]))
    hits = [(score, record) for score, _, record in scored[: ask.top_k]]
    rows = [shown(world, record, score=score, vectors=ask.vectors) for score, record in hits]
    rows += _from_chunks(world, ask, wanted, {record.digest for _, _, record in scored})
    rows.sort(key=lambda shown_row: -shown_row["score"])
    rows = rows[: ask.top_k]
    if world.faults.query_writeback and ask.query:
        _plant(ask.query, [record for _, record in hits])
    if world.faults.query_cache:
        world.answers[slot] = (world.now + world.faults.query_cache, rows)
    return rows


def exported(world: World, within: Predicate) -> list[Record]:
    """What an export lists: the rows, and under `stale_export` what was removed of late."""
    found = {record.uid: record for record in world.rows.values() if within.matches(record)}
    for ghost in world.ghosts:
        if ghost.haunt == "export" and ghost.until > world.now and within.matches(ghost.record):
            found[ghost.record.uid] = ghost.record
    return [found[uid] for uid in sorted(found)]


def shown(
    world: World, record: Record, *, score: float | None = None, vectors: bool = False
) -> dict[str, Any]:
    """The record as a row of an answer."""
    broken = None if world.faults.dangling_provenance == "null" else False
    return row(record, score=score, vectors=vectors, broken=broken)


def _candidates(world: World, by: Reader) -> Iterator[Record]:
    yield from world.index.values()
    for ghost in _ghosts(world, by):
        if ghost.record.uid not in world.index and ghost.record.place not in world.rows:
            yield ghost.record


def _ghosts(world: World, by: Reader) -> Iterator[Ghost]:
    if not world.ghosts:
        return
    now = world.now
    for ghost in world.ghosts:
        if ghost.until > now and (
            (ghost.haunt == "replica" and by.stale) or (ghost.haunt == "liar" and by.client)
        ):
            yield ghost


def _repaired(world: World, tenant: str | None, key: str) -> Record | None:
    for ghost in world.ghosts:
        if ghost.haunt == "repair" and ghost.record.key == key and tenant in (None, ghost.record.tenant):
            world.ghosts.remove(ghost)
            if world.faults.read_repair == "restores":
                world.revive(ghost.record)
            return ghost.record
    return None


def _from_chunks(world: World, ask: Ask, wanted: dict[int, float], seen: set[str]) -> list[dict[str, Any]]:
    """Texts that the reranker pulls from the chunk cache.

    The cache knows a content hash and a tenant, no key and no subject: it serves wide recalls only.
    """
    if not world.chunks or ask.within.subject is not None or ask.within.scope is not None:
        return []
    found = []
    for content, record in world.chunks.items():
        if (
            content in seen
            or ask.within.tenant not in (None, record.tenant)
            or ask.within.purposes is not None
        ):
            continue
        chunk = Record(
            uid=0,
            key=f"chunk-{content}",
            value=record.value,
            tenant=record.tenant,
            created_at=record.created_at,
            vector=record.vector,
            digest=content,
        )
        found.append(row(chunk, score=likeness(wanted, record.vector), vectors=ask.vectors))
    return found


def _plant(query: str, records: list[Record]) -> None:
    for record in records:
        if query not in record.queries:
            record.queries.append(query)
            del record.queries[:-QUERIES_KEPT]


def _visible(world: World, record: Record) -> bool:
    return (record.expires_at is None or not world.expired(record)) and not _swallowed(world, record)


def _swallowed(world: World, record: Record) -> bool:
    if not world.swallowed:
        return False
    now = world.now
    return any(
        until > now and tenant in (None, record.tenant) and below(scope, record.scope, prefixes=True)
        for tenant, scope, until in world.swallowed
    )
