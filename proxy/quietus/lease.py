"""Keeping an eye on the ledger: recalls go on from memory until the lease lapses."""

from __future__ import annotations

from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.ports import LedgerError


class Lease:
    """Renewed by asking the ledger for its head; lapsed when that has failed for too long."""

    def __init__(self, erasures: Erasures, seconds: float) -> None:
        self._erasures = erasures
        self._seconds = seconds
        self._clock = erasures.clock
        self._renewed = self._clock.monotonic()

    async def run(self) -> None:
        """Renews until cancelled, three times in each lease."""
        while True:
            await self.renew()
            await self._clock.sleep(self._seconds / 3)

    async def renew(self) -> bool:
        """Asks once; shuts the gate when the lease has lapsed, opens it when the ledger answers again."""
        asked = self._clock.monotonic()
        try:
            head = await self._erasures.ledger.head()
        except LedgerError:
            if self._clock.monotonic() >= self._renewed + self._seconds:
                self._erasures.closed_cause = "ledger"
            return False
        if head.number < self._erasures.number:
            # A ledger that is behind what this process has seen was rolled back: it is not believed again.
            self._erasures.closed_cause = "epoch"
            return False
        self._renewed = asked
        if self._erasures.closed_cause == "ledger" and self._erasures.loaded:
            self._erasures.closed_cause = None
        return True


async def cut_short(erasures: Erasures, flights: Flights, patience: float) -> None:
    """Aborts, when the lease of a replica lapses, what is still leaving: nobody waits for it any more.

    Works until cancelled. `patience`: seconds after which it is looked again whether there is a lease.
    """
    clock = erasures.clock
    while erasures.lapses_at is not None:
        left = erasures.lapses_at - clock.monotonic()
        if left <= 0:
            flights.lapse()
        await clock.sleep(left if left > 0 else patience)
