"""The live set of erasures: the ledger, the gate folded from it, and the keys, in one place.

Everything that changes an erasure goes through `append`: durable in the ledger first, then folded into the
gate, then told to the listeners. The gate is shut until `load` has read the whole ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from sys import intern

from quietus.core.erasure import Erasure
from quietus.core.events import Draft, Event
from quietus.core.fingerprint import Mark
from quietus.core.gate import INTENTS, Gate
from quietus.core.marks import Loading
from quietus.keys import Keyring, SealKey
from quietus.patience import within
from quietus.ports import (
    Clock,
    Conflict,
    Head,
    Ledger,
    LedgerError,
    LedgerRefused,
    LedgerUncertain,
    SharedLedger,
)
from quietus.shelf import Shelf

KEY_SECRET = "key"
"""The name under which an erasure's own wrapped key lies beside its secrets."""
SHORT = 100
"""A page of the ledger that has fewer entries is its last one."""

Listener = Callable[[Erasure, Event], None]
OrderListener = Callable[[Event], None]


@dataclass(slots=True)
class _Waiters:
    events: dict[str, asyncio.Event] = field(default_factory=dict)

    def of(self, erasure: str) -> asyncio.Event:
        return self.events.setdefault(erasure, asyncio.Event())

    def wake(self, erasure: str) -> None:
        waiting = self.events.pop(erasure, None)
        if waiting is not None:
            waiting.set()


class Erasures:
    """Reads and changes erasures. One event loop owns it."""

    def __init__(
        self, ledger: Ledger, keyring: Keyring, clock: Clock, store: str,
        took: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`took` is told how long each append to the ledger took, in seconds."""
        self.ledger = ledger
        self.keyring = keyring
        self.clock = clock
        self.store = store
        self._took = took
        self.shelf = Shelf()
        self.gate = Gate(self.shelf)
        self.loaded = False
        self._cause: str | None = "loading"
        self.shared = ledger if isinstance(ledger, SharedLedger) else None
        """The ledger, where other replicas write it too."""
        self.lapses_at: float | None = None
        """The monotonic second at which this replica may no longer answer; None: it is the only one."""
        self.number = 0
        self.hash = ""
        """The hash of the newest event that is folded in: what follows continues it."""
        self._following = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._order_listeners: list[OrderListener] = []
        self._fences: list[Callable[[Erasure], None]] = []
        self._waiters = _Waiters()
        self._keys: dict[str, SealKey] = {}

    async def load(self) -> Head:
        """Opens the ledger and folds all of it. Raises LedgerRefused; the gate then stays shut."""
        try:
            head = await self.ledger.open()
            known = await self.ledger.key_ids()
            if known and known != self.keyring.ids:
                raise LedgerRefused(
                    "the ledger was written with other keys: give the keys file that belongs to it; "
                    "without it nothing that it holds can be recognised, and the gate stays shut"
                )
            if not known:
                await self.ledger.bind_keys(self.keyring.ids)
            async for event in self.ledger.events():
                self.gate.apply(event)
                self.number, self.hash = event.number, event.hash
            marks = Loading(self.gate.marks)
            async for erasure, mark in self.ledger.marks():
                marks.take(intern(erasure), mark)
            marks.done()
            self.gate.generation += 1
        except LedgerError:
            self.closed_cause = "ledger"
            raise
        self.loaded, self.closed_cause = True, None
        return head

    @property
    def lapsed(self) -> bool:
        """Whether other replicas may have gone on without this one."""
        return self.lapses_at is not None and self.clock.monotonic() >= self.lapses_at

    @property
    def closed_cause(self) -> str | None:
        """Why the gate is shut for everything, or None. A cause is a word of `quietus_gate_closed`."""
        return "lease" if self._cause is None and self.lapsed else self._cause

    @closed_cause.setter
    def closed_cause(self, cause: str | None) -> None:
        self._cause = cause

    def listen(self, listener: Listener) -> None:
        """Calls `listener` after each change, in the order of the ledger."""
        self._listeners.append(listener)

    def on_order(self, listener: OrderListener) -> None:
        """Calls `listener` after each event that belongs to no erasure: holds, overrides, their ends."""
        self._order_listeners.append(listener)

    def on_fence(self, fence: Callable[[Erasure], None]) -> None:
        """Calls `fence` when an intent is about to be written, before it can be durable."""
        self._fences.append(fence)

    def get(self, erasure: str) -> Erasure | None:
        """The erasure of that id as it stands, or None."""
        return self.gate.erasures.get(erasure)

    def all(self) -> Iterable[Erasure]:
        """Every erasure, oldest first."""
        return (erasure for erasure in self.gate.erasures.values() if not erasure.by_hand)

    def quarantines(self) -> list[Erasure]:
        """The scopes that people have quarantined and not lifted, oldest first."""
        return [erasure for erasure in self.shelf.awake() if erasure.by_hand and erasure.unsettled]

    async def append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: Erasure | None = None,
        epoch: int | None = None,
        marks: Sequence[tuple[str, Mark]] = (),
        secrets: Sequence[tuple[str, str, bytes]] = (),
        unmark: Sequence[str] = (),
    ) -> list[Event]:
        """Writes and folds. `expect` and `epoch` are compared and set on: raises Conflict if one moved on."""
        if expect is not None and not expect.version:
            # Only proposed: if its intent is never written, this would be the first that is heard of it.
            raise Conflict("the erasure is only being asked for: nothing can be written of it yet")
        if expect is not None and self.gate.erasures[expect.id].version != expect.version:
            raise Conflict(f"the erasure has moved on since version {expect.version}")
        proposed = [self._propose(draft) for draft in drafts if draft.type in INTENTS]
        work = asyncio.ensure_future(self._write(drafts, expect, epoch, marks, secrets, unmark, proposed))
        # What is written must be folded in, also when the caller is cancelled in between.
        return await asyncio.shield(work)

    async def _write(
        self,
        drafts: Sequence[Draft],
        expect: Erasure | None,
        epoch: int | None,
        marks: Sequence[tuple[str, Mark]],
        secrets: Sequence[tuple[str, str, bytes]],
        unmark: Sequence[str],
        proposed: Sequence[str],
    ) -> list[Event]:
        began = self.clock.monotonic()
        try:
            seen = (expect.id, expect.version) if expect is not None else None
            events = await self.ledger.append(
                drafts, expect=seen, epoch=epoch, marks=marks, secrets=secrets, unmark=unmark
            )
        except LedgerUncertain:
            self.closed_cause = "ledger"  # an intent may be durable: nothing goes through until a restart
            raise
        except BaseException:
            for name in proposed:
                if (found := self.get(name)) is not None and not found.version:
                    self.gate.withdraw(name)  # else it was written, and has been followed
            raise
        self._took(self.clock.monotonic() - began)
        if self.shared is not None and events and events[0].number != self.number + 1:
            await self.catch_up(events[-1].number)
        else:
            self._fold(events, marks, unmark)
        return events

    async def catch_up(self, to: int | None = None) -> None:
        """Folds in what others have written, to an event at least or to the end. Raises LedgerError."""
        assert self.shared is not None
        async with self._following:
            while to is None or self.number < to:
                entries = await self.shared.follow(self.number, self.hash)
                for entry in entries:
                    if entry.event.number == self.number + 1:  # what was written here may be folded already
                        self._fold([entry.event], entry.marks, entry.unmark)
                if not entries or (to is None and len(entries) < SHORT):
                    return

    def _propose(self, draft: Draft) -> str:
        # An intent is durable some instant before we hear of it: the gate is shut before it can be.
        event = Event(0, draft.type, draft.erasure, draft.at, draft.actor, draft.facts, draft.gate, "")
        proposed = self.gate.propose(event)
        for fence in self._fences:
            fence(proposed)
        return proposed.id

    def _fold(
        self, events: Sequence[Event], marks: Sequence[tuple[str, Mark]], unmark: Sequence[str]
    ) -> None:
        by_erasure: dict[str, list[Mark]] = {}
        for erasure, mark in marks:
            by_erasure.setdefault(erasure, []).append(mark)
        for erasure, its in by_erasure.items():
            self.gate.mark(erasure, its)
        for name in unmark:
            self.gate.unmark(name)
        for event in events:
            if event.number > self.number:
                self.number, self.hash = event.number, event.hash
            changed = self.gate.apply(event)
            if changed is None:
                for told in self._order_listeners:
                    told(event)
                continue
            for listener in self._listeners:
                listener(changed, event)
            self._waiters.wake(changed.id)

    async def changed(self, erasure: str, seconds: float) -> bool:
        """Waits for the next change of an erasure; False when none came in time."""
        return await within(self.clock, self._waiters.of(erasure), seconds)

    async def settled(self, erasure: str, seconds: float) -> Erasure:
        """Waits until an erasure is no longer unsettled, or the seconds have passed."""
        until = self.clock.monotonic() + seconds
        while (found := self.gate.erasures[erasure]).unsettled:
            left = until - self.clock.monotonic()
            if left <= 0 or not await self.changed(erasure, left):
                break
        return self.gate.erasures.get(erasure, found)

    def events(self, erasure: str | None = None, after: int = 0) -> AsyncIterator[Event]:
        """The events of one erasure, or of the whole ledger, oldest first."""
        return self.ledger.events(after=after, erasure=erasure)

    # --- what probes need in clear, sealed under the erasure's own key ---------------------------

    def new_key(self, erasure: str) -> tuple[str, str, bytes]:
        """Makes the erasure's own key; returns the secret to append with its first event."""
        key, wrapped = self.keyring.new_erasure_key()
        self._keys[erasure] = key
        return erasure, KEY_SECRET, wrapped

    def seal(self, erasure: str, name: str, plain: bytes) -> tuple[str, str, bytes]:
        """A secret to append. The erasure's key must be known (`new_key` or `unseal`)."""
        return erasure, name, self._keys[erasure].seal(name, plain)

    async def unseal(self, erasure: str, name: str) -> bytes | None:
        """The clear bytes kept under that name, or None when there are none (any more)."""
        key = self._keys.get(erasure)
        if key is None:
            wrapped = await self.ledger.secret(erasure, KEY_SECRET)
            if wrapped is None:
                return None
            key = self._keys[erasure] = self.keyring.unwrap(wrapped)
        sealed = await self.ledger.secret(erasure, name)
        return None if sealed is None else key.open(name, sealed)

    async def destroy(self, erasure: str) -> None:
        """Destroys the erasure's key and everything that was sealed under it."""
        self._keys.pop(erasure, None)
        await self.ledger.destroy_secrets(erasure)

    def drop_key(self, erasure: str) -> None:
        """Forgets the key here; who works on the erasure destroys it."""
        self._keys.pop(erasure, None)
