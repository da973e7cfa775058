"""What makes replicas safe, switched off: `switches` for the family of several replicas.

The product has no such switch. Each function replaces, in the real classes, the one thing that is the
protection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.replicas import Replicas

Patch = tuple[Any, str, Any]


async def _alone(self: Replicas, erasure: Any, seconds: float) -> bool:
    return await self._flights.drain(erasure.predicate, seconds)


def _no_barrier() -> list[Patch]:
    return [(Replicas, "reach", _alone)]


def _first_only() -> list[Patch]:
    real = Replicas.reach

    async def reach(self: Replicas, erasure: Any, seconds: float) -> bool:
        return await (_alone if erasure.snapshotted else real)(self, erasure, seconds)

    return [(Replicas, "reach", reach)]


def _lease() -> list[Patch]:
    return [(Erasures, "lapsed", property(lambda self: self.lapses_at == float("-inf")))]


def _leaving() -> list[Patch]:
    return [(Flights, "lapse", lambda self: None)]


def _epoch() -> list[Patch]:
    real = Erasures.append

    async def append(self: Erasures, drafts: Any, *, epoch: Any = None, **more: Any) -> Any:
        return await real(self, drafts, **more)

    return [(Erasures, "append", append)]


def _one_at_a_time() -> list[Patch]:
    real = Replicas.hold

    async def hold(self: Replicas, erasure: str) -> bool:
        await real(self, erasure)
        return True

    return [(Replicas, "hold", hold)]


OF_REPLICAS: Final[dict[str, Callable[[], list[Patch]]]] = {
    "barrier of replicas": _no_barrier,
    "second barrier of replicas": _first_only,
    "lease of a replica": _lease,
    "aborting what leaves when a lease lapses": _leaving,
    "epoch of an intent": _epoch,
}
"""Every protection by its name."""
