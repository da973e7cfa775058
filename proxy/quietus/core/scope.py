"""Where a call or an erasure reaches: five dimensions, each a finite set, ANY or UNKNOWN.

ANY is what a request plainly leaves open. UNKNOWN is what its profile could not read. The algebra
has a *may* and a *must*: `overlaps` restricts (may these touch?), `covers` releases (is the second
surely inside the first?). Laws, tested exhaustively on small values: covers implies overlaps;
overlaps is symmetric; covers is transitive; covers(a, b) and overlaps(b, c) imply overlaps(a, c).

Values are opaque atoms: raw strings where a profile reads them, keyed digests behind the gateway.
A path is a tuple of segments, so that `a/b` covers `a/b/c` and not `a/bc`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

Atom = str | bytes
Path = tuple[Atom, ...]


class Wild(Enum):
    """The two open values of a dimension."""

    ANY = "any"
    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return self.name


ANY: Final = Wild.ANY
UNKNOWN: Final = Wild.UNKNOWN

Values = frozenset[Atom] | Wild
Paths = frozenset[Path] | Wild

_EMPTY: Final[frozenset[Atom]] = frozenset()
DIMENSIONS: Final = ("tenant", "subject", "purpose", "path", "key")


def split_path(text: str) -> tuple[str, ...]:
    """The segments of a path written with slashes; a trailing slash is ignored."""
    return tuple(text.rstrip("/").split("/"))


@dataclass(frozen=True, slots=True)
class Scope:
    """A product of dimensions. The default is everything, plainly asked for."""

    tenant: Values = ANY
    subject: Values = ANY
    purpose: Values = ANY
    path: Paths = ANY
    key: Values = ANY

    def __post_init__(self) -> None:
        # Several are made for each row of an answer, so the name is looked up only when one is at fault.
        if _EMPTY in (self.tenant, self.subject, self.purpose, self.path, self.key):
            name = next(name for name in DIMENSIONS if getattr(self, name) == _EMPTY)
            raise ValueError(f"scope: {name} is an empty set; leave it ANY or refuse the call")

    @property
    def unknown(self) -> tuple[str, ...]:
        """The dimensions that could not be read."""
        if UNKNOWN not in (self.tenant, self.subject, self.purpose, self.path, self.key):
            return ()
        return tuple(name for name in DIMENSIONS if getattr(self, name) is UNKNOWN)

    @property
    def open(self) -> bool:
        """Whether it names nothing but a tenant: a forget of it would mean "everything"."""
        return self.subject is ANY and self.path is ANY and self.key is ANY


def overlaps(a: Scope, b: Scope) -> bool:
    """Whether `a` and `b` may touch. Symmetric; UNKNOWN touches everything."""
    return (
        _meet(a.tenant, b.tenant)
        and _meet(a.subject, b.subject)
        and _meet(a.purpose, b.purpose)
        and _meet_paths(a.path, b.path)
        and _meet(a.key, b.key)
    )


def covers(a: Scope, b: Scope) -> bool:
    """Whether `b` is surely inside `a`. Transitive; UNKNOWN covers and is covered by nothing."""
    return (
        _hold(a.tenant, b.tenant)
        and _hold(a.subject, b.subject)
        and _hold(a.purpose, b.purpose)
        and _hold_paths(a.path, b.path)
        and _hold(a.key, b.key)
    )


def holds(a: Scope, row: Scope) -> bool:
    """Whether `a` surely holds a row, whatever the row leaves unsaid in dimensions that `a` leaves open."""
    return (
        (a.tenant is ANY or _hold(a.tenant, row.tenant))
        and (a.subject is ANY or _hold(a.subject, row.subject))
        and (a.purpose is ANY or _hold(a.purpose, row.purpose))
        and (a.path is ANY or _hold_paths(a.path, row.path))
        and (a.key is ANY or _hold(a.key, row.key))
    )


def is_prefix(ancestor: Path, path: Path) -> bool:
    """Whether `path` is `ancestor` or lies below it, segment by segment."""
    return path[: len(ancestor)] == ancestor


def _meet(a: Values, b: Values) -> bool:
    if isinstance(a, Wild) or isinstance(b, Wild):
        return True
    return not a.isdisjoint(b)


def _hold(a: Values, b: Values) -> bool:
    if a is UNKNOWN or b is UNKNOWN:
        return False
    if isinstance(a, Wild):
        return True
    return not isinstance(b, Wild) and b <= a


def _meet_paths(a: Paths, b: Paths) -> bool:
    if isinstance(a, Wild) or isinstance(b, Wild):
        return True
    return any(is_prefix(p, q) or is_prefix(q, p) for p in a for q in b)


def _hold_paths(a: Paths, b: Paths) -> bool:
    if a is UNKNOWN or b is UNKNOWN:
        return False
    if isinstance(a, Wild):
        return True
    return not isinstance(b, Wild) and all(any(is_prefix(p, q) for p in a) for q in b)


def values(found: Iterable[Atom]) -> Values:
    """The set of what was found; nothing found is ANY."""
    return frozenset(found) or ANY
