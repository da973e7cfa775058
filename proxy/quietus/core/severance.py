"""What must become of a record that was derived from the erased, from what it says now.

*Cascade* where it bears words of the erased: it has to go with them. *Unlink* where it is proven that nothing
can be turned back: no run of words in common, no vector, no edge left in the store, and somebody vouches for
the rest. *Escalate* where it cannot be known: then no success is reported. There is no fourth outcome.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from quietus.core.fingerprint import words
from quietus.core.operations import Item
from quietus.core.tokens import tokens_of

SHORT: Final = 4
"""Words of the shortest run that two texts can have in common without it being put down to chance."""
LONG: Final = 8
"""Words of a run that is a quote; a whole sentence of `SHORT` words and more is one, too."""
ALIKE: Final = 0.98
"""Cosine from which two vectors are one text's."""
NON_RECONSTRUCTIVE: Final = "derived_non_reconstructive"
"""The attested condition: derived records without words of their sources cannot be turned back into them."""
_TOKEN: Final = re.compile(r"[^\s@]+@[^\s@]+\.\w+|\+?\d[\d\s().-]{5,}\d|\b\w*\d\w*\d\w*\d\w*\b")
_SENTENCE_END: Final = re.compile(r"[.!?。！？\n\r]+(?=\s|$)|[\n\r。！？]")


class Fate(StrEnum):
    """What becomes of one descendant."""

    GONE = "gone"
    """It is not there (any more)."""
    CASCADE = "cascade"
    UNLINK = "unlink"
    ESCALATE = "escalate"
    DISMISSED = "dismissed"
    """A mere suspect that bears nothing of the erased: no descendant at all."""


class Span(StrEnum):
    """What a text has in common with those of the erased."""

    NONE = "none"
    SHORT = "short"
    """A run of a few words, a number or the name: it may be chance, and it may not."""
    QUOTE = "quote"


class Sources:
    """The texts of the erased, in clear, in the form in which they are looked for. Kept for one snapshot."""

    def __init__(
        self, texts: Iterable[str], vectors: Iterable[Sequence[float]] = (), names: Iterable[str] = ()
    ) -> None:
        self._short: set[tuple[str, ...]] = set()
        self._long: set[tuple[str, ...]] = set()
        self._sentences: set[tuple[str, ...]] = set()
        self._tokens: set[str] = set()
        self._vectors = [tuple(vector) for vector in vectors]
        self._names = [found for name in names if len(name) >= 5 and (found := tuple(words(name)))]
        for text in texts:
            self._add(text)

    def _add(self, text: str) -> None:
        whole = words(text)
        self._short.update(_grams(whole, SHORT))
        self._long.update(_grams(whole, LONG))
        self._sentences.update(
            tuple(found) for part in _SENTENCE_END.split(text) if len(found := words(part)) >= SHORT
        )
        self._tokens |= _tokens(text)

    def span(self, text: str) -> Span:
        """What a text has in common with them."""
        whole = words(text)
        if any(gram in self._long for gram in _grams(whole, LONG)):
            return Span.QUOTE
        joined = f" {' '.join(whole)} "
        shared = [gram for gram in _grams(whole, SHORT) if gram in self._short]
        if shared and any(f" {' '.join(sentence)} " in joined for sentence in self._sentences):
            return Span.QUOTE
        if not self._tokens.isdisjoint(_tokens(text)):
            return Span.QUOTE
        named = any(f" {' '.join(name)} " in joined for name in self._names)
        return Span.SHORT if shared or named else Span.NONE

    def alike(self, vector: Sequence[float] | None) -> bool:
        """Whether a vector is that of one of them."""
        return vector is not None and any(_cosine(vector, known) >= ALIKE for known in self._vectors)


@dataclass(frozen=True, slots=True)
class Severance:
    """A fate and its reason. The reason quotes nothing."""

    fate: Fate
    reason: str


def decide(
    row: Item | None, texts: Iterable[str], sources: Sources, *, readable: bool, erased_edge: bool,
    declared: bool, attested: bool,
) -> Severance:  # fmt: skip
    """The fate of one descendant.

    `row` is what the store returns for it, None for nothing; `texts` are all strings of it. `readable`: the
    store gave an answer that can be read. `erased_edge`: the row itself still names an erased source, or says
    that its provenance does not resolve. `declared`: it is known to be derived, not suspected. `attested`:
    somebody vouches for `NON_RECONSTRUCTIVE`.
    """
    if not readable:
        return Severance(Fate.ESCALATE, "it cannot be read: what it bears is not known")
    if row is None:
        return Severance(Fate.GONE, "it is not there")
    spans = {sources.span(text) for text in texts}
    if Span.QUOTE in spans:
        return Severance(Fate.CASCADE, "it bears a quote, or a number, of the erased")
    if sources.alike(row.vector):
        return Severance(Fate.CASCADE, "its vector is that of the erased")
    if not declared and not erased_edge:
        return Severance(Fate.DISMISSED, "suspected, and it bears nothing of the erased")
    if Span.SHORT in spans:
        return Severance(Fate.ESCALATE, "it shares a few words, or the name: whether it tells is not known")
    if erased_edge:
        return Severance(Fate.ESCALATE, "its edge to the erased stands in the store: remove it or the record")
    if not attested:
        reason = "no words in common, and nobody vouches that it cannot be turned back"
        return Severance(Fate.ESCALATE, reason)
    return Severance(Fate.UNLINK, "no words in common; attested that it cannot be turned back")


def _grams(found: list[str], size: int) -> Iterable[tuple[str, ...]]:
    return (tuple(found[at : at + size]) for at in range(len(found) - size + 1))


def _tokens(text: str) -> set[str]:
    own = (re.sub(r"[\s().+-]", "", found).casefold() for found in _TOKEN.findall(text) if len(found) >= 5)
    return {*own, *tokens_of(text)}


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    if len(a) != len(b):
        return 0.0
    length = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0
