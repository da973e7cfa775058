"""What makes replicas safe, switched off one by one in a real process: controls of the tests beside it."""

from __future__ import annotations

from typing import Any

from quietus.erasures import Erasures
from quietus.ordering import Ordering
from quietus.replicas import Replicas


def switch_off(what: str) -> bool:
    """Switches off `barrier` (nobody is waited for), `second` (only at the first one), `orders` (nobody is
    waited for where people have ordered something) or `lease`.
    """
    reach = Replicas.reach

    async def nobody(self: Replicas, *_: Any) -> bool:
        return True

    async def alone(self: Replicas, erasure: Any, seconds: float) -> bool:
        return await self._flights.drain(erasure.predicate, seconds)

    async def first_only(self: Replicas, erasure: Any, seconds: float) -> bool:
        if erasure.snapshotted:
            return await alone(self, erasure, seconds)
        return await reach(self, erasure, seconds)

    if what == "barrier":
        Replicas.reach = alone  # type: ignore[method-assign]
    elif what == "orders":
        Ordering._everywhere = nobody  # type: ignore[assignment]
    elif what == "second":
        Replicas.reach = first_only  # type: ignore[method-assign]
    elif what == "lease":
        Erasures.lapsed = property(lambda self: self.lapses_at == float("-inf"))  # type: ignore[assignment, method-assign]
    else:
        return False
    return True
