"""Which rows of an answer may leave: every scalar and every key of it is looked at.

A row is dropped when its subject, its key or its content was erased, when its provenance dangles, when it
is derived from the erased, or, while an erasure that overlaps the call is unsettled, when it cannot be
attributed to someone who is not erased. A hit outside the rows refuses the whole answer. Screening only
removes, keeps order, and finds nothing more when it is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from quietus.core.decision import Screening
from quietus.core.erasure import Erasure
from quietus.core.gate import Gate
from quietus.core.operations import Item
from quietus.core.scope import ANY, UNKNOWN, Scope, Wild, overlaps
from quietus.core.screener import (
    CACHED,
    ID_LENGTH,
    SUSPICIONS,
    Digest,
    Hit,
    Pseudonym,
    Screener,
    record_name,
)
from quietus.core.states import State

__all__ = ["CACHED", "ID_LENGTH", "Digest", "Hit", "Pseudonym", "Screener", "record_name", "screen"]


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
    written: frozenset[str] = frozenset(),
) -> Screening:
    """Judges every row and every scalar of one answer.

    `scope` is the call's, digested; `scope_of` gives a row's, with UNKNOWN for what neither the row nor
    lineage says. `own` is the erasure that the call itself asked for: its own ids in the answer to a
    forget are the client's words. `newer` says whether a row was written after an erasure was asked for;
    `written` are the keys that the call itself has just written: its answer names them as the client did.
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
        for cause, erasure in _item_causes(item, its, gate, screener, paths_of(item), newer, written):
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
        here = rows[position][1] if position in rows else scope  # a row lies in its own tenant
        for found in hits:
            if found.erasure.id == own or not _counts(found, text, here, screener):
                continue
            if position is None:
                outside = True
                causes.add(found.cause)
                if found.strong:
                    erased[found.erasure.id] = found.erasure
            elif not _names_itself(rows.get(position), text, found):
                hit(position, found.cause, found.erasure, found.strong)
    return Screening(frozenset(dropped), outside, tuple(erased.values()), frozenset(causes))


def _counts(found: Hit, text: str, here: Scope, screener: Screener) -> bool:
    """Whether a hit is more than a suspicion, another tenant's, or a bystander's own, word for word."""
    if found.cause in SUSPICIONS or not _in_tenant(found.erasure, here):
        return False
    return not (found.whole and screener.twin(text, here.subject))


def _names_itself(row: tuple[Item, Scope] | None, text: str, found: Hit) -> bool:
    """Whether a hit is a row's own key, its tenant, or its subject outside of what was erased.

    Those are judged with the row. A store may have a tenant for each person, named like them.
    """
    if row is None:
        return False
    item, its = row
    if found.cause == "key":
        return text == item.key
    if found.cause not in ("subject", "alias"):
        return False
    if text == item.tenant and text != item.subject:
        return True
    return text == item.subject and not overlaps(found.erasure.predicate, its)


def _item_causes(
    item: Item,
    its: Scope,
    gate: Gate,
    screener: Screener,
    path: tuple[str, ...] | None,
    newer: Callable[[Item, Erasure], bool],
    written: frozenset[str],
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
            if not (reused and (found.erasure.state is State.SETTLED or item.key in written)):
                yield "key", found.erasure
        for found in screener.descends(item.key, path):
            if _in_tenant(found.erasure, its) and not newer(item, found.erasure):
                yield "derived", None
    for source in item.derived_from:
        for found in screener.keys(source, None):
            if _in_tenant(found.erasure, its):
                yield "derived", found.erasure


def _in_tenant(erasure: Erasure, scope: Scope) -> bool:
    tenant = scope.tenant if scope.tenant is not UNKNOWN else ANY
    return overlaps(Scope(tenant=erasure.predicate.tenant), Scope(tenant=tenant))
