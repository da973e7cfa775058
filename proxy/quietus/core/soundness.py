"""Whether a store can keep what it promises: the fourth founding document's predicate, over what is declared.

Erasure is a property of the write path's reads. Where derived state goes lazily, writes read it, and there
is a time between the two, a write can bring the erased back, whatever any TTL says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

READS: Final = frozenset({"salience", "dedup"})
"""Features whose write path can hardly do without reading derived state."""
HARD: Final = "hard_erasure"
"""The feature of a store that promises that nothing of the erased is left."""
COMPLETES: Final = "completion_signal"
"""The feature of a store that says when a forget is done."""
AUDITED: Final = frozenset({"write_path_audited", "no_derived_reads"})
"""Attestations that somebody has looked at what the write path reads."""


class Rating(StrEnum):
    """What follows from a store's manners."""

    SOUND = "SOUND"
    UNSOUND = "UNSOUND"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Manners:
    """What a profile says of its store, and who vouches for it."""

    lazy: bool
    """Derived state is not gone when the forget returns."""
    reads_derived: bool | None
    """Whether writes read derived state; None: nobody knows."""
    window: float
    """Seconds between the forget's answer and the purge of derived state."""
    features: frozenset[str] = frozenset()
    attested: frozenset[str] = frozenset()
    """Conditions that are vouched for and have not expired."""


def rated(manners: Manners) -> Rating:
    """At risk if and only if all three hold. No length of a TTL comes into it."""
    if not manners.lazy or manners.window <= 0 or manners.reads_derived is False:
        return Rating.SOUND
    return Rating.UNSOUND if manners.reads_derived else Rating.UNKNOWN


def audited(manners: Manners) -> bool:
    """Whether "compliant" may be said as far as the write path goes.

    A store that ranks by salience or merges duplicates needs somebody who has audited what its writes read.
    """
    if manners.reads_derived is True and manners.lazy and manners.window > 0:
        return "write_path_audited" in manners.attested
    return not manners.features & READS or bool(manners.attested & AUDITED)


def synchronous(manners: Manners) -> bool:
    """Whether a forget's answer waits until it is settled, whatever the policy says of waiting.

    On the strength of a mere acknowledgement nobody may write to a store that promises hard erasure, or whose
    writes read what they rank by or merge into; and one that says when it is done can be waited for.
    """
    return COMPLETES in manners.features and _promises(manners)


def must_wait(manners: Manners) -> bool:
    """Whether a forget's answer ought to wait, and the store never says for what."""
    return COMPLETES not in manners.features and _promises(manners)


def _promises(manners: Manners) -> bool:
    reads = manners.reads_derived is not False and bool(manners.features & READS)
    return HARD in manners.features or reads
