"""Keyed digests of what was erased, and finding them again inside other texts.

A witness text leaves behind *marks*: a digest of the whole text, and digests of its runs of words
(shingles), sentence by sentence, so that a quoted sentence is found inside a longer text. Case,
punctuation, spacing and Unicode form are folded first, on both sides. Texts and sentences below
`SHORTEST` words are matched only as a whole: a run of two words is nobody's in particular.

Digests are keyed by the ledger's key (`Digest`), so that the list of marks cannot be tested against
a dictionary. They are still personal data and are treated so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

RUN: Final = 8
"""Words in a shingle. A verbatim run of eight words is always found."""
SHORTEST: Final = 4
"""Sentences of fewer words are not looked for inside other texts."""
MARKS_PER_TEXT: Final = 4096
"""Shingles kept of one text; a longer text keeps its first ones and its whole digest."""

_WORD = re.compile(r"\w+", re.UNICODE)
_SENTENCE_END = re.compile(r"[.!?。！？\n\r]+(?=\s|$)|[\n\r。！？]")

Digest = Callable[[str, bytes], bytes]
"""Keyed: (kind, data) to 16 bytes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One tombstone: a keyed digest that answers and writes are screened for.

    `kind` is "key" (path and key of a record), "id" (its key alone), "subject", "alias" (an
    identifier of the subject inside a text), "text" (a whole text) or "shingle:N" (a run of N words).
    """

    kind: str
    digest: bytes


def words(text: str) -> list[str]:
    """The words of a text, folded: compatibility form, no case, no punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def marks_of(text: str, digest: Digest) -> list[Mark]:
    """The marks that a witness text leaves. An empty or wordless text leaves none."""
    whole = words(text)
    if not whole:
        return []
    found = {Mark("text", digest("text", _joined(whole))): None}
    sentences = [words(part) for part in _SENTENCE_END.split(text)]
    for sentence in [*sentences, whole]:
        size = min(len(sentence), RUN)
        if size < SHORTEST:
            continue
        for start in range(len(sentence) - size + 1):
            if len(found) >= MARKS_PER_TEXT:
                break
            kind = f"shingle:{size}"
            found[Mark(kind, digest(kind, _joined(sentence[start : start + size])))] = None
    return list(found)


def alias_mark(alias: str, digest: Digest) -> Mark | None:
    """The mark of an identifier that may be named inside a text; None when it says too little."""
    parts = words(alias)
    if sum(map(len, parts)) < 5 or not any(c.isalpha() for c in alias):
        return None
    return Mark(f"alias:{len(parts)}", digest("alias", _joined(parts)))


def traces(text: str, kinds: Iterable[str], digest: Digest) -> Iterator[Mark]:
    """Every mark that `text` could have been marked with, of the kinds that are in use."""
    found = words(text)
    if not found:
        return
    for kind in kinds:
        name, _, size_text = kind.partition(":")
        if name == "text":
            yield Mark(kind, digest("text", _joined(found)))
        elif name in ("shingle", "alias"):
            size = int(size_text)
            label = kind if name == "shingle" else name
            for start in range(len(found) - size + 1):
                yield Mark(kind, digest(label, _joined(found[start : start + size])))


def _joined(run: list[str]) -> bytes:
    return " ".join(run).encode()
