"""What is measured: proxies that decide nothing, and the sidecar with ledgers of different fill."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import upstream
from bench.processes import Process, free_port, python


@dataclass
class Contender:
    """One proxy. `wide`: it is asked with recalls that name no subject. `fresh`: every text is new."""

    name: str
    says: str
    kind: str
    ledger: tuple[int, bool] = (0, True)
    """How many erasures, and whether they are settled."""
    wide: bool = False
    fresh: bool = False
    workers: int = 1
    port: int = 0
    process: Process | None = None
    ready: float = 0.0
    """Seconds from its start until it listened."""
    resident: int = 0
    """Bytes right after the start."""
    missing: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def note(self, name: str, value: float) -> None:
        """Keeps one round's number."""
        self.rounds.setdefault(name, []).append(value)


def everybody(count: int) -> list[Contender]:
    """The contenders, in the order of the table."""
    many = f"{count:,}"
    return [
        Contender("direct", "no proxy: the upstream itself", "direct"),
        Contender("nginx", "nginx as a reverse proxy, one worker", "nginx"),
        Contender("aiohttp", "aiohttp server and client, uvloop, no policy", "aiohttp"),
        Contender("idle", "quietus, nothing erased", "quietus"),
        Contender("workers-2", "quietus, nothing erased, two workers", "quietus", workers=2),
        Contender("settled-1", "quietus, 1 settled erasure", "quietus", (1, True)),
        Contender("settled-n", f"quietus, {many} settled", "quietus", (count, True)),
        Contender("unsettled-1", "quietus, 1 unsettled, wider recalls", "quietus", (1, False), wide=True),
        Contender("unsettled-n", f"quietus, {many} unsettled, wider recalls", "quietus", (count, False),
                  wide=True),
        Contender("fresh-1", "quietus, 1 settled, every text new", "quietus", (1, True), fresh=True),
    ]  # fmt: skip


def start(contender: Contender, folder: Path, ledgers: Path, up: tuple[int, int]) -> None:
    """Starts it in front of the upstream."""
    store = up[1] if contender.fresh else up[0]
    if contender.kind == "direct":
        contender.port = store
        return
    contender.port = free_port()
    if contender.kind == "nginx":
        if upstream.nginx() is None:
            contender.missing = "nginx is not installed"
            return
        process = upstream.nginx_process(contender.name, folder, _reverse(contender.port, store))
    elif contender.kind == "aiohttp":
        process = Process(contender.name, python("-m", "bench.bare", str(contender.port), str(store)),
                          folder / "aiohttp.log")  # fmt: skip
    else:
        process = _sidecar(contender, folder, ledgers, store)
    contender.ready = -time.perf_counter()
    contender.process = process.start()


def await_ready(contender: Contender) -> None:
    """Waits until it listens, and notes how long that took and what it keeps in memory."""
    if contender.process is None:
        return
    contender.process.wait_for_port(contender.port)
    contender.ready += time.perf_counter()
    contender.resident = contender.process.resident()


def _reverse(port: int, store: int) -> str:
    return f"""
  upstream store {{ server 127.0.0.1:{store}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=1024;
    location / {{
      proxy_pass http://store;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}"""


def _sidecar(contender: Contender, folder: Path, ledgers: Path, store: int) -> Process:
    place = folder / contender.name
    place.mkdir()
    count, settled = contender.ledger
    ledger = place / "ledger.db"
    if count:
        copy_ledger(ledger_of(ledgers, count, settled, place), ledger)
    config = place / "quietus.json"
    config.write_text(json.dumps({
        "store": {
            "profile": "memory-tool",
            "http": {"listen": f"127.0.0.1:{contender.port}", "upstream": f"http://127.0.0.1:{store}"},
        },
        "ledger": {"url": f"sqlite:///{ledger}"},
        "admin": {"listen": "127.0.0.1:0"},
        "workers": contender.workers,
    }))  # fmt: skip
    command = python("-c", "from quietus.cli import main; main()", "serve", "--config", str(config))
    return Process(contender.name, command, place / "log.jsonl")


def ledger_of(ledgers: Path, count: int, settled: bool, place: Path) -> Path:
    """A ledger of so many erasures, made once."""
    name = "settled" if settled else "unsettled"
    path = ledgers / f"{name}-{count}.db"
    if not path.exists():
        made = Process(name, python("-m", "bench.erased", str(path), str(count), name), place / "made.log")
        if made.start().popen.wait() != 0:
            raise RuntimeError(f"the ledger was not made: {made.log.read_text()[-2000:]}")
    return path


def copy_ledger(source: Path, target: Path) -> None:
    """The ledger with its keys, as a backup would be restored."""
    for suffix, mode in ((".db", 0o600), (".keys.json", 0o600)):
        into = target.with_suffix(suffix)
        into.write_bytes(source.with_suffix(suffix).read_bytes())
        into.chmod(mode)
