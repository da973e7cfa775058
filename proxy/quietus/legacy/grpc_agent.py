"""The scripted agent of the demo, speaking gRPC: the same words to the same tool.

What it hears is told as its other half tells it, so that one story fits both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from quietus.legacy.agent import PATIENCE, Agent, Heard
from quietus.legacy.grpc_wire import METHODS, SERVICE

_NAMES: Final = {
    ("POST", "/v1/memories"): "Write",
    ("POST", "/v1/recall"): "Recall",
    ("POST", "/v1/forget"): "Forget",
}
_STATUS: Final = {"NOT_FOUND": 404, "FAILED_PRECONDITION": 409, "ABORTED": 409, "INVALID_ARGUMENT": 400}
_DETAILS: Final = "grpc-status-details-bin"


class RpcAgent(Agent):
    """An assistant with a memory behind a gRPC address."""

    def __init__(self, channel: aio.Channel) -> None:
        self._channel = channel

    async def _send(self, method: str, target: str, body: Any = None) -> Heard:
        path, _, query = target.partition("?")
        name = _NAMES.get((method, path), "Read")
        fields = dict(body or parse_qsl(query))
        if name == "Read":
            fields["key"] = unquote(path.rpartition("/")[2])
        known = METHODS[name]
        message = ParseDict(fields, known.takes()).SerializeToString()
        ask: Any = self._channel.unary_unary(f"/{SERVICE}/{name}")
        call = ask(message, timeout=PATIENCE.total)
        try:
            answer = known.gives.FromString(await call)
        except aio.AioRpcError as error:
            return _refused(error)
        document: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)
        if name == "Forget" and "keys" in document:
            document["keys"] = int(document["keys"])
        headers = _headers(await call.trailing_metadata() or ())
        status = 201 if name == "Write" else 202 if "Quietus-Erasure" in headers else 200
        return Heard(status, headers, json.dumps(document, ensure_ascii=False), "OK")


def _refused(error: aio.AioRpcError) -> Heard:
    trailing = error.trailing_metadata() or ()
    document = {"message": error.details()}
    details = dict(trailing).get(_DETAILS)
    if isinstance(details, bytes):
        info = ErrorInfo()
        for detail in Status.FromString(details).details:
            detail.Unpack(info)
        document = {"title": error.details(), "reason": info.reason, **info.metadata}
    code = error.code().name
    status = _STATUS.get(code, 500)
    return Heard(status, _headers(trailing), json.dumps(document, ensure_ascii=False), code)


def _headers(metadata: Any) -> Mapping[str, str]:
    """Trailing metadata under the names that the marks have as headers."""
    return {key.title(): value for key, value in metadata if isinstance(value, str)}
