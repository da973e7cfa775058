"""Receipts: what may be said of one erasure at one moment, signed, so that an auditor can hold us to it.

A receipt is JSON without fractions, in one canonical form: keys in order, no spaces, UTF-8. The Ed25519
signature is over `signed_bytes("receipt", …)` of everything but its own value. Whom it is about is told by
a salted commitment only: who holds salt and name can prove it, and nobody else can test a guess.
`quietus receipt verify` reads it with code of its own; docs/receipts.md has the form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from quietus.core.events import Event, EventType
from quietus.keys import Keyring
from quietus.shown import ErasureView, OverrideView
from quietus.shown_receipts import ActView, DemandView, DocumentView, ReceiptView, ResultView, UnsignedReceipt

TYPE: Final[Literal["quietus.receipt/1"]] = "quietus.receipt/1"
ACTS_SHOWN: Final = 200
"""Acts of people in one receipt; how many more there were is told."""
COMMITTED: Final = b"quietus/commitment/1\0"
_ACTS: Final = frozenset({
    EventType.RETRIED, EventType.RELEASED, EventType.READMITTED, EventType.VERIFY_ASKED, EventType.ESCALATED,
    EventType.EXTENDED, EventType.HELD, EventType.HOLD_LIFTED, EventType.OVERRIDDEN, EventType.SIGNALLED,
})  # fmt: skip
_NOT_SHOWN: Final = frozenset({"UNPROBED", "OUT_OF_SCOPE", "INCONCLUSIVE", "LEAKING"})
LIMITS: Final = (
    "A receipt says what was seen through this sidecar up to the time it was issued; calls that go round it "
    "are not in it.",
    "Nobody can probe what is listed under not_checked; nothing is claimed about it.",
    "Content that was reworded so far that no run of words is left is not recognised.",
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What stood around the erasure when its receipt was issued."""

    issued_at: str
    """RFC 3339, UTC."""
    sequence: int
    """Number of the ledger's newest event."""
    chain_head: str
    """Its hash."""
    incarnation: str
    profile: tuple[str, str]
    """Name and SHA-256 of the profile in force."""
    policy: tuple[str, str]
    version: str
    overrides: Sequence[OverrideView] = ()
    """Break-glass overrides whose time overlaps the erasure's."""
    bypasses: Mapping[str, int] | None = None
    """By cause, calls that were let through undecided since `running_since`."""
    running_since: str = ""


@dataclass(slots=True)
class History:
    """The events of one erasure as a receipt sums them up. `stamp` words a Unix time."""

    stamp: Callable[[float], str | None]
    count: int = 0
    last_number: int = 0
    last_hash: str = ""
    acts: list[ActView] = field(default_factory=list)
    omitted: int = 0
    profile: str = ""
    policy: str = ""

    def add(self, event: Event) -> None:
        """Takes in the next event; they come oldest first."""
        self.count += 1
        self.last_number, self.last_hash = event.number, event.hash
        if event.type is EventType.REQUESTED:
            self.profile, self.policy = (str(event.facts.get(name, "")) for name in ("profile", "policy"))
        if event.type not in _ACTS:
            return
        if len(self.acts) == ACTS_SHOWN:
            self.omitted += 1
            return
        reason = event.facts.get("reason")
        self.acts.append({"type": event.type.value, "at": self.stamp(event.at), "actor": event.actor,
                          "reason": str(reason) if reason else None})  # fmt: skip


def issue(
    view: ErasureView, commitment: str, history: History, around: Circumstances, keyring: Keyring
) -> ReceiptView:
    """The signed receipt of an erasure from its view (`views.erasure_view`)."""
    exposure = view["exposure_seconds"]
    said: UnsignedReceipt = {
        "type": TYPE,
        "erasure": view["id"],
        "store": view["store"],
        "issued_at": around.issued_at,
        "sequence": around.sequence,
        "chain": {"head": around.chain_head, "incarnation": around.incarnation},
        "about": {"commitment": commitment or None, "dimensions": sorted(view["predicate"]),
                  "predicate": view["predicate"]},
        "demand": _demand(view),
        "result": _result(view),
        "times": {"acknowledged_at": view["acknowledged_at"], "settled_at": view["settled_at"],
                  "exposure_ms": None if exposure is None else round(exposure * 1000)},
        "surfaces": list(view["surfaces"]),
        "not_checked": [
            {"name": s["name"], "outcome": s["outcome"], "reason": s["reason"]}
            for s in view["surfaces"] if s["outcome"] in _NOT_SHOWN
        ],
        "lineage": view["lineage"],
        "claim": view["claim"],
        "calls": {"client": view["client_calls"], "upstream": view["upstream_calls"],
                  "remedies": view["remedies"]},
        "events": {"count": history.count, "last": history.last_number, "hash": history.last_hash},
        "acts": list(history.acts),
        "acts_omitted": history.omitted,
        "overrides": list(around.overrides),
        "bypasses": {"since": around.running_since, "counts": dict(around.bypasses or {})},
        "profile": _document(around.profile, history.profile),
        "policy": _document(around.policy, history.policy),
        "issuer": {"product": "quietus", "version": around.version},
        "limits": list(LIMITS),
    }  # fmt: skip
    by = {"algorithm": "Ed25519", "key": keyring.signing_id}
    value = keyring.sign("receipt", canonical({**said, "signature": by})).hex()
    return {**said, "signature": {"algorithm": "Ed25519", "key": keyring.signing_id, "value": value}}


def _document(now: tuple[str, str], at_request: str) -> DocumentView:
    return {"name": now[0], "sha256": now[1], "at_request": at_request or None}


def _demand(view: ErasureView) -> DemandView:
    return {
        "basis": view["basis"], "reference": view["reference"], "received_at": view["received_at"],
        "requested_at": view["requested_at"], "due_at": view["due_at"],
    }  # fmt: skip


def _result(view: ErasureView) -> ResultView:
    return {
        "state": view["state"], "verdict": view["verdict"], "reason": view["reason"],
        "policy_phase": view["policy_phase"], "read_phase": view["read_phase"],
        "may_assert_erasure": view["may_assert_erasure"],
        "may_assert_non_recallability": view["may_assert_non_recallability"],
        "through": view["through"], "missing_for_compliant": view["missing_for_compliant"],
        "overdue": view["overdue"], "held": view["held"], "suppressed": view["suppressed"],
        "primary_removed": view["primary_removed"],
        "reconstruction_paths_severed": view["reconstruction_paths_severed"],
        "effective_non_recoverability": view["effective_non_recoverability"],
        "access_paths": view["access_paths"], "epochs": view["epochs"], "why": view["why"],
    }  # fmt: skip


def canonical(value: Any) -> bytes:
    """The one form of a JSON value that is signed and committed to. Raises ValueError for a fraction."""
    _whole(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def commit(salt: bytes, named: Mapping[str, Any]) -> str:
    """The commitment to what was named: hexadecimal SHA-256 over the salt and its canonical form."""
    said = {name: values for name, values in named.items() if values}
    return hashlib.sha256(COMMITTED + salt + canonical(said)).hexdigest()


def _whole(value: Any) -> None:
    if isinstance(value, float):
        raise ValueError("a receipt holds no fractions: two writers would print them differently")
    if isinstance(value, Mapping):
        for each in value.values():
            _whole(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _whole(each)


def published_keys(keyring: Keyring) -> dict[str, Any]:
    """The public keys that receipts are checked with, as they are published; the newest comes first."""
    listed = [
        {"id": name, "algorithm": "Ed25519", "public": public.hex()} for name, public in keyring.signing_keys
    ]
    return {"keys": listed}
