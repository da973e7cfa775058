"""Putting the parts together, without a socket: what `app` serves, `explain` asks and tests drive."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from quietus.core.erasure import Erasure
from quietus.core.policy import Mode, Policy
from quietus.core.screening import Screener
from quietus.core.verdict import Verdict, verdict_of
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.forgets import ForgetLimits, Forgets
from quietus.forgetting import DeskLimits, ForgetDesk
from quietus.gateway import Gateway, GatewayLimits, Log, Measures
from quietus.keys import Keyring
from quietus.owners import Owners
from quietus.ports import Clock, Ledger, Upstream
from quietus.prober import Prober, ProbeLimits
from quietus.profiles.profile import Profile
from quietus.questions import Questions
from quietus.reconciler import Reconciler
from quietus.release import Releaser
from quietus.rounds import Rounds
from quietus.shapes import Shapes
from quietus.snapshotter import SnapshotLimits, Snapshotter, erased_check


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
    forgets: Forgets
    flights: Flights
    prober: Prober
    snapshotter: Snapshotter
    owners: Owners
    shapes: Shapes

    def verdict(self, erasure: Erasure) -> Verdict:
        """The verdict on an erasure under the profile's unexpired attestations."""
        return verdict_of(erasure, self.active.profile.attested(self.erasures.clock.now()))


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
    status_view: Callable[[Erasure, Verdict, float], dict[str, Any]],
    bounds: Bounds = Bounds(),
) -> Parts:
    """Builds every part around one ledger and one upstream. Nothing is opened or started yet."""
    erasures = Erasures(ledger, keyring, clock, store)
    owners = Owners(keyring)
    screener = Screener(erasures.gate, keyring.pseudonym, keyring.digest)
    flights = Flights(clock)
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
    reconciler = Reconciler(
        erasures,
        forgets,
        Rounds(prober, metrics),
        snapshotter,
        metrics,
        log,
        entropy,
        lambda: active.policy.mode is Mode.OBSERVE,
    )

    def verdict(erasure: Erasure) -> Verdict:
        return verdict_of(erasure, active.profile.attested(clock.now()))

    desk = ForgetDesk(
        erasures,
        forgets,
        lambda: active.policy,
        upstream,
        bounds.desk,
        metrics,
        lambda erasure: verdict(erasure).word.value,
        lambda erasure: status_view(erasure, verdict(erasure), clock.now()),
        reconciler.retry_after,
        reconciler.wake,
    )
    releaser = Releaser(
        erasures,
        lambda: active.profile,
        owners,
        screener,
        metrics,
        reconciler.leaked,
        reconciler.retry_after,
        lambda: active.policy.disclose,
    )
    shapes = Shapes(active.profile.words)
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
        bounds.gateway,
        metrics,
        log,
    )
    return Parts(active, erasures, gateway, reconciler, forgets, flights, prober, snapshotter, owners, shapes)
