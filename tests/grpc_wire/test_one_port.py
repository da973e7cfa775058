"""One port that takes HTTP and gRPC: the first bytes of a connection tell which."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from quietus.app import Sidecar, SystemClock
from quietus.config import load
from quietus.legacy.faults import Faults
from quietus.legacy.grpc_server import serve_grpc
from quietus.legacy.server import serve
from quietus.legacy.store import LegacyStore
from tests.grpc_wire.standing import hurried, tool

SECRET = "Alice Moreau keeps her spare key under the third flower pot"


@asynccontextmanager
async def both_wires(tmp_path: Path, **more: Any) -> AsyncIterator[tuple[LegacyStore, Sidecar]]:
    """One store, served on both wires, and one sidecar with one port for both."""
    store = LegacyStore(SystemClock(), 1, Faults(lazy_index=900.0))
    over_http, over_grpc = await serve("127.0.0.1", 0, store), await serve_grpc("127.0.0.1", 0, store)
    flags = {
        "store.profile": hurried(tmp_path),
        "store.http.upstream": over_http.url,
        "store.http.listen": "127.0.0.1:0",
        "store.grpc.upstream": over_grpc.address,
        "store.grpc.listen": "127.0.0.1:0",
        "ledger.url": f"sqlite:///{tmp_path}/ledger.db",
        "admin.listen": "127.0.0.1:0",
        **more,
    }
    made = Sidecar(load(None, flags, {}))
    await made.start()
    try:
        yield store, made
    finally:
        await made.stop()
        await over_http.close()
        await over_grpc.close()


@pytest.mark.requirement("R13", "R192")
async def test_an_erasure_on_one_wire_holds_on_the_other(tmp_path: Path) -> None:
    async with (
        both_wires(tmp_path) as (_, quietus),
        tool(quietus.grpc_address) as agent,
        aiohttp.ClientSession(quietus.data_url) as session,
    ):
        assert quietus.data_url == f"http://{quietus.grpc_address}"
        await agent.write("a1", SECRET, "alice")
        asked = {"tenant": "acme", "query": "spare key", "subject": "alice"}
        async with session.post("/v1/recall", json=asked) as before:
            assert before.status == 200 and SECRET in await before.text()
        async with session.post("/v1/forget", json={"tenant": "acme", "subject": "alice"}) as forgot:
            assert forgot.status == 202
        assert (await agent.call("Recall", query="spare key", subject="alice")).code == "FAILED_PRECONDITION"
        async with session.post("/v1/recall", json=asked) as after:
            assert after.status == 409
        assert (await agent.call("Forget", subject="alice")).code == "OK"
        assert len(list(quietus.parts.erasures.all())) == 1


async def test_the_first_bytes_may_come_one_by_one_or_not_at_all(tmp_path: Path) -> None:
    async with both_wires(tmp_path, **{"timeouts.header": "3s"}) as (_, quietus):
        host, _, port = quietus.grpc_address.rpartition(":")
        for first in (
            b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
            b"PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            for at in range(len(first)):
                writer.write(first[at : at + 1])
                await writer.drain()
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
            writer.close()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"PR")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(reader.readexactly(1), 30)  # it is dropped when its time is over
        writer.close()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"garbage" * 100)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            while True:
                await asyncio.wait_for(reader.readexactly(1), 30)
        writer.close()


async def test_large_messages_pass_a_shared_port(tmp_path: Path) -> None:
    async with both_wires(tmp_path) as (_, quietus), tool(quietus.grpc_address) as agent:
        text = "word " * 100_000
        assert (await agent.write("big", text, "bob")).code == "OK"
        assert (await agent.call("Read", key="big")).message.value == text
