"""What is asked for, by whom, about whom: the nouns that every decision is made of.

A `Principal` is who calls; a `Subject` is whom the memories are about. The two are never
confused: a principal is known by its credential, a subject by what the request says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from quietus.core.scope import Scope

UNMAPPED = "unmapped"
"""The route name of a request that no route of the profile matches."""


class Operation(StrEnum):
    """What a route does with memories."""

    READ = "read"
    RECALL = "recall"
    WRITE = "write"
    FORGET = "forget"
    IGNORE = "ignore"
    """Declared free of memory content: passed through ungated, and counted."""


@dataclass(frozen=True, slots=True)
class Item:
    """One row of a request or an answer, as the profile read it.

    `position` says where it stands in its document (see `profiles.codec`); `subject` and the other
    dimensions hold what the row itself says and are None where it says nothing. `texts` are the
    contents; every other scalar of the row is screened too, but by the codec's walk.
    """

    position: int
    key: str | None = None
    subject: str | None = None
    tenant: str | None = None
    purpose: str | None = None
    path: tuple[str, ...] | None = None
    texts: tuple[str, ...] = ()
    vector: tuple[float, ...] | None = None
    derived_from: tuple[str, ...] = ()
    provenance_resolved: bool | None = None
    """None: the row says nothing of it. False: it said false, or null where the profile selects it."""
    score: float | None = None
    capture: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the profile understood it. Dimensions it could not read are UNKNOWN."""

    operation: Operation
    route: str = UNMAPPED
    scope: Scope = field(default_factory=Scope)
    query: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    """The contents of a write, one text each."""
    items: tuple[Item, ...] = ()
    """The rows of a batch; empty for a single write."""
    derived_from: tuple[str, ...] = ()
    basis: str | None = None
    """The legal basis that a forget names, as the request gave it."""
    capture: Mapping[str, str] = field(default_factory=dict)
    min_epoch: int | None = None

    @property
    def recalls(self) -> bool:
        """Whether memories may come back: a read, a recall, or a route nobody described."""
        return self.operation in (Operation.READ, Operation.RECALL) or self.route == UNMAPPED
