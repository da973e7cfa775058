"""What the gateway and the reconciler need from outside, and the errors those may raise.

Implementations: `ledger/*` for `Ledger`, `adapters/*` for `Upstream`, `app` for `Clock`; tests
bring a virtual clock and the embedded legacy store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from quietus.core.events import Draft, Event
from quietus.core.exchange import Headers, Reply, Request
from quietus.core.fingerprint import Mark as Mark


class Clock(Protocol):
    """The only source of time. Bounds use `monotonic`; `now` is a label and a legal date."""

    def now(self) -> float:
        """Unix seconds, UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back, counted through suspend where the system can."""

    async def sleep(self, seconds: float) -> None:
        """Wait; a virtual clock advances instead."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a ledger is. Two heads compare only when their incarnations are the same."""

    incarnation: str
    number: int
    hash: str
    gate_epoch: int


class LedgerError(Exception):
    """The ledger cannot be trusted or reached; the message says what to do about it."""


class LedgerUnavailable(LedgerError):
    """A passing fault: nothing was written. The gate stays as it is until the lease lapses."""


class LedgerFull(LedgerUnavailable):
    """Its disk is full: nothing was written, and nothing is until there is room."""


class LedgerUncertain(LedgerUnavailable):
    """Whether what was being written is there is not known; nothing is until the ledger is opened anew."""


class LedgerRefused(LedgerError):
    """Not passing: other keys, unknown schema, older than its head, broken chain."""


class LedgerBehind(LedgerRefused):
    """Older than what was seen of it, or another one: it is not believed again."""


class Conflict(LedgerError):
    """Compare-and-set failed: the erasure has moved on since the version that was given."""


class Ledger(Protocol):
    """An append-only, hash-chained log of events, with what must be forgotten kept beside it.

    `append` is atomic and durable when it returns: the events, their marks and their secrets are
    all there after a crash, or none is.
    """

    async def open(self) -> Head:
        """Opens or creates; checks schema, chain head and head file. Raises LedgerRefused."""

    async def head(self) -> Head:
        """The newest head. Raises LedgerUnavailable."""

    async def append(
        self,
        drafts: Sequence[Draft],
        *,
        expect: tuple[str, int] | None = None,
        epoch: int | None = None,
        marks: Sequence[tuple[str, Mark]] = (),
        secrets: Sequence[tuple[str, str, bytes]] = (),
        unmark: Sequence[str] = (),
    ) -> list[Event]:
        """Writes events in order. `expect` is (erasure, number of its newest event), else Conflict.

        `epoch` is the gate epoch that the writer has decided on, else Conflict; `marks` are (erasure,
        mark); `secrets` are (erasure, name, sealed bytes), replacing one of that name; `unmark` takes
        back every mark of those erasures.
        """

    def events(self, after: int = 0, erasure: str | None = None) -> AsyncIterator[Event]:
        """Events with a larger number, oldest first, of one erasure or of all."""

    def marks(self) -> AsyncIterator[tuple[str, Mark]]:
        """Every mark with its erasure."""

    async def secret(self, erasure: str, name: str) -> bytes | None:
        """The sealed bytes kept under that name, or None."""

    async def secret_names(self, erasure: str) -> list[str]:
        """The names of an erasure's secrets, sorted."""

    async def destroy_secrets(self, erasure: str) -> None:
        """Removes them beyond recovery from the database and its journal."""

    async def key_ids(self) -> frozenset[str]:
        """Ids of the keys that this ledger was written with; empty when it is new."""

    async def bind_keys(self, ids: frozenset[str]) -> None:
        """Records the ids of the keys in use, once, before the first event."""

    async def close(self) -> None:
        """Flushes and lets go."""

    @property
    def full(self) -> bool:
        """Whether its disk is full: then only what shuts the gate may still be written, or nothing."""

    @property
    def reserve_bytes(self) -> int:
        """Bytes set aside for that; 0 where there is no reserve, or it is spent."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as another replica has written it, with the marks that came with it or were taken back."""

    event: Event
    marks: tuple[tuple[str, Mark], ...] = ()
    unmark: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """A replica in the roster. `beat` grows with each renewal: whoever watches it knows that it lives."""

    session: str
    beat: int
    number: int
    """Up to this event it has read the ledger, and gates on it."""
    seconds: float
    """How long its lease is: when its beat stands still for so long it answers no more."""
    undrained: tuple[int, ...] = ()
    """Epochs of the erasures in whose scopes it has something in flight that was admitted before."""


@dataclass(frozen=True, slots=True)
class Muster:
    """What a renewal returns: the head to reach, and everybody who shares the ledger."""

    head: Head
    members: tuple[Member, ...]
    life: str
    """Names one uninterrupted life of the server; after another one a member may be missing here."""
    settled_life: str
    """The newest life of the server of which it is known that no member is missing any more."""


class Unlisted(LedgerError):
    """This replica is not in the roster (any more): it joins anew, and catches up before it answers."""


@runtime_checkable
class SharedLedger(Ledger, Protocol):
    """A ledger that several replicas write, with the roster of who they are and who works on what.

    Once a session has joined, its appends are refused as Unlisted when it was expelled, and work on an
    erasure that another session holds is refused as Conflict.
    """

    @property
    def news(self) -> asyncio.Event:
        """Set when something may have been written, or somebody renewed: a hint, never the truth."""

    async def verify(self) -> None:
        """Looks at the server's settings. Raises LedgerRefused, saying what to change."""

    async def follow(self, after: int, previous: str) -> list[Entry]:
        """The next events with their marks; `previous` is the hash of event `after` as it is known here.

        Raises LedgerRefused where they do not continue that chain.
        """

    async def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster, durably."""

    async def renew(self, session: str, number: int, undrained: Sequence[int] = ()) -> Muster:
        """Beats once, and says how far it is. Raises Unlisted."""

    async def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that; False when it has lived on."""

    async def leave(self, session: str) -> None:
        """Goes out of the roster and gives up its work."""

    async def settle_life(self, life: str) -> None:
        """Notes that every member has had the time to join anew in this life of the server."""

    async def claim(self, session: str, erasure: str) -> int:
        """The generation under which this session works on an erasure; 0 while another one does."""

    async def release(self, session: str, erasure: str) -> None:
        """Gives up the work on an erasure that is over."""


class LineageFault(Exception):
    """The lineage file cannot be read or written; the message says what to do. Nothing is gated by it."""


class LineageLog(Protocol):
    """Where the lineage lies at rest: one row of digests for each record. Raises LineageFault."""

    async def open(self, check: str, serving: bool) -> Mapping[str, Any]:
        """Opens or makes it; what it says of itself. `check` tells the keys that it was written with apart:
        one of other keys is emptied. `serving`: it counts as unclean until it is closed.
        """

    async def rows(self) -> list[tuple[bytes, bytes]]:
        """Every record: its name and its form."""

    async def newer(self) -> tuple[list[tuple[bytes, bytes]], Mapping[str, Any]]:
        """What another process has written since the last look, and what the file says of itself."""

    async def write(self, rows: Sequence[tuple[bytes, bytes]], meta: Mapping[str, Any]) -> None:
        """Writes records (an empty form removes one) and facts, all or nothing."""

    async def close(self) -> None:
        """Lets go, and says that nothing is missing."""


class UpstreamError(Exception):
    """The store gave no whole answer. `sent` is False only if no byte can have reached it."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class ReplyTooLarge(UpstreamError):
    """The answer is larger than the limit that was given; the connection is gone."""


class Permit(Protocol):
    """The proof that a forward was admitted; without one `Upstream` takes nothing."""

    @property
    def purpose(self) -> str:
        """"client", "probe", "remedy" or "forget": for metrics and for whose credentials go along."""

    @property
    def holds(self) -> bool:
        """Whether it still stands: asked once more just before the first byte goes."""


class OpenReply(Protocol):
    """An answer whose head has arrived and whose body has not been read yet."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Headers:
        """The headers as they came."""

    async def read(self, limit: int) -> Reply:
        """The whole answer. Raises ReplyTooLarge, or UpstreamError when it was cut short."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes as they arrive, framing removed. Raises UpstreamError when cut short."""

    def abort(self) -> None:
        """Drops the connection at once."""


class Upstream(Protocol):
    """The store, behind one wire. Nothing is ever sent twice, redirected or decompressed."""

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        """Sends the bytes once; returns when the head of the answer is there.

        `fresh` asks for a new connection (probes). Raises UpstreamError.
        """

    async def close(self) -> None:
        """Closes idle connections."""
