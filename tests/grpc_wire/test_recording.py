"""`quietus profile record` and `profile test` over gRPC: a real process between a client and the store."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import sys
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import ROOT
from tests.grpc_wire.standing import Tool, legacy, tool

pytestmark = pytest.mark.timeout(400)
SECRET = "Alice Moreau keeps her spare key under the third flower pot"
WORDS = ("alice", "bob", "moreau", "spare", "flower", "acme", "train", "token-of")
MAIN = "from quietus.cli import main; main()"
ENV = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}:{ROOT}"}


async def quietus(*words: str) -> tuple[int, str]:
    """One command: its exit code, and what it said."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, *words, env=ENV, stdout=-1, stderr=-1)  # fmt: skip
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@asynccontextmanager
async def recorder(out: Path, upstream: str, calls: int) -> AsyncIterator[tuple[str, Any]]:
    """The recorder as a process: where it listens, and the process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MAIN, "profile", "record", "memory-tool", "--upstream",
        f"grpc://{upstream}", "--listen", "127.0.0.1:0", "--out", str(out), "--calls", str(calls), "--json",
        env=ENV, stdout=-1, stderr=-1,
    )  # fmt: skip
    try:
        async with asyncio.timeout(180):
            assert process.stderr is not None
            said = ""
            while (found := re.search(r"recording on grpc://(127\.0\.0\.1:\d+)", said)) is None:
                line = await process.stderr.readline()
                assert line, said
                said += line.decode()
        yield found[1], process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def day(agent: Tool) -> None:
    """A call of each kind, each answered as by the store itself."""
    assert (await agent.write("a1", SECRET, "alice")).message.status == "stored"
    assert (await agent.write("b1", "Bob takes the early train", "bob")).code == "OK"
    assert await agent.keys(query="spare key") == ["a1", "b1"]
    assert (await agent.call("Read", key="a1")).message.value == SECRET
    assert (await agent.call("Read", key="nothing")).code == "NOT_FOUND"
    assert sorted(await agent.keys("List")) == ["a1", "b1"]
    assert (await agent.call("Forget", subject="alice")).message.keys == 1


async def test_recorded_over_grpc_and_tested(tmp_path: Path) -> None:
    out = tmp_path / "calls.jsonl"
    async with legacy() as store, recorder(out, store.address, 7) as (address, process):
        async with tool(address, authorization="Bearer token-of-alice") as agent:
            rows, ended = await agent.stream("StreamRecall", query="spare key")
            assert (ended.code, rows) == ("OK", []), "a call of many messages passes"
            await day(agent)
        said, _ = await process.communicate()
        assert (process.returncode, json.loads(said)["calls"]) == (0, 7)
        assert json.loads(said)["left_out"] == 1, "and is not recorded"
    text = out.read_text()
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert not [word for word in WORDS if word in text.lower()]
    for line in text.splitlines():  # base64 hides nothing
        for side in ("request", "response"):
            assert not [word for word in WORDS if word.encode() in _bytes(json.loads(line)[side]).lower()]

    code, said = await quietus("profile", "test", "memory-tool", str(out), "--json")
    found = json.loads(said)
    assert (code, found["pairs"], found["failed"]) == (0, 7, 0), found
    told = found["found"]
    operations = ["write", "write", "recall", "read", "read", "recall", "forget"]
    assert [each["operation"] for each in told] == operations
    assert [(told[at]["items"], told[at]["rows_taken_out"]) for at in (2, 5)] == [(2, 2), (2, 2)]
    scopes = [each["scope"]["subject"] for each in told]
    assert scopes[0] == scopes[6] != scopes[1]

    # A profile that looks for the texts elsewhere is found out.
    text = (ROOT / "policies/profiles/memory-tool.yaml").read_text()
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(re.sub(r"(?m)^( +content): \$\.value$", r"\1: $.scope", text))
    code, said = await quietus("profile", "test", "memory-tool", str(out), "--accept")
    assert code == 0, said
    code, said = await quietus("profile", "test", str(wrong), str(out), "--json")
    assert code == 1 and "mend response.item.content" in said, said


def _bytes(side: dict[str, Any]) -> bytes:
    return b64decode(side["message"])


async def test_a_recorder_ends_when_it_is_told_to(tmp_path: Path) -> None:
    out = tmp_path / "calls.jsonl"
    async with legacy() as store, recorder(out, store.address, 100) as (address, process):
        async with tool(address) as agent:
            assert (await agent.write("a1", SECRET, "alice")).code == "OK"
        process.send_signal(signal.SIGINT)
        said, _ = await process.communicate()
        assert (process.returncode, json.loads(said)["calls"]) == (0, 1)
    async with recorder(tmp_path / "other.jsonl", "127.0.0.1:1", 5) as (address, _):
        async with tool(address) as agent:
            assert (await agent.write("a1", SECRET, "alice")).code == "UNAVAILABLE"
