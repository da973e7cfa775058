"""Few, small digests of a text by which a later text is suspected to quote it, and who shares a text.

Prints are chosen by winnowing: of every `WINDOW` neighbouring runs of `GRAM` words one is kept, chosen by
what it says and not by where it stands. Two texts with a run of `GRAM` + `WINDOW` - 1 = 8 words in common
therefore have a print in common, whatever stands around it. What a print finds is a suspicion; content
decides. Prints are digests keyed by the ledger's key, cut to eight bytes.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from quietus.core.fingerprint import joined
from quietus.core.folding import folded, sentences, split

GRAM: Final = 5
WINDOW: Final = 4
KEPT: Final = 4
"""Prints kept of one text: of what stands after some twenty words a quote may go unsuspected (its content is
still screened, and the store is searched for it at a forget)."""
ASKED: Final = 256
"""Prints of one text that are looked up."""
SENTENCES: Final = 8
"""Sentences of one text that are counted by themselves."""
SHARED: Final = 3
"""So many other live subjects make a text common property."""
COUNTED: Final = 8
"""Subjects remembered of one text: enough to still count `SHARED` after some were erased."""
TEXTS: Final = 200_000
"""Texts that are counted; at the bound the one seen longest ago goes, and counts as nobody's."""

Digest = Callable[[str, bytes], bytes]
"""Keyed: (kind, data) to 16 bytes."""


@dataclass(frozen=True, slots=True)
class Prints:
    """What a text leaves for later comparison. Numbers of eight bytes."""

    whole: int
    runs: tuple[int, ...] = ()
    sentences: tuple[int, ...] = ()
    """Its sentences of four words and more, each as a whole; empty for a text of one sentence."""


def short(digest: bytes) -> int:
    """A digest as a number of eight bytes."""
    return int.from_bytes(digest[:8], "big")


def prints_of(text: str, digest: Digest, most: int = KEPT) -> Prints | None:
    """The prints of a text; None for one without words."""
    plain = folded(text)
    whole, parts = split(plain), sentences(plain)
    if not whole:
        return None
    alone = parts[:SENTENCES] if len(parts) > 1 else []
    return Prints(
        short(digest("text", joined(whole))),
        tuple(dict.fromkeys(_runs(whole, digest, most))),
        tuple(short(digest("text", joined(s))) for s in alone if len(s) >= 4),
    )


def _runs(whole: list[str], digest: Digest, most: int) -> Iterable[int]:
    if len(whole) < GRAM + WINDOW - 1:
        return
    # Checksums choose, so that the choice is even; they are neither secret nor kept.
    sums = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in whole]
    ranks = [
        a ^ (b << 1) ^ (c << 2) ^ (d << 3) ^ (e << 4)
        for a, b, c, d, e in zip(sums, sums[1:], sums[2:], sums[3:], sums[4:], strict=False)
    ]
    last = -1
    for start in range(len(ranks) - WINDOW + 1):
        window = ranks[start : start + WINDOW]
        least = min(window)
        at = start + WINDOW - 1 - window[::-1].index(least)
        if at != last:
            last = at
            yield short(digest("run", joined(whole[at : at + GRAM])))
            most -= 1
            if most <= 0:
                return


class Sharing:
    """Which subjects hold a text, as far as traffic and scans have told; bounded.

    A subject is counted once for a text, however often they hold it. `Prints.whole` and each of
    `Prints.sentences` are texts in this sense.
    """

    def __init__(self, bound: int = TEXTS) -> None:
        self._bound = bound
        self._holders: OrderedDict[int, tuple[int, ...]] = OrderedDict()
        self._whos: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def held(self, text: int, subject: bytes) -> None:
        """Notes that a subject (by digest) holds a text."""
        known = self._holders.get(text)
        who = self._who(subject)
        if known is None:
            if len(self._holders) >= self._bound:
                self._holders.popitem(last=False)
            self._holders[text] = (who,)
            return
        self._holders.move_to_end(text)
        if who not in known and len(known) < COUNTED:
            self._holders[text] = (*known, who)

    def _who(self, subject: bytes) -> int:
        # One number for one subject, not one for each text of theirs.
        found = self._whos.get(subject)
        if found is None:
            if len(self._whos) >= self._bound:
                self._whos.clear()
            found = self._whos[subject] = short(subject)
        return found

    def gone(self, text: int, subject: bytes) -> None:
        """Notes that they hold it no longer."""
        left = tuple(who for who in self._holders.get(text, ()) if who != short(subject))
        if left:
            self._holders[text] = left
        else:
            self._holders.pop(text, None)

    def live(self, digest: bytes, but: Collection[bytes] = ()) -> int:
        """How many live subjects hold the text of that "text" digest, without those named; at most `COUNTED`.

        The erased whose text is judged must be among `but`: they are not live.
        """
        return len(self.holding(digest, but))

    def holding(self, digest: bytes, but: Collection[bytes] = ()) -> tuple[int, ...]:
        """Those whom `live` counts, each by the first eight bytes of their digest."""
        erased = {short(subject) for subject in but}
        return tuple(who for who in self._holders.get(short(digest), ()) if who not in erased)
