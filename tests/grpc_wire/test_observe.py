"""Observe mode over gRPC: nothing is refused and nothing changed; what would have been is counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from grpc import aio

from quietus.legacy.faults import Faults
from tests.grpc_wire.echo import SERVICE, echoing, line, profile
from tests.grpc_wire.standing import hurried, legacy, sidecar, tool

SECRET = "Alice Moreau keeps her spare key under the third flower pot"


@pytest.mark.requirement("R196")
async def test_observing_changes_no_answer(tmp_path: Path) -> None:
    async with (
        legacy(Faults(lazy_index=900.0)) as store,
        sidecar(tmp_path, store.address, hurried(tmp_path), policy="observe") as quietus,
        tool(quietus.grpc_address) as agent,
        tool(store.address) as direct,
    ):
        await agent.write("a1", SECRET, "alice")
        forgot = await agent.call("Forget", subject="alice")
        assert forgot.code == "OK" and not any(name.startswith("quietus") for name in forgot.trailers)
        for name, fields in (
            ("Recall", {"query": "spare key"}),
            ("Recall", {"query": "spare key", "subject": "alice"}),
            ("Read", {"key": "a1"}),
        ):
            through, straight = await agent.call(name, **fields), await direct.call(name, **fields)
            assert through == straight, name
        rows, said = await agent.stream("StreamRecall", query="spare key")
        assert [row.key for row in rows] == ["a1"] and said.trailers == {}
        text = quietus.metrics.render().decode()
        assert any('effect="block"' in each and 'mode="observe"' in each for each in text.splitlines())


async def test_what_cannot_be_read_goes_through_too(tmp_path: Path) -> None:
    async with (
        echoing() as echo,
        sidecar(tmp_path, echo.address, profile(tmp_path), policy="observe") as quietus,
    ):
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            garbage = b"\xff\xff\xff"
            assert await channel.unary_unary(f"/{SERVICE}/Unary")(garbage) == garbage
            call = channel.stream_stream(f"/{SERVICE}/Chat")()
            for message in (garbage, line("bob")):
                await call.write(message)
                assert await call.read() == message
            call.cancel()
