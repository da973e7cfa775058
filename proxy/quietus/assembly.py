"""Putting the parts together, without a socket: what `app` serves, `explain` asks and tests drive."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from quietus.arrivals import Arrivals
from quietus.attribution import Attribution
from quietus.core.decision import decide
from quietus.core.erasure import Erasure
from quietus.core.policy import Policy
from quietus.core.screening import Screener
from quietus.core.verdict import Verdict, verdict_of
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.forgets import ForgetLimits, Forgets
from quietus.forgetting import DeskLimits, ForgetDesk
from quietus.gateway import Gateway, GatewayLimits
from quietus.inquiry import Inquiry
from quietus.keys import Keyring
from quietus.owners import Owners
from quietus.ports import Clock, Ledger, Upstream
from quietus.prober import ProbeLimits, Prober
from quietus.profiles.profile import Profile
from quietus.questions import Questions
from quietus.reconciler import Reconciler
from quietus.recording import Log, Measures
from quietus.release import Releaser
from quietus.rounds import Rounds
from quietus.shapes import Shapes
from quietus.snapshotter import SnapshotLimits, Snapshotter, erased_check
from quietus.timetable import Timetable


@dataclass(slots=True)
class Active:
    """The profile and the policy in force; a reload replaces them, calls under way see the new ones."""

    profile: Profile
    policy: Policy


@dataclass(frozen=True, slots=True)
class Bounds:
    """Every bound of the parts, in one place."""

    gateway: GatewayLimits = GatewayLimits()
    desk: DeskLimits = DeskLimits()
    forgets: ForgetLimits = ForgetLimits()
    probes: ProbeLimits = ProbeLimits()
    snapshots: SnapshotLimits = SnapshotLimits()


@dataclass(slots=True)
class Parts:
    """The assembled sidecar."""

    active: Active
    erasures: Erasures
    gateway: Gateway
    reconciler: Reconciler
    timetable: Timetable
    forgets: Forgets
    flights: Flights
    prober: Prober
    snapshotter: Snapshotter
    owners: Owners
    shapes: Shapes

    def verdict(self, erasure: Erasure) -> Verdict:
        """The verdict on an erasure under the profile's unexpired attestations."""
        return verdict_of(erasure, attested(self.active.profile, self.erasures.clock.now()))


def attested(profile: Profile, now: float) -> frozenset[str]:
    """The conditions that somebody vouches for in the profile and that have not expired by `now`."""
    today = datetime.fromtimestamp(now, UTC).date()
    return frozenset(a.condition for a in profile.store.attestations if a.expires >= today)


def words_of(profile: Profile) -> frozenset[str]:
    """The literal path segments of a profile's routes: they identify nobody."""
    return frozenset(
        text for route in profile.routes for parameter, text in route.template.segments if not parameter
    )


def assemble(
    active: Active,
    ledger: Ledger,
    keyring: Keyring,
    clock: Clock,
    upstream: Upstream,
    store: str,
    metrics: Measures,
    log: Log,
    new_id: Callable[[], str],
    entropy: random.Random,
    status_view: Callable[[Erasure, Verdict], dict[str, Any]],
    bounds: Bounds = Bounds(),
) -> Parts:
    """Builds every part around one ledger and one upstream. Nothing is opened or started yet."""
    erasures = Erasures(ledger, keyring, clock, store)
    owners = Owners(keyring)
    screener = Screener(erasures.gate, keyring.pseudonym, keyring.digest)
    flights = Flights(clock, new_id)
    prober = Prober(lambda: active.profile, upstream, owners, screener, clock, bounds.probes, metrics)
    snapshotter = Snapshotter(
        prober,
        clock,
        bounds.snapshots,
        keyring.pseudonym,
        keyring.digest,
        erased_check(owners.digested, lambda scope: bool(erasures.gate.of_subject(scope))),
        new_id,
    )
    forgets = Forgets(
        erasures,
        lambda: active.profile,
        lambda: active.policy,
        upstream,
        snapshotter,
        flights,
        bounds.forgets,
        metrics,
        new_id,
    )
    timetable = Timetable(erasures, entropy)
    reconciler = Reconciler(
        erasures,
        forgets,
        Inquiry(erasures, Rounds(prober, metrics), snapshotter, flights, timetable, metrics, log),
        flights,
        timetable,
        metrics,
        log,
        entropy,
        lambda: active.policy,
    )

    def verdict(erasure: Erasure) -> Verdict:
        return verdict_of(erasure, attested(active.profile, clock.now()))

    releaser = Releaser(
        erasures,
        lambda: active.profile,
        owners,
        screener,
        metrics,
        timetable.leaked,
        timetable.retry_after,
        lambda: active.policy.disclose,
    )
    desk = ForgetDesk(
        erasures,
        forgets,
        lambda: active.policy,
        upstream,
        bounds.desk,
        metrics,
        lambda erasure: verdict(erasure).word.value,
        lambda erasure: status_view(erasure, verdict(erasure)),
        timetable.retry_after,
        releaser.foreign,
    )
    arrivals = Arrivals(
        erasures,
        lambda: active.profile,
        lambda: active.policy,
        lambda question: decide(question, erasures.gate, active.policy),
        flights,
        releaser,
        Attribution(erasures.gate, owners, prober, clock),
        bounds.gateway.response_bytes,
        metrics,
    )
    shapes = Shapes(words_of(active.profile))
    gateway = Gateway(
        erasures,
        lambda: active.profile,
        lambda: active.policy,
        upstream,
        flights,
        Questions(owners, screener),
        releaser,
        desk,
        shapes,
        arrivals,
        bounds.gateway,
        metrics,
        log,
    )
    return Parts(
        active,
        erasures,
        gateway,
        reconciler,
        timetable,
        forgets,
        flights,
        prober,
        snapshotter,
        owners,
        shapes,
    )
