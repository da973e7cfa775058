"""From what a profile read to what the core is asked: digested scope, owners, what a write brings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from quietus.core.decision import Question
from quietus.core.erasure import Erasure
from quietus.core.gate import Gate
from quietus.core.operations import Call, Item, Operation
from quietus.core.policy import Vector
from quietus.core.scope import Scope, Wild, holds, overlaps
from quietus.core.screening import Hit, Screener
from quietus.owners import Owners
from quietus.profiles.codec import decode_json
from quietus.profiles.faults import NotJson
from quietus.profiles.routes import Reading
from quietus.restating import Restating

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that write nothing, by their definition."""


class Questions:
    """Builds the question of a call."""

    def __init__(self, gate: Gate, owners: Owners, screener: Screener) -> None:
        self._gate = gate
        self._owners = owners
        self._screener = screener
        self._restating = Restating(gate, screener, owners)

    def of(
        self, call: Call, principal: str, failure: str | None = None, document: Any = None
    ) -> Question:
        """The question of one call as the marks stand now. `document` is its decoded body."""
        scope = self._owners.question_scope(call)
        if call.operation is not Operation.WRITE:
            return Question(call, scope, principal, failure=failure)
        vectors: set[Vector] = set()
        named: dict[str, Erasure] = {}
        owned: dict[str, Erasure] = {}
        rows: set[int] = set()
        for row, hit in self._restating.of(call, scope, document):
            if _here(hit, scope):
                vectors.add(Vector.RESTATED_CONTENT)
                named[hit.erasure.id] = hit.erasure
                rows.update(() if row is None else (row,))
        for row, hit in self._moved(call):
            if _here(hit, scope):
                vectors.add(Vector.DERIVED_SUBJECT)
                named[hit.erasure.id] = hit.erasure
                rows.update(() if row is None else (row,))
        for hit in _near(self._sources(call), scope):
            vectors.add(Vector.DERIVED_SUBJECT)
            named[hit.erasure.id] = hit.erasure
        if isinstance(call.scope.subject, Wild) and not isinstance(call.scope.key, Wild):
            path = self._owners.path_of(None, call)
            for key in call.scope.key:
                hits = _near(self._screener.keys(str(key), path), scope)
                # A key that was forgotten by itself, and is settled, may be written again.
                owned.update((h.erasure.id, h.erasure) for h in hits if h.erasure.unsettled or _whose(h))
        return Question(
            call,
            scope,
            principal,
            vectors=frozenset(vectors),
            named=tuple(named.values()),
            owned=tuple(owned.values()),
            rows=tuple(sorted(rows)),
            suspected=self._restating.suspected(call, scope),
            failure=failure,
        )

    def brought(self, reading: Reading, principal: str) -> Question | None:
        """What no route describes, asked as a write, where its body quotes the erased; else None.

        Nobody knows what such a call does. Addresses and numbers are left out, because they may be what a
        search asks for; whose the words are is not known, so that nobody's earlier text counts as their own.
        """
        request = reading.request
        if reading.mapped or request.wire != "http" or request.method in SAFE or not request.body:
            return None
        call = Call(Operation.WRITE, scope=reading.call.scope)
        scope = self._owners.question_scope(call)
        found = self._restating.of(call, scope, _document(request.body))
        named = {hit.erasure.id: hit.erasure for _, hit in found if hit.cause == "content"}
        if not named:
            return None
        vectors = frozenset({Vector.RESTATED_CONTENT})
        return Question(call, scope, principal, vectors=vectors, named=tuple(named.values()))

    def _moved(self, call: Call) -> Iterable[tuple[int | None, Hit]]:
        """Records of the erased that a write gives to somebody else as they are: it brings no content.

        A write with content of its own puts another record in their place; what that says is looked at apart.
        """
        if not self._gate.kinds or isinstance(call.scope.subject, Wild):
            return
        for row, item in enumerate(call.items):
            if item.key is not None and not item.texts:
                yield from ((row, hit) for hit in self._held(item.key, item, call))
        if not call.items and not call.texts and not isinstance(call.scope.key, Wild):
            for key in call.scope.key:
                yield from ((None, hit) for hit in self._held(str(key), None, call))

    def _held(self, key: str, item: Item | None, call: Call) -> Iterable[Hit]:
        """The unsettled erasures of a record: of its owner where that is known, else of its key."""
        known = self._owners.scope_at(key, call) is not None
        path = self._owners.path_of(item, call)
        hits = self._owned(key, call) if known else self._screener.keys(key, path)
        return (hit for hit in hits if hit.erasure.unsettled and not hit.erasure.readmitted)

    def _sources(self, call: Call) -> Iterable[Hit]:
        """Sources that were erased or are held back with the erased, or whose owner was erased."""
        for key in (*call.derived_from, *(key for item in call.items for key in item.derived_from)):
            yield from self._screener.keys(key, None)
            yield from self._screener.descends(key, None)
            yield from self._owned(key, call)

    def _owned(self, key: str, call: Call) -> Iterable[Hit]:
        source = self._owners.scope_at(key, call)
        if source is not None:
            for erasure in self._gate.of_subject(source):
                if not erasure.readmitted and holds(erasure.predicate, source):
                    yield Hit(erasure, "derived")


def _document(body: bytes) -> Any:
    """A body as JSON where it is, else as one text."""
    try:
        return decode_json(body)
    except NotJson:
        return body.decode("utf-8", "replace")


def _whose(hit: Hit) -> bool:
    return not isinstance(hit.erasure.predicate.subject, Wild)


def _near(hits: Iterable[Hit], scope: Scope) -> Iterable[Hit]:
    """Those of the call's own tenant: what was erased in another says nothing here."""
    return (hit for hit in hits if _here(hit, scope))


def _here(hit: Hit, scope: Scope) -> bool:
    return overlaps(Scope(tenant=hit.erasure.predicate.tenant), Scope(tenant=scope.tenant))
