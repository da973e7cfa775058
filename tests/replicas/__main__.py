"""The races and freezes at full size, and what the barrier and a shared ledger cost.

    python -m tests.replicas race --server valkey --count 3 --people 2000 --recalls 20000 --keep build/races
    python -m tests.replicas race --server valkey --count 3 --arm unsafe:barrier    (it must leak)
    python -m tests.replicas freeze --server valkey --trials 100 --seconds 10
    python -m tests.replicas cost --server postgresql --count 1 2 3 5 --people 200
    python -m tests.replicas recalls --server valkey postgresql --rounds 5 --seconds 3

A race is run in legs, each with a cluster of its own. With `--keep FOLDER` each leg is written down as it
ends, and a race that was broken off goes on where it was, as long as it is asked for in the same words.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.servers import Server
from tests.replicas.cluster import cluster
from tests.replicas.conftest import KINDS
from tests.replicas.costing import barrier_cost, recall_cost
from tests.replicas.freezing import Freeze
from tests.replicas.lying_store import LyingStore
from tests.replicas.race import Race

LEG = 100
"""Forgets in one leg."""
AT_ONCE = 3
"""Replicas that one freeze stops; one more goes on."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def added(sums: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Two tallies as one."""
    for key, value in more.items():
        if isinstance(value, dict):
            sums[key] = added(dict(sums.get(key, {})), value)
        elif key == "converged_s":
            sums[key] = max(sums.get(key, 0.0), value)
        else:
            sums[key] = sums.get(key, 0) + value
    return sums


def kept(options: argparse.Namespace, count: int) -> tuple[Path | None, dict[int, dict[str, Any]]]:
    """Where the legs of a race are written down, and those that stand there."""
    if options.keep is None:
        return None, {}
    words = (options.server[0], count, options.people, options.recalls, options.faults, options.lease,
             options.seed, options.arm.replace(":", "-") or "safe")  # fmt: skip
    path = Path(options.keep) / ("-".join(map(str, words)) + ".jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    return path, {each["leg"]: each["tally"] for each in map(json.loads, lines)}


def race(options: argparse.Namespace, server: Server, count: int) -> None:
    """Forgets and recalls race; prints one line for each leg, and the sum."""
    legs = max(1, options.people // LEG)
    path, done = kept(options, count)
    named = f"{options.server[0]} x {count} {options.arm or 'as it is'}"
    for leg in range(legs):
        if leg in done:
            continue
        store = LyingStore(lag=600.0)
        folder = Path(tempfile.mkdtemp(prefix="quietus-race"))
        made = {"upstream": store.url, "lease": options.lease, "arm": options.arm}
        try:
            with cluster(server, folder, count, **made) as running:
                seed = options.seed * 1000 + leg
                run = Race(running, store, options.people // legs, options.recalls // legs, seed)
                tally = asyncio.run(run.run(options.faults))
        finally:
            store.close()
        done[leg] = tally.told()
        if path is not None:
            with path.open("a") as file:
                file.write(json.dumps({"leg": leg, "tally": done[leg]}) + "\n")
        say(f"{named}, leg {leg + 1} of {legs}: {tally.line()}")
    sums: dict[str, Any] = {}
    for each in done.values():
        sums = added(sums, each)
    say(f"{named}, {len(done)} legs: {json.dumps(sums)}")


def freeze(options: argparse.Namespace, server: Server, _: int) -> None:
    """Replicas are frozen and thawed; prints how many of how many trials went well."""
    store = LyingStore(lag=600.0)
    folder = Path(tempfile.mkdtemp(prefix="quietus-freeze"))
    done, wrong = 0, list[str]()
    try:
        with cluster(server, folder, AT_ONCE + 1, upstream=store.url, lease=options.lease) as made:
            while done < options.trials:
                places = range(1, min(AT_ONCE, options.trials - done) + 1)
                found = Freeze(made, store, places, f"z{done}", options.seconds).run()
                done += len(places)
                wrong += found
                for each in found:
                    say(f"trial {done}: {each}")
    finally:
        store.close()
    say(f"{options.server[0]}: {done} trials of {options.seconds:g} s, each in the middle of a recall, a "
        f"write and a forget: {len(wrong)} wrong")  # fmt: skip


def cost(options: argparse.Namespace, server: Server, count: int) -> None:
    """What the barrier adds to a forget."""
    say(barrier_cost(options.server[0], server, count, options.people))


@contextmanager
def started(kind: str) -> Iterator[Server]:
    server: Server = KINDS[kind]()
    try:
        yield server.start()
    finally:
        server.stop()


def main() -> None:
    words = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=words)
    parser.add_argument("what", choices=["race", "freeze", "cost", "recalls"])
    parser.add_argument("--server", choices=list(KINDS), nargs="+", default=["valkey"])
    parser.add_argument("--count", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--recalls", type=int, default=2000)
    parser.add_argument("--faults", type=int, default=6, help="in each leg of a race")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0, help="of a freeze at least, or of load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lease", default="2s")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for the legs of a race")
    parser.add_argument("--arm", default="", help="unsafe:barrier, unsafe:second or unsafe:lease")
    options = parser.parse_args()
    if options.what == "recalls":
        say(recall_cost(options.server, options.seconds, options.rounds))
        return
    for kind in list(options.server):
        options.server = [kind]
        with started(kind) as server:
            for count in options.count if options.what != "freeze" else [AT_ONCE + 1]:
                {"race": race, "freeze": freeze, "cost": cost}[options.what](options, server, count)


if __name__ == "__main__":
    main()
