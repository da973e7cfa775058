"""A route of the admin API: a typed handler, who may call it, and what its types mean on the wire.

A handler is a function of a request and, where it has such parameters, of a typed `query` and `body`
(`admin.asked`). What it may answer stands in its return type: a document of `shown` or one in an `Answer`
that has another status, a `Text`, or None for 204. From these types a request is read and an answer written,
and `openapi` makes the description of them: nothing is said twice.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from aiohttp import web
from pydantic import BaseModel, ValidationError

from quietus.admin.asked import Body, Query
from quietus.admin.guard import IDENTITY, Handler, Refused, body_of
from quietus.admin.office import OFFICE
from quietus.admin.tokens import Role
from quietus.ports import LedgerUnavailable

_T = TypeVar("_T")
_Model = TypeVar("_Model", bound=BaseModel)
ID: Final = r"[A-Za-z0-9_-]{1,64}"
"""What an id in a path looks like."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[_T]):
    """A document with the status 200; the classes below have others."""

    document: _T
    status: ClassVar[int] = 200


class Created(Answer[_T]):
    """It is new."""

    status: ClassVar[int] = 201


class Accepted(Answer[_T]):
    """It is taken in; what comes of it shows later."""

    status: ClassVar[int] = 202


class Unready(Answer[_T]):
    """Not now."""

    status: ClassVar[int] = 503


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is no JSON document."""

    text: str
    media: ClassVar[str] = "text/plain"
    parameters: ClassVar[str] = "; charset=utf-8"
    headers: ClassVar[Mapping[str, str]] = {}


class Page(Text):
    """A page for people: self-contained, nothing is loaded."""

    media: ClassVar[str] = "text/html"
    headers: ClassVar[Mapping[str, str]] = {
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"
    }


class Lines(Text):
    """JSON documents, one a line."""

    media: ClassVar[str] = "application/x-ndjson"


class Exposition(Text):
    """Prometheus's text format."""

    parameters: ClassVar[str] = "; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Typed:
    """The types of a handler."""

    query: type[Query] | None
    body: type[Body] | None
    answers: tuple[Any, ...]
    """What it may return, each once."""


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    """As OpenAPI writes it: `{id}` is the one parameter that there is."""
    handler: Callable[..., Awaitable[Any]]
    role: Role | None = None
    """The least role that may call it; None: whoever reaches the port."""
    may: tuple[str, ...] = ()
    """Names of problems that it may answer with, beside those that follow from its types and its role."""

    @property
    def pattern(self) -> str:
        """The path as aiohttp's router takes it."""
        return self.path.replace("{id}", f"{{id:{ID}}}")


@cache
def typed(handler: Callable[..., Awaitable[Any]]) -> Typed:
    """What a handler takes and gives, from its annotations."""
    hints = get_type_hints(handler, include_extras=True)
    given = hints["return"]
    several = get_origin(given) in (Union, types.UnionType)
    return Typed(hints.get("query"), hints.get("body"), get_args(given) if several else (given,))


def served(route: Route) -> Handler:
    """A route as aiohttp serves it."""
    its = typed(route.handler)

    async def serve(request: web.Request) -> web.StreamResponse:
        if route.role is not None and request[IDENTITY].role < route.role:
            raise Refused("forbidden", f"needs the role {route.role.name.lower()}")
        if route.role is not None and route.method != "GET" and request.app[OFFICE].erasures.closed_cause:
            # What is written to a ledger that may lose it, or is another one, must not be acknowledged.
            raise LedgerUnavailable("the gate is shut for everything: nothing is changed")
        given: dict[str, Any] = {}
        if its.query is not None:
            if len(request.query) != len(set(request.query)):
                raise Refused("malformed-request", "a name stands in the query twice")
            given["query"] = _read(dict(request.query), its.query)
        if its.body is not None:
            given["body"] = _read(await body_of(request), its.body)
        return _written(await route.handler(request, **given))

    return serve


def _written(answer: object) -> web.Response:
    if answer is None:
        return web.Response(status=204)
    if isinstance(answer, Text):
        kind = {"Content-Type": answer.media + answer.parameters}
        return web.Response(body=answer.text.encode(), headers={**kind, **answer.headers})
    if isinstance(answer, Answer):
        return web.json_response(answer.document, status=answer.status)
    return web.json_response(answer)


def _read(given: Mapping[str, Any], model: type[_Model]) -> _Model:
    """What was sent, as the type has it. Raises Refused, whose words name known fields and no values."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        names = [field.alias or name for name, field in model.model_fields.items()]
        # A name that is not of the type was made up by whoever sent it.
        field = next((str(step) for step in found["loc"][:1] if step in names), "")
        said = found["msg"].removeprefix("Value error, ")
        if found["type"] == "extra_forbidden":
            said = "has a field that is unknown" if field else f"an unknown field; known: {', '.join(names)}"
        if found["type"] == "missing":
            said = "it is missing"
        raise Refused("malformed-request", f"{field}: {said}" if field else said) from None
