"""The words that requests are written with: the routes of a store, and the calls that are our own.

`words` has those for what is read from them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from quietus.profiles.words import Model, RequestModel, ResponseModel, SelectorOne, When

MCP_LATER = "the MCP wire is not served yet: describe the store's HTTP or gRPC API"
WIRELESS = "nothing says on which wire: give http, grpc or both"
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
RPC = r"^/[A-Za-z_][A-Za-z0-9_.]*/[A-Za-z_][A-Za-z0-9_]*$"


class RouteHttp(Model):
    """A method and a path; `{name}` is one segment, `{name...}` the rest."""

    method: Method
    path: str = Field(pattern=r"^/")


class RouteGrpc(Model):
    """A method of a service, by its full name."""

    method: str = Field(pattern=RPC)


class CallHttp(Model):
    """A request of our own. `{name}` is filled in; `{name?}` leaves its member out without a value."""

    method: Method
    path: str = Field(pattern=r"^/")
    query: dict[str, Any] = {}
    headers: dict[str, str] = {}
    body: Any = None


class CallGrpc(Model):
    """A request of our own: a method, and a message by the names of its fields."""

    method: str = Field(pattern=RPC)
    headers: dict[str, str] = {}
    message: dict[str, Any] = {}
    encode: dict[str, str] = {}
    """Fields, by their dotted names, whose bytes are `f32` (a packed vector), `json`, or a message by its
    full name."""
    quote: dict[str, Literal["milvus", "segment"]] = {}
    """Fields that hold a filter, whose placeholders become literals of that dialect; or a path, in which
    each is one segment."""


class Wired(Model):
    """Something that is said on a wire. With both, the one is used that the store is reached by."""

    http: Any = None
    grpc: Any = None
    mcp: Any = Field(None, exclude=True)

    @model_validator(mode="after")
    def _said(self) -> Wired:
        if self.mcp is not None:
            raise ValueError(MCP_LATER)
        if self.http is None and self.grpc is None and self._must_be_wired():
            raise ValueError(WIRELESS)
        return self

    def _must_be_wired(self) -> bool:
        return True


class RouteModel(Wired):
    """One route of the store's API and what it means."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=60)
    operation: Literal["write", "read", "recall", "forget", "ignore"]
    http: RouteHttp | None = None
    grpc: RouteGrpc | None = None
    when: When = {}
    capture: dict[str, SelectorOne] = {}
    request: RequestModel = RequestModel()
    response: ResponseModel = ResponseModel()


class CallModel(Wired):
    """A request of our own on a wire."""

    http: CallHttp | None = None
    grpc: CallGrpc | None = None


class PageModel(Model):
    """How a list is asked for its next page: by what the answer says, or by steps.

    `set` is one place, or one for each wire.
    """

    set: str | dict[Literal["http", "grpc"], str]
    from_: str | int | None = Field(None, alias="from")
    next: SelectorOne | None = None
    step: int | None = Field(None, ge=1)
    until: Literal["short"] | When | None = None

    @model_validator(mode="after")
    def _one_style(self) -> PageModel:
        if (self.next is None) == (self.step is None):
            raise ValueError("a page has either next, or step (with until)")
        if self.step is not None and not isinstance(self.from_, int):
            raise ValueError("a page with step needs from, a number")
        if self.next is not None and self.until is not None:
            raise ValueError("until belongs to a page with step")
        return self
