"""What a kubelet does to a sidecar: probes, a ConfigMap swapped under load, SIGTERM with calls in flight."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quietus.legacy.faults import Faults
from tests.deploy.tooling import ROOT
from tests.e2e.process import Quietus, Response, request, shipped
from tests.e2e.stores import Served
from tests.harness.servers import free_port

CALLS = 200
PATIENCE = 60.0
BODY = json.dumps(
    {"results": [{"key": f"k-{n}", "value": "x" * 400, "score": 0.5} for n in range(40)]}
).encode()
RECALL = json.dumps({"query": "anything", "tenant": "bay", "subject": "bob"}).encode()


class Slow:
    """A store that answers half of each recall at once, and the rest when it is told to."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.arrived = 0
        self.server: asyncio.Server | None = None

    async def start(self) -> str:
        self.server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=1024)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(size.split(b":")[1]))
            self.arrived += 1
            # One half of the stores has not begun to answer, the other is in the middle of it.
            early = BODY[:1000] if self.arrived % 2 else b""
            text = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
                BODY
            )
            if early:
                writer.write(text + early)
            await self.go.wait()
            writer.write(BODY[1000:] if early else text + BODY)
            await writer.drain()

    def close(self) -> None:
        if self.server is not None:
            self.server.close()


async def recalled(port: int) -> bytes:
    """One recall on a connection of its own; everything that came until its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /v1/recall HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(RECALL), RECALL)
    )
    try:
        return await reader.read(-1)
    finally:
        writer.close()


async def reached(holds: Any, otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, otherwise
        await asyncio.to_thread(threading.Event().wait, 0.05)


def refuses(port: int) -> bool:
    import socket

    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return True
    return False


@pytest.mark.requirement("R200")
@pytest.mark.timeout(120)
async def test_no_answer_is_cut_by_sigterm(tmp_path: Path) -> None:
    slow = Slow()
    url = await slow.start()
    sidecar = Quietus(tmp_path, url, "memory-tool")
    await asyncio.to_thread(sidecar.start)
    assert sidecar.process is not None
    port = int(sidecar.data.rpartition(":")[2])
    try:
        asked = [asyncio.ensure_future(recalled(port)) for _ in range(CALLS)]
        await reached(lambda: slow.arrived == CALLS, f"only {slow.arrived} calls reached the store")
        sidecar.process.send_signal(signal.SIGTERM)
        await reached(lambda: refuses(port), "it still takes new connections")
        assert not any(each.done() for each in asked), "an answer ended before the store had given it"
        slow.go.set()
        answers = await asyncio.wait_for(asyncio.gather(*asked), PATIENCE)
        whole = [a for a in answers if a.startswith(b"HTTP/1.1 200") and a.partition(b"\r\n\r\n")[2] == BODY]
        assert len(whole) == CALLS, f"{CALLS - len(whole)} answers were cut"
        assert await asyncio.to_thread(sidecar.process.wait, PATIENCE) == 0
    finally:
        slow.go.set()
        slow.close()
        if sidecar.process.poll() is None:
            sidecar.kill()


class ConfigMap:
    """A folder as the kubelet mounts one: files are links into `..data`, which is swapped as a whole."""

    def __init__(self, folder: Path, **files: str) -> None:
        self.folder = folder
        self._count = 0
        folder.mkdir()
        self.swap(**files)
        for name in files:
            (folder / f"{name}.yaml").symlink_to(Path("..data") / f"{name}.yaml")

    def swap(self, **files: str) -> None:
        """What the kubelet does when the ConfigMap has changed."""
        self._count += 1
        version = self.folder / f"..2026_{self._count}"
        version.mkdir()
        for name, text in files.items():
            (version / f"{name}.yaml").write_text(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        os.replace(link, self.folder / "..data")


def policy(mode: str) -> str:
    """The default policy under that mode."""
    text = (ROOT / "policies" / "rules" / "default.yaml").read_text()
    return text.replace("mode: enforce", f"mode: {mode}", 1)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[Quietus, ConfigMap]]:
    store = Served(Faults(lazy_index=600.0))
    store.store.put("Bob Keller prefers the early morning train", key="bob-1", subject="bob", tenant="bay")
    store.store.put("Alice Moreau lives at the old lighthouse", key="alice-1", subject="alice", tenant="bay")
    profile = shipped("memory-tool", tmp_path)
    config = ConfigMap(tmp_path / "policies", policy=policy("enforce"))
    ports = {
        "health": {"listen": f"127.0.0.1:{free_port()}"},
        "metrics": {"listen": f"127.0.0.1:{free_port()}"},
    }
    sidecar = Quietus(tmp_path, store.url, str(profile), ports, str(config.folder / "policy.yaml"))
    try:
        yield sidecar.start(), config
    finally:
        sidecar.stop()
        store.close()


def metric(sidecar: Quietus, line: str) -> float:
    page = request("GET", f"http://{sidecar.settings['metrics']['listen']}/metrics").body.decode()
    return next(float(each.rpartition(" ")[2]) for each in page.splitlines() if each.startswith(f"{line} "))


def until(holds: Any, otherwise: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, otherwise
        threading.Event().wait(0.05)


class Load:
    """Recalls from several threads until it is told to stop; every answer is kept."""

    def __init__(self, sidecar: Quietus) -> None:
        self._sidecar = sidecar
        self._enough = threading.Event()
        self.answers: list[int] = []
        self._threads = [threading.Thread(target=self._go) for _ in range(4)]

    def _go(self) -> None:
        while not self._enough.is_set():
            self.answers.append(recall(self._sidecar, "bob").status)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join(PATIENCE)


def recall(sidecar: Quietus, subject: str) -> Response:
    return sidecar.call("POST", "/v1/recall", {"query": "anything", "tenant": "bay", "subject": subject})


@pytest.mark.requirement("R200")
@pytest.mark.timeout(120)
def test_a_swapped_config_map_is_taken_over_under_load(mounted: tuple[Quietus, ConfigMap]) -> None:
    sidecar, config = mounted
    assert sidecar.call("POST", "/v1/forget", {"tenant": "bay", "subject": "alice"}).status == 202
    assert recall(sidecar, "alice").status == 409
    applied = 'quietus_reloads_total{outcome="applied"}'
    with Load(sidecar) as load:
        for number, mode in enumerate(("observe", "enforce", "observe", "enforce", "observe"), 1):
            config.swap(policy=policy(mode))
            until(lambda count=number: metric(sidecar, applied) >= count, f"the swap to {mode} was not seen")
            wanted = 409 if mode == "enforce" else 200
            assert recall(sidecar, "alice").status == wanted, mode
        until(lambda: len(load.answers) > 100, "there was no load")
    assert set(load.answers) == {200}
    assert metric(sidecar, "quietus_reload_ok") == 1


@pytest.mark.requirement("R200")
@pytest.mark.timeout(120)
def test_a_bad_policy_changes_nothing_and_is_said(mounted: tuple[Quietus, ConfigMap]) -> None:
    sidecar, config = mounted
    assert sidecar.call("POST", "/v1/forget", {"tenant": "bay", "subject": "alice"}).status == 202
    with Load(sidecar) as load:
        for bad in ("kind: Nonsense\n", "a: [", policy("enforce").replace("effect: block", "effect: pass")):
            before = metric(sidecar, 'quietus_reloads_total{outcome="refused"}')
            config.swap(policy=bad)
            until(
                lambda b=before: metric(sidecar, 'quietus_reloads_total{outcome="refused"}') > b, "not seen"
            )
            assert metric(sidecar, "quietus_reload_ok") == 0
            assert recall(sidecar, "alice").status == 409, "the old one does not hold any more"
        config.swap(policy=policy("observe"))
        until(lambda: metric(sidecar, "quietus_reload_ok") == 1, "a good one was not taken after bad ones")
    assert set(load.answers) == {200}
    assert sidecar.log().count("reload_refused") >= 3
    assert "Nonsense" not in sidecar.log()


@pytest.mark.requirement("R200")
def test_probes_and_metrics_have_listeners_of_their_own(mounted: tuple[Quietus, ConfigMap]) -> None:
    sidecar, _ = mounted
    health, metrics = (f"http://{sidecar.settings[key]['listen']}" for key in ("health", "metrics"))
    for path in ("/startupz", "/healthz", "/readyz"):
        assert request("GET", health + path).status == 200
        assert request("GET", metrics + path).status == 404
    assert request("GET", metrics + "/metrics").status == 200
    for path in ("/metrics", "/v1/erasures", "/openapi.json", "/version"):
        assert request("GET", health + path).status == 404
    for path in ("/v1/erasures", "/v1/audit", "/openapi.json"):
        assert request("GET", metrics + path).status == 404
