"""What a store's own description says of its API, whatever it is written in: endpoints, trees of fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from quietus.core.exchange import Wire

DEPTH: Final = 4
"""How deep fields are looked for in a body: what lies deeper is seldom who or what it is about."""
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")

Steps = tuple[str, ...]
"""The way to a field: names, and `*` for every member of an array."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a body. Where a description allows several kinds, all of them are here."""

    kinds: frozenset[str] = frozenset()
    """Of string, integer, number, boolean, object, array, null."""
    members: Mapping[str, Node] = field(default_factory=dict)
    of: Node | None = None
    """What an array holds."""
    required: frozenset[str] = frozenset()
    default: object = None

    @property
    def scalar(self) -> bool:
        """Whether it is text or a number."""
        return bool(self.kinds & {"string", "integer", "number"}) and self.of is None and not self.members

    def at(self, steps: Steps) -> Node | None:
        """The node at the end of a way, or None."""
        found: Node | None = self
        for step in steps:
            if found is None:
                return None
            found = found.of if step == "*" else found.members.get(step)
        return found

    def walk(self, depth: int = DEPTH) -> Iterator[tuple[Steps, Node]]:
        """Every member, nearest first; members of arrays of scalars are not entered."""
        level: list[tuple[Steps, Node]] = [((), self)]
        for _ in range(depth):
            below: list[tuple[Steps, Node]] = []
            for steps, node in level:
                for name, member in node.members.items():
                    yield (*steps, name), member
                    below.append(((*steps, name), member))
                    if member.of is not None and member.of.members:
                        below.append(((*steps, name, "*"), member.of))
            level = below


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a path or a query."""

    name: str
    place: str
    """`path` or `query`."""
    many: bool = False
    required: bool = False
    before: str = ""
    """Of a path: the literal segment before it."""
    integer: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One call that a store takes."""

    name: str
    wire: Wire
    method: str
    path: str
    """With `{name}` for its parameters; on gRPC the method's full name."""
    parameters: tuple[Parameter, ...] = ()
    body: Node | None = None
    answer: Node | None = None
    """Of a success."""
    streams: bool = False
    statuses: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """How people call it."""
        return f"{self.method} {self.path}" if self.wire == "http" else self.path

    @property
    def literals(self) -> list[str]:
        """The segments of its path that are no parameters."""
        return [part for part in self.path.split("/") if part and "{" not in part]


def words(text: str) -> list[str]:
    """The words of a name in lower case: `getUserMemories` and `get_user_memories` are one."""
    return [word.lower() for word in _WORD.findall(text)]
