"""The load: wrk where it is installed, else a small client of ours; always in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import traffic
from bench.processes import ROOT, python


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of the load saw; latencies in microseconds."""

    requests: int
    seconds: float
    errors: int
    p10: float
    p50: float
    p99: float


def tool() -> str:
    """What makes the load."""
    return "wrk" if shutil.which("wrk") else "the client of bench/load.py (wrk is missing)"


def run(port: int, connections: int, seconds: float, folder: Path, *, wide: bool = False) -> Load:
    """Recalls over so many kept connections for so long. Raises RuntimeError where it cannot."""
    body = folder / ("wide.json" if wide else "recall.json")
    if not body.exists():
        body.write_bytes(traffic.request_body(wide))
    url = f"http://127.0.0.1:{port}/v1/recall"
    env = {**os.environ, "BENCH_BODY": str(body), "PYTHONPATH": str(ROOT)}
    wrk = shutil.which("wrk")
    if wrk:
        command = [wrk, "-t", "1", "-c", str(connections), "-d", f"{max(1, round(seconds))}s",
                   "-s", str(ROOT / "bench" / "recall.lua"), url]  # fmt: skip
    else:
        command = python("-m", "bench.load", str(port), str(connections), str(seconds), str(body))
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 60)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"the load failed: {done.stdout[-500:]}{done.stderr[-500:]}")
    return Load(**json.loads(lines[-1]))


async def _one(port: int, request: bytes, until: float, seen: list[float], errors: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        seen.append((time.perf_counter() - began) * 1e6)
        errors[0] += not head.startswith(b"HTTP/1.1 2")
    writer.close()


async def _run(port: int, connections: int, seconds: float, body: bytes) -> None:
    head = (
        f"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    seen: list[float] = []
    errors = [0]
    began = time.perf_counter()
    await asyncio.gather(
        *(_one(port, head.encode() + body, began + seconds, seen, errors) for _ in range(connections))
    )
    seen.sort()

    def at(share: float) -> float:
        return round(seen[min(len(seen) - 1, int(len(seen) * share))], 1)

    print(json.dumps({"requests": len(seen), "seconds": time.perf_counter() - began, "errors": errors[0],
                      "p10": at(0.1), "p50": at(0.5), "p99": at(0.99)}))  # fmt: skip


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4]).read_bytes()))
