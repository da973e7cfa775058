"""What a profile's selectors may name in the messages of a method: checked when the profile is loaded.

A field that is absent from a message may be empty, and a field of another name is absent from every message:
only the descriptor set tells the two apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.exchange import Wire
from quietus.profiles.call_words import RouteModel
from quietus.profiles.descriptors import Descriptors, Field, MessageType, Rpc
from quietus.profiles.faults import CompileFault

Place = tuple[str | int, ...]
_BODY: Final = re.compile(r"^\$\.body(?=[.\[]|$)")
_STEP: Final = re.compile(r"\.([A-Za-z_]\w*)|\[(\*|-?\d+|'[^']*'|\"[^\"]*\")\]")
WIRES: Final[tuple[Wire, ...]] = ("http", "grpc")
BOTH: Final[frozenset[Wire]] = frozenset(WIRES)


@dataclass(frozen=True, slots=True)
class Wiring:
    """The wires that the store can be reached by, and what the messages of gRPC look like."""

    wires: frozenset[Wire] = BOTH
    descriptors: Descriptors | None = None
    told: bytes | None = None
    """The descriptor set as the store has told it, where it has: what a reloaded profile goes on with."""

    def rpc(self, method: str, place: Place) -> Rpc:
        """The method. Raises CompileFault where it is not described."""
        if self.descriptors is None:
            raise CompileFault(
                place, "nothing describes the messages of this method",
                "say where the descriptor set is: descriptors: {file: NAME.pb} or {module: NAME_pb2}",
            )  # fmt: skip
        found = self.descriptors.rpc(method)
        if found is None:
            raise CompileFault(
                place, f"the descriptor set lacks the method {method} and its messages",
                "make the set anew from the .proto files of the store, or correct the name",
            )  # fmt: skip
        return found


def type_at(kind: MessageType, text: str, place: Place) -> MessageType | Field | None:
    """What a path leads to, `$` being the message: its type, a field of no type, None if nobody can say.

    Raises CompileFault where a step names no field.
    """
    here: MessageType | Field | None = kind
    inside_map = False
    at = 1
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None or here is None:
            return None
        at = step.end()
        name = step[1] or (step[2].strip("'\"") if step[2][0] in "'\"" else None)
        if inside_map:
            inside_map = False  # any key leads to the type of the map's values
        elif name is None:
            continue
        elif isinstance(here, Field):
            raise CompileFault(place, f"nothing is called {name} in {here.name}, which is no message")
        else:
            field = here.names.get(name)
            if field is None:
                raise CompileFault(
                    place, f"the message {here.name} has no field {name}",
                    f"its fields are {', '.join(sorted(here.names)) or 'none'}",
                )  # fmt: skip
            here, inside_map = _of(field), field.is_map
    return here


def _of(field: Field) -> MessageType | Field:
    if field.is_map and field.message is not None:
        value = field.message.names["value"]
        return value.message or value
    return field.message or field


def absent_at(kind: MessageType, text: str, otherwise: Any) -> Any:
    """What a condition is held against where its field is absent; `otherwise` for a place of no field."""
    body = _BODY.match(text)
    if body is None or text == "$.body":
        return otherwise
    here: MessageType | None = kind
    found: Any = otherwise
    for step in text[body.end() + 1 :].split("."):
        field = here.names.get(step) if here is not None else None
        if field is None or field.is_map:
            return otherwise
        here, found = field.message, field.absent()
    return found


def check_route(model: RouteModel, rpc: Rpc, place: Place) -> None:
    """Every selector of the route against the messages of its method. Raises CompileFault."""
    response = model.response.model_dump(exclude_unset=True)
    rows = {"items": response.pop("items", None), "item": response.pop("item", None)}
    event = response.pop("event", None)
    asked = model.request.model_dump(exclude_unset=True)
    batch = {"items": asked.pop("items", None), "item": asked.pop("item", None)}
    check_selectors({"when": dict(model.when), "capture": dict(model.capture)}, rpc.takes, place)
    for part, kind, where in ((asked, rpc.takes, "request"), (batch["items"], rpc.takes, "request"),
                              (response, rpc.gives, "response"), (rows["items"], rpc.gives, "response"),
                              (event, rpc.gives, "response")):  # fmt: skip
        check_selectors(part, kind, (*place, where))
    check_rows(batch["items"], batch["item"], rpc.takes, (*place, "request"))
    check_rows(rows["items"], rows["item"], rpc.gives, (*place, "response"))


def check_selectors(part: Any, kind: MessageType, place: Place) -> None:
    """Every selector within a part of a profile that starts at the body. Raises CompileFault."""
    for where, text in _texts(part, place):
        if _BODY.match(text):
            type_at(kind, "$" + text[len("$.body") :], where)


def check_rows(items: Any, item: Any, kind: MessageType, place: Place) -> None:
    """The selectors of rows, which start at what `items` leads to. Raises CompileFault."""
    groups = items if isinstance(items, list) else [{"items": items, "item": item}]
    for at, group in enumerate(groups):
        where = (*place, "items", at, "item") if isinstance(items, list) else (*place, "item")
        select = group["items"]
        if isinstance(select, Mapping):
            if select.get("dialect") or select.get("decode") or select.get("then"):
                continue
            select = select.get("select")
        if not isinstance(select, str) or not _BODY.match(select):
            continue
        row = type_at(kind, "$" + select[len("$.body") :], where)
        if isinstance(row, Field):
            raise CompileFault(where, "the items lead to a field that holds no messages")
        if row is not None:
            for inner, text in _texts(group["item"], where):
                if text.startswith("$."):
                    type_at(row, text, inner)


def _texts(part: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Every string within a part of a profile, and every key that is a path, with its place."""
    if isinstance(part, str):
        yield place, part
    elif isinstance(part, Mapping):
        for name, value in part.items():
            if isinstance(name, str) and name.startswith("$."):
                yield (*place, name), name
            if name not in ("template", "match", "join", "split", "then", "when"):
                yield from _texts(value, (*place, name))
            elif name == "when" and isinstance(value, Mapping):
                yield from (((*place, name, key), key) for key in value if key.startswith("$."))
    elif isinstance(part, list):
        for at, value in enumerate(part):
            yield from _texts(value, (*place, at))
