"""The one store with a real race: Milvus 2.3, whose reads are stale for a while after its acknowledgement.

Run by hand, in a network namespace, because that server listens on every interface and on fixed ports:

    pip install --no-deps --target DIR milvus==2.3.5
    ip netns add milvus && ip netns exec milvus ip link set lo up    # a new one for each run
    ip netns exec milvus env PYTHONPATH=proxy:. python -m tests.real.race DIR [ROUNDS] [plain]

In each round a subject is written, read from two sides at once, and forgotten through the sidecar. Counted
are reads that STARTED after the acknowledgement and still held the subject when the store was asked directly,
and reads through the sidecar that ENDED after it and did: one of the latter is a failure. `plain` takes
`strengthen` out of the profile.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import grpc
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from tests.e2e.process import ROOT, Quietus, shipped
from tests.real.servers import serving

LEVELS = ("Session", "Bounded", "Eventually")
DIMENSION, ROWS = 32, 12
AFTER = 0.7
"""Seconds that reading goes on after the acknowledgement."""
PORT = 19530
PLACE = "memories"


@dataclass
class Level:
    """What was seen on one consistency level."""

    level: str
    rounds: int = 0
    direct_reads: int = 0
    direct_stale: int = 0
    stale_rounds: int = 0
    longest_ms: float = 0.0
    through_reads: int = 0
    through_refused: int = 0
    through_stale: int = 0


class Reader(threading.Thread):
    """Reads over and over; each read with its start, its end, and whether it held the subject."""

    def __init__(self, read: Callable[[], str], subject: str, done: threading.Event) -> None:
        super().__init__(daemon=True)
        self.read, self.subject, self.done = read, subject, done
        self.seen: list[tuple[float, float, bool]] = []
        self.refused = 0

    def run(self) -> None:
        while not self.done.is_set():
            start = time.monotonic()
            try:
                held = self.subject in self.read()
            except (grpc.RpcError, MilvusException):
                self.refused += 1
                self.done.wait(0.01)
                continue
            self.seen.append((start, time.monotonic(), held))


def reads(client: MilvusClient, level: str, subject: str, near: list[float]) -> list[Callable[[], str]]:
    how: dict[str, Any] = {"output_fields": ["user_id", "text"], "consistency_level": level}
    return [
        lambda: str(client.query(PLACE, filter=f'user_id == "{subject}"', **how)),
        lambda: str(client.search(PLACE, [near], limit=10, **how)),
    ]


def one_round(direct: MilvusClient, through: MilvusClient, found: Level, number: int) -> None:
    subject = f"{found.level.lower()}-{number:03d}"
    chance = random.Random(subject)
    near = [chance.uniform(-1, 1) for _ in range(DIMENSION)]
    base = 1_000_000 * (LEVELS.index(found.level) + 1) + number * ROWS
    through.insert(PLACE, [
        {"id": base + at, "vector": [x + chance.uniform(-0.01, 0.01) for x in near], "user_id": subject,
         "text": f"{subject} keeps paper {at} of the red folder"} for at in range(ROWS)
    ])  # fmt: skip
    whole = {"output_fields": ["id"], "consistency_level": "Strong"}
    assert len(direct.query(PLACE, filter=f'user_id == "{subject}"', **whole)) == ROWS
    done = threading.Event()
    outside = [Reader(read, subject, done) for read in reads(direct, found.level, subject, near)]
    inside = [Reader(read, subject, done) for read in reads(through, found.level, subject, near)]
    for reader in (*outside, *inside):
        reader.start()
    done.wait(0.2)
    through.delete(PLACE, filter=f'user_id == "{subject}"')
    acknowledged = time.monotonic()
    done.wait(AFTER)
    done.set()
    for reader in (*outside, *inside):
        reader.join(60)
    late = [(start, held) for reader in outside for start, _, held in reader.seen if start >= acknowledged]
    stale = [start - acknowledged for start, held in late if held]
    found.rounds += 1
    found.direct_reads += len(late)
    found.direct_stale += len(stale)
    found.stale_rounds += bool(stale)
    found.longest_ms = max([found.longest_ms, *(1000 * each for each in stale)])
    after = [held for reader in inside for _, end, held in reader.seen if end >= acknowledged]
    found.through_reads += len(after)
    found.through_refused += sum(reader.refused for reader in inside)
    found.through_stale += sum(after)


def profile(folder: Path, plain: bool) -> Path:
    path = shipped("milvus", folder, settling_interval="2s", effectuation_bound="60s")
    shutil.copy(ROOT / "policies" / "profiles" / "milvus.pb", folder)
    if plain:
        text, count = re.subn(r"(?ms)^strengthen:\n.*?\n(?=\w)", "", path.read_text())
        assert count == 1
        path.write_text(text)
    return path


def connected(address: str) -> MilvusClient:
    end = time.monotonic() + 180
    while True:
        try:
            return MilvusClient(f"http://{address}", timeout=60)
        except (MilvusException, grpc.RpcError):
            assert time.monotonic() < end, "the server did not become ready"


def main(place: str, rounds: str = "30", *more: str) -> int:
    """Runs the rounds and prints what was seen; 1 if anything came through."""
    logging.disable(logging.ERROR)
    folder = Path(tempfile.mkdtemp(prefix="race-"))
    os.environ["PYTHONPATH"] = os.pathsep.join([place, *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    command = [sys.executable, str(Path(place) / "bin" / "milvus-server"), "--data", str(folder / "data")]
    found = [Level(level) for level in LEVELS]
    try:
        with serving([*command, "--proxy-port", str(PORT)], PORT, folder, 240.0) as store:
            direct = connected(store)
            direct.create_collection(PLACE, dimension=DIMENSION, metric_type="L2", auto_id=False)
            settings = {
                "store": {"profile": str(profile(folder, "plain" in more)),
                          "grpc": {"listen": "127.0.0.1:0", "upstream": store}},
                "limits": {"probe_rate_per_second": 20},
            }  # fmt: skip
            sidecar = Quietus(folder, "", "", settings).start()
            through = connected(sidecar.grpc)
            stays = {"id": 1, "vector": [2.0] * DIMENSION, "user_id": "bystander", "text": "it stays"}
            through.insert(PLACE, [stays])
            for number in range(int(rounds)):
                for level in found:
                    one_round(direct, through, level, number)
                sys.stderr.write(json.dumps([asdict(level) for level in found]) + "\n")
            states = [each["state"] for each in sidecar.erasures()]
            sidecar.stop()
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
    ended = {one: states.count(one) for one in states}
    told = {"levels": [asdict(level) for level in found], "states of the newest": ended}
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return int(any(level.through_stale for level in found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
