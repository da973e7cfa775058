"""Which rows of an answer may leave: every scalar and every key of it is looked at.

A row is dropped when its subject, its key or its content was erased, when its provenance dangles, when it
is derived from the erased, or, while an erasure that overlaps the call is unsettled, when it cannot be
attributed to someone who is not erased. A hit outside the rows refuses the whole answer. Screening only
removes, keeps order, and finds nothing more when it is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from quietus.core.decision import Screening
from quietus.core.erasure import Erasure
from quietus.core.fingerprint import Mark, traces
from quietus.core.gate import Gate
from quietus.core.operations import Item
from quietus.core.scope import ANY, UNKNOWN, Scope, Wild, overlaps
from quietus.core.states import State

Pseudonym = Callable[[str, str], bytes]
"""Keyed digest of an identifier: (kind, raw value) to bytes."""
Digest = Callable[[str, bytes], bytes]

ID_LENGTH: Final = 8
"""A scalar that is no key of a row counts as a mention of an erased key from this length on."""
CACHED: Final = 50_000
"""Verdicts on scalars kept for one generation of the gate; at the bound the oldest go."""


@dataclass(frozen=True, slots=True)
class Hit:
    """An erasure that a value belongs to. `strong` is evidence of a leak; a mere mention is not."""

    erasure: Erasure
    cause: str
    strong: bool = True


class Screener:
    """Looks values up among the marks, and remembers what it found until the gate changes."""

    def __init__(self, gate: Gate, pseudonym: Pseudonym, digest: Digest) -> None:
        self._gate = gate
        self._pseudonym = pseudonym
        self._digest = digest
        self._generation = -1
        self._seen: dict[str, tuple[Hit, ...]] = {}

    def look(self, text: str) -> tuple[Hit, ...]:
        """The erasures that a scalar belongs to: its text, its words, or it being an erased id."""
        if self._generation != self._gate.generation:
            self._seen.clear()
            self._generation = self._gate.generation
        found = self._seen.get(text)
        if found is None:
            if len(self._seen) >= CACHED:
                self._seen.pop(next(iter(self._seen)))
            found = self._seen[text] = tuple(self._look(text))
        return found

    def _look(self, text: str) -> Iterable[Hit]:
        kinds = self._gate.kinds
        if "subject" in kinds:
            yield from self._held(Mark("subject", self._pseudonym("subject", text)), "subject")
        if "id" in kinds and len(text) >= ID_LENGTH:
            yield from self._held(Mark("id", self._pseudonym("key", text)), "key")
        reached: set[tuple[str, bool]] = set()  # a mention of the name must not hide what is quoted beside it
        for mark in traces(text, kinds, self._digest):
            alias = mark.kind.startswith("alias")
            for hit in self._held(mark, "alias" if alias else "content"):
                if alias and not hit.erasure.unsettled:
                    continue  # a settled erasure does not make its name unspeakable
                if (hit.erasure.id, alias) not in reached:
                    reached.add((hit.erasure.id, alias))
                    yield Hit(hit.erasure, hit.cause, strong=not alias)

    def _held(self, mark: Mark, cause: str) -> Iterable[Hit]:
        for erasure in self._gate.holders(mark):
            if erasure.readmitted and (cause in ("subject", "alias") or erasure.readmission_allows_old):
                continue
            yield Hit(erasure, cause)

    def canary(self, key: str) -> bool:
        """Whether a record is a control that the sidecar itself wrote: no client is ever shown one."""
        if "canary" not in self._gate.kinds:
            return False
        return bool(self._gate.holders(Mark("canary", self._pseudonym("key", key))))

    def keys(self, key: str, path: tuple[str, ...] | None) -> tuple[Hit, ...]:
        """The erasures that hold this record: by path and key, or by the key where no path is known."""
        if path is not None:
            mark = Mark("key", self._pseudonym("record", record_name(path, key)))
        else:
            mark = Mark("id", self._pseudonym("key", key))
        return tuple(self._held(mark, "key"))


def record_name(path: tuple[str, ...], key: str) -> str:
    """The identity of a record as one string; the separators cannot stand in a segment."""
    return "\x1f".join(path) + "\x1e" + key


def screen(
    items: Sequence[Item],
    scalars: Iterable[tuple[int | None, str]],
    *,
    gate: Gate,
    screener: Screener,
    scope: Scope,
    scope_of: Callable[[Item], Scope],
    paths_of: Callable[[Item], tuple[str, ...] | None],
    own: str = "",
    newer: Callable[[Item, Erasure], bool] = lambda item, erasure: False,
) -> Screening:
    """Judges every row and every scalar of one answer.

    `scope` is the call's, digested; `scope_of` gives a row's, with UNKNOWN for what neither the row nor
    lineage says. `own` is the erasure that the call itself asked for: its own ids in the answer to a
    forget are the client's words. `newer` says whether a row was written after an erasure was asked for.
    """
    dropped: dict[int, str] = {}
    erased: dict[str, Erasure] = {}
    causes: set[str] = set()

    def hit(position: int, cause: str, erasure: Erasure | None, strong: bool = True) -> None:
        dropped.setdefault(position, cause)
        causes.add(cause)
        if erasure is not None and strong:
            erased[erasure.id] = erasure

    rows: dict[int, tuple[Item, Scope]] = {}
    said = list(scalars)
    filled = {position for position, _ in said}
    for item in items:
        its = scope_of(item)
        rows[item.position] = (item, its)
        for cause, erasure in _item_causes(item, its, gate, screener, paths_of(item), newer):
            if erasure is None or erasure.id != own:
                hit(item.position, cause, erasure)
        if item.position in dropped or item.position not in filled:
            continue  # an empty row says nothing of anybody
        if any(not e.readmitted for e, _ in gate.restricting(its, own)):
            hit(item.position, "unattributed", None)
    outside = False
    for position, text in said:
        hits = screener.look(text)
        if not hits:
            continue
        # A row lies in its own tenant, wherever the call reaches.
        here = rows[position][1] if position in rows else scope
        for found in hits:
            if found.erasure.id == own or not _in_tenant(found.erasure, here):
                continue
            if position is None:
                outside = True
                causes.add(found.cause)
                if found.strong:
                    erased[found.erasure.id] = found.erasure
            elif not _names_itself(rows.get(position), text, found):
                hit(position, found.cause, found.erasure, found.strong)
    return Screening(frozenset(dropped), outside, tuple(erased.values()), frozenset(causes))


def _names_itself(row: tuple[Item, Scope] | None, text: str, found: Hit) -> bool:
    """Whether a hit is a row's own key, or its subject outside of what was erased: judged with the row."""
    if row is None:
        return False
    item, its = row
    if found.cause == "key":
        return text == item.key
    named = found.cause in ("subject", "alias") and text == item.subject
    return named and not overlaps(found.erasure.predicate, its)


def _item_causes(
    item: Item,
    its: Scope,
    gate: Gate,
    screener: Screener,
    path: tuple[str, ...] | None,
    newer: Callable[[Item, Erasure], bool],
) -> Iterable[tuple[str, Erasure | None]]:
    if item.provenance_resolved is False:
        yield "provenance", None
    for erasure in gate.of_subject(its):
        if not erasure.readmitted:
            yield "subject", erasure
    if item.key is not None and screener.canary(item.key):
        yield "canary", None
    if item.key is not None:
        known = not isinstance(its.subject, Wild)
        for found in screener.keys(item.key, path):
            if not _in_tenant(found.erasure, its):
                continue
            # A settled id that now belongs to somebody else, or was written again, is another record's.
            reused = (known and not overlaps(found.erasure.predicate, its)) or newer(item, found.erasure)
            if not (reused and found.erasure.state is State.SETTLED):
                yield "key", found.erasure
    for source in item.derived_from:
        for found in screener.keys(source, None):
            if _in_tenant(found.erasure, its):
                yield "derived", found.erasure


def _in_tenant(erasure: Erasure, scope: Scope) -> bool:
    tenant = scope.tenant if scope.tenant is not UNKNOWN else ANY
    return overlaps(Scope(tenant=erasure.predicate.tenant), Scope(tenant=tenant))
