"""etcd, unmodified, with an unmodified Python client, behind the real process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import aetcd
import grpc
import pytest
from aetcd.rpc import rpc_pb2
from grpc import aio

from tests.e2e.process import Quietus, shipped
from tests.real.servers import etcd

ALICE = {
    "mem/alice/1": b"Alice lives at 12 Elm Street in Lisbon",
    "mem/alice/2": b"Alice has a peanut allergy and carries a pen",
}
BOB = {"mem/bob/1": b"Bob likes green tea in the morning"}
PATIENCE = 60.0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with etcd(tmp_path_factory.mktemp("etcd")) as address:
        yield address


@pytest.fixture
def sidecar(store: str, tmp_path: Path) -> Iterator[Quietus]:
    profile = shipped("etcd", tmp_path, settling_interval="1s", effectuation_bound="120s")
    (tmp_path / "etcd.pb").write_bytes((profile_folder() / "etcd.pb").read_bytes())
    settings = {
        "store": {"profile": str(profile), "grpc": {"listen": "127.0.0.1:0", "upstream": store}},
        "limits": {"probe_rate_per_second": 100},
    }
    running = Quietus(tmp_path, "", str(profile), settings).start()
    yield running
    assert running.stop() == 0


def profile_folder() -> Path:
    return Path(__file__).resolve().parents[2] / "policies" / "profiles"


def client(address: str) -> aetcd.Client:
    host, _, port = address.partition(":")
    return aetcd.Client(host=host, port=int(port), timeout=30)


async def refused(work: Awaitable[Any]) -> aio.AioRpcError:
    """The error of a call that was refused, as the wire had it."""
    with pytest.raises(Exception) as raised:
        await work
    error: BaseException | None = raised.value
    while error is not None and not isinstance(error, aio.AioRpcError):
        error = error.__cause__ or error.__context__
    assert isinstance(error, aio.AioRpcError), raised.value
    return error


async def filled(agent: aetcd.Client) -> int:
    """Writes for two subjects; the revision at which both are there."""
    for key, value in {**ALICE, **BOB}.items():
        await agent.put(key.encode(), value)
    found = await agent.get(b"mem/bob/1")
    assert found is not None
    return int(found.header.revision)


async def told(agent: aetcd.Client, key: bytes, end: bytes = b"", revision: int = 0) -> dict[str, bytes]:
    """What a range holds, also at an old revision, by the client's own stub: its methods know no revision."""
    asked = rpc_pb2.RangeRequest(key=key, range_end=end, revision=revision)
    answer = await agent.kvstub.Range(asked, timeout=30)
    assert answer.count == len(answer.kvs)
    return {kv.key.decode(): kv.value for kv in answer.kvs}


PREFIX = (b"mem/alice/", b"mem/alice0")
EVERYBODY = (b"mem/", b"mem0")


@pytest.mark.timeout(180)
@pytest.mark.requirement("R192", "R193")
async def test_the_past_is_shut_until_it_is_compacted(store: str, sidecar: Quietus) -> None:
    async with client(sidecar.grpc) as agent, client(store) as direct:
        before = await filled(agent)
        assert await told(agent, *EVERYBODY) == {**ALICE, **BOB}

        deleted = await agent.delete_prefix(b"mem/alice/")
        assert deleted.deleted == 2
        assert await told(direct, *PREFIX, before) == ALICE  # the store's past still has them

        for ask in (
            agent.get(b"mem/alice/1"),
            agent.get_prefix(b"mem/alice/"),
            told(agent, b"mem/alice/1", revision=before),
            told(agent, *PREFIX, before),
            told(agent, b"mem/alice/1", b"mem/alice/2", before),
        ):
            error = await refused(ask)
            assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert "ERASURE_EPOCH_NOT_SETTLED" in str(error.trailing_metadata())
        again = await refused(agent.put(b"mem/alice/3", b"Alice is back"))
        assert "ERASURE_ORDERING_VIOLATION" in str(again.trailing_metadata())
        for revision in (0, before):
            assert await told(agent, *EVERYBODY, revision) == BOB
            assert await told(agent, b"mem/bob/1", revision=revision) == BOB

        view = sidecar.until("leaking")
        assert {s["name"]: s["outcome"] for s in view["surfaces"]}["history"] == "LEAKING"
        assert (await refused(told(agent, *PREFIX, before))).code() is grpc.StatusCode.FAILED_PRECONDITION

        newest = (await agent.get(b"mem/bob/1")).header.revision
        await agent.compact(newest)
        view = sidecar.until("settled")
        outcomes = {s["name"]: (s["outcome"], s["control"]) for s in view["surfaces"]}
        assert outcomes["history"] == outcomes["record"] == ("CLEAN", "live")
        assert outcomes["directory"][0] == outcomes["list"][0] == "CLEAN"
        assert view["claim"]["count"] == 2
        assert view["upstream_calls"] == 1

        assert await agent.get(b"mem/alice/1") is None
        gone = await refused(told(agent, *PREFIX, before))
        assert gone.code() is grpc.StatusCode.OUT_OF_RANGE  # the store's own answer, now
        assert await told(agent, *EVERYBODY) == BOB


@pytest.mark.timeout(180)
async def test_watches_and_leases_go_on(store: str, sidecar: Quietus) -> None:
    async with client(sidecar.grpc) as agent, client(sidecar.grpc) as other:
        await filled(agent)
        seen: list[tuple[bytes, bytes]] = []
        watch = await agent.watch_prefix(b"mem/", prev_kv=True)
        events = aiter(watch)

        async def until(value: bytes) -> None:
            async for event in events:
                seen.append((event.kv.key, event.kv.value))
                if event.kv.value == value:
                    return

        await other.put(b"mem/bob/1", b"Bob likes coffee")
        await asyncio.wait_for(until(b"Bob likes coffee"), PATIENCE)
        assert (await other.delete_prefix(b"mem/alice/")).deleted == 2
        await other.put(b"mem/bob/1", b"Bob likes cocoa")
        await asyncio.wait_for(until(b"Bob likes cocoa"), PATIENCE)
        assert {key for key, _ in seen} == {b"mem/bob/1"}
        await watch.cancel()

        async with agent.lock(b"locks/job", ttl=30):
            assert len(await told(other, b"locks/", b"locks0")) <= 1
        assert await told(other, b"locks/", b"locks0") == {}

        lease = await agent.lease(60)
        await agent.put(b"mem/bob/2", b"Bob is in town today", lease=lease)
        assert (await lease.refresh()).TTL == 60
        assert (await agent.get(b"mem/bob/2")).lease == lease.id
        await lease.revoke()
        assert await agent.get(b"mem/bob/2") is None


@pytest.mark.timeout(180)
async def test_what_nobody_could_verify_is_refused_and_nothing_is_deleted(
    store: str, sidecar: Quietus
) -> None:
    async with client(sidecar.grpc) as agent, client(store) as direct:
        await filled(direct)
        for key, end in ((b"mem/al", b"mem/am"), (b"\0", b"\0"), (b"mem/alice/1", b"mem/alice/5")):
            error = await refused(agent.delete_range(key, end))
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await told(direct, *EVERYBODY) == {**ALICE, **BOB}
        call = agent.channel.unary_unary("/etcdserverpb.KV/Range")
        broken = await refused(call(b"\x0a\xff", timeout=30))
        assert broken.code() is grpc.StatusCode.INVALID_ARGUMENT
