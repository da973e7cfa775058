"""Canaries: records that are ours, marked so that they are found wherever they turn up, and nobody's."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.trial import Case

WORDS: Final = 10
"""Words of a canary's text beside its marker: so many that one other word leaves a near-duplicate."""
_STARTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"


@dataclass(slots=True, eq=False)
class Canary:
    """One record of ours. `keys` are all keys that it ever had."""

    name: str
    subject: str
    words: tuple[str, ...]
    marker: str
    path: str | None = None
    vector: tuple[float, ...] | None = None
    keys: list[str] = field(default_factory=list)
    case: Case = field(default_factory=lambda: Case(""))

    @property
    def text(self) -> str:
        """What is written. The marker stands last: a probe's neutral wording is taken from the front."""
        return " ".join((*self.words, "canary", self.marker))

    def values(self) -> dict[str, Any]:
        """The placeholders that it fills."""
        filled: dict[str, Any] = {"subject": self.subject, "text": self.text}
        if self.keys:
            filled["key"] = self.keys[-1]
            filled["keys"] = list(self.keys)
        if self.path is not None:
            filled["path"] = self.path
        if self.vector is not None:
            filled["vector"] = list(self.vector)
        return filled


class Aviary:
    """Makes canaries, and keeps every one of them so that none is left behind."""

    def __init__(self, prefix: str, rng: random.Random, dimension: int | None, *, paths: bool) -> None:
        self._rng = rng
        self._dimension = dimension
        self._paths = paths
        self.run = f"{rng.getrandbits(32):08x}"
        self.prefix = f"{prefix}{self.run}"
        self.all: list[Canary] = []

    def make(
        self, name: str, *, subject: str | None = None, path: str | None = None,
        near: Canary | None = None, same: Canary | None = None,
    ) -> Canary:  # fmt: skip
        """A new canary; `near` one of another's words but for its marker, `same` one of its whole text."""
        other = same or near
        number = len(self.all) + 1
        made = Canary(
            name,
            subject or f"{self.prefix}-s{number:04d}z",
            other.words if other is not None else tuple(self.word() for _ in range(WORDS)),
            same.marker if same is not None else f"{self.word()}{self._rng.getrandbits(24):06x}",
            path if path is not None else f"{self.prefix}/p{number:04d}z" if self._paths else None,
            self._vector(other),
        )
        made.case.name = name
        self.all.append(made)
        return made

    def word(self) -> str:
        """A word that no language has and that has no number in it."""
        return "".join(self._rng.choice(_STARTS) + self._rng.choice(_VOWELS) for _ in range(4))

    def _vector(self, other: Canary | None) -> tuple[float, ...] | None:
        if self._dimension is None:
            return None
        if other is not None and other.vector is not None:
            return tuple(number + self._rng.gauss(0, 0.01) for number in other.vector)
        return tuple(round(self._rng.gauss(0, 1), 6) for _ in range(self._dimension))


def flat(value: Any, place: str = "") -> dict[str, str]:
    """The scalars of a JSON document by their places, numbers to two digits; vectors are left out."""
    if isinstance(value, Mapping):
        return {at: text for key, one in value.items() for at, text in flat(one, f"{place}.{key}").items()}
    if isinstance(value, list):
        if len(value) > WORDS:
            return {}
        return {at: text for i, one in enumerate(value) for at, text in flat(one, f"{place}[{i}]").items()}
    if isinstance(value, float):
        return {place: f"{value:.2f}"}
    return {place: str(value)}


def row_with(value: Any, key: str) -> Mapping[str, Any] | None:
    """The innermost object of a document one of whose members is `key`."""
    if isinstance(value, Mapping):
        for one in value.values():
            found = row_with(one, key)
            if found is not None:
                return found
        return value if any(one == key for one in value.values() if isinstance(one, str)) else None
    if isinstance(value, list):
        return next((found for one in value if (found := row_with(one, key)) is not None), None)
    return None
