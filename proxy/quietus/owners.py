"""Who a record belongs to, as far as traffic has told: learned from writes and answers that passed.

What is known of records is the lineage's (`lineage`); here it is read and added to, row by row. What the
lineage has let go, or never knew, is then what the answer says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from quietus.core.decision import Screening
from quietus.core.gate import Gate
from quietus.core.lineage import Address, Record
from quietus.core.operations import Call, Item, Operation
from quietus.core.scope import UNKNOWN, Paths, Scope, Values, Wild
from quietus.core.screening import Screener, record_name, screen
from quietus.keys import Keyring
from quietus.lineage import Lineage

SETS: Final = 8192
"""Digests kept as the set that a scope takes: every row of an answer has some, mostly the same."""
LENGTH: Final = 256
"""Characters of the longest name, and of the longest path, whose digest is kept."""
SEGMENTS: Final = 16


class Owners:
    """Records and their owners, and the digesting of scopes that goes with it."""

    def __init__(self, keyring: Keyring, lineage: Lineage) -> None:
        self._keyring = keyring
        self.lineage = lineage
        self._one = lru_cache(maxsize=SETS)(self._fresh)
        self._placed = lru_cache(maxsize=SETS)(self._fresh_path)

    def __len__(self) -> int:
        return len(self.lineage.records)

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
        """Remembers a row that passed: whose it is, what it says, and what it was made of."""
        if item.key is None:
            return
        writes = call.operation is Operation.WRITE
        subject = self._subject(item, scope, writes)
        name = self.name(item.key, item, call)
        known = self.lineage.records.get(name)
        if isinstance(subject, Wild) and not item.derived_from and known is None:
            return  # it names nobody and leads nowhere
        purpose = self._digest("purpose", item.purpose) if item.purpose is not None else scope.purpose
        path = self._path(item, scope)
        if known is not None:
            born = born or known.born
            subject = known.subject if isinstance(subject, Wild) else subject
            # One record may be kept on two bases; that it is on one of them takes nothing from the other.
            if known.subject == subject and not isinstance(known.purpose, Wild):
                purpose = known.purpose if isinstance(purpose, Wild) else purpose | known.purpose
            same = (known.subject, known.purpose, known.path, known.born) == (subject, purpose, path, born)
            if same and not (item.derived_from or (writes and item.texts)):
                return
        tenant = self.tenant_of(item, call)
        sources = [self.lineage.link(key, tenant) for key in item.derived_from]
        address = Address(item.key, tenant, self.path_of(item, call), {**call.capture, **item.capture})
        link, place = self.lineage.link(item.key, tenant), self.tenant_digest(tenant)
        record = Record(name, link, place, subject, purpose, path, born)
        self.lineage.learn(record, item.texts, sources, address)

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
        elif owner is not None and not isinstance(owner.purpose, Wild):
            purpose = owner.purpose
            if call.recalls and not isinstance(scope.purpose, Wild):
                # It is known to be kept on the basis that is asked for: it is there on that one.
                purpose = (purpose & scope.purpose) or purpose
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

    def screened(
        self, items: Sequence[Item], scalars: Iterable[tuple[int | None, str]], *, gate: Gate,
        screener: Screener, call: Call, scope: Scope, own: str = "", written: frozenset[str] = frozenset(),
    ) -> Screening:  # fmt: skip
        """`core.screening.screen` over an answer, by what is known of whose its rows are."""
        return screen(
            items,
            scalars,
            gate=gate,
            screener=screener,
            scope=scope,
            scope_of=lambda item: self.scope_of(item, call, scope),
            paths_of=lambda item: self.path_of(item, call),
            own=own,
            newer=lambda item, erasure: erasure.before(self.born(item, call)),
            written=written,
        )

    def scope_at(self, key: str, call: Call) -> Scope | None:
        """What is known of the record of that key in a call's tenant, digested; None where nothing is."""
        owner = self._owner(key, None, call)
        if owner is None or isinstance(owner.subject, Wild):
            return None
        tenant = self.tenant_of(None, call)
        return Scope(
            tenant=UNKNOWN if tenant is None else self._digest("tenant", tenant),
            subject=owner.subject,
            purpose=owner.purpose,
            path=owner.path,
            key=self._digest("key", key),
        )

    def path_of(self, item: Item | None, call: Call) -> tuple[str, ...] | None:
        """The raw path that a record's identity is taken under: its own, else the address it came from."""
        if item is not None and item.path is not None:
            return item.path
        paths = call.scope.path
        if not isinstance(paths, Wild) and len(paths) == 1:
            return tuple(str(segment) for segment in next(iter(paths)))
        return None

    def _owner(self, key: str, item: Item | None, call: Call) -> Record | None:
        return self.lineage.records.get(self.name(key, item, call))

    def _subject(self, item: Item, scope: Scope, from_request: bool) -> Values:
        if item.subject is not None:
            return self._digest("subject", item.subject)
        if from_request and not isinstance(scope.subject, Wild):
            return scope.subject
        return UNKNOWN

    def _path(self, item: Item, scope: Scope) -> Paths:
        if item.path is not None:
            short = len(item.path) <= SEGMENTS and sum(map(len, item.path)) <= LENGTH
            return self._placed(item.path) if short else self._fresh_path(item.path)
        return UNKNOWN if isinstance(scope.path, Wild) else scope.path

    def _digest(self, kind: str, value: str) -> Values:
        # What is longer is nobody's usual name, and would make the memory large.
        return self._one(kind, value) if len(value) <= LENGTH else self._fresh(kind, value)

    def _fresh(self, kind: str, value: str) -> Values:
        return frozenset({self._keyring.pseudonym(kind, value)})

    def _fresh_path(self, path: tuple[str, ...]) -> Paths:
        return frozenset({self._keyring.pseudonymise_path(path)})

    def tenant_of(self, item: Item | None, call: Call) -> str | None:
        """The raw tenant that a record lies in; None where neither it nor its address names one."""
        if item is not None and item.tenant is not None:
            return item.tenant
        tenants = call.scope.tenant
        return str(next(iter(tenants))) if not isinstance(tenants, Wild) and len(tenants) == 1 else None

    def tenant_digest(self, tenant: str | None) -> bytes:
        """The tenant as a record has it."""
        return b"" if tenant is None else self._keyring.pseudonym("tenant", tenant)

    def name(self, key: str, item: Item | None, call: Call) -> bytes:
        """The digest that a record is known by: a key is one record's only within its tenant and its path."""
        tenant = self.tenant_of(item, call)
        path = self.path_of(item, call)
        place = ("-" if tenant is None else f"+{tenant}", *(("-",) if path is None else ("+", *path)))
        return self._keyring.pseudonym("owner", record_name(place, key))


def written(call: Call, answered: Iterable[Item]) -> tuple[Item, ...]:
    """The rows of a write with what the request said of each: the answer mostly names no more than a key."""
    asked, rows = call.items, tuple(answered)
    if not asked:
        keyed = rows
        if not rows and not isinstance(call.scope.key, Wild):
            keyed = tuple(Item(-1, key=str(key)) for key in call.scope.key)
        return tuple(_with(row, call.texts, call.derived_from) for row in keyed)
    by_key = {item.key: item for item in asked if item.key is not None}
    paired = []
    for place, row in enumerate(rows):
        same = by_key.get(row.key or "") or (asked[place] if len(asked) == len(rows) else None)
        if same is not None:
            row = replace(row, subject=row.subject if row.subject is not None else same.subject)
            paired.append(_with(row, same.texts, same.derived_from))
        else:  # which row it was is not known: it may have any of the sources
            every = tuple(dict.fromkeys(key for item in asked for key in item.derived_from))
            paired.append(_with(row, (), every))
    given = {row.key for row in rows}
    return (*paired, *(item for item in asked if item.key is not None and item.key not in given))


def _with(row: Item, texts: tuple[str, ...], sources: tuple[str, ...]) -> Item:
    if not texts and not sources:
        return row
    every = tuple(dict.fromkeys((*row.derived_from, *sources)))
    return replace(row, texts=row.texts or texts, derived_from=every)
