"""The rolling digest of a tenant, kept by a service account under another subject and purpose.

The second founding observation: a forget of a subject rightly leaves the digest alone, since it
belongs to someone else, and the digest goes on naming the subject and repeating what they said.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from quietus.legacy.records import Record

if TYPE_CHECKING:
    from quietus.legacy.world import World

DIGEST_SUBJECT: Final = "service:analytics"
DIGEST_PURPOSE: Final = "analytics"
DIGEST_LINES: Final = 12


def tell(world: World, record: Record) -> None:
    """Adds what a subject said to the digest of its tenant."""
    if not world.faults.service_digest or record.subject in (None, DIGEST_SUBJECT):
        return
    lines = world.digests.setdefault(record.tenant, deque(maxlen=DIGEST_LINES))
    lines.append((record.subject or "", record.value))
    _write(world, record.tenant)


def rebuild(world: World) -> None:
    """Writes every digest anew, from the records that live now."""
    for tenant in list(world.digests):
        live = [
            row
            for row in world.rows.values()
            if row.tenant == tenant and row.subject not in (None, DIGEST_SUBJECT)
        ]
        live.sort(key=lambda row: row.uid)
        world.digests[tenant] = deque(((row.subject or "", row.value) for row in live), maxlen=DIGEST_LINES)
        _write(world, tenant)


def _write(world: World, tenant: str | None) -> None:
    place = (tenant, f"digest-{tenant or 'all'}")
    old = world.rows.pop(place, None)
    if old is not None:
        world.index.pop(old.uid, None)
    lines = world.digests[tenant]
    if not lines:
        return
    text = "Digest of recent conversations. " + " ".join(f"{who}: {what}" for who, what in lines)
    digest = Record(
        uid=world.next_uid(),
        key=place[1],
        value=text,
        tenant=tenant,
        subject=DIGEST_SUBJECT,
        purpose=DIGEST_PURPOSE,
        created_at=world.stamp(),
    )
    world.rows[place] = digest
    world.index[digest.uid] = digest
