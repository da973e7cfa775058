"""The benchmark: contenders in turn, round after round; a table on stdout and everything in a JSON file."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import contenders as all_of
from bench import load, report, traffic, upstream
from bench.contenders import Contender
from bench.processes import ROOT, Process, python

WARM = 1.0
REST = 11.0
"""Seconds at rest: gauges are published every five."""


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load, each time")
    parser.add_argument("--erasures", type=int, default=100_000, help="what `many` means")
    parser.add_argument("--ledgers", type=Path, help="a folder that keeps the made ledgers for the next time")
    parser.add_argument("--only", nargs="*", help="names of contenders, such as idle; direct is always there")
    parser.add_argument("--at-once", action="store_true",
                        help="start all at once: sooner, but the times to be ready are no measure then")
    parser.add_argument("--json", type=Path, default=Path("bench.json"))
    return parser.parse_args()


def one_round(contender: Contender, seconds: float, folder: Path) -> None:
    """CPU under sixteen connections, then latency over one."""
    if contender.missing:
        return
    before = contender.process.cpu() if contender.process else 0.0
    busy = load.run(contender.port, 16, seconds, folder, wide=contender.wide)
    if contender.process:
        contender.note("cpu_us", (contender.process.cpu() - before) / max(busy.requests, 1) * 1e6)
    contender.note("rate", busy.requests / busy.seconds)
    alone = load.run(contender.port, 1, seconds, folder, wide=contender.wide)
    contender.note("p10", alone.p10)
    contender.note("p50", alone.p50)
    contender.note("p99", alone.p99)
    contender.note("errors", busy.errors + alone.errors)


def at_rest(every: list[Contender]) -> None:
    """What the sidecars do while nobody asks them anything."""
    waiting = [c for c in every if c.kind == "quietus" and c.process]
    before = [c.process.cpu() for c in waiting if c.process]
    began = time.monotonic()
    time.sleep(REST)
    for contender, start in zip(waiting, before, strict=True):
        assert contender.process is not None
        spent = contender.process.cpu() - start
        contender.note("rest_ms", spent / (time.monotonic() - began) * 1e3)


def forgets(folder: Path, store: int) -> dict[str, float]:
    """See `bench.forgets`."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'proxy'}{os.pathsep}{ROOT}"}
    command = python("-m", "bench.forgets", str(folder), str(store))
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(given: argparse.Namespace, folder: Path, every: list[Contender]) -> dict[str, float]:
    """All of it. Whatever was started is stopped."""
    store, port, fresh = upstream.start(folder)
    running: list[Process] = [store]
    ledgers = given.ledgers or folder
    ledgers.mkdir(parents=True, exist_ok=True)
    try:
        for contender in every:
            say(f"starting {contender.name}")
            all_of.start(contender, folder, ledgers, (port, fresh))
            if contender.process:
                running.append(contender.process)
            if not given.at_once:
                all_of.await_ready(contender)
        if given.at_once:
            for contender in every:
                all_of.await_ready(contender)
        for contender in every:
            if not contender.missing:
                load.run(contender.port, 16, WARM, folder, wide=contender.wide)
        for number in range(given.rounds):
            say(f"round {number + 1} of {given.rounds}")
            for contender in every:
                one_round(contender, given.seconds, folder)
        say("at rest")
        at_rest(every)
        say("forgets")
        return forgets(folder, port)
    finally:
        for process in reversed(running):
            process.stop()


def say(words: str) -> None:
    """Where it is, on stderr."""
    print(words, file=sys.stderr, flush=True)


def main() -> None:
    """Measures and tells."""
    given = arguments()
    every = [c for c in all_of.everybody(given.erasures)
             if not given.only or c.kind == "direct" or c.name in given.only]  # fmt: skip
    began = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="quietus-bench-") as name:
        acknowledged = measure(given, Path(name), every)
    found = report.results(every)
    whole = {**report.summary(every, given.erasures), **acknowledged}
    told: dict[str, Any] = {
        "machine": report.machine(), "load_tool": load.tool(), "rounds": given.rounds,
        "seconds": given.seconds, "load_average": [began, os.getloadavg()[0]],
        "request_bytes": len(traffic.request_body()), "answer_bytes": len(traffic.answer_body()),
        "upstream": "nginx" if upstream.nginx() else "bench/upstream.py (nginx is missing)",
        "contenders": found, "summary": whole,
    }  # fmt: skip
    given.json.write_text(json.dumps(told, indent=1) + "\n")
    print(report.table(found, whole))
    print(f"\n{told['machine']}; load: {told['load_tool']}; upstream: {told['upstream']}; "
          f"{given.rounds} rounds; load average {began:.1f} before, {told['load_average'][1]:.1f} after")


if __name__ == "__main__":
    main()
