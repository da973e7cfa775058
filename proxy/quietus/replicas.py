"""One gate for many processes: each holds a lease, follows the ledger, and is waited for by every forget.

Calls are decided from memory; no server is asked for one. What makes that sound is the lease: a replica whose
lease has lapsed answers nothing, and a forget is forwarded only when every replica either gates on it, with
what it had in flight drained, or has surely lapsed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.events import Draft, Event, EventType
from quietus.erasures import Erasures
from quietus.flights import Flights
from quietus.lease import cut_short
from quietus.lineage import Lineage
from quietus.patience import within
from quietus.ports import LedgerBehind, LedgerError, LedgerRefused, Member, Muster, SharedLedger, Unlisted
from quietus.recording import Log
from quietus.roster import Roster

MARGIN: Final = 0.1
"""The part of a lease that is not used, against clocks that run at different speeds."""
VERIFY_EVERY: Final = 60.0
"""Seconds between two looks at the settings of the ledger's server."""
UNDRAINED_MAX: Final = 1000
"""Erasures told apart in a renewal; where more have not drained, it says that it is behind all of them."""
_FENCES: Final = frozenset({EventType.REQUESTED, EventType.SNAPSHOTTED, EventType.QUARANTINED})
_ACTS: Final = frozenset({
    EventType.RETRIED, EventType.HOLD_LIFTED, EventType.SIGNALLED, EventType.VERIFY_ASKED,
    EventType.READMITTED,
})  # fmt: skip
"""What people do on any replica, and what wakes the one that works on the erasure."""


class Replicas:
    """One replica of several."""

    def __init__(
        self,
        erasures: Erasures,
        flights: Flights,
        ledger: SharedLedger,
        seconds: float,
        wake: Callable[[str], None],
        lineage: Lineage,
        log: Log,
    ) -> None:
        """`seconds` is the lease; `wake` is told of erasures that somebody has acted on elsewhere."""
        self._lineage = lineage
        self._erasures = erasures
        self._flights = flights
        self._ledger = ledger
        self._seconds = seconds
        self._wake = wake
        self._log = log
        self._clock = erasures.clock
        self._roster = Roster(seconds)
        self._session = ""
        self._renewing = asyncio.Lock()
        self._renewed_at = float("-inf")
        self._verified_at = self._clock.monotonic()
        self._told = False
        self._urgent = False
        """Somebody waits to hear how far this replica is."""
        self._draining: dict[int, asyncio.Task[None]] = {}
        self._pulse = asyncio.Event()
        erasures.lapses_at = float("-inf")
        erasures.listen(self._noticed)
        erasures.on_order(self._ordered)

    @property
    def live(self) -> int:
        """How many replicas are in the roster, this one among them."""
        return max(1, len(self._roster.members))

    @property
    def patience(self) -> float:
        """A third of a lease: so often each looks who is gone."""
        return self._seconds / 3

    # --- the barrier ---------------------------------------------------------------------------

    async def reach(self, erasure: Erasure, seconds: float) -> bool:
        """Waits until all gate on an erasure, with its scope drained; False when not in time.

        What the others had learned of its records is known here then, where it is written down at all.
        """
        until = self._clock.monotonic() + seconds
        if not await self._flights.drain(erasure.predicate, seconds):
            return False
        if not await self._all(lambda: self._roster.behind(erasure, self._session), until):
            return False
        await self._lineage.hear()
        return True

    async def know(self, number: int, seconds: float) -> bool:
        """Waits until all have read the ledger up to an event; False when not in time. Raises LedgerError."""
        until = self._clock.monotonic() + seconds
        return await self._all(lambda: self._roster.unread(number, self._session), until)

    async def _all(self, waited_for: Callable[[], list[Member]], until: float) -> bool:
        while True:
            pulse = self._pulse  # what comes while the roster is being read is not missed
            await self._fresh()
            behind = waited_for()
            alive = [m for m in behind if not (self._roster.gone(m) and await self._expel(m.session, m.beat))]
            if not alive and not self._roster.blind():
                return True
            left = until - self._clock.monotonic()
            if left <= 0:
                return False
            await within(self._clock, pulse, min(left, self.patience))

    async def _fresh(self) -> None:
        """A renewal that begins after this was called, whoever makes it. Raises LedgerError."""
        asked = self._clock.monotonic()
        async with self._renewing:
            if self._renewed_at < asked:
                await self._renew()

    async def hear(self, epoch: int) -> None:
        """Reads on in the ledger where an epoch is further than what this replica gates on."""
        if self._erasures.gate.epoch < epoch:
            with suppress(LedgerError):  # then it is behind, and says so
                await self._erasures.catch_up()

    # --- work ----------------------------------------------------------------------------------

    async def hold(self, erasure: str) -> bool:
        """Whether this replica works on an erasure. Raises LedgerError."""
        return await self._ledger.claim(self._session, erasure) > 0

    async def release(self, erasure: str) -> None:
        """Gives up the work on an erasure that is over. Raises LedgerError."""
        await self._ledger.release(self._session, erasure)

    # --- the lease -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Joins, catches up, and begins to answer. Raises LedgerError."""
        await self._join()

    async def stop(self) -> None:
        """Answers no more, and tells the others that nobody has to wait for this one."""
        self._erasures.lapses_at = float("-inf")
        for task in self._draining.values():
            task.cancel()
        try:
            await self._ledger.leave(self._session)
        except LedgerError:
            return  # they will see that its beat stands still

    async def run(self) -> None:
        """Follows the ledger and keeps the lease until cancelled."""
        await asyncio.gather(self._follow(), cut_short(self._erasures, self._flights, self.patience))

    async def _follow(self) -> None:
        while True:
            self._ledger.news.clear()
            self._beat()
            try:
                await self._turn()
                self._told = False
            except Unlisted:
                await self._again()
            except LedgerError as error:
                self._failed(error)
            await within(self._clock, self._ledger.news, self.patience)

    async def _turn(self) -> None:
        await self._erasures.catch_up()
        self._beat()
        if self._urgent or self._clock.monotonic() - self._renewed_at >= self.patience * 0.9:
            self._urgent = False
            await self._fresh()
        for member in self._roster.members:
            if member.session != self._session and self._roster.gone(member):
                await self._expel(member.session, member.beat)
        if self._roster.recovered():
            await self._ledger.settle_life(self._roster.life)
        shut = self._erasures.closed_cause == "ledger"
        if shut or self._clock.monotonic() - self._verified_at >= VERIFY_EVERY:
            await self._ledger.verify()
            self._verified_at = self._clock.monotonic()
            if shut:
                self._erasures.closed_cause = None

    async def _renew(self) -> None:
        """Beats, catches up with what the answer says, and then counts the lease from before it asked."""
        asked, number, known = self._clock.monotonic(), self._erasures.number, self._erasures.hash
        undrained = sorted(self._draining)
        many = len(undrained) > UNDRAINED_MAX
        muster = await self._ledger.renew(
            self._session, undrained[0] - 1 if many else number, () if many else undrained
        )
        self._check(muster, number, known)
        self._roster.saw(muster, asked, self._clock.monotonic())
        await self._erasures.catch_up(muster.head.number)
        self._renewed_at = asked
        self._erasures.lapses_at = asked + self._seconds * (1 - MARGIN)

    def _check(self, muster: Muster, number: int, known: str) -> None:
        head = muster.head
        if head.number < number or (known and head.number == number and head.hash != known):
            raise LedgerBehind(
                "the ledger is older than what this replica has seen of it, or another one: restore the one "
                "that was in use, then restart Quietus"
            )

    async def _join(self) -> None:
        self._session = f"re_{secrets.token_hex(12)}"
        asked = self._clock.monotonic()
        muster = await self._ledger.join(self._session, self._seconds)
        self._roster.saw(muster, asked, self._clock.monotonic())
        await self._erasures.catch_up()
        await self._fresh()

    async def _again(self) -> None:
        """It was expelled: it stood still for longer than its lease, or the server has forgotten it."""
        self._erasures.lapses_at = float("-inf")
        self._log.info("joining_again")
        try:
            await self._join()
        except LedgerError as error:
            self._failed(error)

    def _failed(self, error: LedgerError) -> None:
        if isinstance(error, LedgerBehind):
            self._erasures.closed_cause = "epoch"  # not believed again while this process lives
        elif isinstance(error, LedgerRefused) and self._erasures.closed_cause is None:
            self._erasures.closed_cause = "ledger"
        if not self._told:
            self._told = True
            self._log.error("ledger_fault", error=error)

    async def _expel(self, session: str, beat: int) -> bool:
        gone = await self._ledger.expel(session, beat)
        if gone:
            self._log.info("replica_lost")
        return gone

    # --- what is folded in ---------------------------------------------------------------------

    def _noticed(self, erasure: Erasure, event: Event) -> None:
        if event.type in _ACTS:
            self._wake(erasure.id)
        if event.type not in _FENCES:
            return
        self._urgent = True
        if not erasure.unsettled or erasure.epoch in self._draining:
            return
        busy = self._flights.undrained(erasure.predicate) or self._flights.unknown_in(erasure.predicate)
        if busy or self._lineage.untold:
            self._draining[erasure.epoch] = asyncio.ensure_future(self._drain(erasure))

    def _ordered(self, _: Event) -> None:
        self._urgent = True

    async def _drain(self, erasure: Erasure) -> None:
        """Until nothing admitted before is in flight there, and what may still land is written down.

        And what was learned of records: whoever forgets has to know what was derived from them.
        """
        try:
            await self._lineage.tell()
            while not await self._flights.drain(erasure.predicate, 60.0) or not await self._told_writes(
                erasure.id
            ):
                await within(self._clock, self._pulse, 1.0)
        finally:
            self._draining.pop(erasure.epoch, None)
            self._urgent = True
            self._ledger.news.set()

    async def _told_writes(self, name: str) -> bool:
        wall, now = self._clock.now(), self._clock.monotonic()
        erasure = self._erasures.gate.erasures[name]
        if erasure.by_hand:
            return True  # a quarantine settles by nobody's evidence: nothing is delayed
        try:
            for write in self._flights.unknown_in(erasure.predicate):
                if write.name not in self._erasures.gate.erasures[name].undrained:
                    facts = {"write": write.name, "until": wall + write.until - now}
                    await self._erasures.append([Draft(EventType.WRITE_OPENED, name, wall, facts=facts)])
        except LedgerError:
            return False
        return True

    def _beat(self) -> None:
        self._pulse.set()
        self._pulse = asyncio.Event()
