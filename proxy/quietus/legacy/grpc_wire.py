"""The canonical memory tool over gRPC: the same tool, in the messages of `quietus.memory.v1`.

Each call becomes the request that says the same on the store's other wire, and its answer is put back into
a message: one store, whatever it is asked by, with every fault that it was given.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message

from quietus.core.exchange import Headers, Reply, Request, header
from quietus.stubs import memory_v1_pb2 as pb

SERVICE: Final = "quietus.memory.v1.MemoryService"
CODES: Final = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED",
    409: "FAILED_PRECONDITION", 413: "RESOURCE_EXHAUSTED", 415: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
    507: "RESOURCE_EXHAUSTED",
}  # fmt: skip
"""The gRPC codes that say what the store's HTTP statuses say."""


class Undecodable(Exception):
    """The bytes are no message of the method."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its messages, and the request that says the same."""

    takes: type[Message]
    gives: type[Message]
    verb: str
    path: str
    """`{key}` is the message's key."""
    sends: bool = False
    """The client sends many messages."""
    streams: bool = False
    """The store sends one message a memory."""

    @property
    def body(self) -> bool:
        """Whether the message goes into a body; else into the path and the query."""
        return self.verb == "POST"


METHODS: Final[Mapping[str, Method]] = {
    "Write": Method(pb.WriteRequest, pb.WriteResponse, "POST", "/v1/memories"),
    "Ingest": Method(pb.Draft, pb.IngestResponse, "POST", "/v1/memories", sends=True),
    "Read": Method(pb.ReadRequest, pb.Memory, "GET", "/v1/memories/{key}"),
    "List": Method(pb.ListRequest, pb.ListResponse, "GET", "/v1/memories"),
    "Recall": Method(pb.RecallRequest, pb.RecallResponse, "POST", "/v1/recall"),
    "StreamRecall": Method(pb.RecallRequest, pb.Memory, "POST", "/v1/recall", streams=True),
    "Forget": Method(pb.ForgetRequest, pb.ForgetResponse, "POST", "/v1/forget"),
    "Delete": Method(pb.DeleteRequest, pb.DeleteResponse, "DELETE", "/v1/memories/{key}"),
    "Export": Method(pb.ExportRequest, pb.Memory, "GET", "/v1/export", streams=True),
    "GetEpoch": Method(pb.GetEpochRequest, pb.GetEpochResponse, "GET", "/v1/epoch"),
}


def request_of(method: Method, message: bytes, headers: Headers = ()) -> Request:
    """The request on the other wire. Raises Undecodable."""
    try:
        read = method.takes.FromString(message)
    except DecodeError:
        raise Undecodable from None
    fields = MessageToDict(read, preserving_proto_field_name=True)
    if method.body:
        return Request(method.verb, method.path, headers, json.dumps(fields).encode())
    path = method.path.replace("{key}", quote(fields.pop("key", ""), safe=""))
    query = urlencode(fields)
    return Request(method.verb, f"{path}?{query}" if query else path, headers)


def messages_of(method: Method, reply: Reply) -> list[bytes]:
    """The messages that say what an answer says."""
    rows = _rows(reply)
    if method.streams:
        return [_written(method.gives, row) for row in rows]
    document = _document(reply)
    if isinstance(document.get("results"), dict):
        document["results"] = rows
    return [_written(method.gives, document)]


def code_of(reply: Reply) -> tuple[str, str]:
    """The gRPC code of an answer, and its message; OK for any success."""
    if 200 <= reply.status < 300:
        return "OK", ""
    return CODES.get(reply.status, "UNKNOWN"), str(_document(reply).get("message", ""))


def gathered(replies: list[Reply]) -> bytes:
    """The answer to a stream of memories."""
    return _written(pb.IngestResponse, {"results": [_document(reply) for reply in replies]})


def _plain(reply: Reply) -> str:
    packed = header(reply.headers, "content-encoding") == "gzip"
    return (gzip.decompress(reply.body) if packed else reply.body).decode()


def _document(reply: Reply) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_plain(reply))
    return document


def _rows(reply: Reply) -> list[dict[str, Any]]:
    """The rows of an answer, in whatever shape the store has them today."""
    kind, text = header(reply.headers, "content-type"), _plain(reply)
    if kind == "text/event-stream":
        data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return [row for row in map(json.loads, data) if row]
    if kind == "application/x-ndjson":
        return [json.loads(line) for line in text.splitlines()]
    results = json.loads(text).get("results", [])
    if isinstance(results, dict):
        return [dict(zip(results, values, strict=True)) for values in zip(*results.values(), strict=True)]
    return results if isinstance(results, list) else []


def _written(kind: type[Message], document: dict[str, Any]) -> bytes:
    # A message has no null: a store that does not know whether a source is there says that it is not.
    message = ParseDict(_without_null(document), kind(), ignore_unknown_fields=True)
    return message.SerializeToString()


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: False if name == "provenance_resolved" and member is None else _without_null(member)
        for name, member in value.items()
    }
