"""One route: from a request to a Call, from the store's answer to rows and an acknowledgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from quietus.core.exchange import Request, Wire
from quietus.core.operations import Call, Item, Operation
from quietus.core.scope import ANY, UNKNOWN, Scope, Values
from quietus.profiles.acks import AckReader, Condition
from quietus.profiles.answers import read_rows
from quietus.profiles.call_words import RouteModel
from quietus.profiles.columns import Rows, compile_groups
from quietus.profiles.descriptors import Rpc
from quietus.profiles.dialects import dialect
from quietus.profiles.dimensions import (
    capture_all,
    check_name,
    contents,
    first,
    lists_nothing,
    names_asked,
    paths_asked,
    vector_of,
)
from quietus.profiles.faults import Ambiguous, CompileFault, RequestFault, Unread, Unreadable
from quietus.profiles.filters import FilterReading
from quietus.profiles.rows import Anchors
from quietus.profiles.rpc import Wiring, check_route
from quietus.profiles.selector import Place, Selector, compile_pattern, selectors
from quietus.profiles.wire import PathTemplate, compile_template
from quietus.profiles.words import FilterModel, RequestModel, SelectorModel

NAMES = ("tenant", "subject", "purpose", "key")
_PLAIN = Wiring(frozenset({"http"}))


@dataclass(frozen=True, slots=True)
class Reading:
    """A request as its profile understood it. `document` is its decoded body, None without one."""

    request: Request
    call: Call
    document: Any = None
    unreadable: tuple[str, ...] = ()
    """Names of the parts that could not be read; their dimensions are UNKNOWN."""
    mapped: bool = True
    vector: tuple[float, ...] | None = None
    salience: Any = None
    ttl: Any = None
    route: Route | None = field(default=None, repr=False)


@dataclass(slots=True)
class _Draft:
    """What has been read of a request so far."""

    view: Mapping[str, Any]
    captures: Mapping[str, str]
    bounds: dict[str, Any] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    narrowed: bool = False
    empty: bool = False


class _Filter:
    """One filter of a request, compiled."""

    __slots__ = ("fields", "read", "selector")

    def __init__(self, model: FilterModel, place: Place) -> None:
        self.selector = Selector(SelectorModel(select=model.select, decode=model.decode), place)
        self.read = dialect(model.dialect, compile_pattern(model.match, place))
        self.fields = dict(model.fields)
        if self.selector.many:
            raise CompileFault(place, "a filter is at a plain path to one value")


class Route:
    """One compiled route, on one wire."""

    def __init__(self, model: RouteModel, place: Place, wire: Wire = "http", wiring: Wiring = _PLAIN) -> None:
        self.name = model.name
        self.wire = wire
        self.place: Place = (*place, wire)
        self.operation = Operation(model.operation)
        self.rpc: Rpc | None = None
        if wire == "grpc":
            assert model.grpc is not None
            self.method, path = "POST", model.grpc.method
            if self.operation is not Operation.IGNORE or model.when:
                self.rpc = wiring.rpc(path, (*place, "grpc", "method"))
                check_route(model, self.rpc, place)
        else:
            assert model.http is not None
            self.method, path = model.http.method, model.http.path
        self.target = path
        """The path as it stands in the profile: on gRPC the method's full name."""
        self.template: PathTemplate = compile_template(path, (*place, wire, "path"))
        takes = self.rpc.takes if self.rpc is not None else None
        gives = self.rpc.gives if self.rpc is not None else None
        parts = model.model_dump_json(include={"when", "capture", "request"})
        self.reads_headers = "headers" in parts
        self.when = Condition(model.when, (*place, "when"), takes) if model.when else None
        self.capture = {
            name: Selector(one, (*place, "capture", name)) for name, one in model.capture.items()
        }
        where = (*place, "request")
        asked = model.request
        self.names = {name: selectors(getattr(asked, name), (*where, name)) for name in NAMES}
        self.names = {name: found for name, found in self.names.items() if found}
        self.path = selectors(asked.path, (*where, "path"))
        self.filters = _filters(asked, where)
        self.needs = tuple(asked.needs)
        self.narrows = selectors(asked.narrows, (*where, "narrows"))
        self.texts = {name: selectors(getattr(asked, name), (*where, name)) for name in
                      ("basis", "query", "content", "derived_from")}  # fmt: skip
        self.extras = {name: selectors(getattr(asked, name), (*where, name)) for name in
                       ("vector", "salience", "ttl")}  # fmt: skip
        self.extras = {name: found for name, found in self.extras.items() if found}
        self.batch = compile_groups(asked.items, asked.item, asked.columns, where, strict=True)
        there = (*place, "response")
        response = model.response
        self.rows = compile_groups(response.items, response.item, response.columns, there)
        self.events: list[Rows] = []
        if response.event is not None:
            event = response.event
            self.events = compile_groups(event.items, event.item or response.item, None, (*there, "event"))
        self.counts = response.counts
        if self.counts is not None and wire == "http":
            raise CompileFault((*there, "counts"), "counts are told again in messages only, not in JSON")
        self.epoch = Selector(response.epoch, (*there, "epoch")) if response.epoch else None
        self.ack = AckReader(response.ack, (*there, "ack"), gives)

    def read(self, request: Request, view: Mapping[str, Any], knows_purposes: bool) -> Reading:
        """The request as a Call. Raises RequestFault."""
        try:
            captures = capture_all(self.capture, view) if self.capture else {}
            draft = _Draft(view, captures)
            self._bounds(draft)
            items = self._batch(draft) if self.batch else ()
            query = contents_read("query", self.texts["query"], draft)
            texts = contents_read("content", self.texts["content"], draft)
            parents = contents_read("derived_from", self.texts["derived_from"], draft)
        except Ambiguous as error:
            raise RequestFault("ambiguous-request", str(error)) from None
        if self.operation is Operation.FORGET:
            self._check_forget(draft, knows_purposes)
        for item in items:
            texts += item.texts
            parents += item.derived_from
        call = Call(
            operation=self.operation,
            route=self.name,
            scope=Scope(**draft.bounds),
            query=query,
            texts=texts,
            items=items,
            derived_from=parents,
            basis=self._basis(draft),
            capture=captures,
            min_epoch=None,
        )
        vector = vector_of(first(self.extras["vector"], view, captures)) if "vector" in self.extras else None
        return Reading(
            request=request,
            call=call,
            document=view.get("document", view.get("body")),
            unreadable=tuple(draft.unreadable),
            vector=vector,
            salience=first(self.extras.get("salience", ()), view, captures) if self.extras else None,
            ttl=first(self.extras.get("ttl", ()), view, captures) if self.extras else None,
            route=self,
        )

    def _basis(self, draft: _Draft) -> str | None:
        found = contents_read("basis", self.texts["basis"], draft)
        return found[0] if found else None

    def _bounds(self, draft: _Draft) -> None:
        """Fills the dimensions: selectors first, then filters, which must agree with them."""
        for name, found in self.names.items():
            self._dimension(name, found, names_asked, draft)
        if self.path:
            self._dimension("path", self.path, paths_asked, draft)
        for one in self.filters:
            self._filter(one, draft)
        for selector in self.narrows:
            try:
                draft.narrowed |= bool(selector.nodes(draft.view, draft.captures))
            except Unread:
                draft.narrowed = True

    def _dimension(
        self, name: str, found: tuple[Selector, ...], ask: Callable[..., Any], draft: _Draft
    ) -> None:
        try:
            if self.operation is Operation.FORGET and lists_nothing(found, draft.view):
                draft.empty = True
            values = ask(found, draft.view, draft.captures, name)
        except Unread:
            values = UNKNOWN
            draft.unreadable.append(name)
        if values is not None:
            draft.bounds[name] = values

    def _filter(self, one: _Filter, draft: _Draft) -> None:
        try:
            found = one.selector.nodes(draft.view, draft.captures)
            reading = one.read(found[0] if found else None, one.fields)
        except Unread:
            reading = FilterReading().unknown({n for n in one.fields.values() if n != "narrows"})
        draft.narrowed |= reading.narrowed
        draft.empty |= reading.empty
        for name, bound in reading.bounds.items():
            if bound is UNKNOWN:
                draft.unreadable.append(name)
            _agree(name, bound, draft)

    def _batch(self, draft: _Draft) -> tuple[Item, ...]:
        """The rows of a batch, each with what the request says for all of them."""
        try:
            rows = read_rows(self.batch, draft.view, draft.captures, Anchors(), required=False)
        except Unreadable:
            fault = "the batch has another shape than the route takes"
            raise RequestFault("malformed-request", fault) from None
        shared = {
            name: next(iter(bound))
            for name, bound in draft.bounds.items()
            if isinstance(bound, frozenset) and len(bound) == 1
        }
        rows = tuple(_with_shared(row, shared) for row in rows)
        for row in rows:
            for name in ("subject", "tenant", "key"):
                value = getattr(row, name)
                if value is not None:
                    check_name(value, f"the {name} of a row")
        if rows:
            for name in (*NAMES, "path"):
                found = {getattr(row, name) for row in rows}
                if None in found:
                    draft.bounds.setdefault(name, ANY)
                elif name not in draft.bounds:
                    draft.bounds[name] = frozenset(found)
                elif isinstance(draft.bounds[name], frozenset):
                    draft.bounds[name] = draft.bounds[name] | found
        return rows

    def _check_forget(self, draft: _Draft, knows_purposes: bool) -> None:
        scope = Scope(**draft.bounds)
        if draft.empty:
            raise RequestFault("unverifiable-forget", "a list or filter of the forget is empty")
        if scope.unknown:
            raise RequestFault("unverifiable-forget", "the forget's predicate cannot be read")
        if draft.narrowed:
            raise RequestFault("unverifiable-forget", "the forget is narrowed by what cannot be verified")
        if scope.open or (self.needs and all(getattr(scope, name) is ANY for name in self.needs)):
            raise RequestFault("unverifiable-forget", "the forget names no subject, path or key")
        if scope.purpose is not ANY and not knows_purposes:
            raise RequestFault("unverifiable-forget", "this store does not keep purposes apart")


def _filters(asked: RequestModel, where: Place) -> list[_Filter]:
    given = asked.filter if isinstance(asked.filter, list) else [asked.filter] if asked.filter else []
    return [_Filter(one, (*where, "filter")) for one in given]


def _agree(name: str, bound: Values, draft: _Draft) -> None:
    """Joins what a filter says of a dimension to what selectors or other filters said."""
    if name == "path" and isinstance(bound, frozenset):
        bound = frozenset(tuple(str(text).rstrip("/").split("/")) for text in bound)  # type: ignore[misc]
    before = draft.bounds.get(name)
    if before is None or bound is UNKNOWN:
        draft.bounds[name] = bound
    elif before is not UNKNOWN and before != bound:
        raise RequestFault("ambiguous-request", f"two places of the request disagree on the {name}")


def _with_shared(row: Item, shared: Mapping[str, Any]) -> Item:
    missing = {n: v for n, v in shared.items() if n != "key" and getattr(row, n) is None}
    if not missing:
        return row
    values = {name: getattr(row, name) for name in Item.__slots__}
    return Item(**{**values, **missing})


def contents_read(name: str, found: tuple[Selector, ...], draft: _Draft) -> tuple[str, ...]:
    """The texts that a part of the request holds; what cannot be read is noted by name."""
    if not found:
        return ()
    try:
        return contents(found, draft.view, draft.captures)
    except Unread:
        draft.unreadable.append(name)
        return ()
