"""Every refusal that Quietus gives: name, status, reason and what the client should do about it.

The names make the `type` of an RFC 9457 problem (`urn:quietus:problem:<name>`); the reasons are those
of the founding documents, kept to the letter. No sentence here, and no detail added to one, quotes a
value of the request or of the store.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Machine-readable reasons."""

    ERASURE_EPOCH_NOT_SETTLED = "ERASURE_EPOCH_NOT_SETTLED"
    FORGET_EFFECTUATION_TIMEOUT = "FORGET_EFFECTUATION_TIMEOUT"
    SCOPE_LAUNDERING = "SCOPE_LAUNDERING"
    ERASURE_ORDERING_VIOLATION = "ERASURE_ORDERING_VIOLATION"
    INCOMPLETE_ERASURE = "INCOMPLETE_ERASURE"
    ERASURE_AUDIT = "ERASURE_AUDIT"
    LEGAL_HOLD = "LEGAL_HOLD"
    KEY_IS_NOT_ERASURE_UNIT = "KEY_IS_NOT_ERASURE_UNIT"
    SUPPRESSED_NOT_ERASED = "SUPPRESSED_NOT_ERASED"
    NONE = ""


class Retry(StrEnum):
    """Whether a refusal carries Retry-After."""

    YES = "yes"
    NO = "no"
    WHILE_UNSETTLED = "while_unsettled"


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of refusal."""

    name: str
    status: int
    title: str
    reason: Reason = Reason.NONE
    retry: Retry = Retry.NO

    @property
    def type(self) -> str:
        """The URN that names it on the wire."""
        return f"urn:quietus:problem:{self.name}"

    @property
    def code(self) -> str:
        """The name of the gRPC status code that says it."""
        return _CODES.get(self.name, "FAILED_PRECONDITION")


_ALL: Final = (
    Problem("erasure-not-settled", 409, "An erasure of this scope is not settled yet: the store has only "
            "acknowledged it.", Reason.ERASURE_EPOCH_NOT_SETTLED, Retry.YES),
    Problem("consistency-violation", 409, "The store still returns what it acknowledged as erased, after its "
            "own bound. Do not derive from this scope; an operator must act.",
            Reason.FORGET_EFFECTUATION_TIMEOUT),
    Problem("scope-laundering", 409, "This write would bring erased content back, or lands in a quarantined "
            "path.", Reason.SCOPE_LAUNDERING, Retry.WHILE_UNSETTLED),
    Problem("erased-subject", 409, "The subject of this write was erased. An operator can re-admit them.",
            Reason.ERASURE_ORDERING_VIOLATION),
    Problem("record-quarantined", 409, "This record still holds, or points at, what was erased.",
            Reason.INCOMPLETE_ERASURE),
    Problem("suppressed-by-erasure", 409, "The key is hidden by an erasure that is not settled; it was not "
            "lost, do not write it again.", Reason.ERASURE_EPOCH_NOT_SETTLED, Retry.YES),
    Problem("legal-hold", 409, "A legal hold stands on this scope.", Reason.LEGAL_HOLD),
    Problem("unverifiable-forget", 422, "Nobody can verify what nobody can name: say which subject, keys or "
            "path to forget.", Reason.ERASURE_AUDIT),
    Problem("ambiguous-request", 400, "The request has two meanings; send one."),
    Problem("malformed-request", 400, "The request cannot be read in exactly one way."),
    Problem("too-large", 413, "The request is larger than the limit."),
    Problem("overloaded", 429, "Too much at once; try again later.", retry=Retry.YES),
    Problem("unscreenable", 502, "The store's answer is too large or unreadable, and an erasure or tombstone "
            "stands here: it cannot be shown to be free of the erased."),
    Problem("unmapped-route", 403, "The profile does not describe this route, and the policy refuses such."),
    Problem("internal", 500, "A fault of the sidecar; it fails closed."),
    Problem("upstream-unavailable", 502, "The store cannot be reached or gave no answer.", retry=Retry.YES),
    Problem("outcome-unknown", 504, "The store may or may not have done it. Ask for the status, do not "
            "repeat blindly.", retry=Retry.YES),
    Problem("ledger-unavailable", 503, "The ledger cannot be written; nothing was forwarded.",
            retry=Retry.YES),
    Problem("barrier-unreachable", 503, "Not every replica could shut its gate in time; nothing was "
            "forwarded. The erasure stays requested and goes on by itself.", retry=Retry.YES),
    Problem("reviews-unavailable", 503, "Kubernetes does not say who this is: nobody is let in.",
            retry=Retry.YES),
    Problem("unauthenticated", 401, "Send the admin token as a bearer token."),
    Problem("forbidden", 403, "This token's role does not allow it."),
    Problem("not-found", 404, "There is no such thing here."),
    Problem("wrong-state", 409, "The erasure is not in a state in which this has a meaning."),
)

_CODES: Final = {
    "unverifiable-forget": "INVALID_ARGUMENT",
    "ambiguous-request": "INVALID_ARGUMENT",
    "malformed-request": "INVALID_ARGUMENT",
    "too-large": "RESOURCE_EXHAUSTED",
    "overloaded": "RESOURCE_EXHAUSTED",
    "unmapped-route": "PERMISSION_DENIED",
    "internal": "INTERNAL",
    "upstream-unavailable": "UNAVAILABLE",
    # Clients send again by themselves what was UNAVAILABLE; this may have been done.
    "outcome-unknown": "DEADLINE_EXCEEDED",
    "ledger-unavailable": "UNAVAILABLE",
    "barrier-unreachable": "UNAVAILABLE",
    "reviews-unavailable": "UNAVAILABLE",
    "unauthenticated": "UNAUTHENTICATED",
    "forbidden": "PERMISSION_DENIED",
    "not-found": "NOT_FOUND",
}
"""Those that are not FAILED_PRECONDITION: what the state of an erasure refuses."""

PROBLEMS: Final[dict[str, Problem]] = {problem.name: problem for problem in _ALL}
