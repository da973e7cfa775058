"""What the engine asks about other replicas, and the answer where there are none: it costs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from quietus.core.erasure import Erasure
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.lease import Lease
from quietus.ports import Conflict, LedgerUnavailable

TRIES: Final = 100
"""How often something is decided anew because somebody has moved the gate meanwhile."""

T = TypeVar("T")


class BarrierUnreached(Exception):
    """What people have ordered stands in the ledger, and not every replica is known to hold to it yet."""


class Sharing(Protocol):
    """What the engine asks of whoever knows whether there are other replicas."""

    @property
    def live(self) -> int:
        """How many replicas share the store."""

    @property
    def patience(self) -> float:
        """Seconds after which work that another replica holds is asked for again."""

    async def reach(self, erasure: Erasure, seconds: float) -> bool:
        """Waits until all gate on an erasure, with its scope drained; False when not in time."""

    async def know(self, number: int, seconds: float) -> bool:
        """Waits until all have read the ledger up to an event; False when not in time. Raises LedgerError."""

    async def hold(self, erasure: str) -> bool:
        """Whether this replica works on an erasure. Raises LedgerError."""

    async def release(self, erasure: str) -> None:
        """Gives up the work on an erasure that is over. Raises LedgerError."""

    async def hear(self, epoch: int) -> None:
        """Reads on in the ledger where an epoch is further than what this replica gates on."""

    async def start(self) -> None:
        """Begins to answer. Raises LedgerError."""

    async def run(self) -> None:
        """Keeps the lease until cancelled."""

    async def stop(self) -> None:
        """Tells the others that nobody has to wait for this one any more."""


class Alone:
    """One process has the ledger to itself: nobody else has to be waited for."""

    live = 1
    patience = 1.0

    def __init__(self, erasures: Erasures, flights: Flights, seconds: float) -> None:
        self._erasures = erasures
        self._flights = flights
        self._lease = Lease(erasures, seconds)

    async def reach(self, erasure: Erasure, seconds: float) -> bool:
        """What is in flight here is all there is."""
        return await self._flights.drain(erasure.predicate, seconds)

    async def know(self, number: int, seconds: float) -> bool:
        """What is written here is known here."""
        return True

    async def hold(self, erasure: str) -> bool:
        """There is nobody else."""
        return True

    async def release(self, erasure: str) -> None:
        """Nothing is held."""

    async def hear(self, epoch: int) -> None:
        """What is written here is gated on here."""

    async def start(self) -> None:
        """Nothing has to be waited for."""

    async def run(self) -> None:
        """Looks whether the ledger is still there."""
        await self._lease.run()

    async def stop(self) -> None:
        """Nobody waits."""


async def anew(erasures: Erasures, attempt: Callable[[], Awaitable[T]]) -> T:
    """Does what rests on how the gate stands, and once more where somebody has moved it meanwhile.

    Raises LedgerError.
    """
    for _ in range(TRIES):
        try:
            return await attempt()
        except Conflict:
            if erasures.shared is not None:
                await erasures.catch_up()
    raise LedgerUnavailable("too many replicas write at once; nothing was written: try again")
