"""A sidecar in this process, in front of anything that speaks gRPC, and clients that speak it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, PreconditionFailure, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import aio

from quietus.app import Sidecar, SystemClock
from quietus.config import load
from quietus.legacy.faults import Faults
from quietus.legacy.grpc_server import ServedGrpc, serve_grpc
from quietus.legacy.grpc_wire import METHODS, SERVICE
from quietus.legacy.store import LegacyStore
from tests.e2e.process import shipped

TENANT = "acme"


def settings(folder: Path, upstream: str, profile: str, **more: Any) -> dict[str, Any]:
    """Flags for a sidecar that is reached over gRPC."""
    return {
        "store.profile": profile,
        "store.grpc.upstream": upstream,
        "store.grpc.listen": "127.0.0.1:0",
        "ledger.url": f"sqlite:///{folder}/ledger.db",
        "admin.listen": "127.0.0.1:0",
        "limits.probe_rate_per_second": 500,
        **{name.replace("__", "."): value for name, value in more.items()},
    }


@asynccontextmanager
async def sidecar(
    folder: Path, upstream: str, profile: str = "memory-tool", **more: Any
) -> AsyncIterator[Sidecar]:
    """A sidecar that serves until the block ends."""
    made = Sidecar(load(None, settings(folder, upstream, profile, **more), {}))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def hurried(folder: Path, **store: str) -> str:
    """The profile of the memory tool with intervals of seconds."""
    return str(
        shipped("memory-tool", folder, **{"settling_interval": "1s", "effectuation_bound": "120s", **store})
    )


@asynccontextmanager
async def legacy(faults: Faults = Faults()) -> AsyncIterator[ServedGrpc]:  # noqa: B008
    """The store that lies, over gRPC."""
    served = await serve_grpc("127.0.0.1", 0, LegacyStore(SystemClock(), 1, faults))
    try:
        yield served
    finally:
        await served.close()


@dataclass
class Said:
    """How a call ended."""

    code: str
    words: str
    trailers: dict[str, Any]
    message: Any = None
    head: dict[str, Any] | None = None

    @property
    def status(self) -> Status:
        return Status.FromString(self.trailers["grpc-status-details-bin"])

    def detail(self, kind: type[Message]) -> Any:
        """The detail of that kind, or None."""
        for any_ in self.status.details:
            if any_.Is(kind.DESCRIPTOR):
                found = kind()
                any_.Unpack(found)
                return found
        return None

    @property
    def info(self) -> ErrorInfo:
        found: ErrorInfo = self.detail(ErrorInfo)
        return found

    @property
    def retry(self) -> RetryInfo | None:
        found: RetryInfo | None = self.detail(RetryInfo)
        return found

    @property
    def precondition(self) -> PreconditionFailure | None:
        found: PreconditionFailure | None = self.detail(PreconditionFailure)
        return found


async def ended(call: Any, message: Any = None) -> Said:
    """How a call of grpc.aio ended."""
    head = dict(await call.initial_metadata() or ())
    trailers = dict(await call.trailing_metadata() or ())
    return Said((await call.code()).name, await call.details(), trailers, message, head)


class Tool:
    """A client of the memory tool that knows no sidecar."""

    def __init__(self, address: str, **metadata: str) -> None:
        self.channel = aio.insecure_channel(address)
        self.metadata = tuple(metadata.items())

    async def call(self, name: str, /, **fields: Any) -> Said:
        """One message there, one back."""
        method = METHODS[name]
        fields.setdefault("tenant", TENANT)
        asks = method.takes(**fields)
        call = self.channel.unary_unary(f"/{SERVICE}/{name}")(
            asks.SerializeToString(), metadata=self.metadata
        )
        try:
            return await ended(call, method.gives.FromString(await call))
        except aio.AioRpcError:
            return await ended(call)

    async def stream(self, name: str, /, **fields: Any) -> tuple[list[Any], Said]:
        """One message there, many back."""
        method = METHODS[name]
        fields.setdefault("tenant", TENANT)
        call = self.channel.unary_stream(f"/{SERVICE}/{name}")(
            method.takes(**fields).SerializeToString(), metadata=self.metadata
        )
        found = []
        try:
            async for message in call:
                found.append(method.gives.FromString(message))
        except aio.AioRpcError:
            pass
        return found, await ended(call)

    async def write(self, key: str, value: str, subject: str, **more: Any) -> Said:
        return await self.call("Write", key=key, value=value, retention={"subject": subject}, **more)

    async def keys(self, name: str = "Recall", **fields: Any) -> list[str]:
        said = await self.call(name, **fields)
        assert said.code == "OK", said
        return [row.key for row in said.message.results]

    async def close(self) -> None:
        await self.channel.close()


@asynccontextmanager
async def tool(address: str, **metadata: str) -> AsyncIterator[Tool]:
    made = Tool(address, **metadata)
    try:
        yield made
    finally:
        await made.close()


@contextmanager
def plain_channel(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address) as channel:
        yield channel
