"""What the judge speaks of: calls of clients, what leaves for them, and what must not be."""

from __future__ import annotations

from dataclasses import dataclass

from quietus.core.exchange import Headers
from tests.simulation.plan import Step
from tests.simulation.rows import Read
from tests.simulation.truth import Where


@dataclass(frozen=True)
class Finding:
    """Something that must not be."""

    property: str
    step: int
    erasure: str
    says: str

    def __str__(self) -> str:
        return f"{self.property}: step {self.step} {self.erasure}: {self.says}"


@dataclass
class Call:
    """One call of a client, as the judge follows it."""

    step: Step
    where: Where
    sent_at: int | None = None
    handed: int | None = None
    """When the first part of its answer was handed over."""
    upstream: Read | None = None
    merged: frozenset[str] = frozenset()
    """Keys of records that the store says to have made one with what was written."""


@dataclass
class Released:
    """What has left for a client, or a part of it."""

    status: int
    headers: Headers
    content: Read
    tokens: frozenset[str]
    """Those of its tokens that leave now."""
    problem: str = ""
    """The name of the problem that it is worded as."""
