"""A profile without a descriptor set takes the one that the store tells of itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpc import aio

from quietus.adapters.reflection import told
from quietus.profiles.descriptors import Descriptors, NoDescriptors
from quietus.stubs import memory_v1_pb2 as memory
from tests.e2e.process import Quietus
from tests.grpc_wire.standing import legacy
from tests.real.servers import free_port

SERVICE = "quietus.memory.v1.MemoryService"
PROFILES = Path(__file__).resolve().parents[2] / "policies" / "profiles"


def untold(folder: Path) -> Path:
    """The memory tool's profile without its descriptors."""
    text = (PROFILES / "memory-tool.yaml").read_text()
    line = "descriptors: {module: quietus.stubs.memory_v1_pb2}\n"
    assert line in text
    path = folder / "untold.yaml"
    path.write_text(text.replace(line, ""))
    return path


async def test_the_store_tells_its_messages_with_all_that_they_hold() -> None:
    async with legacy() as store:
        data = await asyncio.to_thread(told, store.address, [SERVICE], deadline=30.0)
    rpc = Descriptors(data).rpc(f"/{SERVICE}/Recall")
    assert rpc is not None
    assert set(rpc.gives.names) == {"results", "read_epoch"}


async def test_a_store_that_tells_nothing_is_said_so() -> None:
    async with legacy() as store:
        with pytest.raises(NoDescriptors, match="does not know"):
            await asyncio.to_thread(told, store.address, ["other.Service"], deadline=30.0)
    bare = aio.server()
    port = bare.add_insecure_port("127.0.0.1:0")
    await bare.start()
    with pytest.raises(NoDescriptors, match="does not serve reflection"):
        await asyncio.to_thread(told, f"127.0.0.1:{port}", [SERVICE], deadline=30.0)
    await bare.stop(None)
    with pytest.raises(NoDescriptors, match="ended with"):
        await asyncio.to_thread(told, f"127.0.0.1:{free_port()}", [SERVICE], deadline=0.2)


@pytest.mark.timeout(120)
async def test_a_sidecar_serves_with_what_the_store_has_told(tmp_path: Path) -> None:
    async with legacy() as store:
        settings = {
            "store": {
                "profile": str(untold(tmp_path)),
                "grpc": {"listen": "127.0.0.1:0", "upstream": store.address},
            },
            "timeouts": {"connect": "20s"},
        }
        running = Quietus(tmp_path, "", "", settings)
        await asyncio.to_thread(running.start)
        async with aio.insecure_channel(running.grpc) as channel:
            forget = channel.unary_unary(f"/{SERVICE}/Forget")
            with pytest.raises(aio.AioRpcError) as refused:  # it knows what an empty predicate is
                await forget(memory.ForgetRequest().SerializeToString(), timeout=30)
            assert refused.value.code().name == "INVALID_ARGUMENT"
        assert await asyncio.to_thread(running.stop) == 0


@pytest.mark.timeout(120)
def test_without_any_set_the_sidecar_does_not_start_and_says_what_to_do(tmp_path: Path) -> None:
    settings = {
        "store": {
            "profile": str(untold(tmp_path)),
            "grpc": {"listen": "127.0.0.1:0", "upstream": f"127.0.0.1:{free_port()}"},
        },
        "timeouts": {"connect": "300ms"},
    }
    with pytest.raises(AssertionError, match="lay it beside the profile"):
        Quietus(tmp_path, "", "", settings).start()
