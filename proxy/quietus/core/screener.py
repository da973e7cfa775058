"""Whom a value belongs to: a subject, a record, or a text that says something of the erased.

In two stages: a field of bits in memory answers nearly every "no" (`marks`); what may be one is confirmed by
the keyed digest of the whole run. What a value says of whom is remembered until the marks change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.fingerprint import HALF, HEAD, Mark, Run, beside, joined
from quietus.core.folding import folded, readings, split
from quietus.core.gate import Gate
from quietus.core.likeness import ALIKE, TELLING, alike, parts_of, stems_of
from quietus.core.scope import Values, Wild
from quietus.core.tokens import tokens_of, unwrapped

Pseudonym = Callable[[str, str], bytes]
"""Keyed digest of an identifier: (kind, raw value) to bytes."""
Digest = Callable[[str, bytes], bytes]
Digests = Callable[[str, Sequence[bytes]], list[bytes]]
Said = tuple[tuple[str, str, bool], ...]
"""What a text says of whom, by its marks alone: owner, cause, and whether it is their text and no more."""

ID_LENGTH: Final = 8
"""A scalar that is no key of a row counts as a mention of an erased key from this length on."""
CACHED: Final = 50_000
"""Verdicts on scalars kept as long as the marks stand; at the bound the oldest go."""
TOGETHER: Final = 10
"""Words that two common sentences of one text must have together."""
WORDS: Final = 50_000
"""Digests of single words kept, for finding aliases; at the bound all go."""
ALIASES: Final = 8
"""Aliases found in one text beside which its words are looked at."""
SPOKEN: Final = frozenset({"text", "run", "part", "alias"})
"""Kinds of marks that the words of a text are looked at for."""
WRITTEN: Final = frozenset({"text", "run", "part", "token"})
"""Kinds that are also looked for in what is encoded in a text."""
SUSPICIONS: Final = frozenset({"beside", "overlap"})
"""Causes that count in writes alone."""
MENTIONS: Final = SUSPICIONS | {"alias"}
"""Causes that are no evidence of a leak."""
NAMED: Final = frozenset({"subject", "key"})
"""Causes of a value that is an erased identifier itself: told of every erasure."""
WRITINGS: Final = 2
"""How deep a text that is encoded in a text is looked for."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An erasure that a value belongs to. `strong` is evidence of a leak; a mere mention is not.

    `cause` is "subject", "key", "alias", "content" (a text, a sentence, a run of words), "token" (a number or
    an address that singles somebody out), "beside" (most of a text, in any words, beside an alias: it counts
    in writes alone) or "overlap" (much of what is said stands in one text of theirs: a mere suspicion).
    `whole`: the value is the erased text and nothing else.
    """

    erasure: Erasure
    cause: str
    strong: bool = True
    whole: bool = False


class Screener:
    """Looks values up among the marks, and remembers what it found until the gate changes."""

    def __init__(
        self, gate: Gate, pseudonym: Pseudonym, digest: Digest, digests: Digests | None = None
    ) -> None:
        """`digests` is `digest` of several at once, where that is cheaper."""
        self._gate = gate
        self._pseudonym = pseudonym
        self._digest = digest
        self._digests = digests or (lambda kind, data: [digest(kind, each) for each in data])
        self._generation = -1
        self._version = -1
        self._seen: dict[str, Said] = {}
        self._hits: dict[str, tuple[Hit, ...]] = {}
        self._words: dict[str, bytes] = {}
        self._kinds: frozenset[str] = frozenset()

    def look(self, text: str) -> tuple[Hit, ...]:
        """The erasures that a scalar belongs to: its text, its words, or it being an erased id."""
        if self._generation != self._gate.generation:
            self._renew()
        said = self._seen.get(text)
        if said is None:
            if len(self._seen) >= CACHED:
                self._hits.pop(oldest := next(iter(self._seen)), None)
                self._seen.pop(oldest)
            said = self._seen[text] = tuple(dict.fromkeys(self._look(text)))
        if not said:
            return ()
        found = self._hits.get(text)
        if found is None:
            found = self._hits[text] = tuple(self._counted(said))
        return found

    def _renew(self) -> None:
        """What a text says of whom holds as long as the marks; what that means, as long as the gate."""
        self._generation = self._gate.generation
        self._hits.clear()
        if self._version != self._gate.marks.version:
            self._version = self._gate.marks.version
            self._seen.clear()
            self._kinds = frozenset(kind.partition(":")[0] for kind in self._gate.kinds)

    def _counted(self, said: Said) -> Iterator[Hit]:
        """The hits that count as the gate stands: of what a text says, one of each erasure is enough."""
        reached: set[tuple[str, str]] = set()
        for owner, cause, whole in said:
            for hit in self._of((owner,), cause, whole=whole):
                if cause == "alias" and not hit.erasure.unsettled:
                    continue  # a settled erasure does not make its name unspeakable
                if cause not in NAMED:
                    # A mention of the name must not hide what is quoted beside it.
                    if (what := (owner, "" if hit.strong else cause)) in reached:
                        continue
                    reached.add(what)
                yield hit

    def _look(self, text: str) -> Iterator[tuple[str, str, bool]]:
        kinds = self._kinds
        if "subject" in kinds:
            yield from self._left(Mark("subject", self._pseudonym("subject", text)), "subject")
        if "id" in kinds and len(text) >= ID_LENGTH:
            yield from self._left(Mark("id", self._pseudonym("key", text)), "key")
        yield from self._said(text, WRITINGS)

    def _said(self, text: str, depth: int) -> Iterator[tuple[str, str, bool]]:
        """What a text says of the erased, in this writing and in those that are hidden in it."""
        kinds = self._kinds
        for plain in readings(text) if kinds & SPOKEN else ():
            if not (spoken := split(plain)):
                continue
            run = Run(spoken)
            if "text" in kinds:
                yield from self._left(Mark("text", self._digest("text", run.data)), "content", True)
            if kinds & {"run", "part"} and len(spoken) >= HEAD:
                yield from ((owner, "content", False) for owner in self._quoted(run))
            if "alias" in kinds:
                yield from self._named(run, text)
        if "token" in kinds:
            for token in tokens_of(text):
                yield from self._left(Mark("token", self._digest("token", token.encode())), "token")
        if depth and kinds & WRITTEN:
            for inner in unwrapped(text):
                told = self._said(inner, depth - 1)
                yield from ((owner, cause, False) for owner, cause, _ in told if cause not in MENTIONS)

    def _quoted(self, run: Run) -> Iterator[str]:
        """Whose sentences and runs of words stand in a text; of common sentences it takes two of one text."""
        parts: dict[tuple[str, bytes], dict[bytes, tuple[int, int]]] = {}
        for name, at, size, owner, tail in self._confirmed(run, self._digests("head", run.pieces(HEAD))):
            if name == "run":
                yield owner
            elif name == "part":
                met = parts.setdefault((owner, tail[:2]), {})
                met[tail] = at, size
                # One sentence that is marked in two readings is one.
                apart = [more for begun, more in met.values() if begun + more <= at or at + size <= begun]
                if apart and size + sum(apart) >= TOGETHER:
                    yield owner

    def _confirmed(self, run: Run, heads: list[bytes]) -> Iterator[tuple[str, int, int, str, bytes]]:
        """Name, place, words, owner and tail of each mark with a head that a text bears."""
        for place in self._gate.marks.among(heads := [head[:HALF] for head in heads]):
            tails: dict[str, bytes] = {}
            for kind, tail, owner in self._gate.marks.headed(heads[place]):
                name, _, size = kind.partition(":")
                if not size or place + int(size) > len(run.words):
                    continue
                if kind not in tails:
                    tails[kind] = self._digest(kind, run.piece(place, int(size)))[:HALF]
                if tail == tails[kind] or (name == "part" and tail[2:] == tails[kind][: HALF - 2]):
                    yield name, place, int(size), owner, tail

    def _named(self, run: Run, text: str) -> Iterator[tuple[str, str, bool]]:
        aliases: dict[tuple[str, ...], None] = {}
        for _, place, size, owner, _ in self._confirmed(run, self._first_words(run.words)):
            if len(aliases) < ALIASES:
                aliases[tuple(run.words[place : place + size])] = None
            yield owner, "alias", False
        if "beside" in self._kinds:
            for alias in aliases:
                yield from self._beside(text, alias)

    def _beside(self, text: str, alias: tuple[str, ...]) -> Iterator[tuple[str, str, bool]]:
        """What a text says beside an alias: most of one text of theirs, or much of what it says itself."""
        most: dict[str, None] = {}
        some: dict[str, None] = {}
        for part in parts_of(text):
            roots = stems_of(part, alias)
            met: dict[tuple[str, bytes], list[str]] = {}
            for root, whole in zip(roots, beside(roots, alias, self._digest), strict=True):
                for kind, tail, owner in self._gate.marks.headed(whole[:HALF]):
                    if kind == "beside" and tail[3:] == whole[HALF : 2 * HALF - 3]:
                        met.setdefault((owner, tail[:3]), []).append(root)
            for (owner, place), shared in met.items():
                telling = sum(1 for root in shared if roots[root] == TELLING)
                if alike(roots, shared) >= ALIKE:
                    (most if telling >= 2 and telling * 2 >= place[2] else some)[owner] = None
        yield from ((owner, "beside", False) for owner in most)
        yield from ((owner, "overlap", False) for owner in some)

    def _first_words(self, spoken: list[str]) -> list[bytes]:
        known = self._words
        new = [word for word in dict.fromkeys(spoken) if word not in known]
        if new:
            if len(known) + len(new) > WORDS:
                known.clear()
                new = list(dict.fromkeys(spoken))
            digests = self._digests("alias", [joined([word]) for word in new])
            known.update(zip(new, digests, strict=True))
        return [known[word] for word in spoken]

    def _left(self, mark: Mark, cause: str, whole: bool = False) -> Said:
        return tuple((owner, cause, whole) for owner in self._gate.marks.holders(mark))

    def _held(self, mark: Mark, cause: str) -> Iterable[Hit]:
        return self._of(self._gate.marks.holders(mark), cause)

    def _of(self, owners: Iterable[str], cause: str, *, whole: bool = False) -> Iterator[Hit]:
        for erasure in self._gate.standing(owners):
            if erasure.readmitted:
                # Their name, their numbers and new words of the old things are theirs to write again.
                if cause not in ("content", "key") or erasure.readmission_allows_old:
                    continue
            yield Hit(erasure, cause, strong=cause not in MENTIONS, whole=whole)

    # --- whose it is ---------------------------------------------------------------------------

    def twin(self, text: str, subject: Values) -> bool:
        """Whether a text is known to have been somebody's own before it was erased of somebody else."""
        if "twin" not in self._kinds or isinstance(subject, Wild) or len(subject) != 1:
            return False
        who = next(iter(subject))
        data = joined(split(folded(text)))
        return isinstance(who, bytes) and bool(self._gate.holders(twin_mark(who, data, self._digest)))

    def canary(self, key: str) -> bool:
        """Whether a record is a control that the sidecar itself wrote: no client is ever shown one."""
        if "canary" not in self._gate.kinds:
            return False
        return bool(self._gate.holders(Mark("canary", self._pseudonym("key", key))))

    def descends(self, key: str, path: tuple[str, ...] | None) -> tuple[Hit, ...]:
        """The erasures that a record was derived from and for which it is held back.

        One that bears the erased is held back for good; one of which it is not known, until it is settled.
        """
        if path is not None:
            digest = self._pseudonym("record", record_name(path, key))
        else:
            digest = self._pseudonym("key", key)
        kinds = self._gate.kinds
        found = list(self._held(Mark("descendant", digest), "derived")) if "descendant" in kinds else []
        if "escalated" in kinds:
            doubtful = self._held(Mark("escalated", digest), "derived")
            found += [hit for hit in doubtful if hit.erasure.unsettled]
        return tuple(found)

    def keys(self, key: str, path: tuple[str, ...] | None) -> tuple[Hit, ...]:
        """The erasures that hold this record: by path and key, or by the key where no path is known."""
        if path is not None:
            mark = Mark("key", self._pseudonym("record", record_name(path, key)))
        else:
            mark = Mark("id", self._pseudonym("key", key))
        return tuple(self._held(mark, "key"))


def twin_mark(subject: bytes, data: bytes, digest: Digest) -> Mark:
    """The mark of a text that a bystander held when it was erased of somebody else.

    `subject` is their digest, of which eight bytes count; `data` the text's words, joined.
    """
    return Mark("twin", digest("twin", subject[:8] + data))


def record_name(path: tuple[str, ...], key: str) -> str:
    """The identity of a record as one string; the separators cannot stand in a segment."""
    return "\x1f".join(path) + "\x1e" + key
