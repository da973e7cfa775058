"""A server with all four kinds of methods that does what metadata asks of it, and a profile that knows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2
from grpc import aio

SERVICE = "echo.v1.EchoService"
KINDS = {"Unary": (False, False), "Gather": (True, False), "Scatter": (False, True), "Chat": (True, True)}
PROFILE = """
apiVersion: quietus/v1
kind: Profile
name: echo
summary: A server for tests
descriptors: {file: echo.pb}
routes:
  - name: unary
    operation: recall
    grpc: {method: /echo.v1.EchoService/Unary}
    request: {subject: $.body.subject}
    response: {items: "$.body.rows", item: {subject: $.subject, content: $.text}}
  - name: gather
    operation: write
    grpc: {method: /echo.v1.EchoService/Gather}
    request: {subject: $.body.subject, content: $.body.text}
    response: {items: "$.body.rows", item: {subject: $.subject}}
  - name: scatter
    operation: recall
    grpc: {method: /echo.v1.EchoService/Scatter}
    request: {subject: $.body.subject}
    response: {items: "$.body.rows", item: {subject: $.subject, content: $.text}}
  - name: chat
    operation: recall
    grpc: {method: /echo.v1.EchoService/Chat}
    request: {subject: $.body.subject}
    response: {items: "$.body.rows", item: {subject: $.subject, content: $.text}}
  - name: forget
    operation: forget
    grpc: {method: /echo.v1.EchoService/Forget}
    request: {subject: $.body.subject}
surfaces:
  - {name: rows, kind: index, each: subject, enumerates: true,
     grpc: {method: /echo.v1.EchoService/Probe, message: {subject: "{subject}"}},
     items: $.body.rows, item: {subject: $.subject, content: $.text}}
  - {name: backups, kind: unprobeable, note: of a test}
"""


def descriptors() -> bytes:
    """What the messages are: Line {subject, text, rows of {subject, text}}."""
    made = descriptor_pb2.FileDescriptorProto(name="echo.proto", package="echo.v1", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    row = made.message_type.add(name="Row")
    line = made.message_type.add(name="Line")
    for message in (row, line):
        for number, name in ((1, "subject"), (2, "text")):
            message.field.add(name=name, number=number, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    line.field.add(
        name="rows", number=3, type=kinds.TYPE_MESSAGE, type_name=".echo.v1.Row", label=kinds.LABEL_REPEATED
    )
    line.field.add(name="padding", number=4, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    service = made.service.add(name="EchoService")
    for name, (sends, gives) in {**KINDS, "Forget": (False, False), "Probe": (False, False)}.items():
        service.method.add(
            name=name, input_type=".echo.v1.Line", output_type=".echo.v1.Line",
            client_streaming=sends, server_streaming=gives,
        )  # fmt: skip
    return descriptor_pb2.FileDescriptorSet(file=[made]).SerializeToString()


def profile(folder: Path, chat: str = "recall", **store: str) -> str:
    """The profile and its descriptor set, as files; `chat` is the operation that Chat is said to be."""
    (folder / "echo.pb").write_bytes(descriptors())
    path = folder / "echo.yaml"
    block = "".join(f"  {name}: {value}\n" for name, value in store.items())
    text = PROFILE.replace("name: chat\n    operation: recall", f"name: chat\n    operation: {chat}")
    path.write_text(text + (f"store:\n{block}" if block else ""))
    return str(path)


def line(
    subject: str = "", text: str = "", rows: tuple[tuple[str, str], ...] = (), padding: int = 0
) -> bytes:
    """A Line, written by hand: tag, length, bytes."""
    out = b""
    for number, value in ((1, subject.encode()), (2, text.encode())):
        out += _field(number, value) if value else b""
    for who, what in rows:
        out += _field(3, _field(1, who.encode()) + _field(2, what.encode()))
    return out + (_field(4, b"x" * padding) if padding else b"")


def _field(number: int, value: bytes) -> bytes:
    size, length = len(value), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + value


@dataclass
class Echo:
    """What it was asked, and what it is told to answer in its streams."""

    address: str = ""
    received: list[tuple[str, tuple[tuple[str, Any], ...], bytes]] = field(default_factory=list)
    """Method, metadata and bytes of each message, the sidecar's own probes among them."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A Chat is over, however it ended."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    told: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    """Messages that Chat and Scatter send beside their echo."""
    peers: set[str] = field(default_factory=set)
    """The connections that messages came on."""

    def heard(self, method: str) -> list[bytes]:
        """The messages that one method was sent."""
        return [message for name, _, message in self.received if name == method]


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, echo: Echo) -> None:
        self.echo = echo

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        service, _, name = details.method.removeprefix("/").partition("/")
        if service != SERVICE or name not in (*KINDS, "Forget", "Probe"):
            return None
        sends, gives = KINDS.get(name, (False, False))
        does = {
            (False, False): (grpc.unary_unary_rpc_method_handler, self._unary),
            (True, False): (grpc.stream_unary_rpc_method_handler, self._gather),
            (False, True): (grpc.unary_stream_rpc_method_handler, self._scatter),
            (True, True): (grpc.stream_stream_rpc_method_handler, self._chat),
        }[sends, gives]
        return does[0](partial(does[1], name))  # type: ignore[operator]

    async def _begin(self, name: str, message: bytes, context: Any) -> dict[str, Any]:
        metadata = tuple((key, value) for key, value in context.invocation_metadata())
        self.echo.received.append((name, metadata, message))
        self.echo.peers.add(context.peer())
        self.echo.arrived.set()
        asked = dict(metadata)
        if "x-sleep" in asked:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.echo.cancelled.set()
                raise
        head = tuple(
            (key.removeprefix("x-head-"), value) for key, value in metadata if key.startswith("x-head-")
        )
        tail = tuple(
            (key.removeprefix("x-tail-"), value) for key, value in metadata if key.startswith("x-tail-")
        )
        if head:
            await context.send_initial_metadata(head)
        if "x-code" in asked:
            await context.abort(
                grpc.StatusCode[asked["x-code"]], asked.get("x-words-bin", b"").decode(), tail
            )
        if "x-compress" in asked:
            context.set_compression(grpc.Compression.Gzip)
        context.set_trailing_metadata(tail)
        return asked

    async def _unary(self, name: str, message: bytes, context: Any) -> bytes:
        asked = await self._begin(name, message, context)
        return line(padding=int(asked["x-size"])) if "x-size" in asked else message

    async def _gather(self, name: str, messages: Any, context: Any) -> bytes:
        joined = b""
        async for message in messages:
            await self._begin(name, message, context)
            joined += message
        return joined

    async def _scatter(self, name: str, message: bytes, context: Any) -> None:
        asked = await self._begin(name, message, context)
        for _ in range(int(asked.get("x-times", "1"))):
            await context.write(message)
        while "x-told" in asked:
            await context.write(await self.echo.told.get())

    async def _chat(self, name: str, messages: Any, context: Any) -> None:
        try:
            async for message in messages:
                await self._begin(name, message, context)
                await context.write(message)
        finally:
            self.echo.left.set()


@asynccontextmanager
async def echoing(credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[Echo]:
    """The server, on a free port."""
    echo = Echo()
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_metadata_size", 1 << 20),
               ("grpc.absolute_max_metadata_size", 1 << 20)]  # fmt: skip
    server = aio.server(options=options)
    server.add_generic_rpc_handlers((_Handler(echo),))
    free = "127.0.0.1:0"
    port = server.add_secure_port(free, credentials) if credentials else server.add_insecure_port(free)
    echo.address = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield echo
    finally:
        await server.stop(0)
