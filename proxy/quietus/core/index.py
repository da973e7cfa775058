"""Finding the erasures that a scope may touch, without walking them all.

Every erasure of a finite subject stands under its subjects, one of finite keys under its keys, and the
unsettled ones also in a trie of paths, by tenant, grouped by *class* (state, shape, tenant, purpose).
Members of a class lie alike to a wide call, so one of each speaks for all. To a call that leaves the tenant
open those of all tenants lie alike, and stand together once more under SOME. A look-up costs the number of
classes in the call's tenants and the depth of the path, not the number of erasures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from quietus.core.erasure import Erasure
from quietus.core.scope import ANY, Atom, Path, Paths, Scope, Values, Wild

Names = dict[str, None]
Held = Names | str
"""The names under one subject or key: a single one, which nearly all are, stands by itself."""
Class = tuple[str, bool, bool, bool, Values, Values]
_K = TypeVar("_K")
Tenancy = Atom | Wild
"""A tenant, ANY for the erasures that leave it open, or SOME for all those that name one."""
SOME: Final = Wild.UNKNOWN
Groups = dict[Tenancy, dict[Class, Names]]


def class_of(erasure: Erasure) -> Class:
    """What makes two erasures lie alike to a wide call."""
    scope = erasure.predicate
    return (
        erasure.state.value,
        erasure.readmitted,
        not isinstance(scope.subject, Wild),
        not isinstance(scope.key, Wild),
        scope.tenant,
        scope.purpose,
    )


@dataclass(slots=True)
class _Node:
    at: Groups = field(default_factory=dict)
    below: Groups = field(default_factory=dict)


class Index:
    """Names of erasures by subject, key, path and tenant."""

    def __init__(self) -> None:
        self._nodes: dict[Path, _Node] = {}
        self._subjects: dict[Atom, Held] = {}
        self._keys: dict[Atom, Held] = {}
        self._tenants: dict[Atom | None, int] = {}
        self.unsettled = 0

    def add(self, erasure: Erasure) -> None:
        """Enters a tombstoned erasure; one that left no tombstone is not indexed."""
        self._change(erasure, 1)

    def remove(self, erasure: Erasure) -> None:
        """Takes it out again, as it stood when it was entered."""
        self._change(erasure, -1)

    def of_subjects(self, subjects: Values) -> Names:
        """Erasures that name one of these subjects."""
        if isinstance(subjects, Wild):
            return {}
        return _under(self._subjects, subjects)

    def of_keys(self, keys: Values) -> Names:
        """Erasures that name one of these keys, whoever's they are."""
        if isinstance(keys, Wild):
            return {}
        return _under(self._keys, keys)

    def candidates(self, scope: Scope, but: str = "") -> Names:
        """Every erasure that names the scope's subject or key, and one of each class that may touch it.

        One named `but` never speaks for its class.
        """
        found = {**self.of_subjects(scope.subject), **self.of_keys(scope.key)}
        exact_subject = not isinstance(scope.subject, Wild)
        exact_key = not isinstance(scope.key, Wild)
        many_paths = not isinstance(scope.path, Wild) and len(scope.path) > 1
        for groups in self._groups(scope):
            for kind, members in groups.items():
                has_subject, has_key = kind[2], kind[3]
                if (has_subject and exact_subject) or (has_key and exact_key):
                    continue  # found exactly above
                if many_paths and not has_subject and not has_key:
                    found.update(members)  # which of the paths each of them covers differs
                elif (one := next((name for name in members if name != but), None)) is not None:
                    found[one] = None
        found.pop(but, None)
        return found

    def holding(self, predicate: Scope) -> Names:
        """Erasures that may cover all of `predicate`."""
        found = {**self.of_subjects(predicate.subject), **self.of_keys(predicate.key)}
        for node in self._ancestors(predicate.path):
            for tenancy in _tenancies(predicate.tenant):
                for kind, members in node.at.get(tenancy, {}).items():
                    if not kind[2] and not kind[3]:
                        found.update(members)
        return found

    def in_tenant(self, tenant: Values) -> bool:
        """Whether any tombstoned erasure may stand in this tenant."""
        if isinstance(tenant, Wild):
            return bool(self._tenants)
        return None in self._tenants or any(atom in self._tenants for atom in tenant)

    def _groups(self, scope: Scope) -> Iterator[dict[Class, Names]]:
        tenancies = _tenancies(scope.tenant)
        for node in self._ancestors(scope.path):
            yield from (node.at[tenancy] for tenancy in tenancies if tenancy in node.at)
        for path in [()] if isinstance(scope.path, Wild) else scope.path:
            node_at = self._nodes.get(path)
            if node_at:
                yield from (node_at.below[tenancy] for tenancy in tenancies if tenancy in node_at.below)

    def _ancestors(self, paths: Paths) -> Iterator[_Node]:
        spots: set[Path] = {()}
        if not isinstance(paths, Wild):
            spots |= {path[:depth] for path in paths for depth in range(1, len(path) + 1)}
        for spot in spots:
            node = self._nodes.get(spot)
            if node:
                yield node

    def _change(self, erasure: Erasure, by: int) -> None:
        if not erasure.tombstoned:
            return
        scope = erasure.predicate
        self.unsettled += by * erasure.unsettled
        for tenant in [None] if isinstance(scope.tenant, Wild) else scope.tenant:
            self._tenants[tenant] = self._tenants.get(tenant, 0) + by
            if not self._tenants[tenant]:
                del self._tenants[tenant]
        for subject in () if isinstance(scope.subject, Wild) else scope.subject:
            _hold(self._subjects, subject, erasure.id, by)
        for key in () if isinstance(scope.key, Wild) else scope.key:
            _hold(self._keys, key, erasure.id, by)
        elsewhere = not (isinstance(scope.subject, Wild) and isinstance(scope.key, Wild))
        if erasure.unsettled or not elsewhere:
            self._change_paths(erasure, by)

    def _change_paths(self, erasure: Erasure, by: int) -> None:
        kind = class_of(erasure)
        paths = erasure.predicate.path
        for path in [()] if isinstance(paths, Wild) else paths:
            for depth in range(len(path) + 1):
                spot = path[:depth]
                node = self._nodes.setdefault(spot, _Node())
                groups = node.at if depth == len(path) else node.below
                for tenancy in _standing(erasure.predicate.tenant):
                    shared = (*kind[:4], SOME, kind[5]) if tenancy is SOME else kind
                    _set(groups.setdefault(tenancy, {}), shared, erasure.id, by)
                    if not groups[tenancy]:
                        del groups[tenancy]
                if not node.at and not node.below:
                    del self._nodes[spot]


def _standing(tenant: Values) -> tuple[Tenancy, ...]:
    """Where an erasure of this tenant stands."""
    return (ANY,) if isinstance(tenant, Wild) else (SOME, *tenant)


def _tenancies(tenant: Values) -> tuple[Tenancy, ...]:
    """Where the erasures stand that a scope of this tenant may touch."""
    return (ANY, SOME) if isinstance(tenant, Wild) else (ANY, *tenant)


def _under(index: dict[Atom, Held], atoms: frozenset[Atom]) -> Names:
    found: Names = {}
    for atom in atoms:
        held = index.get(atom)
        if isinstance(held, str):
            found[held] = None
        elif held is not None:
            found.update(held)
    return found


def _hold(index: dict[Atom, Held], atom: Atom, name: str, by: int) -> None:
    held = index.get(atom)
    if by > 0 and (held is None or held == name):
        index[atom] = name
        return
    members = {held: None} if isinstance(held, str) else held or {}
    if by > 0:
        members[name] = None
    else:
        members.pop(name, None)
    if len(members) > 1:
        index[atom] = members
    elif members:
        index[atom] = next(iter(members))
    else:
        index.pop(atom, None)


def _set(index: dict[_K, Names], key: _K, name: str, by: int) -> None:
    if by > 0:
        index.setdefault(key, {})[name] = None
        return
    members = index.get(key, {})
    members.pop(name, None)
    if not members:
        index.pop(key, None)
