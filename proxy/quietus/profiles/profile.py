"""A compiled profile: requests in, Calls out; answers in, rows and acknowledgements out. Pure.

The routes are tried in order and the first match wins. What no route matches is unmapped: it is
taken for a recall of who knows what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from quietus.core.exchange import Reply, Request, header
from quietus.core.operations import Call, Item, Operation
from quietus.core.scope import UNKNOWN, Scope
from quietus.profiles.acks import Ack, epoch_in, reply_view, text_in
from quietus.profiles.answers import Answered, answered, read_answer, read_document
from quietus.profiles.codec import decode_json
from quietus.profiles.compiled import WIDE, Compiled, compile_profile
from quietus.profiles.descriptors import Rpc
from quietus.profiles.faults import Ambiguous, CannotQuote, NotJson, RequestFault, Unreadable
from quietus.profiles.message_answers import (
    MessageAnswered,
    read_message,
    read_one,
    reply_document,
    request_view,
)
from quietus.profiles.models import ProfileModel, StoreModel
from quietus.profiles.routes import Reading, Route
from quietus.profiles.rpc import Wiring
from quietus.profiles.rpc_templates import AnyTemplate, RpcTemplate
from quietus.profiles.strengthening import strengthened
from quietus.profiles.surface import Surface
from quietus.profiles.wire import canonical_segments, check_json_request, header_fields, parse_query

_UNMAPPED: Final = Call(Operation.RECALL, scope=Scope(tenant=UNKNOWN))
_BODILESS_HEAD: Final = "HEAD"


class Profile:
    """What is known of one store's API. Made by `loader`; see its module for how."""

    def __init__(self, model: ProfileModel, fingerprint: str, wiring: Wiring = WIDE) -> None:
        compiled: Compiled = compile_profile(model, wiring)
        self._model = model
        self._wiring = wiring
        self.wires = wiring.wires
        self.told = wiring.told
        self.descriptors = wiring.descriptors
        self.name, self.summary = model.name, model.summary
        self.store = model.store
        self.fingerprint = fingerprint
        self.mapping_fingerprint = _mapping_fingerprint(model, wiring)
        self.routes: tuple[Route, ...] = compiled.routes
        self.route_names = tuple(dict.fromkeys(route.name for route in compiled.routes))
        self.surfaces: tuple[Surface, ...] = compiled.surfaces
        self.controls: Surface | None = compiled.controls
        self.forget_each_record: str | None = model.forgets.each_record
        self.lints: tuple[str, ...] = compiled.lints
        self._compiled = compiled
        self._candidates: dict[tuple[str, int], tuple[Route, ...]] = {}
        self._methods: dict[str, list[Route]] = {}
        for route in compiled.routes:
            if route.wire == "grpc":
                self._methods.setdefault(route.target, []).append(route)

    def __repr__(self) -> str:
        return f"Profile({self.name!r}, {len(self.routes)} routes, {len(self.surfaces)} surfaces)"

    def with_store(self, **changes: Any) -> Profile:
        """The same profile with other settings of its store, such as shorter intervals.

        Raises CompileFaults where they do not hold together.
        """
        store = StoreModel.model_validate({**self._model.store.model_dump(exclude_unset=True), **changes})
        return Profile(self._model.model_copy(update={"store": store}), self.fingerprint, self._wiring)

    def read(self, request: Request) -> Reading:
        """The request as a Call; unmapped where no route matches. Raises RequestFault."""
        if request.wire == "grpc":
            return self._read_message(request)
        segments = canonical_segments(request.path)
        method = "GET" if request.method == _BODILESS_HEAD else request.method
        view: dict[str, Any] | None = None
        for route in self._routes_for(method, len(segments)):
            parameters = route.template.match(segments)
            if parameters is None:
                continue
            if view is None:
                view = {"query": parse_query(request.query)}
            view["path"] = parameters
            if route.reads_headers and "headers" not in view:
                view["headers"] = header_fields(request.headers)
            if route.operation is Operation.IGNORE and route.when is None:
                return Reading(request, Call(Operation.IGNORE, route.name), route=route)
            if "body" not in view and request.body:
                view["body"] = _request_body(request)
            found = self._taken(route, request, view)
            if found is not None:
                return found
        return _with_min_epoch(Reading(request, _UNMAPPED, mapped=False))

    def _read_message(self, request: Request) -> Reading:
        """As `read`, of a message; the method's name is matched exactly."""
        view: dict[str, Any] | None = None
        routes = self._methods.get(request.target, [])
        writes = any(route.operation is Operation.WRITE for route in routes)
        for route in routes:
            if route.rpc is not None and view is None:
                view = request_view(request, route.rpc, writes=writes)
            found = self._taken(route, request, view or {})
            if found is not None:
                return found
        return _with_min_epoch(Reading(request, _UNMAPPED, mapped=False))

    def _taken(self, route: Route, request: Request, view: dict[str, Any]) -> Reading | None:
        """The request as this route reads it, or None where its condition does not hold."""
        try:
            if route.when is not None and not route.when.holds(view):
                return None
        except Ambiguous as error:
            raise RequestFault("ambiguous-request", str(error)) from None
        if route.operation is Operation.IGNORE:
            return Reading(request, Call(Operation.IGNORE, route.name), route=route)
        return _with_min_epoch(route.read(request, view, self.store.knows_purposes))

    def answer(self, reading: Reading, reply: Reply) -> Answered:
        """The rows and scalars of an answer. Raises Unreadable."""
        route = reading.route
        if reading.request.wire == "grpc":
            found: Answered = _route_message(route, reply, reading.call.capture)
        elif route is None:
            return read_answer(reply, ())
        elif reading.request.method == _BODILESS_HEAD and not reply.body:
            return Answered(text="")
        else:
            found = read_answer(reply, route.rows, reading.call.capture)
        if route is None:
            return found
        if route.epoch is not None:
            found.epoch = epoch_in(route.epoch, reply_view(reply, found.document))
        if reading.call.operation is Operation.WRITE and found.items:
            found.items = _with_subject(found.items, reading.call.scope)
        return found

    def event(self, reading: Reading, data: bytes) -> Answered:
        """The rows and scalars in one server-sent event, or one message of a stream. Raises Unreadable.

        Data that is no JSON is text, unless the route says where the rows of an event are.
        """
        route = reading.route
        groups = route.events if route is not None else []
        if reading.request.wire == "grpc":
            if route is None or route.rpc is None:
                return MessageAnswered(plain=data)
            return read_one(data, groups or route.rows, route.rpc.gives, reading.call.capture, route.counts)
        try:
            document = read_document(data)
        except Unreadable:
            try:
                return Answered(plain=data, text=data.decode("utf-8"))
            except UnicodeDecodeError:
                raise Unreadable("an event is not UTF-8") from None
        return answered(document, data, groups, reading.call.capture, required=False)

    def ack(self, reading: Reading, reply: Reply) -> Ack:
        """What the answer of a forget or a write claims. Never raises."""
        if reading.route is None:
            return Ack("unclear")
        document = reply_document(reply, reading.route.rpc)
        return reading.route.ack.read(reply, document, reading.call.capture)

    def strengthen(self, reading: Reading, request: Request, epoch: int | None) -> Request:
        """The recall, asked for an answer that has caught up; the same object if nothing is to be set."""
        sets = self._compiled.strengthen.get(reading.call.route)
        if not sets:
            return request
        values = {**reading.call.capture, "epoch": epoch}
        rpc = reading.route.rpc if reading.route is not None else None
        return strengthened(request, sets, values, rpc)

    def remedy(self, name: str, values: Mapping[str, Any]) -> Request | None:
        """A remedy by its name, or None. Raises CannotQuote, MissingValue."""
        return _filled(self._compiled.remedies.get(name), values)

    def forget(
        self, predicate_kind: Literal["subject", "keys", "path"], values: Mapping[str, Any]
    ) -> Request | None:
        """A forget of our own, or None where the store has none. Raises CannotQuote, MissingValue."""
        return _filled(self._compiled.forgets.get(predicate_kind), values)

    def canary_write(self, values: Mapping[str, Any]) -> Request | None:
        """The write of a canary, or None. Raises CannotQuote, MissingValue."""
        return _filled(self._compiled.canary, values)

    def canary_key(self, reply: Reply, given: str | None = None) -> str | None:
        """The key of a canary: the store's, or where the profile names none the one that was `given`."""
        selector = self._compiled.canary_key
        if selector is None:
            return given if 200 <= reply.status < 300 else None
        return text_in(selector, reply_view(reply, reply_document(reply, _rpc(self._compiled.canary))))

    @property
    def forget_kinds(self) -> frozenset[str]:
        """What the sidecar itself can ask this store to forget: of subject, keys, path."""
        return frozenset(self._compiled.forgets)

    @property
    def canary_values(self) -> frozenset[str] | None:
        """The placeholders of the canary's write; None where the profile has no canary."""
        canary = self._compiled.canary
        return None if canary is None else frozenset(canary.names)

    @property
    def canary_required(self) -> frozenset[str]:
        """Those of them without which no canary can be written."""
        canary = self._compiled.canary
        return frozenset() if canary is None else frozenset(canary.required)

    def epoch_request(self) -> Request | None:
        """How the store's read epoch is asked for, or None."""
        return _filled(self._compiled.epoch, {})

    def epoch_value(self, reply: Reply) -> int | None:
        """The read epoch in an answer to `epoch_request`, or None."""
        if self._compiled.epoch_value is None or not 200 <= reply.status < 300:
            return None
        view = reply_view(reply, reply_document(reply, _rpc(self._compiled.epoch)))
        return epoch_in(self._compiled.epoch_value, view)

    def _routes_for(self, method: str, segments: int) -> tuple[Route, ...]:
        """The routes that a path of so many segments can match, in order."""
        segments = min(segments, self._compiled.longest + 1)
        key = (method, segments)
        found = self._candidates.get(key)
        if found is None:
            found = tuple(
                route for route in self.routes
                if route.wire == "http" and route.method == method
                and (len(route.template.segments) == segments if route.template.rest is None
                     else len(route.template.segments) < segments)
            )  # fmt: skip
            if found:  # bounded: the methods of the profile times its longest path
                self._candidates[key] = found
        return found


def _request_body(request: Request) -> Any:
    check_json_request(request.headers)
    try:
        return decode_json(request.body)
    except NotJson as error:
        problem = "too-large" if error.too_large else "malformed-request"
        raise RequestFault(problem, f"the body is not strict JSON: {error}") from None


def _route_message(route: Route | None, reply: Reply, captures: Mapping[str, str]) -> MessageAnswered:
    if route is None or route.rpc is None:
        return read_message(reply, (), None)
    return read_message(reply, route.rows, route.rpc.gives, captures, route.counts)


def _with_min_epoch(reading: Reading) -> Reading:
    text = header(reading.request.headers, "quietus-min-epoch")
    if text is None:
        return reading
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RequestFault("malformed-request", "Quietus-Min-Epoch is a whole number")
    return replace(reading, call=replace(reading.call, min_epoch=int(text)))


def _with_subject(items: tuple[Item, ...], scope: Scope) -> tuple[Item, ...]:
    """Rows of a write take the request's subject where they carry none."""
    if not isinstance(scope.subject, frozenset) or len(scope.subject) != 1:
        return items
    subject = str(next(iter(scope.subject)))
    return tuple(item if item.subject is not None else replace(item, subject=subject) for item in items)


def _mapping_fingerprint(model: ProfileModel, wiring: Wiring) -> str:
    """Of how the store is spoken to: everything but its `store` block and its summary."""
    found = hashlib.sha256(model.model_dump_json(exclude={"store", "summary"}).encode())
    if wiring.descriptors is not None:
        found.update(wiring.descriptors.digest)
    return found.hexdigest()


def _rpc(template: AnyTemplate | None) -> Rpc | None:
    return template.rpc if isinstance(template, RpcTemplate) else None


def _filled(template: AnyTemplate | None, values: Mapping[str, Any]) -> Request | None:
    return template.fill(values) if template is not None else None


__all__ = ["Ack", "Answered", "CannotQuote", "Profile", "Reading", "Surface"]
