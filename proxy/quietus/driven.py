"""How far a forget came in one go."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from quietus.core.erasure import Erasure
from quietus.core.exchange import Reply
from quietus.core.orders import Hold


class HeldBack(Exception):
    """A legal hold forbids the forget; it is recorded, and taken up when the hold ends."""

    def __init__(self, hold: Hold) -> None:
        super().__init__("a legal hold forbids to erase this")
        self.hold = hold


class Stage(StrEnum):
    """How far one drive came."""

    ANSWERED = "answered"
    SUPPRESSED = "suppressed"
    """The store cannot forget this: it is kept from every answer, and nothing was sent."""
    HELD = "held"
    """A legal hold was placed before anything was sent: the gate is shut, and it goes when the hold ends."""
    UNCLEAR = "unclear"
    BARRIER = "barrier"
    LEDGER = "ledger"


@dataclass(frozen=True, slots=True)
class Driven:
    """The outcome of one drive; `reply` is the store's answer where there was one."""

    stage: Stage
    erasure: Erasure
    reply: Reply | None = None
