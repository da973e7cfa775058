"""A canary trial of a store over gRPC: it finds what it finds over HTTP, and leaves nothing behind."""

from __future__ import annotations

import pytest

from quietus.app import SystemClock
from quietus.cli.trying import tried
from quietus.config import load
from quietus.legacy.faults import parse_faults
from quietus.legacy.grpc_server import serve_grpc
from quietus.legacy.store import LegacyStore
from quietus.profiles.loader import load_profile
from quietus.trial.run import Plan
from quietus.trial.watching import Patience
from quietus.wires import StoreClient


@pytest.mark.timeout(120)
@pytest.mark.requirement("R197")
async def test_a_trial_over_grpc() -> None:
    clock = SystemClock()
    store = LegacyStore(clock, 7, parse_faults(["lazy_index=2", "same_ack", "latency=0.01"]))
    store.put("Bob likes green tea", tenant="acme", subject="bob")
    served = await serve_grpc("127.0.0.1", 0, store)
    settings = load(None, {"store.profile": "memory-tool", "store.grpc.upstream": served.address}, {})
    client = StoreClient(settings.store, settings.timeouts)
    plan = Plan({"tenant": "acme"}, trials=10, records=5, rate=2000.0, patience=Patience(5.0, 20.0, 1.0))
    try:
        profile = load_profile("memory-tool", settings.store.wires)
        seen, found = await tried(profile, client, clock, plan, lambda *_: None)
    finally:
        await client.close()
        await served.close()
    assert {name for name, one in found.findings.items() if one.found} == {
        "leaks",
        "row_before_index",
        "same_ack",
    }
    assert found.complete and not seen.left
    assert [row.subject for row in store._world.rows.values()] == ["bob"]
