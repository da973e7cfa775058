"""Keyed digests of what was erased, and what of them another text bears.

A witness text leaves *marks*. They are chosen so that a quoted sentence is always found inside a longer text,
and what everybody says is nobody's:

- the whole text, unless it is one word, or a few common ones;
- each run of `RUN` words that has `TELLING` words which are not common (see `common_words`);
- a sentence, or a whole text, shorter than that, if it tells enough for its length;
- each run of `LONG` words, however common, that holds no run of the above, and a shorter common sentence;
- two of its other sentences, if both stand in one text;
- its distinctive tokens (`tokens`): one of them anywhere restates it;
- its telling words, which count only beside an alias of the subject, and only when most of one text is there.

In scripts without spaces a character stands for a word, and the runs are longer. All is folded first.

Digests are keyed by the ledger's key, so that the list of marks cannot be tested against a dictionary. No
word that may be anybody's is digested by itself. They are still personal data and are treated so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from quietus.core.common_words import telling
from quietus.core.folding import one_line, readings, spaceless, spans, split, unhyphened, words
from quietus.core.likeness import TELLING as WEIGHT
from quietus.core.likeness import stems_of
from quietus.core.tokens import tokens_of

__all__ = ["HEAD", "REACH", "RUN", "SHORTEST", "Digest", "Mark", "alias_mark", "beside", "beside_marks",
           "marks_of", "part_of", "words"]  # fmt: skip

RUN: Final = 8
"""Words in a run. A verbatim run of so many, if it tells anything, is always found."""
TELLING: Final = 2
"""Words of a run that must not be common."""
SHORTEST: Final = 4
"""Sentences of fewer words are not looked for inside other texts."""
LONG: Final = 12
"""A run of so many words is somebody's, however common each of them is."""
CHARACTERS: Final = 12
"""Characters in a run of a script without spaces; of the narrow scripts (Thai and its neighbours) `REACH`."""
REACH: Final = 16
"""Words of the longest run in use."""
HEAD: Final = 4
"""Words that a run is found by; the rest is then confirmed."""
HALF: Final = 8
"""Bytes of a digest that are of the head; the others are of the whole run."""
MARKS_PER_TEXT: Final = 4096
"""Marks kept of one text; a longer text keeps its first ones and its whole digest."""

Digest = Callable[[str, bytes], bytes]
"""Keyed: (kind, data) to 16 bytes."""


class Mark(NamedTuple):
    """One tombstone: a keyed digest that answers and writes are screened for.

    A tuple, because one is made and looked up for every run of words of every answer.

    `kind` is "key" (path and key of a record), "id" (its key alone), "subject", "canary", "text" (a whole
    text), "token", "twin" (a text that a bystander held before the erasure), or one with a head: "run:N"
    (N words), "part:N" (a common sentence of N words, which counts beside another of its text), "alias:N" (an
    identifier of the subject inside a text, N words), "beside" (a word that counts beside an alias).
    """

    kind: str
    digest: bytes


def marks_of(text: str, digest: Digest) -> list[Mark]:
    """The marks that a witness text leaves. An empty or wordless text leaves none."""
    forms = [form for form in readings(text) if split(form)]
    if not forms:
        return []
    found: dict[Mark, None] = {}
    for whole in map(split, forms):
        if len(whole) >= SHORTEST or (len(whole) > 1 and telling(whole)):
            found[Mark("text", digest("text", joined(whole)))] = None
    for token in tokens_of(text):
        found[Mark("token", digest("token", token.encode()))] = None
    number = digest("text", joined(split(forms[0])))[:2]
    lines = [line for form in forms for line in (form, one_line(form))]
    written = dict.fromkeys(form for line in lines for form in (line, unhyphened(line)))
    for mark in chain(*(_spoken(form, number, digest) for form in written)):
        if len(found) >= MARKS_PER_TEXT:
            break
        found[mark] = None
    return list(found)


def _spoken(plain: str, number: bytes, digest: Digest) -> Iterator[Mark]:
    """The marks of runs and sentences of a folded text; `number` tells its common sentences from others'."""
    parts = [(spoken, len(part.split())) for part in spans(plain) if (spoken := split(part))]
    for spoken, written in parts:
        runs = list(_runs(spoken, written=written))
        yield from (run_mark(run, digest) for run in runs)
        if not runs and len(parts) > 1 and SHORTEST <= len(spoken) <= REACH:
            kind = f"part:{len(spoken)}"
            head = digest("head", joined(spoken[:HEAD]))[:HALF]
            yield Mark(kind, head + number + digest(kind, joined(spoken))[: HALF - 2])
    if len(parts) > 1:
        whole = split(plain)
        yield from (run_mark(run, digest) for run in _runs(whole, alone=len(whole) < RUN))


def part_of(sentence: Sequence[str], digest: Digest) -> list[Mark]:
    """The marks of one sentence, by its words: what is left out when it is common property."""
    return [run_mark(run, digest) for run in _runs(sentence)]


def run_mark(run: Sequence[str], digest: Digest) -> Mark:
    """The mark of a run of words: half of it is of its head, half of the whole."""
    kind = f"run:{len(run)}"
    head = digest("head", joined(run[:HEAD]))[:HALF]
    return Mark(kind, head + digest(kind, joined(run))[:HALF])


def _runs(part: Sequence[str], *, alone: bool = True, written: int = 0) -> Iterator[Sequence[str]]:
    """The runs of a sentence that are marked; `alone`: the whole of it may be one, too.

    `written` counts its words as a reader does, to whom a dash between spaces may be one.
    """
    size = len(part)
    taken = bytearray(size)
    for start in range(size - RUN + 1):
        length = _length(part[start : start + RUN])
        if start + length <= size and telling(part[start : start + length]) >= TELLING:
            taken[start] = 1
            yield part[start : start + length]
    for start in range(size - LONG + 1):
        if 1 not in taken[start : start + LONG - RUN + 1]:
            taken[start] = 1
            yield part[start : start + LONG]
    if alone and 1 not in taken and SHORTEST <= size <= REACH and (written >= RUN or _tells(part)):
        yield part


def _length(run: Sequence[str]) -> int:
    letters = [word for word in run if spaceless(word)]
    if len(letters) * 2 < len(run):
        return RUN
    return REACH if "\u0e01" <= letters[0] < "\u3000" else CHARACTERS


def _tells(sentence: Sequence[str]) -> bool:
    """Whether a sentence that holds no marked run is looked for inside other texts."""
    size = len(sentence)
    known = telling(sentence)
    if sum(map(spaceless, sentence)) * 2 >= size:
        return size >= 6 and known >= 4
    return size >= RUN or known >= (2 if size >= 6 else 3)


def alias_mark(alias: str, digest: Digest, *, given: bool = False) -> Mark | None:
    """The mark of an identifier that may be named inside a text; None when it says too little.

    `given`: somebody named it as an alias, so that a short name counts, too.
    """
    parts = words(alias)
    size = sum(map(len, parts))
    enough = size >= 5 or (given and (size >= 3 or (size >= 2 and any(map(spaceless, parts)))))
    if not enough or not any(c.isalpha() for c in alias) or len(parts) > REACH:
        return None
    head = digest("alias", joined(parts[:1]))[:HALF]
    return Mark(f"alias:{len(parts)}", head + digest(f"alias:{len(parts)}", joined(parts))[:HALF])


def beside_marks(texts: Iterable[str], alias: str, digest: Digest) -> list[Mark]:
    """The marks of words that count beside this alias: of each text its stems, and how many of them tell.

    Every digest is bound to the alias, so that nothing can be counted across subjects.
    """
    named = words(alias)
    found: dict[Mark, None] = {}
    for number, text in enumerate(texts):
        theirs = stems_of(words(text), named)
        if len(theirs) < 2:
            continue
        place = (number & 0xFFFF).to_bytes(2, "big")
        place += bytes([sum(1 for weight in theirs.values() if weight == WEIGHT)])
        for whole in beside(theirs, named, digest):
            found[Mark("beside", whole[:HALF] + place + whole[HALF : 2 * HALF - 3])] = None
    return list(found)


def beside(roots: Iterable[str], alias: Sequence[str], digest: Digest) -> list[bytes]:
    """The digests of stems, bound to an alias."""
    return [digest("beside", joined([*alias, root])) for root in roots]


def joined(run: Iterable[str]) -> bytes:
    """The words as they are digested."""
    return " ".join(run).encode("utf-8", "surrogatepass")


class Run:
    """The words of a text, and any stretch of them as bytes without joining them again."""

    def __init__(self, spoken: list[str]) -> None:
        self.words = spoken
        self.data = joined(spoken)
        plain = len(self.data) == sum(map(len, spoken)) + len(spoken) - 1
        self._starts: list[int] = []
        self._ends: list[int] = []
        at = 0
        for word in spoken:
            self._starts.append(at)
            at += len(word) if plain else len(joined([word]))
            self._ends.append(at)
            at += 1

    def piece(self, place: int, size: int) -> bytes:
        """`size` words from `place` on."""
        return self.data[self._starts[place] : self._ends[place + size - 1]]

    def pieces(self, size: int) -> list[bytes]:
        """Every stretch of `size` words."""
        data = self.data
        return [data[a:z] for a, z in zip(self._starts, self._ends[size - 1 :], strict=False)]
