"""The OpenAPI description of the admin API, made of its routes and of the types of their handlers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from quietus.admin.guard import Problem
from quietus.admin.route import ID, Answer, Route, Text, typed
from quietus.core.problems import PROBLEMS

Mode = Literal["validation", "serialization"]
Schema = dict[str, Any]

_JSON: Final = "application/json"
_ALWAYS: Final = {403: ("forbidden",), 421: ("forbidden",), 500: ("internal",)}
"""A foreign origin, a host that is not known here, and a fault of our own."""
_GUARDED: Final = {
    401: ("unauthenticated",), 429: ("overloaded",), 503: ("ledger-unavailable", "reviews-unavailable"),
}  # fmt: skip
_TAKES: Final = {400: ("malformed-request",)}
_TAKES_BODY: Final = {413: ("too-large",), 415: ("malformed-request",)}


class _Untitled(GenerateJsonSchema):
    """Without the titles that are the names once more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def described(routes: tuple[Route, ...]) -> Schema:
    """The document of these routes."""
    parts = _parts(routes)
    paths: Schema = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, parts)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quietus admin API", "version": "1"},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": parts.definitions,
        },
    }


class _Parts:
    """The schema of every type that a route names: a reference, and what it refers to."""

    def __init__(self, types: Iterable[tuple[Any, Mode]]) -> None:
        wanted = [(str(kind), mode, TypeAdapter(kind)) for kind, mode in dict.fromkeys(types)]
        self._found, told = TypeAdapter.json_schemas(
            wanted, ref_template="#/components/schemas/{model}", schema_generator=_Untitled
        )
        self.definitions: Schema = dict(sorted(told.get("$defs", {}).items()))

    def of(self, kind: Any, mode: Mode) -> Schema:
        """The schema of a type as it is sent (validation) or answered (serialization)."""
        return dict(self._found[str(kind), mode])

    def whole(self, kind: Any) -> Schema:
        """The same, with what it refers to in its place."""
        schema = self.of(kind, "validation")
        name = schema.get("$ref", "").rpartition("/")[2]
        return dict(self.definitions[name]) if name else schema


def _parts(routes: Iterable[Route]) -> _Parts:
    def named() -> Iterator[tuple[Any, Mode]]:
        yield Problem, "serialization"
        for route in routes:
            its = typed(route.handler)
            for asked in (its.query, its.body):
                if asked is not None:
                    yield asked, "validation"
            for answer in its.answers:
                _, _, kind = _answer(answer)
                if kind is not None:
                    yield kind, "serialization"

    return _Parts(named())


def _answer(given: Any) -> tuple[int, str, Any]:
    """The status, the media type and the type of the document of one thing that a handler may return."""
    kind = get_origin(given) or given
    if given is type(None):
        return 204, "", None
    if isinstance(kind, type) and issubclass(kind, Text):
        return 200, kind.media, str
    if isinstance(kind, type) and issubclass(kind, Answer):
        return kind.status, _JSON, get_args(given)[0]
    return 200, _JSON, given


def _operation(route: Route, parts: _Parts) -> Schema:
    its = typed(route.handler)
    summary, _, more = (inspect.getdoc(route.handler) or route.path).partition("\n\n")
    made: Schema = {"summary": " ".join(summary.split()).rstrip("."), "responses": _responses(route, parts)}
    said = [" ".join(more.split())] if more else []
    if route.role is None:
        made["security"] = []
    else:
        said.append(f"Needs the role {route.role.name.lower()}.")
    if said:
        made["description"] = " ".join(said)
    parameters = [_ID] if "{id}" in route.path else []
    if its.query is not None:
        parameters += list(_parameters(parts.whole(its.query)))
        parts.definitions.pop(its.query.__name__, None)
    if parameters:
        made["parameters"] = parameters
    if its.body is not None:
        needed = any(field.is_required() for field in its.body.model_fields.values())
        schema = parts.of(its.body, "validation")
        made["requestBody"] = {"required": needed, "content": {_JSON: {"schema": schema}}}
    return made


_ID: Final = {"name": "id", "in": "path", "required": True,
              "schema": {"type": "string", "pattern": f"^{ID}$"}}  # fmt: skip


def _parameters(query: Schema) -> Iterator[Schema]:
    for name, schema in query["properties"].items():
        known = {word: value for word, value in schema.items() if word not in ("description", "anyOf")}
        options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
        if options:  # in a query nothing is null: it is there or not
            known.pop("default", None)
            known |= options[0]
        yield {"name": name, "in": "query", "schema": known, "description": schema["description"]}


def _responses(route: Route, parts: _Parts) -> Schema:
    found: dict[int, Schema] = {}
    for given in typed(route.handler).answers:
        status, media, kind = _answer(given)
        answer = found.setdefault(status, {"description": _said(kind)})
        if kind is not None:
            answer.setdefault("content", {})[media] = {"schema": parts.of(kind, "serialization")}
    problem = {"application/problem+json": {"schema": parts.of(Problem, "serialization")}}
    for status, names in sorted(_problems(route).items()):
        told = "; ".join(f"{name}: {PROBLEMS[name].title}" for name in names)
        answer = found.setdefault(status, {"description": told})
        answer.setdefault("content", {}).update(problem)
    return {str(status): found[status] for status in sorted(found)}


def _said(kind: Any) -> str:
    if kind is None:
        return "It is done."
    told = "" if kind in (str, dict) or get_origin(kind) else inspect.getdoc(kind) or ""
    return " ".join(told.partition("\n\n")[0].split()) or "As it is."


def _problems(route: Route) -> dict[int, tuple[str, ...]]:
    """The names of the problems that a route may answer with, by their status."""
    its = typed(route.handler)
    known: list[Mapping[int, tuple[str, ...]]] = [_ALWAYS]
    if route.role is not None:
        known.append(_GUARDED)
    if "{id}" in route.path:
        known.append({404: ("not-found",)})
    if its.query is not None or its.body is not None:
        known.append(_TAKES)
    if its.body is not None:
        known.append(_TAKES_BODY)
    known += [{PROBLEMS[name].status: (name,)} for name in route.may]
    found: dict[int, tuple[str, ...]] = {}
    for one in known:
        for status, names in one.items():
            found[status] = tuple(dict.fromkeys((*found.get(status, ()), *names)))
    return found
