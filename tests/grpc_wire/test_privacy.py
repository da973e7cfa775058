"""Planted identifiers and texts go down every path of gRPC that can fail; none is kept or said."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from quietus.legacy.grpc_wire import SERVICE
from tests.e2e.process import Quietus, request, shipped
from tests.grpc_wire.standing import Said, ended, legacy, tool

SUBJECT = "zq7781-marigold@example.org"
TEXT = "Marigold Quenby keeps the walnut harbour ledger number 99817"
SECRET = "zq-credential-5512-tangerine"
KEY = "zq-record-key-4401"
PLANTED = [SUBJECT, "marigold", "Quenby", "walnut harbour", SECRET, KEY, "99817"]


def _hits(data: bytes) -> list[str]:
    lower = data.lower()
    return [word for word in PLANTED if word.lower().encode() in lower]


@pytest.mark.timeout(120)
@pytest.mark.requirement("R41", "R205")
async def test_nothing_planted_is_found(tmp_path: Path) -> None:
    profile = str(shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="60s"))
    said: list[Said] = []
    async with legacy() as store:
        settings: dict[str, Any] = {
            "store": {"profile": profile, "grpc": {"listen": "127.0.0.1:0", "upstream": store.address}},
            "limits": {"probe_rate_per_second": 200, "request_bytes_max": 20000},
        }
        quietus = Quietus(tmp_path, "", profile, settings).start()
        async with tool(quietus.grpc, authorization=f"Bearer {SECRET}") as agent:
            assert (await agent.write(KEY, TEXT, SUBJECT)).code == "OK"
            assert (await agent.write("bob-1", "Bob likes tea", "bob")).code == "OK"
            assert (await agent.call("Forget", subject=SUBJECT)).code == "OK"
            said += [
                await agent.call("Recall", query=TEXT, subject=SUBJECT),
                await agent.call("Read", key=KEY),
                await agent.write(KEY, TEXT, SUBJECT),
                await agent.write("bob-2", TEXT, "bob"),
                await agent.call("Recall", query=TEXT * 2000),
                await agent.call("Forget"),
                (await agent.stream("StreamRecall", query=TEXT, subject=SUBJECT))[1],
                await _raw(agent.channel, f"/{SERVICE}/Recall", TEXT.encode()),
                await _raw(agent.channel, f"/{SUBJECT}/{KEY}", b""),
                await _raw(agent.channel, f"/no.such.{KEY.replace('-', '_')}/Method", TEXT.encode()),
                await _raw(agent.channel, f"/{SERVICE}/Recall", b"", (("quietus-min-epoch", SUBJECT),)),
                await _raw(agent.channel, f"/{SERVICE}/Recall", b"", (("much", SECRET * 1000),)),
            ]
            assert all(each.code != "OK" for each in said), [each.code for each in said]
            await asyncio.to_thread(quietus.until, "settled")
    # The store is gone: what cannot be forwarded says no more than what was refused.
    async with tool(quietus.grpc, authorization=f"Bearer {SECRET}") as agent:
        said += [
            await agent.call("Recall", query=TEXT),
            await agent.write(f"{KEY}-2", "something new", "bob"),
            await agent.call("Forget", subject="bob"),
        ]
        assert said[-3].code == "UNAVAILABLE"
    metrics = request("GET", f"{quietus.admin}/metrics").body
    shown = repr([quietus.office("/v1/erasures"), quietus.office("/v1/unmapped")]).encode()
    kept = _files(tmp_path, but=profile)
    assert {"ledger.db", "log.jsonl"} <= set(kept) and b'wire="grpc"' in metrics
    places = {**kept, "metrics": metrics, "admin": shown}
    assert {name: _hits(data) for name, data in places.items() if _hits(data)} == {}
    # A refusal by the store itself, or by grpcio, may say what it likes; ours may not.
    ours = [each for each in said if "grpc-status-details-bin" in each.trailers]
    assert len(ours) >= 8
    assert [each for each in ours if _hits(repr(each).encode())] == []
    assert quietus.stop() == 0


def _files(folder: Path, but: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and str(path) != but}


async def _raw(channel: aio.Channel, method: str, message: bytes, metadata: Any = ()) -> Said:
    call = channel.unary_unary(method)(message, metadata=metadata)
    try:
        return await ended(call, await call)
    except aio.AioRpcError:
        return await ended(call)
