"""What the admin API shows: the type of every JSON document that it answers with.

`views`, `order_views` and the routes build these, mypy holds them to it, and the OpenAPI document is made of
them; a field stands here once. Dates are RFC 3339, UTC. What is not known is null.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, WithJsonSchema, with_config
from typing_extensions import TypedDict

from quietus.core.erasure import PolicyPhase, ReadPhase
from quietus.core.states import State
from quietus.core.verdict import Outcome, Word

shown: Final = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
"""Nothing is answered that does not stand in the type."""

Stamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


@shown
class PredicateView(TypedDict, total=False):
    """A digested scope: keyed pseudonyms, only of the dimensions that it names."""

    tenant: list[str]
    subject: list[str]
    purpose: list[str]
    path: list[str]
    key: list[str]


@shown
class EpochsView(TypedDict):
    """How far the erasure and the readers are."""

    erasure: int
    read: int | None
    source: Literal["store", "sidecar"]
    """Whose epochs these are: the store's own, or numbers of the ledger."""


@shown
class StatusView(TypedDict):
    """What whoever holds an erasure's id may know: nothing in it tells what was erased."""

    id: str
    state: State
    verdict: Word
    policy_phase: PolicyPhase
    read_phase: ReadPhase
    may_assert_erasure: bool
    """The store acknowledged, and does not still hold the record itself."""
    may_assert_non_recallability: bool
    """Probes have shown it, through the surfaces in `through`."""
    through: list[str]
    missing_for_compliant: list[str]
    epochs: EpochsView
    requested_at: Stamp
    acknowledged_at: Stamp | None
    settled_at: Stamp | None
    reason: str | None
    """The machine-readable reason beside the sentence."""
    why: str
    """In a sentence, what keeps the gate shut, or what its being open rests on."""


@shown
class SurfaceView(TypedDict):
    """One surface as the newest round saw it."""

    name: str
    kind: str
    outcome: Outcome
    control: str
    """What showed that the probe could have found something."""
    residual: int
    """Records of the erased that it still returned."""
    probed_at: Stamp | None
    reason: str | None


@shown
class DescendantView(TypedDict):
    """One record that was derived from the erased."""

    record: str
    depth: int
    detector: str
    fate: str
    reason: str


@shown
class LineageView(TypedDict):
    """What was derived from the erased, and what became of it."""

    descendants: int
    cascaded: int
    quarantined: int
    unlinked: int
    escalated: int
    suspected: int
    evicted: int
    complete: bool
    gap: str | None
    logical_unlink: bool
    nodes: list[DescendantView]
    """The first few, one by one."""


@shown
class ClaimView(TypedDict):
    """What the store said it did: a claim, never a proof."""

    status: str
    count: int | None
    at: Stamp | None


@shown
class ErasureView(StatusView):
    """All that is known of an erasure."""

    store: str
    overdue: bool
    held: bool
    escalated: bool
    readmitted_at: Stamp | None
    predicate: PredicateView
    tokens: list[str]
    """Digests of the store's own tokens."""
    bound_at: Stamp
    due_at: Stamp
    """By when the law of its basis wants it done."""
    seconds_left: float | None
    """Until then, while it is unsettled; less than nothing once it is late."""
    estimate_seconds: float | None
    """While it settles: about how long until it may be settled, if nothing leaks meanwhile."""
    exposure_seconds: float | None
    """From the acknowledgement to the last leak seen: a lower bound."""
    basis: str | None
    reference: str | None
    surfaces: list[SurfaceView]
    lineage: LineageView
    claim: ClaimView | None
    acknowledged: bool
    primary_removed: bool | None
    reconstruction_paths_severed: bool
    effective_non_recoverability: bool
    access_paths: int
    """Surfaces through which it leaked."""
    suppressed: bool
    received_at: Stamp | None
    upstream_calls: int
    client_calls: int
    residual_shared: int
    """Texts that were left alone: too many others hold them, too."""
    remedies: int


@shown
class ErasureCreated(ErasureView):
    """An erasure that was demanded, with what proves whom its receipts are about."""

    receipt_salt: str


@shown
class ErasuresPage(TypedDict):
    """Erasures, the newest first."""

    erasures: list[ErasureView]
    next: str | None
    """The `cursor` of the next page; null on the last."""


@shown
class Readmitted(TypedDict):
    """The erasures whose tombstones let their subject in again."""

    erasures: list[ErasureView]


@shown
class Signalled(TypedDict):
    """Ids of the erasures that a signal spoke for."""

    erasures: list[str]


EventClass = Literal["policy", "read", "act", "record"]
"""Policy events say what was asked and acknowledged; read events what probes and epochs have shown."""

# `class` is a word of Python's, so that it cannot be written as the others are.
EventView = TypedDict("EventView", {
    "number": int, "type": str, "erasure": str | None, "at": Stamp, "actor": str,
    "class": EventClass, "gate": bool, "facts": dict[str, Any], "hash": str,
})  # fmt: skip
with_config(ConfigDict(extra="forbid"))(EventView)


@shown
class EventsPage(TypedDict):
    """The events of an erasure, the oldest first."""

    events: list[EventView]
    next: str | None
    """The `after` of the next page; null on the last."""


@shown
class HoldView(TypedDict):
    """A legal hold."""

    id: str
    predicate: PredicateView
    exception: str
    reason: str
    actor: str
    placed_at: Stamp
    until: Stamp
    waiting: int
    """Forgets that are taken up when it ends."""


@shown
class OverrideView(TypedDict):
    """A break-glass override, ended or not."""

    id: str
    effect: str
    predicate: PredicateView
    reason: str
    actor: str
    begun_at: Stamp
    until: Stamp
    active: bool


@shown
class QuarantineView(TypedDict):
    """A scope that people have quarantined."""

    id: str
    predicate: PredicateView
    reason: str
    actor: str
    placed_at: Stamp


@shown
class Holds(TypedDict):
    """Those that stand: never so many that a page were needed."""

    holds: list[HoldView]
    next: None


@shown
class Overrides(TypedDict):
    """Those that are remembered, ended ones too; never so many that a page were needed."""

    overrides: list[OverrideView]
    next: None


@shown
class Quarantines(TypedDict):
    """Those that stand; never so many that a page were needed."""

    quarantines: list[QuarantineView]
    next: None


@shown
class ShapeView(TypedDict):
    """The shape of requests that the profile does not describe, without ids."""

    shape: str
    count: int


@shown
class Unmapped(TypedDict):
    """Shapes, the newest last."""

    routes: list[ShapeView]
