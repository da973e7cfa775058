"""What a profile makes of recorded calls: route, operation, scope, rows, answers less each of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.exchange import Reply
from quietus.core.operations import Item, Operation
from quietus.core.scope import DIMENSIONS, Scope, Wild
from quietus.describing.message_masks import same_but_for_rows
from quietus.describing.pairs import Pair
from quietus.profiles.answers import Answered
from quietus.profiles.codec import decode_exact, decode_json, encode_json
from quietus.profiles.faults import NotJson, RequestFault, Unreadable
from quietus.profiles.field_columns import FieldColumns
from quietus.profiles.message_answers import MessageAnswered
from quietus.profiles.profile import Profile, Reading
from quietus.profiles.protobuf import NotMessage, decode

DROPS_MAX: Final = 50
"""Rows of one answer that are taken out one by one; then all at once."""
_LOOKED_AT: Final = ("route", "operation", "scope", "items", "ack")


@dataclass(slots=True)
class Rehearsed:
    """What came of one pair."""

    number: int
    found: dict[str, Any] = field(default_factory=dict)
    dropped: int = 0
    """Rows that were taken out, each by itself, with nothing else changed."""
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def rehearse(profile: Profile, pairs: Iterable[Pair]) -> list[Rehearsed]:
    """Every pair in turn."""
    return [_one(profile, pair, number) for number, pair in enumerate(pairs, 1)]


def never_met(profile: Profile, seen: Iterable[Rehearsed]) -> list[str]:
    """The routes of a profile that no pair took: nothing is known of them."""
    met = {each.found.get("route") for each in seen}
    return [name for name in profile.route_names if name not in met]


def _one(profile: Profile, pair: Pair, number: int) -> Rehearsed:
    out = Rehearsed(number)
    try:
        reading = profile.read(pair.request)
    except RequestFault as fault:
        out.faults.append(f"the sidecar would refuse it with {fault.status} {fault.problem}: {fault.detail}")
        return out
    out.found = {"route": reading.call.route, "operation": reading.call.operation.value,
                 "scope": scope_told(reading.call.scope)}  # fmt: skip
    if not reading.mapped:
        of = "this method" if pair.request.wire == "grpc" else f"{pair.request.method} and this path"
        out.faults.append(f"no route takes it: add one for {of}, or `operation: ignore`")
    for name in reading.unreadable:
        out.faults.append(f"the {name} of the request cannot be read: mend request.{name} of the route")
    if reading.mapped and reading.call.operation is not Operation.IGNORE:
        if pair.left_out:
            out.notes.append(f"a body was not recorded ({pair.left_out}): the answer was not looked at")
        else:
            _answer(profile, reading, pair.reply, out)
    for name in _LOOKED_AT if pair.expect is not None else ():
        wanted = (pair.expect or {}).get(name)
        if wanted is not None and wanted != out.found.get(name):
            out.faults.append(f"{name} is {out.found.get(name)!r}, and {wanted!r} was expected")
    return out


def _answer(profile: Profile, reading: Reading, reply: Reply, out: Rehearsed) -> None:
    try:
        answered = profile.answer(reading, reply)
    except Unreadable as error:
        out.faults.append(f"the answer cannot be read: {error}")
        return
    out.found["items"] = len(answered.items)
    operation = reading.call.operation
    if operation in (Operation.WRITE, Operation.FORGET):
        out.found["ack"] = profile.ack(reading, reply).outcome
    if not 200 <= reply.status < 300:
        return
    if operation in (Operation.READ, Operation.RECALL):
        _rows(answered, out)
    if operation is not Operation.FORGET and answered.items and not answered.single:
        _drops(profile, reading, reply, answered, out)


def _rows(answered: Answered, out: Rehearsed) -> None:
    if answered.text:
        out.notes.append(
            "the answer is no JSON: it is screened as a whole, and refused if it holds something erased"
        )
        return
    if not answered.items and _holds_objects(answered.document):
        out.faults.append("no row was found, and the answer holds a list of objects: mend response.items")
    nameless = sum(item.key is None for item in answered.items)
    if nameless:
        out.faults.append(f"{nameless} rows have no key: mend response.item.key")
    if answered.items and not any(item.texts for item in answered.items):
        out.faults.append("no row has a content: mend response.item.content")
    if answered.items and not any(item.subject for item in answered.items):
        out.notes.append("no row says whose it is: the sidecar has to have seen it written (quietus scan)")
    outside = {text for position, text in answered.scalars() if position is None}
    if any(item.key in outside or outside.intersection(item.texts) for item in answered.items):
        out.notes.append("what a row says stands outside of its row too: if it is erased, all is refused")
    if answered.single:
        out.notes.append("an answer of one row: if it is erased, the whole answer is refused")


def _holds_objects(document: Any) -> bool:
    if isinstance(document, dict):
        return any(_holds_objects(value) for value in document.values())
    if isinstance(document, list):
        return any(isinstance(value, dict) and value for value in document)
    return False


def _drops(profile: Profile, reading: Reading, reply: Reply, answered: Answered, out: Rehearsed) -> None:
    places = [item.position for item in answered.items]
    plain, json = answered.plain, not isinstance(answered, MessageAnswered)
    if json and encode_json(decode_exact(plain)) != plain:
        out.notes.append(
            "the store writes white space or escapes: where a row is dropped the JSON is written anew"
        )
    for dropped in (*({place} for place in places[:DROPS_MAX]), set(places)):
        fault = _drop(profile, reading, reply, answered, frozenset(dropped))
        if fault is not None:
            out.faults.append(fault)
            return
        out.dropped += len(dropped) == 1 or len(places) == 1
    out.dropped = min(out.dropped, len(places))


def _drop(
    profile: Profile, reading: Reading, reply: Reply, answered: Answered, dropped: frozenset[int]
) -> str | None:
    """What is wrong with the answer less these rows; None if nothing is."""
    rows = f"row {min(dropped) + 1}" if len(dropped) == 1 else "all rows"
    body = answered.without(dropped)
    if body is None:
        return f"{rows} cannot be taken out of the answer: it would be refused as a whole"
    if not _less(answered, body, len(dropped)):
        return f"with {rows} taken out something else of the answer changes: mend response.items or columns"
    try:
        again = profile.answer(reading, reply.with_body(body))
    except Unreadable as error:
        return f"with {rows} taken out the answer cannot be read any more: {error}"
    left = [_identity(item) for item in answered.items if item.position not in dropped]
    if [_identity(item) for item in again.items] != left:
        return f"with {rows} taken out the other rows are not what they were"
    return None


def _identity(item: Item) -> tuple[Any, ...]:
    return item.key, item.subject, item.path, item.texts


def _less(answered: Answered, body: bytes, most: int) -> bool:
    """Whether the answer's other body is the one that it has, less so many rows and nothing else."""
    if not isinstance(answered, MessageAnswered):
        return _only_less(decode_exact(answered.plain), decode_exact(body), most)
    message = answered.message
    assert message is not None, "rows were found in it"
    columns = any(isinstance(group, FieldColumns) for group in answered.groups)
    try:
        left = decode(body, message.kind).view
    except NotMessage:
        return False
    return same_but_for_rows(message.view, left, most, answered.counts, columns)


def _only_less(before: Any, after: Any, most: int) -> bool:
    """Whether a document is another one but for members taken out of its lists."""
    if type(before) is not type(after):
        return False
    if isinstance(before, dict):
        return list(before) == list(after) and all(_only_less(before[k], after[k], most) for k in before)
    if isinstance(before, list):
        if len(before) == len(after):
            return all(_only_less(one, other, most) for one, other in zip(before, after, strict=True))
        return len(before) - len(after) <= most and _is_within(after, before)
    if isinstance(before, str) and before != after:
        try:
            return _only_less(decode_json(before.encode()), decode_json(str(after).encode()), most)
        except NotJson:
            return False
    return bool(before == after)


def _is_within(fewer: list[Any], more: list[Any]) -> bool:
    coming = iter(more)
    return all(any(one == other for other in coming) for one in fewer)


def scope_told(scope: Scope) -> dict[str, Any]:
    """A scope as JSON: lists of names, `any`, or `unknown`."""
    return dict(_told(scope))


def _told(scope: Scope) -> Iterator[tuple[str, Any]]:
    for name in DIMENSIONS:
        values = getattr(scope, name)
        if isinstance(values, Wild):
            yield name, values.value
        else:
            yield name, sorted("/".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)


def expectation(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a pair is to expect from now on: what was found of it."""
    return {name: found[name] for name in _LOOKED_AT if name in found}
