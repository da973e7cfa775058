"""The erasures in memory: those that rest are folded small, and unfolded when somebody asks for one.

Of a settled erasure a decision mostly reads nothing: its index and its marks are looked through, and only
what they find is asked for. It is therefore kept as one short value: what it has of its own, and the number
of a *mould* that it shares with those that went the same way. Unfolded it is the same erasure again, field
by field, but for the anchor of its marks, which is the ledger's. What cannot be folded is kept as it is.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, MutableMapping
from dataclasses import astuple, fields
from operator import attrgetter
from sys import intern
from typing import Any, Final

from quietus.core.dossier import Dossier
from quietus.core.erasure import Erasure
from quietus.core.scope import DIMENSIONS, Scope, Wild

MOULDS: Final = 4096
"""Moulds at most: an erasure that fits none of them after that is kept as it is."""
SAID: Final = 4096
"""Things said of many erasures that are kept once: what a store claims, what a round found."""
UNFOLDED: Final = 1024
"""Erasures that are kept unfolded beside, because they were asked for; at the bound the oldest goes."""
ANCHOR: Final = "ledger"
"""The fact by which a ledger vouches for the marks of an event: whoever verifies it reads it there."""

_EVERY: Final = tuple(field.name for field in fields(Erasure))
_OWN: Final = (
    "epoch", "version", "base_version", "streak_base", "requested_at", "bound_at", "acknowledged_at",
    "settled_at", "store_epoch", "read_epoch", "first_leak_at", "last_leak_at", "readmitted_at", "remedies",
    "client_calls", "actor",
)  # fmt: skip
"""What hardly two erasures have alike, as it is."""
_APART: Final = ("id", "predicate", "dossier", "claim", "tokens", "snapshot", "surfaces", "undrained")
_SHARED: Final = tuple(name for name in _EVERY if name not in _OWN and name not in _APART)
_own: Final = attrgetter(*_OWN)
_shared: Final = attrgetter(*_SHARED)
_scope: Final = attrgetter(*DIMENSIONS)
_NOBODYS: Final = Dossier()
_WILDS: Final = tuple(Wild)
_SETTLED_AT: Final = _OWN.index("settled_at")
_PLACES: Final = [_EVERY.index(name) for name in _OWN]
_ID, _PREDICATE, _DOSSIER, _CLAIM, _TOKENS, _SNAPSHOT, _SURFACES, _UNDRAINED = map(_EVERY.index, _APART)


class Shelf(MutableMapping[str, Erasure]):
    """Erasures by id, oldest first. One event loop owns it."""

    def __init__(self) -> None:
        self.names_epochs = False
        """Whether the store has ever named an epoch for an erasure."""
        self._held: dict[str, Erasure | bytes] = {}
        self._awake: dict[str, None] = {}
        self._unfolded: dict[str, Erasure] = {}
        self._moulds: list[list[Any]] = []
        self._mould_numbers: dict[tuple[Any, ...], int] = {}
        self._said: list[bytes] = []
        self._said_numbers: dict[bytes, int] = {}

    def __getitem__(self, name: str) -> Erasure:
        held = self._held[name]
        if not isinstance(held, bytes):
            return held
        found = self._unfolded.get(name)
        if found is None:
            if len(self._unfolded) >= UNFOLDED:
                self._unfolded.pop(next(iter(self._unfolded)))
            found = self._unfolded[name] = self._unfold(name, marshal.loads(held))
        return found

    def __setitem__(self, name: str, erasure: Erasure) -> None:
        name = intern(name)  # index, marks and gauges hold the same one
        folded = None if erasure.unsettled or erasure.by_hand else self._fold(erasure)
        self._held[name] = erasure if folded is None else folded
        self._unfolded.pop(name, None)
        if folded is None:
            self._awake[name] = None
        else:
            self._awake.pop(name, None)
        self.names_epochs = self.names_epochs or erasure.store_epoch is not None

    def __delitem__(self, name: str) -> None:
        del self._held[name]
        self._awake.pop(name, None)
        self._unfolded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def awake(self) -> list[Erasure]:
        """Those that are not folded: every unsettled one, and some others."""
        return [self[name] for name in self._awake]

    def newest_first(self) -> Iterator[Erasure]:
        """All of them the other way round; each is unfolded when its turn comes."""
        return (self[name] for name in reversed(self._held))

    def settled_before(self, at: float) -> Iterator[Erasure]:
        """Those that may have been settled by a Unix second, without unfolding the others."""
        for name, held in list(self._held.items()):
            if not isinstance(held, bytes):
                yield held
                continue
            row = marshal.loads(held)
            settled_at = row[1][_SETTLED_AT]
            if settled_at is not None and settled_at <= at:
                yield self._unfold(name, row)

    # --- folding -------------------------------------------------------------------------------

    def _fold(self, erasure: Erasure) -> bytes | None:
        """None where it cannot be folded without loss."""
        shared = _shared(erasure)
        number = self._mould_numbers.get(shared)
        if number is None:
            if len(self._moulds) >= MOULDS:
                return None
            number = self._mould_numbers[shared] = len(self._moulds)
            mould = dict(zip(_SHARED, shared, strict=True))
            self._moulds.append([mould.get(name) for name in _EVERY])
        snapshot = {name: fact for name, fact in erasure.snapshot.items() if name != ANCHOR}
        dossier = None if erasure.dossier == _NOBODYS else astuple(erasure.dossier)
        try:
            return marshal.dumps((
                number, _own(erasure), tuple(map(_put, _scope(erasure.predicate))), dossier,
                self._once((dict(erasure.claim), erasure.tokens)),
                self._once((snapshot, tuple(map(dict, erasure.surfaces)), dict(erasure.undrained))),
            ))  # fmt: skip
        except ValueError:
            return None  # a fact that is no plain value

    def _once(self, said: tuple[Any, ...]) -> int | bytes:
        """The number under which it is kept, or itself as bytes where no more are kept."""
        plain = marshal.dumps(said, 2)  # this form is the same for the same values
        number = self._said_numbers.get(plain)
        if number is None:
            if len(self._said) >= SAID:
                return plain
            number = self._said_numbers[plain] = len(self._said)
            self._said.append(plain)
        return number

    def _again(self, said: int | bytes) -> Any:
        return marshal.loads(said if isinstance(said, bytes) else self._said[said])

    def _unfold(self, name: str, row: tuple[Any, ...]) -> Erasure:
        number, own, scope, dossier, answered, seen = row
        values = self._moulds[number].copy()
        for place, value in zip(_PLACES, own, strict=True):
            values[place] = value
        values[_ID] = intern(name)
        values[_PREDICATE] = Scope(*map(_taken, scope))
        values[_DOSSIER] = _NOBODYS if dossier is None else Dossier(*dossier)
        values[_CLAIM], values[_TOKENS] = self._again(answered)
        values[_SNAPSHOT], values[_SURFACES], values[_UNDRAINED] = self._again(seen)
        return Erasure(*values)


def _put(values: Any) -> Any:
    """A dimension as a plain value; most are ANY, or one digest."""
    if isinstance(values, Wild):
        return _WILDS.index(values)
    return next(iter(values)) if len(values) == 1 else values


def _taken(values: Any) -> Any:
    """The inverse of `_put`."""
    if isinstance(values, int):
        return _WILDS[values]
    return values if isinstance(values, frozenset) else frozenset((values,))
