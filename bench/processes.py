"""Processes that are measured: started, waited for, and charged by the kernel's own accounting."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TICK = 1.0 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Process:
    """One process with everything that it has started."""

    name: str
    command: Sequence[str]
    log: Path
    popen: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> Process:
        """Starts it; its words go to the log."""
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}{os.pathsep}{ROOT}"}
        with self.log.open("ab") as log:
            self.popen = subprocess.Popen(list(self.command), cwd=ROOT, env=env, stdout=log, stderr=log)
        return self

    def wait_for_port(self, port: int, seconds: float = 600.0) -> None:
        """Returns when somebody listens there. Raises RuntimeError with the log's end."""
        end = time.monotonic() + seconds
        while self.popen.poll() is None and time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.01)
        raise RuntimeError(f"{self.name} does not listen: {self.log.read_text()[-2000:]}")

    def cpu(self) -> float:
        """Seconds of user and system time of the tree, those that have ended included."""
        return sum(sum(_stat(pid)[11:15]) for pid in self._tree()) * TICK

    def resident(self) -> int:
        """Bytes of memory that the tree keeps."""
        return sum(_stat(pid)[21] for pid in self._tree()) * PAGE

    def stop(self) -> None:
        """Asks it to end; a process that does not is killed."""
        if self.popen.poll() is None:
            self.popen.terminate()
        try:
            self.popen.wait(15)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def _tree(self) -> list[int]:
        found = [self.popen.pid]
        for pid in found:
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            except OSError:
                continue
            found += [int(child) for child in children]
        return found


def _stat(pid: int) -> list[int]:
    """The numbers of /proc/PID/stat after the state; `[11:15]` are utime, stime, cutime, cstime."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return [0] * 50
    return [0, *(int(word) for word in text.rpartition(")")[2].split()[1:])]


def free_port() -> int:
    """A port nobody listens on, below those that the kernel gives away: some listen only much later."""
    while True:
        port = random.randrange(18000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def python(*words: str) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *words]
