"""The races at full size, and what the barrier costs.

    python -m tests.replicas race --server valkey --count 3 --people 2000 --recalls 20000 --faults 30
    python -m tests.replicas cost --server postgresql --count 1 2 3 5 --people 200
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.replicas.cluster import BAY, cluster
from tests.replicas.conftest import KINDS
from tests.replicas.lying_store import LyingStore
from tests.replicas.race import Race


def race(options: argparse.Namespace, server: object, count: int) -> None:
    store = LyingStore(lag=600.0)
    folder = Path(tempfile.mkdtemp(prefix="quietus-race"))
    with cluster(server, folder, count, upstream=store.url, lease=options.lease, arm=options.arm) as made:  # type: ignore[arg-type]
        run = Race(made, store, options.people, options.recalls, options.seed)
        tally = asyncio.run(run.run(options.faults))
    store.close()
    sys.stdout.write(f"{options.server} x {count} {options.arm or 'as it is'}: {tally.line()}\n")


def cost(options: argparse.Namespace, server: object, count: int) -> None:
    """Forgets one after the other through one of `count` replicas, with the barrier and without."""
    for arm in ("", "unsafe:barrier"):
        store = LyingStore(lag=600.0)
        folder = Path(tempfile.mkdtemp(prefix="quietus-cost"))
        taken = []
        with cluster(server, folder, count, upstream=store.url, lease="10s", arm=arm) as made:  # type: ignore[arg-type]
            for number in range(options.people):
                store.person(f"p{number}")
                began = time.monotonic()
                answer = made.replicas[0].call("POST", "/v1/forget", {"subject": f"p{number}", "tenant": BAY})
                taken.append(time.monotonic() - began)
                assert answer.status == 202, answer
        store.close()
        cut = statistics.quantiles(taken, n=100)
        what = "no barrier" if arm else "barrier"
        sys.stdout.write(
            f"{options.server} x {count} {what}: {len(taken)} forgets, p50 {cut[49] * 1e3:.1f} ms, "
            f"p99 {cut[98] * 1e3:.1f} ms\n"
        )
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["race", "cost"])
    parser.add_argument("--server", choices=list(KINDS), default="valkey")
    parser.add_argument("--count", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--recalls", type=int, default=2000)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--lease", default="2s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arm", default="", help="unsafe:barrier, unsafe:second or unsafe:lease")
    options = parser.parse_args()
    server = KINDS[options.server]()
    try:
        server.start()
        for count in options.count:
            {"race": race, "cost": cost}[options.what](options, server, count)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
