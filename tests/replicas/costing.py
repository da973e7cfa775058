"""What several replicas cost: the barrier of a forget, and a recall where the ledger lies on a server.

Figures are ratios and differences within one run on one machine; say how busy that machine was.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import load, upstream
from bench.processes import Process, free_port, python

from tests.harness.servers import Server
from tests.replicas.calls import acknowledged
from tests.replicas.cluster import cluster
from tests.replicas.conftest import KINDS
from tests.replicas.lying_store import LyingStore


def barrier_cost(kind: str, server: Server, count: int, people: int) -> str:
    """Forgets one after the other through one of `count` replicas, with the barrier and without; lines."""
    lines, medians = [], []
    for arm in ("", "unsafe:barrier"):
        taken = _forgets(server, count, people, arm)
        cut = statistics.quantiles(taken, n=100)
        medians.append((cut[49] * 1e3, cut[98] * 1e3))
        lines.append(f"{kind} x {count} {'no barrier' if arm else 'barrier'}: {len(taken)} forgets, "
                     f"p50 {cut[49] * 1e3:.1f} ms, p99 {cut[98] * 1e3:.1f} ms")  # fmt: skip
    (p50, p99), (p50_without, p99_without) = medians
    lines.append(f"{kind} x {count} the barriers: p50 {p50 - p50_without:+.1f} ms, "
                 f"p99 {p99 - p99_without:+.1f} ms, load {os.getloadavg()[0]:.1f}")  # fmt: skip
    return "\n".join(lines)


def _forgets(server: Server, count: int, people: int, arm: str) -> list[float]:
    store = LyingStore(lag=600.0)
    folder = Path(tempfile.mkdtemp(prefix="quietus-cost"))
    taken = []
    try:
        with cluster(server, folder, count, upstream=store.url, lease="10s", arm=arm) as made:
            for number in range(people):
                store.person(f"p{number}")
                began = time.monotonic()
                answer = acknowledged(made.replicas[0], f"p{number}")
                taken.append(time.monotonic() - began)
                assert answer.status == 202, answer
    finally:
        store.close()
    return taken


def recall_cost(kinds: Sequence[str], seconds: float, rounds: int) -> str:
    """CPU of one sidecar per recall, by where its ledger lies, in turn, round after round; lines."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="quietus-recalls"))
        up, port, _ = upstream.start(folder)
        stack.callback(up.stop)
        urls = {"memory": "memory:", "sqlite": f"sqlite:///{folder}/ledger.db"}
        for kind in kinds:
            server: Server = KINDS[kind]()
            stack.callback(server.stop)
            urls[kind] = server.start().url
        sidecars = {name: _sidecar(name, url, folder, port) for name, url in urls.items()}
        for process, at in sidecars.values():
            stack.callback(process.stop)
            process.wait_for_port(at)
        spent: dict[str, list[float]] = {name: [] for name in urls}
        before = os.getloadavg()[0]
        for number in range(rounds + 1):
            for name, (process, at) in sidecars.items():
                start = process.cpu()
                busy = load.run(at, 16, seconds, folder)
                assert not busy.errors, f"{name}: {busy.errors} errors"
                if number:  # the first one warms up
                    spent[name].append((process.cpu() - start) / busy.requests * 1e6)
    base = statistics.median(spent["memory"])
    lines = [
        f"{name}: CPU {statistics.median(its):.1f} us a recall ({min(its):.1f} to {max(its):.1f}), "
        f"{statistics.median(its) / base:.3f} of the ledger in memory"
        for name, its in spent.items()
    ]
    return "\n".join([*lines, f"{rounds} rounds of {seconds:g} s each, load {before:.1f} before"])


def _sidecar(name: str, url: str, folder: Path, store: int) -> tuple[Process, int]:
    place = folder / name
    place.mkdir()
    at = free_port()
    config = place / "quietus.json"
    config.write_text(json.dumps({
        "store": {
            "profile": "memory-tool",
            "http": {"listen": f"127.0.0.1:{at}", "upstream": f"http://127.0.0.1:{store}"},
        },
        "ledger": {"url": url},
        "keys": {"file": str(place / "keys.json")},
        "admin": {"listen": "127.0.0.1:0"},
    }))  # fmt: skip
    command = python("-c", "from quietus.cli import main; main()", "serve", "--config", str(config))
    return Process(name, command, place / "log.jsonl").start(), at
