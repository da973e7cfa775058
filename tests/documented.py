"""Runs the commands of a page of the documentation as they stand there.

Only ports are changed, to free ones: a test must not depend on which are taken.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Ran:
    """How a page's commands ended."""

    code: int
    out: str
    folder: Path
    ports: dict[str, str]


def commands_of(page: str) -> str:
    """Every `sh` block of a page of docs/, one after the other."""
    return "\n".join(_BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def run(page: str, folder: Path, seconds: float, first: Path | None = None) -> Ran:
    """Runs them in one shell that stops at the first failure; whatever they started is ended.

    Commands are looked for in `first` before anywhere else.
    """
    script = commands_of(page)
    ports = {port: str(free_port()) for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", script)))}
    for port, free in ports.items():
        script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
    (folder / "docs").symlink_to(ROOT / "docs")
    path = f"{first}:" if first is not None else ""
    path += f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "proxy"), "NO_COLOR": "1", "COLUMNS": "200"}
    log = folder / "output.txt"
    with log.open("wb") as out:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL,
            stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = shell.wait(seconds)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait(30)
    return Ran(code, log.read_text(errors="replace"), folder, ports)
