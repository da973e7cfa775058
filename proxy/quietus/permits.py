"""Permits: the proof that a forward was admitted. Only the gateway, the forgets and the prober make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Purpose(StrEnum):
    """What a forward is for."""

    CLIENT = "client"
    FORGET = "forget"
    PROBE = "probe"
    REMEDY = "remedy"


@dataclass(frozen=True, slots=True)
class Granted:
    """A permit. `rule` is the rule of the policy that let a client's call pass; empty for our own calls.

    `still` is asked just before the first byte goes: a legal hold may have been placed since.
    """

    purpose: Purpose
    rule: str = ""
    still: Callable[[], bool] | None = None

    @property
    def holds(self) -> bool:
        """Whether it stands. Where replicas share a ledger, `watched` says for how long."""
        return self.still is None or self.still()

    @property
    def own(self) -> bool:
        """Whether the sidecar itself asks: its own credentials go along, not a client's."""
        return self.purpose is not Purpose.CLIENT
