"""Calls that a policy lets wait, over gRPC: held until it is settled; at the end refused as at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from quietus.core.states import State
from tests.grpc_wire.standing import hurried, legacy, sidecar, tool
from tests.harness.policies import BOTH_WAIT, written

SECRET = "Alice keeps her spare key under the third flower pot by the gate"


@pytest.mark.requirement("R167", "R192")
@pytest.mark.parametrize("patience", ["60s", "1s"])
async def test_both_wait_and_neither_passes_for_it(tmp_path: Path, patience: str) -> None:
    interval = "1s" if patience == "60s" else "600s"
    profile = hurried(tmp_path, settling_interval=interval, effectuation_bound="1800s")
    waits = {"policy": written(BOTH_WAIT, tmp_path), "timeouts__wait": patience}
    async with (
        legacy() as store,
        sidecar(tmp_path, store.address, profile, **waits) as quietus,
        tool(quietus.grpc_address) as agent,
    ):
        await agent.write("n-1", SECRET, "alice")
        await agent.write("n-2", "Bob prefers the early train to Basel", "bob")
        assert (await agent.call("Forget", subject="alice")).code == "OK"
        wrote = await agent.write("n-3", SECRET, "bob")
        recalled = await agent.call("Recall", query="spare key", subject="alice")
        (erasure,) = quietus.parts.erasures.all()
        if patience == "60s":
            assert (wrote.code, recalled.code) == ("OK", "OK") and erasure.state is State.SETTLED
            assert list(recalled.message.results) == []
        else:
            assert (wrote.code, wrote.info.reason) == ("FAILED_PRECONDITION", "SCOPE_LAUNDERING")
            refused = (recalled.code, recalled.info.reason)
            assert refused == ("FAILED_PRECONDITION", "ERASURE_EPOCH_NOT_SETTLED")
            assert erasure.unsettled
