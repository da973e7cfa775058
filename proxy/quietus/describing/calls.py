"""How the sidecar itself would ask: a drafted route turned into a request with placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quietus.describing.guessing import Found, field_of, in_node, in_parameters, selector
from quietus.describing.nodes import Node, Steps
from quietus.describing.routes_drafted import Drafted
from quietus.describing.writing import Guess

_HELD: Final[Mapping[str | None, Mapping[str, str]]] = {
    "key": {"key": "{key}", "tenant": "{tenant?}", "subject": "{subject?}"},
    "subject": {"subject": "{subject}", "tenant": "{tenant?}"},
    "whole": {"subject": "{subject}", "tenant": "{tenant?}", "purpose": "{purposes?}"},
    "text": {"query": "{text}", "subject": "{subject?}", "tenant": "{tenant?}"},
    "vector": {"vector": "{vector}", "subject": "{subject?}", "tenant": "{tenant?}"},
    "write": {"content": "{text}", "subject": "{subject}", "tenant": "{tenant?}", "path": "{path?}",
              "ttl": "{ttl?}", "salience": "{salience?}"},
    "delete": {"key": "{key}", "tenant": "{tenant?}", "subject": "{subject?}"},
    "keys": {"key": "{keys}", "tenant": "{tenant?}", "purpose": "{purposes?}"},
    "path": {"path": "{path}", "tenant": "{tenant?}", "purpose": "{purposes?}"},
    None: {"tenant": "{tenant?}"},
}  # fmt: skip
"""What is put where, by what is asked for."""
_PAGE: Final = 100
_ROWS: Final = 50


class Asker:
    """Makes requests of one drafted route."""

    def __init__(self, drafted: Drafted) -> None:
        self._drafted = drafted
        self._endpoint = drafted.endpoint

    @property
    def key(self) -> Found | None:
        """Where the call names one record, whether or not its operation asks for it."""
        return in_parameters("key", self._endpoint.parameters)

    def needs(self, dimension: str) -> bool:
        """Whether the call cannot be made without it."""
        found = self._drafted.fields.get(dimension)
        return found is not None and (found.required or found.where == "path")

    def wired(self, use: str | None) -> dict[str, Any]:
        """The request, under the name of its wire."""
        endpoint = self._endpoint
        path, query, body = endpoint.path, {}, {}  # type: str, dict[str, Any], dict[str, Any]
        for name, filled in _HELD[use].items():
            found = self._drafted.fields.get(name) or (self.key if name == "key" else None)
            if found is None:
                continue
            if found.required or found.where == "path":
                filled = filled.replace("?}", "}")
            if found.where == "path":
                path = path.replace(f"{{{found.steps[0]}}}", filled)
            elif found.where == "query":
                query[found.steps[0]] = filled
            else:
                _put(endpoint.body or Node(), body, found, filled)
        self._limits(use, query, body)
        self._defaults(body)
        if endpoint.wire == "grpc":
            message = {"method": endpoint.path, **({"message": body} if body else {})}
            return {"grpc": Guess(message, f"asked as the route {self._drafted.name} is")}
        told: dict[str, Any] = {"method": endpoint.method, "path": path}
        told |= {"query": query} if query else {}
        told |= {"body": body} if body else {}
        return {"http": Guess(told, f"asked as the route {self._drafted.name} is")}

    def _limits(self, use: str | None, query: dict[str, Any], body: dict[str, Any]) -> None:
        if use not in ("subject", "text", "vector", None):
            return
        found = field_of("limit", self._endpoint)
        if found is not None and len(found.steps) == 1 and found.where != "path":
            many = _ROWS if use in ("text", "vector") else _PAGE
            (query if found.where == "query" else body)[found.steps[0]] = many

    def _defaults(self, body: dict[str, Any]) -> None:
        """What a body cannot be sent without, where the description has a default for it."""
        given = self._endpoint.body
        for name in sorted(given.required) if given is not None else ():
            node = given.members.get(name) if given is not None else None
            if name not in body and node is not None and node.default is not None:
                body[name] = node.default

    def pages(self) -> dict[str, Any]:
        """How a list is asked for its next page, where that can be guessed."""
        set_at = field_of("cursor", self._endpoint)
        found = in_node("next", self._endpoint.answer)
        if set_at is None or found is None or len(set_at.steps) != 1 or len(found[0]) > 2:
            return {}
        page = {"set": set_at.selector, "next": selector("body", found[0])}
        return {"page": Guess(page, "the answer says what to ask for next")}


def _put(schema: Node, body: dict[str, Any], found: Found, filled: str) -> None:
    """Puts a value at its place in a body; a list gets one member unless the value is a list itself."""
    steps: Steps = found.steps[:-1] if found.many else found.steps
    alone = not found.many or filled.startswith(("{keys", "{purposes"))
    target, way = body, 0
    while way < len(steps) - 1:
        step = steps[way]
        if steps[way + 1] == "*":
            target = target.setdefault(step, [{}])[0]
            way += 2
            inner = schema.at(steps[:way])
            if inner is not None and "role" in inner.members:  # one message of a conversation
                target["role"] = "user"
        else:
            target = target.setdefault(step, {})
            way += 1
    target[steps[-1]] = filled if alone else [filled]
