"""As users run it: the store, the sidecar and the demo as real processes and commands, over gRPC."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from quietus.app import Sidecar
from quietus.config import load
from quietus.legacy import demo
from tests.e2e.process import ROOT, Quietus, shipped
from tests.grpc_wire.standing import tool

SECRET = "Alice Moreau keeps her spare key under the third flower pot"


@contextlib.contextmanager
def store(*words: str) -> Iterator[str]:
    """`quietus legacy serve`, and the address that it says it listens on."""
    command = [sys.executable, "-c", "from quietus.cli import main; main()", "legacy", "serve"]
    command += ["--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "proxy")}
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"over gRPC, on (\S+);", said)
        assert found is not None, said
        yield found[1]
    finally:
        process.kill()
        process.wait(10)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.requirement("R13", "R197")
async def test_the_main_job_in_front_of_a_real_process(tmp_path: Path, workers: int) -> None:
    profile = str(shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="120s"))
    with store("--fault", "lazy_index=4", "--fault", "chunk_cache=4") as address:
        settings: dict[str, Any] = {
            "store": {"profile": profile, "grpc": {"listen": "127.0.0.1:0", "upstream": address}},
            "limits": {"probe_rate_per_second": 200},
            "workers": workers,
        }
        quietus = Quietus(tmp_path, "", profile, settings).start()
        try:
            async with tool(quietus.grpc) as agent:
                assert (await agent.write("a1", SECRET, "alice")).code == "OK"
                assert (await agent.write("b1", "Bob Keller takes the early train", "bob")).code == "OK"
                assert (await agent.call("Forget", subject="alice")).code == "OK"
                inside = await agent.call("Recall", query="spare key", subject="alice")
                assert inside.code == "FAILED_PRECONDITION"
                for _ in range(8):  # each connection may be another worker's
                    async with tool(quietus.grpc) as other:
                        again = await other.call("Recall", query="spare key", subject="alice")
                        assert again.code == "FAILED_PRECONDITION"
                assert await agent.keys(query="spare key") == ["b1"]
                view = quietus.until("settled")
                assert {s["name"]: s["outcome"] for s in view["surfaces"]}["recall"] == "CLEAN"
                assert await agent.keys(query="spare key", subject="alice") == []
                assert await agent.keys(query="spare key") == ["b1"]  # no canary is left behind
                metrics = re.findall(r'quietus_operations_total{[^}]*wire="grpc"[^}]*}', _metrics(quietus))
                assert any('operation="forget"' in line for line in metrics)
                assert "alice" not in quietus.log() and "flower" not in quietus.log()
        finally:
            assert quietus.stop() == 0


def _metrics(quietus: Quietus) -> str:
    from tests.e2e.process import request

    return request("GET", f"{quietus.admin}/metrics").body.decode()


async def test_a_sidecar_that_is_killed_after_the_intent_finishes_the_forget_over_grpc(
    tmp_path: Path,
) -> None:
    profile = str(shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="120s"))
    with store("--fault", "lazy_index=900") as address:
        settings: dict[str, Any] = {
            "store": {"profile": profile, "grpc": {"listen": "127.0.0.1:0", "upstream": address}},
        }
        quietus = Quietus(tmp_path, "", profile, settings, arm="after:requested").start()
        async with tool(quietus.grpc) as agent:
            await agent.write("a1", SECRET, "alice")
            assert (await agent.call("Forget", subject="alice")).code == "UNAVAILABLE"
        quietus.died()
        quietus.arm = ""
        quietus.start()
        try:
            async with tool(quietus.grpc) as agent:
                inside = await agent.call("Recall", query="spare key", subject="alice")
                assert inside.code == "FAILED_PRECONDITION"
                quietus.until("leaking")  # it was sent: the row is gone, the index still tells
                assert (await agent.call("Read", key="a1")).code in ("NOT_FOUND", "FAILED_PRECONDITION")
        finally:
            quietus.stop()


@pytest.mark.timeout(120)
async def test_the_demo_holds_over_grpc() -> None:
    with tempfile.TemporaryDirectory() as folder:
        profile = shipped("memory-tool", Path(folder), settling_interval="1s", effectuation_bound="60s")

        async def factory(upstream: str) -> demo.Sidecar:
            flags = {
                "store.profile": str(profile),
                "store.grpc.upstream": upstream,
                "store.grpc.listen": "127.0.0.1:0",
                "admin.listen": "127.0.0.1:0",
                "ledger.url": f"sqlite:///{folder}/ledger.db",
                "limits.probe_rate_per_second": 200,
            }
            made = Sidecar(load(None, flags, {}))
            await made.start()
            return demo.Sidecar(made.grpc_address, made.admin_url, made.admin.token, made.stop)

        console = Console(file=io.StringIO(), width=120, force_terminal=False)
        pace = demo.Pace(compaction=2.0, chunk_cache=2.5, digest=2.5, poll=0.1, patience=40.0)
        held = await demo.run(console, sidecar_factory=factory, pace=pace, grpc=True)
        assert isinstance(console.file, io.StringIO)
        told = console.file.getvalue()
        assert held, told
        assert "refused (FAILED_PRECONDITION)" in told
