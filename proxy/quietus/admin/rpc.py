"""The admin API over gRPC: each call is put to the HTTP API, and its answer back into a message.

So both wires have the same tokens, roles, acts, refusals and records of them, and there is one place that
decides. A method that is added is a line of `METHODS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

import grpc
from aiohttp import ClientError, ClientSession
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message

from quietus.adapters.grpc_status import DETAILS, code_of, details_of, sentence_of
from quietus.answers import Refused
from quietus.core.problems import PROBLEMS
from quietus.stubs import erasure_v1_pb2 as pb

SERVICE: Final = "quietus.erasure.v1.ErasureService"
OPEN: Final = frozenset({"settled", "refused", "released"})
"""States in which the gate is open: a watch may end there."""
_LONG: Final = frozenset({FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64})


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its messages and the route that does what it says."""

    takes: type[Message]
    gives: type[Message]
    verb: str
    path: str
    """`{id}` is the message's id. What is left goes into the query of a GET, else into the body."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    """The field that takes the whole of the answer."""


_ID: Final = "/v1/erasures/{id}"
METHODS: Final[Mapping[str, Method]] = {
    "ListErasures": Method(pb.ListErasuresRequest, pb.ListErasuresResponse, "GET", "/v1/erasures"),
    "GetErasure": Method(pb.GetErasureRequest, pb.Erasure, "GET", _ID),
    "CreateErasure": Method(pb.CreateErasureRequest, pb.Erasure, "POST", "/v1/erasures"),
    "ListEvents": Method(pb.ListEventsRequest, pb.ListEventsResponse, "GET", f"{_ID}/events"),
    "GetReceipt": Method(
        pb.GetReceiptRequest, pb.GetReceiptResponse, "GET", f"{_ID}/receipt", whole="receipt"
    ),
    "VerifyErasure": Method(pb.VerifyErasureRequest, pb.Erasure, "POST", f"{_ID}:verify"),
    "RetryErasure": Method(pb.RetryErasureRequest, pb.Erasure, "POST", f"{_ID}:retry"),
    "ReleaseErasure": Method(pb.ReleaseErasureRequest, pb.Erasure, "POST", f"{_ID}:release"),
    "EscalateErasure": Method(pb.EscalateErasureRequest, pb.Erasure, "POST", f"{_ID}:escalate"),
    "ExtendErasure": Method(pb.ExtendErasureRequest, pb.Erasure, "POST", f"{_ID}:extend"),
    "ReadmitSubject": Method(
        pb.ReadmitSubjectRequest, pb.ReadmitSubjectResponse, "POST", "/v1/subjects:readmit"
    ),
    "Signal": Method(pb.SignalRequest, pb.SignalResponse, "POST", "/v1/signals"),
    "ListHolds": Method(pb.ListHoldsRequest, pb.ListHoldsResponse, "GET", "/v1/holds"),
    "CreateHold": Method(pb.CreateHoldRequest, pb.Hold, "POST", "/v1/holds"),
    "LiftHold": Method(pb.LiftHoldRequest, pb.LiftHoldResponse, "DELETE", "/v1/holds/{id}"),
    "ListOverrides": Method(pb.ListOverridesRequest, pb.ListOverridesResponse, "GET", "/v1/overrides"),
    "CreateOverride": Method(
        pb.CreateOverrideRequest, pb.Override, "POST", "/v1/overrides", {"lasts": "for"}
    ),
    "EndOverride": Method(pb.EndOverrideRequest, pb.EndOverrideResponse, "DELETE", "/v1/overrides/{id}"),
    "ListQuarantines": Method(
        pb.ListQuarantinesRequest, pb.ListQuarantinesResponse, "GET", "/v1/quarantines"
    ),
    "CreateQuarantine": Method(pb.CreateQuarantineRequest, pb.Quarantine, "POST", "/v1/quarantines"),
    "LiftQuarantine": Method(
        pb.LiftQuarantineRequest, pb.LiftQuarantineResponse, "DELETE", "/v1/quarantines/{id}"
    ),
    "ListUnmapped": Method(pb.ListUnmappedRequest, pb.ListUnmappedResponse, "GET", "/v1/unmapped"),
    "ListDecisions": Method(pb.ListDecisionsRequest, pb.ListDecisionsResponse, "GET", "/v1/decisions"),
}
"""Those that take one message and give one."""
_WATCH: Final = Method(pb.WatchErasureRequest, pb.Erasure, "GET", _ID)
_AUDIT: Final = Method(pb.StreamAuditRequest, pb.Event, "GET", "/v1/audit")
_WAIT: Final = 30
"""Seconds of one long poll."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body) if self.body else {}


class AdminRpc(grpc.GenericRpcHandler):
    """The service, over a session whose every request goes to the HTTP API."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The handler of a method of this service, or None."""
        service, _, name = details.method.removeprefix("/").partition("/")
        if service != SERVICE:
            return None
        if name == "WatchErasure":
            return grpc.unary_stream_rpc_method_handler(self._watch)
        if name == "StreamAudit":
            return grpc.unary_stream_rpc_method_handler(self._audit)
        method = METHODS.get(name)
        if method is None:
            return None
        return grpc.unary_unary_rpc_method_handler(partial(self._one, method))

    async def _one(self, method: Method, message: bytes, context: Any) -> bytes:
        answer = await self._asked(method, await _read(method, message, context), context)
        return _written(method, answer.document)

    async def _watch(self, message: bytes, context: Any) -> None:
        fields = await _read(_WATCH, message, context)
        until_settled = fields.pop("until_settled", False)
        answer = await self._asked(_WATCH, fields, context)
        shown: Any = None
        while True:
            view = answer.document
            for moving in ("seconds_left", "estimate_seconds"):
                view.pop(moving, None)
            if view != shown:
                shown = view
                await context.write(_written(_WATCH, view))
            if until_settled and view["state"] in OPEN:
                return
            answer = await self._asked(_WATCH, {**fields, "wait": _WAIT}, context)

    async def _audit(self, message: bytes, context: Any) -> None:
        fields = await _read(_AUDIT, message, context)
        while True:
            lines = (await self._asked(_AUDIT, fields, context)).body.splitlines()
            for line in lines:
                event = json.loads(line)
                fields["after"] = event["number"]
                await context.write(_written(_AUDIT, event))
            if not lines:
                return

    async def _asked(self, method: Method, fields: Mapping[str, Any], context: Any) -> _Answer:
        """The answer of the HTTP API to these fields; a refusal ends the call."""
        rest = dict(fields)
        path = method.path
        if "{id}" in path:
            path = path.replace("{id}", quote(str(rest.pop("id", "")), safe="") or "-")
        rest = {method.renamed.get(name, name): value for name, value in rest.items()}
        query = f"?{urlencode(rest)}" if rest and method.verb == "GET" else ""
        headers = {"Host": "localhost"}
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                headers["Authorization"] = str(value)
        body = None if method.verb == "GET" else rest
        try:
            async with self._session.request(
                method.verb, f"http://localhost{path}{query}", json=body, headers=headers
            ) as reply:
                answer = _Answer(reply.status, await reply.read())
        except ClientError:
            answer = _Answer(500, b"")
        if answer.status >= 300:
            await _refuse(answer, context)
        return answer


async def _read(method: Method, message: bytes, context: Any) -> dict[str, Any]:
    """The fields of a message as the HTTP API takes them."""
    try:
        asked = method.takes.FromString(message)
    except DecodeError:
        await _abort(Refused("malformed-request", "the message does not decode"), context)
        raise
    fields: dict[str, Any] = MessageToDict(asked, preserving_proto_field_name=True)
    for one in method.takes.DESCRIPTOR.fields:
        # As JSON numbers of 64 bits are text; the HTTP API takes them as numbers.
        if one.name in fields and one.type in _LONG:
            fields[one.name] = int(fields[one.name])
    return fields


def _written(method: Method, document: Any) -> bytes:
    if method.whole:
        document = {method.whole: document}
    return ParseDict(document, method.gives(), ignore_unknown_fields=True).SerializeToString()


async def _refuse(answer: _Answer, context: Any) -> None:
    try:
        told = answer.document
        name = str(told["type"]).rpartition(":")[2]
        refused = Refused(name, str(told.get("detail", "")), reason=str(told.get("reason", "")))
        if name not in PROBLEMS:
            raise KeyError(name)
    except (ValueError, KeyError, TypeError):
        refused = Refused("internal")
    await _abort(refused, context)


async def _abort(refused: Refused, context: Any) -> None:
    code = code_of(refused)
    await context.abort(code, sentence_of(refused), ((DETAILS, details_of(refused, code)),))
