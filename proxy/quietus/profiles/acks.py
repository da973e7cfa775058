"""How the answer to a forget or a write is read, and the conditions that outcomes and routes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from quietus.core.exchange import Reply
from quietus.profiles.codec import scalar_text
from quietus.profiles.descriptors import MessageType
from quietus.profiles.dimensions import digits
from quietus.profiles.faults import Ambiguous, CompileFault, Unread, Unreadable
from quietus.profiles.jsonpaths import MISSING, Path
from quietus.profiles.rpc import absent_at
from quietus.profiles.selector import Place, Selector, compile_path
from quietus.profiles.wire import header_fields
from quietus.profiles.words import AckModel, FoundModel

Outcome = Literal["accepted", "not_found", "refused", "unclear", "queued"]

_NOT_FOUND: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({400, 401, 403, 405, 413, 415, 422, 429})
_CODES: Final[Mapping[str, Outcome]] = {
    "OK": "accepted", "NOT_FOUND": "not_found", "INVALID_ARGUMENT": "refused", "PERMISSION_DENIED": "refused",
    "UNAUTHENTICATED": "refused", "UNIMPLEMENTED": "refused",
}  # fmt: skip
"""What the codes of gRPC say; any other is unclear."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What a store said it did: a claim, never a proof."""

    outcome: Outcome
    token: str | None = None
    count: int | None = None
    epoch: int | None = None


def summed(acks: Sequence[Ack]) -> Ack:
    """What several requests for one erasure came to. Not surely all, and not surely none, is unclear."""
    if len(acks) == 1:
        return acks[0]
    said = {ack.outcome for ack in acks}
    doubtful = "unclear" in said or (len(said) > 1 and "refused" in said)
    return Ack(
        outcome="unclear" if doubtful else next(o for o in _WEAKEST if o in said),
        token=next((ack.token for ack in reversed(acks) if ack.token), None),
        count=sum(counts) if (counts := [ack.count for ack in acks if ack.count is not None]) else None,
        epoch=max((ack.epoch for ack in acks if ack.epoch is not None), default=None),
    )


_WEAKEST: Final[tuple[Outcome, ...]] = ("queued", "accepted", "not_found", "refused")


class Condition:
    """A `when`: every path in it holds the value, or one of the values, that stands beside it.

    Where the body is a message, `kind` is its type: a field that is not there holds its default.
    """

    def __init__(self, when: Mapping[str, Any], place: Place, kind: MessageType | None = None) -> None:
        self.tests: list[tuple[Path, list[Any], Any]] = []
        self.finds: list[tuple[Path, bool]] = []
        for key, expected in when.items():
            path = compile_path("$.status" if key == "status" else key, (*place, key))
            if isinstance(expected, FoundModel):
                self.finds.append((path, expected.found))
                continue
            if not path.singular:
                raise CompileFault((*place, key), "a condition is a plain path to one value",
                                   "or {found: true} for a path to many")  # fmt: skip
            absent = MISSING if kind is None else absent_at(kind, path.text, MISSING)
            self.tests.append((path, expected if isinstance(expected, list) else [expected], absent))

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether it holds. A path that cannot be entered does not hold. Raises Ambiguous."""
        for path, expected, absent in self.tests:
            try:
                found = path.one(document)
            except Unread:
                return False
            if found is MISSING:
                found = absent
            if found is MISSING or not any(_equal(found, one) for one in expected):
                return False
        return all(_finds(path, document) is wanted for path, wanted in self.finds)


def _finds(path: Path, document: Mapping[str, Any]) -> bool:
    try:
        return any(node is not None for node in path.find(document))
    except Unread:
        return False


def _equal(found: Any, expected: Any) -> bool:
    return type(found) is type(expected) and bool(found == expected)


def reply_view(reply: Reply, document: Any) -> dict[str, Any]:
    """What the selectors of a response see. `document` is MISSING where there is no JSON."""
    status: int | str = reply.status if reply.code is None else reply.code
    view: dict[str, Any] = {"status": status, "headers": header_fields((*reply.headers, *reply.trailers))}
    if reply.code is not None:
        view["message"] = reply.reason
    if document is not MISSING:
        view["body"] = document
    return view


class AckReader:
    """Reads an acknowledgement; the first outcome whose condition holds is taken."""

    def __init__(self, model: AckModel, place: Place, kind: MessageType | None = None) -> None:
        self.outcomes: list[tuple[Condition, Outcome]] = [
            (Condition(outcome.when, (*place, "outcomes", number, "when"), kind), outcome.is_)
            for number, outcome in enumerate(model.outcomes)
        ]
        self.token = Selector(model.token, (*place, "token")) if model.token else None
        self.count = Selector(model.count, (*place, "count")) if model.count else None
        self.epoch = Selector(model.epoch, (*place, "epoch")) if model.epoch else None

    def read(self, reply: Reply, document: Any, captures: Mapping[str, str]) -> Ack:
        """The acknowledgement in an answer whose body, if JSON, is `document`."""
        view = reply_view(reply, document)
        return Ack(
            self._outcome(view, reply),
            token=scalar_text(_one(self.token, view, captures)),
            count=digits(_one(self.count, view, captures)),
            epoch=digits(_one(self.epoch, view, captures)),
        )

    def _outcome(self, view: Mapping[str, Any], reply: Reply) -> Outcome:
        for condition, outcome in self.outcomes:
            try:
                if condition.holds(view):
                    return outcome
            except Ambiguous:
                return "unclear"
        if reply.code is not None:
            return _CODES.get(reply.code, "unclear")
        status = reply.status
        if 200 <= status < 300:
            return "accepted"
        if status in _NOT_FOUND:
            return "not_found"
        return "refused" if status in _REFUSED else "unclear"


def _one(selector: Selector | None, view: Mapping[str, Any], captures: Mapping[str, str]) -> Any:
    """The first value, or None; what cannot be read is no value."""
    if selector is None:
        return None
    try:
        found = selector.nodes(view, captures)
    except (Unread, Ambiguous, Unreadable):
        return None
    return found[0] if found else None


def epoch_in(selector: Selector | None, view: Mapping[str, Any]) -> int | None:
    """The epoch that an answer states, or None."""
    return digits(_one(selector, view, {}))


def text_in(selector: Selector, view: Mapping[str, Any]) -> str | None:
    """The text that an answer states, or None."""
    return scalar_text(_one(selector, view, {}))
