"""Which marks an erasure leaves: of whom, of which records, of what they said; and what it leaves alone.

A text that several other live subjects hold is common property: its marks would refuse them their own words.
It is left out, and counted as shared residue, unless it names the erased or holds a token of theirs. A
bystander who held one of the short texts word for word keeps it: theirs is noted as a *twin*. Of a longer one
that is no coincidence: it is a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from quietus.core.fingerprint import (
    RUN,
    SHORTEST,
    Digest,
    Mark,
    alias_mark,
    beside_marks,
    joined,
    marks_of,
    part_of,
)
from quietus.core.folding import folded, sentences, split, words
from quietus.core.prints import SHARED, short
from quietus.core.probing import Witness
from quietus.core.screener import Pseudonym, record_name, twin_mark
from quietus.core.tokens import tokens_of
from quietus.snapshots import Predicate

Holding = Callable[[bytes, Collection[bytes]], Collection[int]]
"""Who holds a text: (its "text" digest, subjects that do not count) to the live subjects that are known to,
by the first eight bytes of their digests. What knows nothing says nobody."""
TWINS: Final = 64
"""Bystanders noted of one text; beyond `SHARED` it is left alone anyway, unless it is a telling one."""
ALIASES: Final = 8
"""Identifiers of one erasure beside which words count."""


def nobody(text: bytes, but: Collection[bytes]) -> Collection[int]:
    """The `Holding` of one who has seen nothing."""
    return ()


@dataclass(slots=True)
class Marked:
    """The marks of an erasure, and how many texts and sentences of it were left alone as common property."""

    marks: dict[Mark, None] = field(default_factory=dict)
    residual_shared: int = 0
    twins: list[int] = field(default_factory=list)
    """Prints of the texts that somebody else may have said by themselves, word for word."""


class Marking:
    """Makes marks."""

    def __init__(self, pseudonym: Pseudonym, digest: Digest, holding: Holding = nobody) -> None:
        self._pseudonym = pseudonym
        self._digest = digest
        self._holding = holding

    def first(self, predicate: Predicate) -> list[Mark]:
        """The marks that a predicate leaves before anything was read: who, and which keys."""
        found: list[Mark | None] = []
        for subject in self._named(predicate):
            found.append(Mark("subject", self._pseudonym("subject", subject)))
            found.append(alias_mark(subject, self._digest))
        found += [alias_mark(alias, self._digest, given=True) for alias in predicate.aliases]
        return [mark for mark in found if mark is not None]

    def of(self, predicate: Predicate, witnesses: Sequence[Witness], met: Sequence[Witness] = ()) -> Marked:
        """Every mark of a predicate and its witnesses, each once. `met`: records of bystanders, seen now."""
        marked = Marked(dict.fromkeys(self.first(predicate)))
        for witness in witnesses:
            if witness.key is not None:
                marked.marks[Mark("id", self._pseudonym("key", witness.key))] = None
                if witness.path is not None:
                    name = record_name(witness.path, witness.key)
                    marked.marks[Mark("key", self._pseudonym("record", name))] = None
        texts = list(dict.fromkeys(w.text for w in witnesses if w.text is not None))
        others = _Others(met, self._pseudonym, self._digest)
        erased = [self._pseudonym("subject", subject) for subject in predicate.subject]
        aliases = [*self._named(predicate), *predicate.aliases][:ALIASES]
        spoken = [words(alias) for alias in aliases]
        for text in texts:
            self._text(text, marked, others, erased, spoken)
        for alias in aliases:
            if alias_mark(alias, self._digest, given=True) is not None:
                marked.marks.update(dict.fromkeys(beside_marks(texts, alias, self._digest)))
        return marked

    def _text(
        self, text: str, marked: Marked, others: _Others, erased: list[bytes], aliases: list[list[str]]
    ) -> None:
        plain = folded(text)
        said = split(plain)
        if not said:
            return
        whole = self._digest("text", joined(said))
        holders = self._holders(whole, others, erased)
        own = any(_names(said, alias) for alias in aliases) or bool(tokens_of(text))
        # What names the erased is about them, whoever has it.
        if not own and (len(said) < RUN or len(holders) >= SHARED):
            marked.twins.append(short(whole))
            for who in list(holders)[:TWINS]:
                marked.marks[twin_mark(who.to_bytes(8, "big"), joined(said), self._digest)] = None
        if not own and len(holders) >= SHARED:
            marked.residual_shared += 1
            return
        found = dict.fromkeys(marks_of(text, self._digest))
        parts = sentences(plain) if not own else []
        for part in parts if len(parts) > 1 else ():
            if len(part) < SHORTEST:
                continue
            if len(self._holders(self._digest("text", joined(part)), others, erased)) >= SHARED:
                marked.residual_shared += 1
                for mark in part_of(part, self._digest):
                    found.pop(mark, None)
        marked.marks.update(found)

    def _holders(self, text: bytes, others: _Others, erased: list[bytes]) -> set[int]:
        return {*self._holding(text, erased), *others.holding(text)}

    @staticmethod
    def _named(predicate: Predicate) -> tuple[str, ...]:
        """The subjects who were erased whole."""
        return () if predicate.purpose or predicate.key or predicate.path else predicate.subject


class _Others:
    """Who of the bystanders that a snapshot met holds a text or a sentence."""

    def __init__(self, met: Iterable[Witness], pseudonym: Pseudonym, digest: Digest) -> None:
        self._holders: dict[bytes, set[int]] = {}
        for witness in met:
            if witness.subject is None or witness.text is None:
                continue
            who = short(pseudonym("subject", witness.subject))
            plain = folded(witness.text)
            parts = sentences(plain)
            for part in [split(plain), *(parts if len(parts) > 1 else ())]:
                if part:
                    self._holders.setdefault(digest("text", joined(part)), set()).add(who)

    def holding(self, text: bytes) -> set[int]:
        return self._holders.get(text, set())


def _names(said: list[str], alias: list[str]) -> bool:
    size = len(alias)
    return bool(alias) and any(said[at : at + size] == alias for at in range(len(said) - size + 1))
