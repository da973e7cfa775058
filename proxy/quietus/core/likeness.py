"""How much of what one text says stands in another, word by word: it suspects what was put in other words.

It knows no meaning. It compares the stems of words, common ones at a third of the weight of telling ones, and
finds most short statements that were derived from one message; a paraphrase in other words it does not find.
By itself it is too easily content to block anything: it suspects, or it counts beside a name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from quietus.core.common_words import is_telling
from quietus.core.folding import folded, sentences, spaceless, split

ALIKE: Final = 0.35
"""Share of a text's weight from which it counts as derived (see docs/detection.md for what that finds)."""
SHARED: Final = 2
"""Stems that two texts must have in common at the least."""
TELLING: Final = 3
COMMON: Final = 1
"""Weights of a stem."""
STEMS: Final = 48
"""Stems kept of one text."""
PARTS: Final = 40
"""Sentences of one text that are compared by themselves."""

_SAY_NOTHING: Final = frozenset(
    """a an the of to in on at for with and or but is are was were be been being it its this that these those
    i im ive id you youre your he she they them their his her we our us me my as by from so if not no do does
    did have has had will would can could just about there here what when who how which than then also into
    out up down over again very too all some any more most other
    """.split()
)
_ENDINGS: Final = ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "ly", "s")


def stem(word: str) -> str:
    """The word without the commonest endings of English; of other languages it stays nearly whole."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def stems_of(spoken: Iterable[str], but: Collection[str] = ()) -> dict[str, int]:
    """The stems of a text's words with their weights, at most `STEMS`; without those of `but`."""
    found: dict[str, int] = {}
    for word in spoken:
        if word in but or word in _SAY_NOTHING or (len(word) < 3 and not spaceless(word)):
            continue
        weight = TELLING if is_telling(word) else COMMON
        root = stem(word)
        if weight > found.get(root, 0):
            found[root] = weight
            if len(found) >= STEMS:
                break
    return found


def alike(text: Mapping[str, int], shared: Iterable[str]) -> float:
    """The share of a text's weight that some stems of it have; 0 for fewer than `SHARED` of them."""
    held = [root for root in shared if root in text]
    if len(held) < SHARED:
        return 0.0
    return sum(text[root] for root in held) / sum(text.values())


def parts_of(text: str) -> list[list[str]]:
    """The words of a text as a whole, and of each of its sentences: any of them may be what was derived."""
    plain = folded(text)
    parts = sentences(plain)
    return [split(plain), *(parts[:PARTS] if len(parts) > 1 else ())]
