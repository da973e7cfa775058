"""Putting the parts together, without a socket: what `app` serves, `explain` asks and tests drive."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from quietus.arrivals import Arrivals
from quietus.attribution import Attribution
from quietus.barrier import Alone, Sharing
from quietus.collecting import Collecting
from quietus.conversation_ports import NoStreams, Streams
from quietus.conversing import Conversations
from quietus.core.erasure import Erasure
from quietus.core.orders import Orders
from quietus.core.policy import Policy
from quietus.core.screening import Screener
from quietus.core.verdict import Verdict
from quietus.deciding import Deciding
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.forgets import ForgetLimits, Forgets
from quietus.forgetting import DeskLimits, ForgetDesk
from quietus.gateway import Gateway, GatewayLimits
from quietus.inquiry import Inquiry
from quietus.intents import Intents
from quietus.judging import attested, judged
from quietus.keys import Keyring
from quietus.lineage import Lineage
from quietus.lineage_descent import Descent
from quietus.lineage_rounds import Severing
from quietus.messages import Messages
from quietus.ordering import Ordering
from quietus.owners import Owners
from quietus.ports import Clock, Ledger, LineageLog, Upstream
from quietus.prober import ProbeLimits, Prober
from quietus.profiles.profile import Profile
from quietus.questions import Questions
from quietus.reconciler import Reconciler
from quietus.recording import Log, Measures
from quietus.release import Releaser
from quietus.remedies import Remedies
from quietus.replicas import Replicas
from quietus.rounds import Rounds
from quietus.shapes import Shapes, words_of
from quietus.shown import StatusView
from quietus.snapshotter import SnapshotLimits, Snapshotter, erased_check
from quietus.timetable import Timetable
from quietus.trials import Exemptions, LastLeak, TrialFault, TrialResult
from quietus.watched import WatchedStreams, WatchedUpstream


@dataclass(slots=True)
class Active:
    """The profile and the policy in force; a reload replaces them, calls under way see the new ones."""

    profile: Profile
    policy: Policy
    trial: TrialResult | TrialFault | None = None
    """The canary trial that the settings name."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every bound of the parts, in one place."""

    gateway: GatewayLimits = GatewayLimits()
    desk: DeskLimits = DeskLimits()
    forgets: ForgetLimits = ForgetLimits()
    probes: ProbeLimits = ProbeLimits()
    snapshots: SnapshotLimits = SnapshotLimits()
    replicas: int = 1
    """How many servers stand behind the store's address."""
    lineage_records: int = 100_000
    lease: float = 10.0
    """Seconds for which calls are decided from memory without word from the ledger."""


@dataclass(slots=True)
class Parts:
    """The assembled sidecar."""

    active: Active
    erasures: Erasures
    gateway: Gateway
    conversations: Conversations
    reconciler: Reconciler
    timetable: Timetable
    forgets: Forgets
    flights: Flights
    prober: Prober
    snapshotter: Snapshotter
    owners: Owners
    lineage: Lineage
    shapes: Shapes
    exemptions: Exemptions
    ordering: Ordering
    sharing: Sharing

    def verdict(self, erasure: Erasure) -> Verdict:
        """The verdict on an erasure under the profile's unexpired attestations."""
        return judged(erasure, self.active.profile, self.erasures.gate.orders, self.erasures.clock.now())


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the parts are put into: everything that differs between a process, a command and a test."""

    active: Active
    ledger: Ledger
    keyring: Keyring
    clock: Clock
    upstream: Upstream
    store: str
    metrics: Measures
    log: Log
    new_id: Callable[[], str]
    entropy: random.Random
    status_view: Callable[[Erasure, Verdict], StatusView]
    bounds: Bounds = Bounds()
    lineage: LineageLog | None = None
    """Where the lineage is written down; None: it lasts as long as the process."""
    streams: Streams | None = None
    """The store, for calls of many messages; None: there are none."""

    def profile(self) -> Profile:
        """The profile in force."""
        return self.active.profile

    def policy(self) -> Policy:
        """The policy in force."""
        return self.active.policy

    def verdict(self, erasure: Erasure, orders: Orders) -> Verdict:
        """The verdict on an erasure under the profile's unexpired attestations and the orders that stand."""
        return judged(erasure, self.active.profile, orders, self.clock.now())


def assemble(around: Surroundings) -> Parts:
    """Builds every part around one ledger and one upstream. Nothing is opened or started yet."""
    bounds, metrics, clock, keys = around.bounds, around.metrics, around.clock, around.keyring
    erasures = Erasures(
        around.ledger, around.keyring, clock, around.store,
        lambda seconds: metrics.observe("ledger_seconds", seconds, method="append"),
    )  # fmt: skip
    around = _watched(around, erasures)
    lineage = Lineage(keys, bounds.lineage_records, around.lineage, clock.now)
    erasures.listen(lineage.noticed)
    owners = Owners(keys, lineage)
    screener = Screener(erasures.gate, keys.pseudonym, keys.digest, keys.digests)
    flights = Flights(clock, around.new_id)
    timetable = Timetable(erasures, around.entropy)
    sharing = _sharing(around, erasures, flights, timetable, lineage)
    prober = _prober(around, owners, screener, sharing)
    snapshotter = _snapshotter(around, erasures, owners, prober)
    descent = Descent(
        prober, lineage, owners, keys, clock, lambda: attested(around.active.profile, clock.now())
    )
    trial, leaked_at = (lambda: around.active.trial), LastLeak(erasures)
    exemptions = Exemptions(around.profile, trial, clock.now, around.log, leaked_at)
    intents = Intents(
        erasures, around.profile, around.policy, snapshotter, around.new_id, lambda: exemptions.now().holds
    )
    forgets = Forgets(
        erasures, around.profile, around.upstream, snapshotter, descent, flights, bounds.forgets, metrics,
        intents, sharing,
    )  # fmt: skip
    collecting = Collecting(erasures, around.policy)
    ordering = Ordering(erasures, intents, timetable.wake, around.new_id, collecting, sharing,
                        bounds.forgets.barrier)  # fmt: skip
    deciding = Deciding(erasures, around.policy, ordering.overriding)
    severing = Severing(prober, descent, owners, lineage, around.policy, metrics)
    reconciler = Reconciler(
        erasures, forgets, _inquiry(around, erasures, prober, severing, snapshotter, flights, timetable),
        flights, timetable, metrics, around.log, around.entropy, around.policy,
        lambda erasure: around.verdict(erasure, erasures.gate.orders), sharing, intents.terms,
    )  # fmt: skip
    releaser = Releaser(
        erasures, around.profile, owners, screener, metrics, timetable.leaked, timetable.retry_after,
        lambda: around.active.policy.disclose,
    )  # fmt: skip
    shapes = Shapes(words_of(around.active.profile))
    attribution = Attribution(erasures.gate, owners, screener, prober, clock)
    arrivals = _arrivals(around, erasures, deciding, flights, releaser, attribution)
    gateway = Gateway(
        erasures, around.profile, around.policy, deciding, around.upstream, flights,
        Questions(erasures.gate, owners, screener), releaser,
        _desk(around, erasures, forgets, timetable, releaser), shapes, arrivals, sharing, bounds.gateway,
        metrics, around.log,
    )  # fmt: skip
    conversations = Conversations(
        erasures, around.profile, gateway, around.streams or NoStreams(), flights, arrivals,
        Messages(around.profile, arrivals, releaser),
    )  # fmt: skip
    return Parts(
        around.active, erasures, gateway, conversations, reconciler, timetable, forgets, flights, prober,
        snapshotter, owners, lineage, shapes, exemptions, ordering, sharing,
    )  # fmt: skip


def _inquiry(
    around: Surroundings,
    erasures: Erasures,
    prober: Prober,
    severing: Severing,
    snapshotter: Snapshotter,
    flights: Flights,
    timetable: Timetable,
) -> Inquiry:
    rounds = Rounds(prober, around.metrics, around.bounds.replicas)
    remedies = Remedies(prober, around.metrics)
    return Inquiry(
        erasures, rounds, severing, remedies, snapshotter, flights, timetable, around.metrics, around.log
    )


def _prober(around: Surroundings, owners: Owners, screener: Screener, sharing: Sharing) -> Prober:
    return Prober(
        around.profile, around.upstream, owners, screener, around.clock, around.bounds.probes,
        around.metrics, lambda: sharing.live,
    )  # fmt: skip


def _sharing(
    around: Surroundings, erasures: Erasures, flights: Flights, timetable: Timetable, lineage: Lineage
) -> Sharing:
    lease = around.bounds.lease
    if erasures.shared is None:
        return Alone(erasures, flights, lease)
    return Replicas(erasures, flights, erasures.shared, lease, timetable.wake, lineage, around.log)


def _watched(around: Surroundings, erasures: Erasures) -> Surroundings:
    """Where replicas share the ledger, nothing is sent to the store once it is lost, or the lease lapsed."""
    if erasures.shared is None:
        return around
    streams = around.streams or NoStreams()

    def still() -> bool:
        return erasures.closed_cause is None

    upstream = WatchedUpstream(around.upstream, still)
    return replace(around, upstream=upstream, streams=WatchedStreams(streams, still))


def _snapshotter(around: Surroundings, erasures: Erasures, owners: Owners, prober: Prober) -> Snapshotter:
    return Snapshotter(
        prober,
        around.clock,
        around.bounds.snapshots,
        around.keyring.pseudonym,
        around.keyring.digest,
        erased_check(owners.digested, lambda scope: bool(erasures.gate.of_subject(scope))),
        around.new_id,
        owners.lineage.records.sharing.holding,
    )


def _desk(
    around: Surroundings, erasures: Erasures, forgets: Forgets, timetable: Timetable, releaser: Releaser
) -> ForgetDesk:
    return ForgetDesk(
        erasures,
        forgets,
        around.policy,
        lambda: around.profile().store.synchronous,
        around.upstream,
        around.bounds.desk,
        around.metrics,
        lambda erasure: around.verdict(erasure, erasures.gate.orders).word.value,
        lambda erasure: around.status_view(erasure, around.verdict(erasure, erasures.gate.orders)),
        timetable.retry_after,
        releaser.foreign,
    )


def _arrivals(
    around: Surroundings,
    erasures: Erasures,
    deciding: Deciding,
    flights: Flights,
    releaser: Releaser,
    attribution: Attribution,
) -> Arrivals:
    return Arrivals(
        erasures,
        around.profile,
        around.policy,
        deciding,
        flights,
        releaser,
        attribution,
        around.bounds.gateway.response_bytes,
        around.metrics,
    )
