"""What `GET /v1/decisions` shows: calls, counted by what policies can ask about them and by nothing else."""

from __future__ import annotations

from typing_extensions import TypedDict

from quietus.core.policy import Effect, Mode
from quietus.core.replaying import ToldCall
from quietus.shown import ShapeView, Stamp, shown


@shown
class CallCount(ToldCall):
    """How often one kind of call was decided in one way."""

    rule: str
    effect: Effect
    mode: Mode
    overridden: bool
    """Whether a break-glass override let it through."""
    count: int


@shown
class UnreadCount(TypedDict):
    """How often the profile could not read a field of a route's requests."""

    route: str
    field: str
    count: int


@shown
class FaultyCount(TypedDict):
    """How often a request could not be read in exactly one way."""

    problem: str
    count: int


@shown
class Counts(TypedDict):
    """What was counted, the most frequent first."""

    calls: list[CallCount]
    unreadable: list[UnreadCount]
    faulty: list[FaultyCount]
    left_out: int
    """Calls of kinds that came after the bound of kinds was met."""


@shown
class DecisionsView(Counts):
    """What was counted, since when, and under which policy."""

    since: Stamp
    policy: str
    """The policy that is in force now."""
    unmapped: list[ShapeView]
