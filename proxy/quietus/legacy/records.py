"""What the legacy store keeps: records, the rows they are shown as, and predicates over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from quietus.core.scope import is_prefix, split_path
from quietus.legacy.embedding import Vector, content_hash, embed, to_dense


@dataclass(slots=True, eq=False)
class Record:
    """One memory. `uid` is the store's own and never used twice; `key` is what clients see."""

    uid: int
    key: str
    value: str
    tenant: str | None = None
    subject: str | None = None
    purpose: str | None = None
    scope: str | None = None
    derived_from: tuple[str, ...] = ()
    salience: float | None = None
    created_at: float = 0.0
    expires_at: float | None = None
    """On the monotonic clock; None: never."""
    vector: Vector = ()
    digest: str = ""
    queries: list[str] = field(default_factory=list)
    broken: bool = False
    """A record that it was derived from is gone."""

    def __post_init__(self) -> None:
        self.vector = self.vector or embed(self.value)
        self.digest = self.digest or content_hash(self.value)

    @property
    def place(self) -> tuple[str | None, str]:
        """What identifies it to clients: a key is unique within its tenant."""
        return self.tenant, self.key


def row(
    record: Record, *, score: float | None = None, vectors: bool = False, broken: Any = False
) -> dict[str, Any]:
    """The record as an answer shows it. `broken` is what `provenance_resolved` says of a broken one."""
    shown: dict[str, Any] = {
        "key": record.key,
        "value": record.value,
        "subject": record.subject,
        "purpose": record.purpose,
        "scope": record.scope,
        "tenant": record.tenant,
        "derived_from": list(record.derived_from),
        "created_at": record.created_at,
    }
    if record.derived_from:
        shown["provenance_resolved"] = broken if record.broken else True
    if record.salience is not None:
        shown["salience"] = record.salience
    if record.queries:
        shown["queries"] = list(record.queries)
    if score is not None:
        shown["score"] = round(score, 6)
    if vectors:
        shown["vector"] = to_dense(record.vector)
    return shown


@dataclass(frozen=True, slots=True)
class Predicate:
    """Which records a request is about. None leaves a dimension open."""

    tenant: str | None = None
    subject: str | None = None
    keys: frozenset[str] | None = None
    scope: str | None = None
    purposes: frozenset[str] | None = None

    @property
    def open(self) -> bool:
        """Whether it names nothing but a tenant."""
        return self.subject is None and self.keys is None and self.scope is None

    def matches(self, record: Record, *, prefixes: bool = False, fold: bool = False) -> bool:
        """Whether it is about `record`; `prefixes` compares by text prefix, `fold` without case."""
        if self.tenant is not None and record.tenant != self.tenant:
            return False
        if self.keys is not None and record.key not in self.keys:
            return False
        if self.purposes is not None and record.purpose not in self.purposes:
            return False
        if self.subject is not None and not _same(self.subject, record.subject, prefixes, fold):
            return False
        return self.scope is None or below(self.scope, record.scope, prefixes=prefixes)


def below(scope: str, path: str | None, *, prefixes: bool = False) -> bool:
    """Whether `path` is `scope` or lies below it: by segments, or (a fault) by text prefix."""
    if path is None:
        return False
    if prefixes:
        return path.startswith(scope.rstrip("/"))
    return is_prefix(split_path(scope), split_path(path))


def _same(wanted: str, subject: str | None, prefixes: bool, fold: bool) -> bool:
    if subject is None:
        return False
    if fold:
        return subject.casefold() == wanted.casefold()
    return subject.startswith(wanted) if prefixes else subject == wanted
