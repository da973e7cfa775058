"""Standing orders as people and programs see them: JSON without a raw identifier."""

from __future__ import annotations

from quietus.core.erasure import Erasure
from quietus.core.orders import Hold, Override
from quietus.shown import HoldView, OverrideView, QuarantineView
from quietus.views import predicate_view, stamp


def hold_view(hold: Hold, waiting: int) -> HoldView:
    """A legal hold; `waiting` forgets are taken up when it ends."""
    return {
        "id": hold.id, "predicate": predicate_view(hold.scope), "exception": hold.exception,
        "reason": hold.reason, "actor": hold.actor, "placed_at": stamp(hold.placed_at),
        "until": stamp(hold.until), "waiting": waiting,
    }  # fmt: skip


def override_view(override: Override, now: float) -> OverrideView:
    """A break-glass override, ended or not."""
    return {
        "id": override.id, "effect": override.effect, "predicate": predicate_view(override.tenant),
        "reason": override.reason, "actor": override.actor, "begun_at": stamp(override.begun_at),
        "until": stamp(override.until), "active": override.during(now, now),
    }  # fmt: skip


def quarantine_view(quarantine: Erasure) -> QuarantineView:
    """A scope that people have quarantined."""
    return {
        "id": quarantine.id, "predicate": predicate_view(quarantine.predicate),
        "reason": quarantine.dossier.reference, "actor": quarantine.actor,
        "placed_at": stamp(quarantine.requested_at),
    }  # fmt: skip
