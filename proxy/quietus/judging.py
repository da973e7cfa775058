"""The verdict on an erasure under a profile and the orders of people: asked here by whoever tells one."""

from __future__ import annotations

from datetime import UTC, datetime

from quietus.core.erasure import Erasure
from quietus.core.orders import Orders
from quietus.core.soundness import audited
from quietus.core.verdict import Verdict, verdict_of
from quietus.profiles.profile import Profile


def judged(erasure: Erasure, profile: Profile, orders: Orders, now: float) -> Verdict:
    """The verdict at a Unix second."""
    overridden, held = orders.overridden(erasure.predicate, now), attested(profile, now)
    return verdict_of(erasure, held, overridden=overridden, audited=audited(profile.store.manners(held)))


def attested(profile: Profile, now: float) -> frozenset[str]:
    """The conditions that somebody vouches for in the profile and that have not expired by `now`."""
    today = datetime.fromtimestamp(now, UTC).date()
    return frozenset(a.condition for a in profile.store.attestations if a.expires >= today)
