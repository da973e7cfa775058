"""Permits: the proof that a forward was admitted. Only the gateway, the forgets and the prober make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum


class Purpose(StrEnum):
    """What a forward is for."""

    CLIENT = "client"
    FORGET = "forget"
    PROBE = "probe"
    REMEDY = "remedy"


@dataclass(frozen=True, slots=True)
class Granted:
    """A permit. `rule` is the rule of the policy that let a client's call pass; empty for our own calls."""

    purpose: Purpose
    rule: str = ""
    still: Callable[[], bool] = field(default=lambda: True, compare=False)
    """Whether this replica may still speak: what was admitted may have to wait for a connection."""

    @property
    def holds(self) -> bool:
        """Whether it still stands."""
        return self.still()

    @property
    def own(self) -> bool:
        """Whether the sidecar itself asks: its own credentials go along, not a client's."""
        return self.purpose is not Purpose.CLIENT
