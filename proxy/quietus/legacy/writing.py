"""How the legacy store writes, and what its write path reads of records that are gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from quietus.legacy.afterlife import Trace
from quietus.legacy.digest import DIGEST_SUBJECT
from quietus.legacy.embedding import NEAR_DUPLICATE, cosine
from quietus.legacy.records import Record
from quietus.legacy.world import World


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as a client asks for it to be written."""

    value: str
    key: str | None = None
    tenant: str | None = None
    subject: str | None = None
    purpose: str | None = None
    ttl: float | None = None
    scope: str | None = None
    derived_from: tuple[str, ...] = ()
    salience: float | None = None


def write(world: World, draft: Draft) -> dict[str, Any]:
    """Writes one memory, or queues it; the result as the answer says it."""
    key = draft.key if draft.key is not None else world.next_key()
    draft = replace(draft, key=key)
    if world.faults.queued_ingest:
        # Nothing looks at this job when the subject is forgotten meanwhile: that is the fault.
        number = world.next_uid()
        world.later(f"ingest:{number}", world.faults.queued_ingest, lambda: _store(world, draft))
        return {"key": key, "status": "queued"}
    return _land(world, draft)


def _store(world: World, draft: Draft) -> None:
    _land(world, draft)


def _land(world: World, draft: Draft) -> dict[str, Any]:
    record = _record(world, draft)
    result: dict[str, Any] = {"key": record.key, "status": "stored"}
    if world.faults.dedup_merge:
        twin = _near_live(world, record)
        if twin is not None:
            return _merge(world, record, twin)
    for trace in _near_traces(world, record):
        if trace.kind == "salience" and trace.salience is not None:
            record.salience = max(record.salience or 0.0, trace.salience)
        elif trace.kind == "centroid":
            record.vector = trace.vector
        elif trace.kind == "dedup":
            result.update(status="merged", merged_with=trace.key)
    world.add(record)
    return result


def _record(world: World, draft: Draft) -> Record:
    assert draft.key is not None
    return Record(
        uid=world.next_uid(),
        key=draft.key,
        value=draft.value,
        tenant=draft.tenant,
        subject=draft.subject,
        purpose=draft.purpose,
        scope=draft.scope,
        derived_from=draft.derived_from,
        salience=draft.salience,
        created_at=world.stamp(),
        expires_at=None if draft.ttl is None else world.now + draft.ttl,
    )


def _near_live(world: World, record: Record) -> Record | None:
    near = [
        row
        for row in world.rows.values()
        if row.tenant == record.tenant
        and row.key != record.key
        and row.subject != DIGEST_SUBJECT
        and cosine(row.vector, record.vector) >= NEAR_DUPLICATE
    ]
    return max(near, key=lambda row: (cosine(row.vector, record.vector), row.uid), default=None)


def _merge(world: World, record: Record, twin: Record) -> dict[str, Any]:
    """Both become one record under a third id; it belongs to whoever wrote last."""
    merged = replace(
        record, key=world.next_key(), value=max(twin.value, record.value, key=len), vector=(), digest=""
    )
    del world.rows[twin.place]
    world.index.pop(twin.uid, None)
    world.add(merged, event="MERGE")
    return {"key": merged.key, "status": "merged", "merged_with": twin.key}


def _near_traces(world: World, record: Record) -> list[Trace]:
    world.forget_the_past()
    return [
        trace
        for trace in world.traces
        if trace.tenant == record.tenant and cosine(trace.vector, record.vector) >= NEAR_DUPLICATE
    ]
