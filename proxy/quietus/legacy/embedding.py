"""A toy embedding: hashed bags of words, so that neighbours exist and every run agrees.

Words are hashed with CRC-32 into `DIMENSIONS` buckets and damped by their count; vectors have
length one. Similar wordings are close, unrelated ones share little; nothing is learned.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log1p, sqrt
from typing import Final
from zlib import crc32

DIMENSIONS: Final = 256
NEAR_DUPLICATE: Final = 0.85
"""From this cosine on, two texts count as near-duplicates."""

Vector = tuple[tuple[int, float], ...]
"""A sparse vector of length one: (bucket, weight), sorted by bucket."""

_WORD: Final = re.compile(r"[^\W_]+", re.UNICODE)


@lru_cache(maxsize=4096)
def embed(text: str) -> Vector:
    """The vector of a text; empty when it has no word."""
    counts: dict[int, int] = {}
    for word in _WORD.findall(text.casefold()):
        bucket = crc32(word.encode()) % DIMENSIONS
        counts[bucket] = counts.get(bucket, 0) + 1
    return _unit({bucket: log1p(count) for bucket, count in counts.items()})


def from_dense(numbers: Sequence[float]) -> Vector:
    """The vector of a client's list of `DIMENSIONS` numbers, scaled to length one."""
    return _unit({at: float(number) for at, number in enumerate(numbers) if number})


def to_dense(vector: Vector) -> list[float]:
    """The list of `DIMENSIONS` numbers that an answer carries, rounded to six places."""
    numbers = [0.0] * DIMENSIONS
    for bucket, weight in vector:
        numbers[bucket] = round(weight, 6)
    return numbers


def cosine(a: Vector, b: Vector) -> float:
    """How alike two vectors are: 1.0 for the same direction, 0.0 for nothing in common."""
    return likeness(dict(a), b)


def likeness(weights: Mapping[int, float], vector: Vector) -> float:
    """The cosine, for one vector by bucket and many others."""
    return sum([weights[bucket] * weight for bucket, weight in vector if bucket in weights])


@lru_cache(maxsize=4096)
def content_hash(text: str) -> str:
    """What the chunk cache and the dedup map key a text by: blind to case and white space."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:16]


def _unit(weights: dict[int, float]) -> Vector:
    length = sqrt(sum(weight * weight for weight in weights.values()))
    if not length:
        return ()
    return tuple(sorted((bucket, weight / length) for bucket, weight in weights.items()))
