"""Starts sidecars fast: a process that has imported everything forks one for each line that it is given.

    python -m tests.e2e.nursery        # CONFIG \t READY \t LOG \t POINT on a line; answers with a pid, then,
                                       # once that has ended, with its exit code

What is forked is a sidecar as `tests.e2e.armed` runs it, with its own sockets and files, that can be killed
with SIGKILL like any other. It is armed only when it gets SIGUSR1, so that what it takes up from the one
before it does not kill it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.process import ROOT, STARTING, request

LIMIT = 60.0


def _child(config: str, ready: str, log: str, point: str) -> None:
    from quietus.app import harden
    from quietus.logs import setup
    from tests.e2e.armed import arm, main

    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(out, stream)
    code = 1
    with contextlib.suppress(BaseException):
        harden()
        setup(time.time)
        signal.signal(signal.SIGUSR1, lambda *_: arm(point))
        asyncio.run(main(Path(config), Path(ready)))
        code = 0
    os._exit(code)


def serve() -> None:
    """Forks as it is told to, one at a time, until the input ends."""
    import tests.e2e.armed  # noqa: F401 - everything is imported once, for all

    for line in sys.stdin:
        config, ready, log, point = line.rstrip("\n").split("\t")
        pid = os.fork()
        if not pid:
            _child(config, ready, log, point)
        _say(pid)
        _, status = os.waitpid(pid, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


class Nursery:
    """The process, as seen from a test."""

    def __init__(self) -> None:
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}:{ROOT}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.nursery"], cwd=ROOT, env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._end()
        self._process.stdout.close()

    def _end(self) -> None:
        """A test has failed: what was forked lives on, and goes first."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._last, signal.SIGKILL)
        self._process.kill()
        self._process.wait(LIMIT)

    def ask(self, config: Path, ready: Path, log: Path, point: str) -> int:
        """The pid of a new sidecar."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{config}\t{ready}\t{log}\t{point}\n")
        self._process.stdin.flush()
        self._last = self.told()
        return self._last

    def told(self) -> int:
        """The next number that it says: after the pid, the exit code once there is one."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@dataclass
class Sidecar:
    """One folder, and the sidecar over it that lives at present."""

    nursery: Nursery
    folder: Path
    config: Path
    point: str
    pid: int = 0
    data: str = ""
    admin: str = ""

    def start(self) -> None:
        """Starts it and waits until it serves."""
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        self.pid = self.nursery.ask(self.config, ready, self.folder / "log.jsonl", self.point)
        end = time.monotonic() + STARTING
        while not ready.exists():
            assert time.monotonic() < end, f"it did not start: {self.log()}"
            select.select([], [], [], 0.01)
        urls = json.loads(ready.read_text())
        self.data, self.admin = urls["data"], urls["admin"]

    def arm(self) -> None:
        """From now on it dies at its point."""
        os.kill(self.pid, signal.SIGUSR1)

    def died(self) -> None:
        """Waits until it has been killed."""
        assert self.nursery.told() == -signal.SIGKILL, self.log()

    def kill(self) -> None:
        """SIGKILL from outside, wherever it is."""
        os.kill(self.pid, signal.SIGKILL)

    def log(self) -> str:
        """The end of what it has said."""
        return (self.folder / "log.jsonl").read_text()[-2000:]

    def stop(self) -> None:
        """SIGTERM, and it goes in order."""
        os.kill(self.pid, signal.SIGTERM)
        assert self.nursery.told() == 0

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """A call of a client."""
        return request(method, self.data + path, body)

    def erasures(self) -> list[dict[str, Any]]:
        """What the admin API lists."""
        token = (self.folder / "admin.token").read_text().strip()
        allowed = {"Authorization": f"Bearer {token}"}
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = request("GET", f"{self.admin}/v1/erasures?limit=200{cursor}", None, allowed).json
            found += page["erasures"]
            if page["next"] is None:
                return found
            cursor = f"&cursor={page['next']}"


if __name__ == "__main__":
    serve()
