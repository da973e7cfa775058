"""Real stores as child processes: started on free ports, waited for, and gone with the test."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

STARTING = 60.0
"""Seconds that a store may take to listen on a loaded machine."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def installed(name: str) -> str:
    """A command of the environment that the tests run in."""
    path = Path(sys.executable).with_name(name)
    assert path.exists(), f"{name} is not installed beside {sys.executable}"
    return str(path)


@contextlib.contextmanager
def serving(command: list[str], port: int, folder: Path, patience: float = STARTING) -> Iterator[str]:
    """Runs a server until the block ends; its HOST:PORT, once something listens there."""
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + patience
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            said = f"it did not start: {(folder / 'server.log').read_text()[-2000:]}"
            assert server.poll() is None and time.monotonic() < end, said
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)  # a wrapper leaves its child behind
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)


@contextlib.contextmanager
def etcd(folder: Path) -> Iterator[str]:
    """One member of etcd, for itself."""
    port, peers = free_port(), free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    command = [
        installed("etcd"), "--data-dir", str(folder / "data"), "--listen-client-urls", client,
        "--advertise-client-urls", client, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
    ]  # fmt: skip
    with serving(command, port, folder) as address:
        yield address


@contextlib.contextmanager
def milvus_lite(folder: Path) -> Iterator[str]:
    """milvus-lite's own server."""
    port = free_port()
    command = [installed("milvus-lite"), "server", "--host", "127.0.0.1", "--port", str(port)]
    with serving([*command, "--data-dir", str(folder / "data")], port, folder) as address:
        yield address
