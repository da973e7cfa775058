"""The same transcripts on the other wire: each call is the method that says the same, answers are as of HTTP.

What a refusal is called, its reason, its marks and its words come from the details and the trailing metadata;
where a transcript names a status, the gRPC code must be the one that says it.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from quietus.core.problems import PROBLEMS
from quietus.legacy.grpc_server import ServedGrpc, serve_grpc
from quietus.legacy.grpc_wire import CODES, METHODS, SERVICE, Method
from tests.e2e.process import Quietus, Response
from tests.transcripts.player import Played, Transcript
from tests.transcripts.town import Town

NAMES: Final = {
    ("POST", "/v1/memories"): "Write",
    ("GET", "/v1/memories"): "List",
    ("POST", "/v1/recall"): "Recall",
    ("POST", "/v1/forget"): "Forget",
}
LONG: Final = frozenset({"keys", "deleted", "records_removed", "read_epoch", "erasure_epoch"})
DETAILS: Final = "grpc-status-details-bin"


class RpcTown:
    """The town's stores over gRPC."""

    def __init__(self, town: Town) -> None:
        self._town = town
        work: Any = serve_grpc("127.0.0.1", 0, town)  # type: ignore[arg-type]
        self._served: ServedGrpc = asyncio.run_coroutine_threadsafe(work, town._loop).result(20)
        self.address = self._served.address

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._served.close(), self._town._loop).result(20)


class PlayedOverGrpc(Played):
    """One transcript being played over gRPC; `told` is what came of each of its calls."""

    def __init__(
        self, transcript: Transcript, sidecar: Quietus | None, town: Town, rpc: Any = None
    ) -> None:
        super().__init__(transcript, sidecar, town)
        assert sidecar is not None
        self.data = sidecar.grpc
        self._through = grpc.insecure_channel(sidecar.grpc)
        self._straight = grpc.insecure_channel(rpc.address)

    def close(self) -> None:
        self._through.close()
        self._straight.close()

    def _ask(self, base: str, line: str, step: dict[str, Any]) -> Response:
        verb, _, target = line.partition(" ")
        path, _, query = target.replace("TENANT", self.tenant).partition("?")
        name = NAMES.get((verb, path)) or ("Read" if verb == "GET" else "Delete")
        fields = dict(parse_qsl(query))
        if name in ("Read", "Delete"):
            fields["key"] = unquote(path.rpartition("/")[2])
        body = step.get("body")
        if isinstance(body, dict):
            fields |= {member: self._grown(value) for member, value in body.items()}
        fields.setdefault("tenant", self.tenant)
        method = METHODS[name]
        message = ParseDict(fields, method.takes()).SerializeToString()
        channel = self._through if base == self.data else self._straight
        wanted = step.get("status", [200, 201])
        return _told(method, name, channel, message, wanted if isinstance(wanted, list) else [wanted])


def _told(method: Method, name: str, channel: grpc.Channel, message: bytes, wanted: list[int]) -> Response:
    """The answer as HTTP has it."""
    try:
        body, call = channel.unary_unary(f"/{SERVICE}/{name}").with_call(message, timeout=60)
        error = None
    except grpc.RpcError as refused:
        body, call, error = b"", refused, refused
    headers: dict[str, str] = {}
    for key, value in call.trailing_metadata() or ():
        headers[key] = value if isinstance(value, str) else ""
    if error is None:
        document = MessageToDict(method.gives.FromString(body), preserving_proto_field_name=True)
        if name in ("Recall", "List"):
            document.setdefault("results", [])
        if "quietus-retry-after" in headers:
            headers["retry-after"] = headers["quietus-retry-after"]
        return Response(_success(name, document, headers), headers, json.dumps(_numbers(document)).encode())
    code = error.code().name  # type: ignore[attr-defined]
    details = dict(call.trailing_metadata() or ()).get(DETAILS)
    if not isinstance(details, bytes):
        status = next((one for one in wanted if CODES.get(one) == code), 500)
        said = {"message": error.details()}  # type: ignore[attr-defined]
        return Response(status, headers, json.dumps(said).encode())
    return _refusal(code, Status.FromString(details), headers)


def _refusal(code: str, status: Status, headers: dict[str, str]) -> Response:
    info, retry = ErrorInfo(), RetryInfo()
    for detail in status.details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            headers["retry-after"] = str(retry.retry_delay.seconds)
    kind = PROBLEMS[info.metadata["problem"].rpartition(":")[2]]
    assert info.domain == "quietus" and code in (kind.code, "ABORTED", "RESOURCE_EXHAUSTED"), (code, kind)
    # A reason that HTTP does not give is the problem's own name here: the details must have one.
    own = kind.name.upper().replace("-", "_")
    reason = "" if info.reason == own and not kind.reason.value else info.reason
    document = {"type": kind.type, "title": status.message, "reason": reason, **info.metadata}
    return Response(kind.status, headers, json.dumps(document).encode())


def _success(name: str, document: dict[str, Any], headers: dict[str, str]) -> int:
    if name == "Write":
        return 202 if document.get("status") == "queued" else 201
    erasure = headers.get("quietus-erasure", "")
    return 202 if erasure and "state=settled" not in erasure else 200


def _numbers(value: Any) -> Any:
    """Whole numbers of 64 bits, which a message's JSON writes as text."""
    if isinstance(value, dict):
        return {
            name: int(member) if name in LONG and isinstance(member, str) else _numbers(member)
            for name, member in value.items()
        }
    return [_numbers(member) for member in value] if isinstance(value, list) else value
