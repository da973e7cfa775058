"""What the ledger remembers: one immutable event after the other, folded into erasures.

An event's `facts` are JSON values without memory text and without raw identifiers: scopes are
written as keyed digests (hexadecimal). `gate` says whether the event changes what the gate lets
through; the number of the last such event is the gate epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from quietus.core.scope import ANY, UNKNOWN, Scope, Wild


class EventType(StrEnum):
    """Every kind of event in the ledger. The first eight are the happenings of the machine."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCLEAR = "unclear"
    CLEAN = "clean"
    LEAKED = "leaked"
    LEAKED_LATE = "leaked_late"
    RETRIED = "retried"
    RELEASED = "released"
    REQUESTED = "requested"
    SNAPSHOTTED = "snapshotted"
    FORWARDED = "forwarded"
    ROUND = "round"
    RESTARTED = "restarted"
    REMEDIED = "remedied"
    OVERDUE = "overdue"
    WATCH_ENDED = "watch_ended"
    COLLECTED = "collected"
    """Its tombstone was taken away: the policy no longer keeps it."""
    WRITE_OPENED = "write_opened"
    WRITE_CLOSED = "write_closed"
    READMITTED = "readmitted"
    SIGNALLED = "signalled"
    ESCALATED = "escalated"
    EXTENDED = "extended"
    HELD = "held"
    HOLD_LIFTED = "hold_lifted"
    DEFERRED = "deferred"
    """A forget refused because of a hold; it is taken up when the hold ends."""
    OVERRIDDEN = "overridden"
    QUARANTINED = "quarantined"
    QUARANTINE_LIFTED = "quarantine_lifted"
    VERIFY_ASKED = "verify_asked"
    KEYS_BOUND = "keys_bound"
    ACCESSED = "accessed"
    """An act on the admin API that was refused, or a read of an erasure for an audit."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before the ledger has numbered and chained it."""

    type: EventType
    erasure: str = ""
    """Id of the erasure, or empty for an event of the whole ledger."""
    at: float = 0.0
    """Unix seconds, UTC: a label for people; no bound is measured with it across a clock jump."""
    actor: str = "quietus"
    facts: Mapping[str, Any] = field(default_factory=dict)
    gate: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """A numbered, chained event. `hash` is over the previous hash and everything else in it."""

    number: int
    type: EventType
    erasure: str
    at: float
    actor: str
    facts: Mapping[str, Any]
    gate: bool
    hash: str


def scope_to_facts(scope: Scope) -> dict[str, Any]:
    """A digested scope as JSON: hexadecimal atoms, or "any" or "unknown"."""

    def out(value: Any) -> Any:
        if isinstance(value, Wild):
            return value.value
        return sorted(_hex(atom) for atom in value)

    facts = {name: out(getattr(scope, name)) for name in ("tenant", "subject", "purpose", "key")}
    facts["path"] = (
        scope.path.value
        if isinstance(scope.path, Wild)
        else sorted([_hex(segment) for segment in path] for path in scope.path)
    )
    return facts


def scope_from_facts(facts: Mapping[str, Any]) -> Scope:
    """The inverse of `scope_to_facts`."""

    def back(value: Any) -> Any:
        if value == "any":
            return ANY
        if value == "unknown":
            return UNKNOWN
        return frozenset(bytes.fromhex(atom) for atom in value)

    path = facts["path"]
    return Scope(
        tenant=back(facts["tenant"]),
        subject=back(facts["subject"]),
        purpose=back(facts["purpose"]),
        key=back(facts["key"]),
        path=back(path)
        if isinstance(path, str)
        else frozenset(tuple(bytes.fromhex(s) for s in p) for p in path),
    )


def _hex(atom: str | bytes) -> str:
    if isinstance(atom, str):
        raise TypeError("a raw identifier must never be written to the ledger")
    return atom.hex()
