"""The server that carries a shared ledger, in memory: what Valkey's scripts and PostgreSQL's transactions do.

Each method of `LedgerServer` is one indivisible step; `served` is what a replica asks for them with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from quietus.core.events import Event
from quietus.core.fingerprint import Mark
from quietus.ledger.chain import Row, Stored, event_of, genesis
from quietus.ledger.plan import Plan, Standing
from quietus.ports import Head, LedgerUnavailable, Member, Muster

FULL: Final = "the disk of the ledger's server is full; nothing was written"


class LedgerServer:
    """One ledger with its roster. What was written survives every replica, and its own restarts."""

    def __init__(self, incarnation: str) -> None:
        self._head = Head(incarnation, 0, genesis(incarnation, ()).hex(), 0)
        self._key_ids: frozenset[str] = frozenset()
        self._rows: list[Row] = []
        self._newest: dict[str, int] = {}
        self._marks: dict[str, dict[int, list[Mark]]] = {}
        self._secrets: dict[str, dict[str, bytes]] = {}
        self._work: dict[str, tuple[int, str]] = {}
        self._lives = 1
        self._settled_life = "life-1"
        self._listeners: list[Callable[[], None]] = []
        self.members: dict[str, Member] = {}
        self.full = False
        """While set, nothing can be appended."""
        self.steps = 0
        """How often it was asked."""
        self.committed: Callable[[Sequence[Event]], None] = lambda events: None
        self.expelled: Callable[[str], None] = lambda session: None

    @property
    def life(self) -> str:
        """Names the life that it lives."""
        return f"life-{self._lives}"

    @property
    def number(self) -> int:
        """The number of its newest event."""
        return self._head.number

    def events(self) -> list[Event]:
        """All that was written."""
        return [event_of(row) for row in self._rows]

    def restart(self, lost: Sequence[str]) -> None:
        """Begins another life, in which it does not know of these sessions any more."""
        self._lives += 1
        for session in lost:
            self.members.pop(session, None)
            self.expelled(session)

    def subscribe(self, hint: Callable[[], None]) -> Callable[[], None]:
        """Gives hints from now on; what is returned ends that."""
        self._listeners.append(hint)
        return lambda: self._listeners.remove(hint)

    def _publish(self) -> None:
        for hint in list(self._listeners):
            hint()

    # --- events --------------------------------------------------------------------------------

    def standing(self, erasures: Sequence[str]) -> Standing:
        """How the ledger stands."""
        self.steps += 1
        return Standing(self._head, self._key_ids, {name: self._newest.get(name, 0) for name in erasures})

    def write(self, made: Plan, session: str | None) -> str:
        """Writes a plan whole, or says why nothing was written."""
        self.steps += 1
        if (made.before.number, made.before.hash) != (self._head.number, self._head.hash):
            return "moved"
        if session is not None and session not in self.members:
            return "unlisted"
        if any(self._work.get(name) != (generation, session) for name, generation in made.fences):
            return "fenced"
        if self.full:
            raise LedgerUnavailable(FULL)
        if session is not None:
            self._work.update((name, (1, session)) for name in made.claims)
        self._rows += made.rows
        self._newest.update((row.erasure, row.number) for row in made.rows)
        for name in made.unmark:
            self._marks.pop(name, None)
        for (name, number), its in made.marks.items():
            self._marks.setdefault(name, {})[number] = list(its)
        for (name, secret), sealed in made.secrets.items():
            self._secrets.setdefault(name, {})[secret] = sealed
        self._head = made.after
        self.committed([event_of(row) for row in made.rows])
        self._publish()
        return ""

    def rows(self, after: int, limit: int) -> list[Stored]:
        """Events with a larger number, oldest first."""
        self.steps += 1
        return list(self._rows[max(after, 0) : max(after, 0) + limit])

    def rows_of(self, erasure: str, after: int, limit: int) -> list[tuple[Stored, bytes | None]]:
        """The same of one erasure, each with the hash of the event before it."""
        self.steps += 1
        found = [row for row in self._rows[max(after, 0) :] if row.erasure == erasure][:limit]
        return [(row, self._rows[row.number - 2].hash if row.number > 1 else None) for row in found]

    def marked(self) -> list[str]:
        """The erasures that have marks."""
        self.steps += 1
        return list(self._marks)

    def marks_of(self, places: Sequence[tuple[str, int | None]]) -> list[list[Mark]]:
        """The marks of each erasure, all or those of one event."""
        self.steps += 1
        return [
            [mark for at, its in self._marks.get(name, {}).items() if number in (None, at) for mark in its]
            for name, number in places
        ]

    # --- secrets and keys ----------------------------------------------------------------------

    def secrets(self, erasure: str) -> dict[str, bytes]:
        """Sealed bytes by name."""
        self.steps += 1
        return self._secrets.get(erasure, {})

    def destroy(self, erasure: str) -> None:
        """Removes them."""
        self.steps += 1
        self._secrets.pop(erasure, None)

    def bind(self, was: Head, ids: frozenset[str], first: bytes) -> bool:
        """Binds keys to a ledger without events; False when it has moved on."""
        self.steps += 1
        if self._head.number or self._key_ids or was.hash != self._head.hash:
            return False
        self._key_ids, self._head = ids, replace(self._head, hash=first.hex())
        return True

    # --- the roster ----------------------------------------------------------------------------

    def _muster(self) -> Muster:
        return Muster(self._head, tuple(self.members.values()), self.life, self._settled_life)

    def join(self, session: str, seconds: float) -> Muster:
        """Enters the roster."""
        self.steps += 1
        self.members[session] = Member(session, 1, 0, seconds)
        self._publish()
        return self._muster()

    def renew(self, session: str, number: int, undrained: Sequence[int]) -> Muster | None:
        """Beats once; None when the session is not in the roster."""
        self.steps += 1
        was = self.members.get(session)
        if was is None:
            return None
        now = replace(was, beat=was.beat + 1, number=number, undrained=tuple(undrained))
        self.members[session] = now
        if (was.number, was.undrained) != (now.number, now.undrained):
            self._publish()
        return self._muster()

    def expel(self, session: str, beat: int) -> bool:
        """Takes a member out whose beat still is that."""
        self.steps += 1
        was = self.members.get(session)
        if was is not None and was.beat != beat:
            return False
        self._gone(session)
        return True

    def leave(self, session: str) -> None:
        """Goes out of the roster; work of a session that is not in it is free to be taken."""
        self.steps += 1
        self._gone(session)

    def _gone(self, session: str) -> None:
        if self.members.pop(session, None) is not None:
            self.expelled(session)
        self._publish()

    def settle_life(self, life: str) -> None:
        """Notes a life in which everybody has joined anew."""
        self.steps += 1
        self._settled_life = life

    def claim(self, session: str, erasure: str) -> int:
        """The generation, 0 when it is another's, -1 when the session is not in the roster."""
        self.steps += 1
        if session not in self.members:
            return -1
        generation, holder = self._work.get(erasure, (0, ""))
        if holder == session:
            return generation
        if holder in self.members:
            return 0
        self._work[erasure] = (generation + 1, session)
        return generation + 1

    def release(self, session: str, erasure: str) -> None:
        """Gives up a work."""
        self.steps += 1
        if self._work.get(erasure, (0, ""))[1] == session:
            del self._work[erasure]
