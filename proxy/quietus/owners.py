"""Who a record belongs to, as far as traffic has told: learned from writes and answers that passed.

Kept in memory, digested, bounded: at the bound the oldest record is forgotten, and its owner is then what
the answer says. Lineage across records is not kept here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from quietus.core.operations import Call, Item, Operation
from quietus.core.scope import ANY, UNKNOWN, Path, Paths, Scope, Values, Wild
from quietus.core.screening import record_name
from quietus.keys import Keyring

SETS: Final = 8192
"""Digests kept as the set that a scope takes: every row of an answer has some, mostly the same."""
LENGTH: Final = 256
RECORDS: Final = 200_000
"""Records remembered; about 300 bytes each."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What is known of a record, digested. `born` is the gate epoch at which it was written, 0 if before."""

    subject: Values
    purpose: Values
    path: Paths
    born: int = 0


class Owners:
    """Records and their owners, and the digesting of scopes that goes with it."""

    def __init__(self, keyring: Keyring, bound: int = RECORDS) -> None:
        self._keyring = keyring
        self._bound = bound
        self._known: OrderedDict[bytes, Owner] = OrderedDict()
        self._one = lru_cache(maxsize=SETS)(self._fresh)

    def __len__(self) -> int:
        return len(self._known)

    def digested(self, scope: Scope) -> Scope:
        """The scope with every atom digested."""
        return self._keyring.pseudonymise(scope)

    def question_scope(self, call: Call) -> Scope:
        """A call's scope, digested; keys without a subject resolve to the owner that is known of them."""
        scope = self.digested(call.scope)
        if not isinstance(call.scope.subject, Wild) or isinstance(call.scope.key, Wild):
            return scope
        if call.operation is Operation.FORGET:
            return scope  # a forget by key never makes its subject erased
        found: set[bytes | str] = set()
        for key in call.scope.key:
            owner = self._owner(str(key), None, call)
            if owner is None or isinstance(owner.subject, Wild):
                return scope
            found |= owner.subject
        return replace(scope, subject=frozenset(found))

    def learn(self, item: Item, call: Call, scope: Scope, born: int = 0) -> None:
        """Remembers a row that passed: whose it is. A row that names nobody teaches nothing."""
        if item.key is None:
            return
        subject = self._subject(item, scope, call.operation is Operation.WRITE)
        if isinstance(subject, Wild):
            return
        name = self._name(item.key, item, call)
        known = self._known.get(name)
        if known is None and len(self._known) >= self._bound:
            self._known.popitem(last=False)
        purpose = (
            self._digest("purpose", item.purpose) if item.purpose is not None else scope.purpose
        )
        path = self._path(item, scope)
        if known is not None:
            born = born or known.born
            if (known.subject, known.purpose, known.path, known.born) == (subject, purpose, path, born):
                return
        self._known[name] = Owner(subject, purpose, path, born)

    def born(self, item: Item, call: Call) -> int:
        """The gate epoch at which a row was written, 0 where that is not known."""
        owner = self._owner(item.key, item, call) if item.key is not None else None
        return owner.born if owner is not None else 0

    def scope_of(self, item: Item, call: Call, scope: Scope, defaults: Mapping[str, str] = {}) -> Scope:
        """A row's own scope, digested: UNKNOWN where neither the row, nor its owner, nor its address says."""
        owner = self._owner(item.key, item, call) if item.key is not None else None
        subject = self._subject(item, scope, call.operation is Operation.WRITE)
        if subject is UNKNOWN and "subject" in defaults:
            subject = self._digest("subject", defaults["subject"])
        if subject is UNKNOWN and owner is not None:
            subject = owner.subject
        purpose: Values = UNKNOWN
        if item.purpose is not None:
            purpose = self._digest("purpose", item.purpose)
        elif call.operation is Operation.WRITE and not isinstance(scope.purpose, Wild):
            purpose = scope.purpose  # as with the subject: the answer's row is what the request wrote
        elif owner is not None and owner.purpose is not ANY:
            purpose = owner.purpose
        path = self._path(item, scope)
        if path is UNKNOWN and owner is not None:
            path = owner.path
        key: Values = UNKNOWN
        if item.key is not None:
            key = self._digest("key", item.key)
        tenant = scope.tenant
        if item.tenant is not None:
            tenant = self._digest("tenant", item.tenant)
        return Scope(tenant=tenant, subject=subject, purpose=purpose, path=path, key=key)

    def path_of(self, item: Item | None, call: Call) -> tuple[str, ...] | None:
        """The raw path that a record's identity is taken under: its own, else the address it came from."""
        if item is not None and item.path is not None:
            return item.path
        paths = call.scope.path
        if not isinstance(paths, Wild) and len(paths) == 1:
            return tuple(str(segment) for segment in next(iter(paths)))
        return None

    def _owner(self, key: str, item: Item | None, call: Call) -> Owner | None:
        return self._known.get(self._name(key, item, call))

    def _subject(self, item: Item, scope: Scope, from_request: bool) -> Values:
        if item.subject is not None:
            return self._digest("subject", item.subject)
        if from_request and not isinstance(scope.subject, Wild):
            return scope.subject
        return UNKNOWN

    def _path(self, item: Item, scope: Scope) -> Paths:
        if item.path is not None:
            digested: Paths = self.digested(Scope(path=frozenset({_atoms(item.path)}))).path
            return digested
        return UNKNOWN if isinstance(scope.path, Wild) else scope.path

    def _digest(self, kind: str, value: str) -> Values:
        # What is longer is nobody's usual name, and would make the memory large.
        return self._one(kind, value) if len(value) <= LENGTH else self._fresh(kind, value)

    def _fresh(self, kind: str, value: str) -> Values:
        return frozenset({self._keyring.pseudonym(kind, value)})

    def _name(self, key: str, item: Item | None, call: Call) -> bytes:
        # A key is one record's only within its tenant and its path.
        tenant = item.tenant if item is not None else None
        tenants = call.scope.tenant
        if tenant is None and not isinstance(tenants, Wild) and len(tenants) == 1:
            tenant = str(next(iter(tenants)))
        path = self.path_of(item, call)
        place = ("-" if tenant is None else f"+{tenant}", *(("-",) if path is None else ("+", *path)))
        return self._keyring.pseudonym("owner", record_name(place, key))


def _atoms(path: tuple[str, ...]) -> Path:
    return tuple(path)
