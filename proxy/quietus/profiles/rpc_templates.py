"""Requests of our own over gRPC: a message filled in from values, with a filter quoted by its dialect.

A placeholder that stands alone keeps its value's type, as on HTTP; the descriptor set says what its field
takes. What a field cannot hold, and what a dialect cannot quote, is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from quietus.core.exchange import Request
from quietus.profiles.call_words import CallGrpc, Wired
from quietus.profiles.codec import encode_json
from quietus.profiles.descriptors import Rpc
from quietus.profiles.expression_words import quoted, segments
from quietus.profiles.faults import CannotQuote, CompileFault
from quietus.profiles.messages import Coder, encode
from quietus.profiles.rpc import Place, Wiring, type_at
from quietus.profiles.templates import Template, fill, header_value, names_of, put

_QUOTES: Final = {"milvus": quoted, "segment": segments}


class RpcTemplate:
    """One request with placeholders. `names` are those it needs."""

    method: Final = "POST"

    def __init__(self, model: CallGrpc, place: Place, wiring: Wiring) -> None:
        self.rpc: Rpc = wiring.rpc(model.method, (*place, "method"))
        self.path = model.method
        self.headers = dict(model.headers)
        self.message = dict(model.message)
        parts = {"headers": self.headers, "message": self.message}
        self.names = {
            name: (*place, part) for part, value in parts.items() for name, _ in names_of(value)
        }
        self.required = {name for value in parts.values() for name, free in names_of(value) if not free}
        self._coders: dict[str, Coder] = {}
        for name, what in model.encode.items():
            self._coders[name] = _coder(name, what, (*place, "encode", name), wiring, self._coders)
        self._filters = {}
        for name, dialect in model.quote.items():
            self._filters[name] = _QUOTES[dialect]
        for name in self.message:
            type_at(self.rpc.takes, f"$.{name}", (*place, "message"))

    def fill(self, values: Mapping[str, Any], sets: Mapping[str, Any] | None = None) -> Request:
        """The request. `sets` are values for `$.headers.x` or `$.body.x` beside it.

        Raises CannotQuote and MissingValue.
        """
        plain = {name: value for name, value in self.message.items() if name not in self._filters}
        message: Any = fill(plain, values)
        for name, quote in self._filters.items():
            if name in self.message:
                message[name] = quote(str(self.message[name]), values)
        headers: dict[str, Any] = fill(self.headers, values)
        query: dict[str, Any] = {}
        for target, value in (sets or {}).items():
            message = put(target, value, query, headers, message)
        if query:
            raise CannotQuote("a message has no query")
        pairs = tuple((name.lower(), header_value(value)) for name, value in headers.items())
        body = encode(message, self.rpc.takes, self._coders)
        return Request(self.method, self.path, pairs, body, "grpc")


def _coder(name: str, what: str, place: Place, wiring: Wiring, coders: dict[str, Coder]) -> Coder:
    if what == "f32":
        return _floats
    if what == "json":
        return encode_json
    kind = wiring.descriptors.message(what) if wiring.descriptors is not None else None
    if kind is None:
        raise CompileFault(place, f"nothing is called {what}", "encode takes f32, json, or a message by name")
    return lambda value: encode(value, kind, coders, name)


def _floats(value: Any) -> bytes:
    if not isinstance(value, list) or not all(type(one) in (int, float) for one in value):
        raise CannotQuote("a vector is filled in with something else")
    try:
        return struct.pack(f"<{len(value)}f", *value)
    except (OverflowError, struct.error):
        raise CannotQuote("a number is too large for a vector") from None


AnyTemplate = Template | RpcTemplate


def make_template(call: Wired, place: Place, wiring: Wiring) -> AnyTemplate:
    """The request, on a wire that the store is reached by. Raises CompileFault."""
    if call.http is not None and "http" in wiring.wires:
        return Template(call.http, (*place, "http"))
    if call.grpc is not None and "grpc" in wiring.wires:
        return RpcTemplate(call.grpc, (*place, "grpc"), wiring)
    only = "http" if call.http is not None else "grpc"
    raise CompileFault(
        (*place, only), f"this can only be asked over {only}, and the store is not reached by that",
        f"configure store.{only}, or say it for the other wire too",
    )  # fmt: skip
