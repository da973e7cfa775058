"""The routes of a draft: what each call probably does, and where it probably says what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.describing.guessing import (
    Found,
    Rows,
    field_of,
    in_node,
    operation_of,
    rows_of,
    selector,
    unknown_parameters,
)
from quietus.describing.nodes import Endpoint, Node, words
from quietus.describing.writing import Guess, Noted
from quietus.profiles.faults import CompileFault
from quietus.profiles.wire import compile_template, same_shape

_ASKS: Final = {
    "write": ("tenant", "subject", "purpose", "ttl", "path", "key", "content", "derived_from", "salience"),
    "recall": ("tenant", "subject", "purpose", "path", "query", "vector"),
    "read": ("tenant", "subject", "key"),
    "forget": ("tenant", "subject", "purpose", "path", "key", "basis"),
}
_ROWS_NAMED: Final = (
    "key",
    "tenant",
    "subject",
    "purpose",
    "path",
    "content",
    "vector",
    "derived_from",
    "score",
)


@dataclass(slots=True)
class Drafted:
    """One call, and what is guessed of it."""

    endpoint: Endpoint
    name: str
    operation: str
    why: str
    fields: dict[str, Found]
    rows: list[Rows]
    captures: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Sorted:
    """The calls of a description: those that a route could be guessed for, and the others with the reason."""

    routes: list[Drafted]
    left: list[tuple[Endpoint, str]]


def sort_out(endpoints: Iterable[Endpoint]) -> Sorted:
    """Which calls are routes. Literal paths come before those with parameters: the first match wins."""
    out = Sorted([], [])
    names: dict[str, int] = {}
    for each in sorted(endpoints, key=lambda e: [part.startswith("{") for part in e.path.split("/")]):
        reason = _unfit(each, out.routes)
        guess = operation_of(each)
        if reason is None and guess is None:
            reason = "nothing says what it does"
        if reason is not None or guess is None:
            out.left.append((each, reason or ""))
            continue
        operation, why = guess
        fields = {name: found for name in _ASKS.get(operation, ())
                  if (found := field_of(name, each)) is not None}  # fmt: skip
        if operation == "recall" and "key" not in fields:
            key = field_of("key", each)  # of a history, or of what lies below one record
            fields |= {"key": key} if key is not None and key.where == "path" else {}
        if operation == "forget" and not {"subject", "key", "path"} & fields.keys():
            out.left.append((each, "a forget that names no subject, key or path cannot be verified"))
            continue
        rows = rows_of(each.answer) if operation in ("write", "recall", "read") else []
        captures = (
            {p.name: f"$.path.{p.name}" for p in unknown_parameters(each)} if operation != "ignore" else {}
        )
        out.routes.append(Drafted(each, _named(each, names), operation, why, fields, rows, captures))
    return out


def _unfit(endpoint: Endpoint, before: list[Drafted]) -> str | None:
    if endpoint.wire == "grpc":
        return None
    try:
        template = compile_template(endpoint.path, ())
    except CompileFault:
        return "a segment of its path is neither plain text nor one parameter"
    for other in before:
        same = other.endpoint.wire == "http" and other.endpoint.method == endpoint.method
        if same and same_shape(compile_template(other.endpoint.path, ()), template):
            return f"the route {other.name} takes all of its requests"
    return None


def _named(endpoint: Endpoint, names: dict[str, int]) -> str:
    parts = [word for word in words(endpoint.name) if word not in ("v", "api")]
    name = "-".join(parts)[:50].strip("-") or "call"
    name = name if name[0].isalpha() else f"call-{name}"
    names[name] = names.get(name, 0) + 1
    return name if names[name] == 1 else f"{name}-{names[name]}"


def route_document(drafted: Drafted) -> dict[str, Any]:
    """A route as the profile has it, every guess marked."""
    endpoint = drafted.endpoint
    told: dict[str, Any] = {"name": drafted.name, "operation": Guess(drafted.operation, drafted.why)}
    if endpoint.wire == "http":
        told["http"] = {"method": endpoint.method, "path": endpoint.path}
    else:
        told["grpc"] = {"method": endpoint.path}
    if drafted.operation == "ignore":
        return told
    if drafted.captures:
        told["capture"] = drafted.captures
    request: dict[str, Any] = {
        name: Guess(found.selector, found.why) for name, found in drafted.fields.items()
    }
    batch = _batch(drafted)
    if batch is not None:
        request |= batch
    if request:
        told["request"] = request
    response = _response(drafted)
    if response:
        told["response"] = response
    elif drafted.operation in ("recall", "read"):
        # Said, so that nobody takes it for an answer without memories.
        told["response"] = Noted(
            {}, "no rows were recognised: screened as a whole; give items and item if it has"
        )
    return told


def _batch(drafted: Drafted) -> dict[str, Any] | None:
    """The rows of a write of many: a list of objects that hold a content."""
    body = drafted.endpoint.body
    if drafted.operation != "write" or body is None:
        return None
    content = drafted.fields.get("content")
    for name, member in body.members.items():
        if member.of is None or not member.of.members or in_node("content", member.of) is None:
            continue
        if content is not None and content.steps[0] == name:
            continue  # the messages of one memory, not many memories
        item = {}
        for dimension in ("key", "tenant", "subject", "purpose", "path", "content", "derived_from"):
            found = in_node(dimension, member.of)
            if found is not None:
                item[dimension] = Guess(selector("", found[0]), f"row: {'.'.join(found[0])}")
        return {"items": Guess(selector("body", (name,)), f"body: a list of {', '.join(item)}"), "item": item}
    return None


def _response(drafted: Drafted) -> dict[str, Any]:
    rows, answer = drafted.rows, drafted.endpoint.answer
    if drafted.operation == "forget":
        return _acknowledged(answer)
    if drafted.operation == "write":
        rows = [Rows(one.items, {"key": one.item["key"]}, one.single) for one in rows if "key" in one.item]
    else:
        # Lists come first: the answer itself is a row where there is no list.
        rows = rows[:1]
    out: dict[str, Any] = {}
    if len(rows) > 1:
        out["items"] = [
            {"items": Guess(_place(one, several=True), "one or the other"), "item": item_document(one),
             "optional": True}
            for one in rows
        ]  # fmt: skip
    elif rows:
        out["items"] = Guess(_place(rows[0]), "where the answer has rows")
        out["item"] = item_document(rows[0])
    if drafted.operation == "write" and answer is not None and "202" in drafted.endpoint.statuses:
        out["ack"] = {"outcomes": Guess([{"when": {"status": 202}, "is": "queued"}], "it may answer 202")}
    return out


def _place(rows: Rows, several: bool = False) -> str:
    if rows.single and several:
        return f"$[?@.{rows.item['key'][0]}]"
    return selector("body", rows.items)


def item_document(rows: Rows) -> dict[str, Any]:
    """The parts of a row as the profile has them."""
    return {name: Guess(selector("", rows.item[name]), f"row: {'.'.join(rows.item[name])}")
            for name in _ROWS_NAMED if name in rows.item}  # fmt: skip


def _acknowledged(answer: Node | None) -> dict[str, Any]:
    found = {name: Guess(selector("body", seen[0]), f"answer: {'.'.join(seen[0])}")
             for name in ("token", "count") if (seen := in_node(name, answer)) is not None}  # fmt: skip
    return {"ack": found} if found else {}
