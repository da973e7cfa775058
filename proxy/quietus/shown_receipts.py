"""What a receipt says, field by field; without fractions, which two writers would print differently."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from quietus.core.erasure import PolicyPhase, ReadPhase
from quietus.core.states import State
from quietus.core.verdict import Outcome, Word
from quietus.shown import (
    ClaimView,
    EpochsView,
    LineageView,
    OverrideView,
    PredicateView,
    Stamp,
    SurfaceView,
    shown,
)


@shown
class ChainView(TypedDict):
    """The ledger's end when the receipt was issued."""

    head: str
    incarnation: str


@shown
class AboutView(TypedDict):
    """Whom it is about, as nobody can guess it who has not the salt."""

    commitment: str | None
    dimensions: list[str]
    predicate: PredicateView


@shown
class DemandView(TypedDict):
    """What was asked, and by when the law wants it."""

    basis: str | None
    reference: str | None
    received_at: Stamp | None
    requested_at: Stamp
    due_at: Stamp


@shown
class ResultView(TypedDict):
    """What may be said of the erasure."""

    state: State
    verdict: Word
    reason: str | None
    policy_phase: PolicyPhase
    read_phase: ReadPhase
    may_assert_erasure: bool
    may_assert_non_recallability: bool
    through: list[str]
    missing_for_compliant: list[str]
    overdue: bool
    held: bool
    suppressed: bool
    primary_removed: bool | None
    reconstruction_paths_severed: bool
    effective_non_recoverability: bool
    access_paths: int
    epochs: EpochsView
    why: str


@shown
class TimesView(TypedDict):
    """When it was acknowledged and settled, and for how long it was seen after the acknowledgement."""

    acknowledged_at: Stamp | None
    settled_at: Stamp | None
    exposure_ms: int | None


@shown
class UncheckedView(TypedDict):
    """A surface of which nothing is claimed."""

    name: str
    outcome: Outcome
    reason: str | None


@shown
class CallsView(TypedDict):
    """How often the store was asked, and by whom."""

    client: int
    upstream: int
    remedies: int


@shown
class EventsView(TypedDict):
    """The erasure's events."""

    count: int
    last: int
    hash: str


@shown
class ActView(TypedDict):
    """What somebody did."""

    type: str
    at: Stamp | None
    actor: str
    reason: str | None


@shown
class BypassesView(TypedDict):
    """Calls that were let through undecided, by cause."""

    since: str
    counts: dict[str, int]


@shown
class DocumentView(TypedDict):
    """A profile or policy: as it is now, and as it was when the erasure began."""

    name: str
    sha256: str
    at_request: str | None


@shown
class IssuerView(TypedDict):
    """Who issued it."""

    product: Literal["quietus"]
    version: str


@shown
class UnsignedReceipt(TypedDict):
    """Everything that a receipt says."""

    type: Literal["quietus.receipt/1"]
    erasure: str
    store: str
    issued_at: Stamp
    sequence: int
    chain: ChainView
    about: AboutView
    demand: DemandView
    result: ResultView
    times: TimesView
    surfaces: list[SurfaceView]
    not_checked: list[UncheckedView]
    lineage: LineageView
    claim: ClaimView | None
    calls: CallsView
    events: EventsView
    acts: list[ActView]
    acts_omitted: int
    overrides: list[OverrideView]
    bypasses: BypassesView
    profile: DocumentView
    policy: DocumentView
    issuer: IssuerView
    limits: list[str]


@shown
class SignatureView(TypedDict):
    """The signature over everything else, in the receipt's canonical form."""

    algorithm: Literal["Ed25519"]
    key: str
    value: str


@shown
class ReceiptView(UnsignedReceipt):
    """A signed receipt."""

    signature: SignatureView
