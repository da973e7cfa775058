"""The sidecar as users run it: a real process, real sockets, a ledger on disk."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STARTING = 90.0
"""Seconds that a process may take to be ready on a loaded machine."""


def shipped(name: str, folder: Path, **store: str) -> Path:
    """A copy of a shipped profile with other values in its `store` block (each must stand there)."""
    text = (ROOT / "policies" / "profiles" / f"{name}.yaml").read_text()
    for key, value in store.items():
        text, count = re.subn(rf"(?m)^(  {key}:).*$", rf"\1 {value}", text, count=1)
        assert count == 1, f"{name} says nothing of {key}"
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


@dataclass
class Response:
    """An answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(method: str, url: str, body: Any = None, headers: dict[str, str] | None = None) -> Response:
    """One HTTP call with nothing clever about it."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json"} if data is not None else {}
    call = urllib.request.Request(url, data=data, method=method, headers={**sent, **(headers or {})})
    try:
        with urllib.request.urlopen(call, timeout=60) as answer:
            return Response(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        return Response(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())


@dataclass
class Quietus:
    """One sidecar process over one folder; it can be killed and started again."""

    folder: Path
    upstream: str
    profile: str
    settings: dict[str, Any] = field(default_factory=dict)
    policy: str = "default"
    arm: str = ""
    """Where the process kills itself; see `tests.e2e.armed`."""
    process: subprocess.Popen[bytes] | None = None
    data: str = ""
    grpc: str = ""
    """HOST:PORT where it speaks gRPC, if it does."""
    admin: str = ""

    def start(self) -> Quietus:
        """Starts it and waits until it serves."""
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        config = {
            "store": {
                "profile": self.profile,
                "http": {"listen": "127.0.0.1:0", "upstream": self.upstream},
            },
            "policy": self.policy,
            "ledger": {"url": f"sqlite:///{self.folder}/ledger.db"},
            "admin": {"listen": "127.0.0.1:0"},
            **self.settings,
        }
        path = self.folder / "quietus.json"
        path.write_text(json.dumps(config))
        log = (self.folder / "log.jsonl").open("ab")
        command = [sys.executable, "-m", "tests.e2e.armed", str(path), str(ready), self.arm]
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}:{ROOT}"}
        self.process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        log.close()
        end = time.monotonic() + STARTING
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"it did not start: {(self.folder / 'log.jsonl').read_text()[-2000:]}")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
        urls = json.loads(ready.read_text())
        self.data, self.grpc, self.admin = urls["data"], urls["grpc"], urls["admin"]
        return self

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def died(self) -> None:
        """Waits until it has killed itself."""
        assert self.process is not None
        assert self.process.wait(STARTING) == -signal.SIGKILL, self.log()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(20)

    def log(self) -> str:
        return (self.folder / "log.jsonl").read_text()

    # --- asking ----------------------------------------------------------------------------------

    def call(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Response:
        return request(method, self.data + path, body, headers)

    def ask(self, method: str, path: str, body: Any = None) -> Response:
        """One call of the admin API, whatever it answers."""
        token = (self.folder / "admin.token").read_text().strip()
        return request(method, self.admin + path, body, {"Authorization": f"Bearer {token}"})

    def office(self, path: str, method: str = "GET", body: Any = None) -> Any:
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer
        return answer.json

    def erasures(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.office("/v1/erasures")["erasures"]
        return found

    def until(self, state: str, erasure: str | None = None, seconds: float = 60.0) -> dict[str, Any]:
        """Long-polls until an erasure is in that state."""
        end = time.monotonic() + seconds
        name = erasure or self.erasures()[-1]["id"]
        view: dict[str, Any] = self.office(f"/v1/erasures/{name}")
        while view["state"] != state:
            assert time.monotonic() < end, view
            view = self.office(f"/v1/erasures/{name}?wait=2")
        return view
