"""kill -9 at every step of a forget, again and again: what was lost, what leaked, what was done twice.

    python -m tests.e2e.kills --times 25 --random 150

Each point has a chain of processes over one folder and one store: each takes up what the one before left
behind, settles it, then forgets somebody new and dies at the point. The timing differs from one to the next:
how much there is to forget, what else is asked at the same time, and the how-many-eth passage of the point.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import random
import sys
import tempfile
import threading
import time
import urllib.error
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any, Final

from quietus.legacy.faults import Faults
from tests.e2e.nursery import Nursery, Sidecar
from tests.e2e.process import shipped
from tests.e2e.stores import Served

LOST: Final = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)
AT_ONCE: Final = 3
"""Chains at the same time: they mostly wait."""
SETTLES: Final = 60.0
RANDOM: Final = "at random"


@dataclass(frozen=True)
class Point:
    """Where a process dies; whether the intent is durable there, and how often the store may be asked."""

    name: str
    durable: bool = True
    forgets: tuple[int, ...] = (1,)
    repeats: bool = False
    """It is passed more than once."""


POINTS: Final = (
    Point("before:requested", durable=False, forgets=(0,)),
    Point("after:requested"),
    Point("before:snapshotted"),
    Point("after:snapshotted"),
    Point("before:forwarded"),
    Point("after:forwarded"),
    Point("sending"),
    # Nobody can know whether the store has done it: it is asked again, with the same token.
    Point("sent", forgets=(2,)),
    Point("before:accepted", forgets=(2,)),
    Point("after:accepted"),
    Point("probing", repeats=True),
    Point("before:round", repeats=True),
    Point("after:round", repeats=True),
    Point("before:clean"),
    Point("after:clean"),
)
ANYWHERE: Final = Point(RANDOM, forgets=(0, 1, 2))


@dataclass
class Row:
    """What came of one point."""

    point: str
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    leaks: int = 0
    twice: int = 0
    """Asked of the store again: once in the window in which the outcome is unknowable, never otherwise."""
    wrong: list[str] = field(default_factory=list)


class Chain:
    """The processes that die at one point."""

    def __init__(self, point: Point, folder: Path, seed: int) -> None:
        self.point = point
        self.row = Row(point.name)
        self.rng = random.Random(f"{point.name}/{seed}")
        folder.mkdir()
        self.store = Served(Faults())
        profile = shipped("memory-tool", folder, settling_interval="200ms", effectuation_bound="60s")
        config = folder / "quietus.json"
        config.write_text(json.dumps({
            "store": {"profile": str(profile), "http": {"listen": "127.0.0.1:0", "upstream": self.store.url}},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
            "admin": {"listen": "127.0.0.1:0"},
            "limits": {"probe_rate_per_second": 500},
        }))  # fmt: skip
        self.folder, self.config = folder, config

    def run(self, times: int, nursery: Nursery) -> Row:
        """So many kills, and a life in order at the end."""
        self.sidecar = Sidecar(nursery, self.folder, self.config, "")
        try:
            self._start(0)
            self.store.store.put("Bob likes green tea", key="bob-1", subject="bob")
            for turn in range(times):
                self._kill(turn, self._forgotten_of(turn))
            self.sidecar.stop()
        finally:
            self.store.close()
        return self.row

    def _start(self, turn: int) -> None:
        passage = 1 + turn % 3 if self.point.repeats else 1
        self.sidecar.point = "" if self.point.name == RANDOM else f"{self.point.name}@{passage}"
        self.sidecar.start()

    def _forgotten_of(self, turn: int) -> list[str]:
        many = range(1 + turn % 4)
        texts = [f"subject {turn} keeps item {n} under the {turn * 7 + n}th stone" for n in many]
        for number, text in enumerate(texts):
            self.store.store.put(text, key=f"s{turn}-{number}", subject=f"subject-{turn}")
        return texts

    def _kill(self, turn: int, texts: list[str]) -> None:
        before, recorded = self.store.forgets(), len(self.sidecar.erasures())
        told = self._forget(turn, texts)
        self.row.kills += 1
        self._start(turn + 1)
        known = len(self.sidecar.erasures()) > recorded
        acknowledged = told in (200, 202)
        self.row.acknowledged += acknowledged
        if acknowledged and not known:
            self.row.lost += 1
        if self.point.name != RANDOM and known is not self.point.durable:
            self.row.wrong.append(f"{turn}: durable: {known}")
        if not known:
            self._fresh(turn, texts)
        end = time.monotonic() + SETTLES
        while any(view["state"] != "settled" for view in self.sidecar.erasures()):
            self._look(turn, texts, hidden=known or acknowledged)
            assert time.monotonic() < end, self.sidecar.log()
        self._look(turn, texts, hidden=known or acknowledged)
        asked = self.store.forgets() - before - (not known)
        self.row.twice += asked > 1
        if asked not in self.point.forgets and not (not known and asked == 0):
            self.row.wrong.append(f"{turn}: the store was asked {asked} times")
        if any(self.store.store.holds(text) for text in texts):
            self.row.wrong.append(f"{turn}: the store still holds it")

    def _fresh(self, turn: int, texts: list[str]) -> None:
        """Nothing is known of the forget: everything is as before, and the client asks again."""
        seen = self.sidecar.call("POST", "/v1/recall", {"query": texts[0], "subject": f"subject-{turn}"})
        if seen.status != 200 or texts[0].encode() not in seen.body:
            self.row.wrong.append(f"{turn}: forgotten by nobody, and gone")
        if self.sidecar.call("POST", "/v1/forget", {"subject": f"subject-{turn}"}).status != 202:
            self.row.wrong.append(f"{turn}: the second forget failed")

    def _forget(self, turn: int, texts: list[str]) -> int:
        """The forget, with other calls beside it; the status that the client saw, 0 for none."""
        if self.point.name != RANDOM:
            self.sidecar.arm()
        self.sidecar.call("GET", "/v1/memories/bob-1")  # a signal is heard before the next answer
        stop = threading.Event()
        noise = [threading.Thread(target=self._noise, args=(stop,)) for _ in range(turn % 3)]
        for thread in noise:
            thread.start()
        if self.point.name == RANDOM:
            threading.Timer(self.rng.uniform(0.0, 0.8), self.sidecar.kill).start()
        status = 0
        with contextlib.suppress(*LOST):
            status = self.sidecar.call("POST", "/v1/forget", {"subject": f"subject-{turn}"}).status
        self.sidecar.died()
        stop.set()
        for thread in noise:
            thread.join()
        return status

    def _noise(self, stop: threading.Event) -> None:
        with contextlib.suppress(*LOST):
            while not stop.is_set():
                self.sidecar.call("POST", "/v1/recall", {"query": "green tea", "subject": "bob"})

    def _look(self, turn: int, texts: list[str], *, hidden: bool) -> None:
        """Recalls inside and wide: nothing of the forgotten, everything of the others."""
        inside = self.sidecar.call("POST", "/v1/recall", {"query": texts[0], "subject": f"subject-{turn}"})
        wide = self.sidecar.call("POST", "/v1/recall", {"query": "green tea"})
        if hidden:
            self.row.leaks += sum(text.encode() in seen.body for text in texts for seen in (inside, wide))
        if wide.status != 200 or b"Bob likes green tea" not in wide.body:
            self.row.wrong.append(f"{turn}: a bystander is missing: {wide.status}")


def kill_all(folder: Path, times: int, at_random: int, seed: int = 1) -> list[Row]:
    """Every point so many times, and some more at any moment."""
    chains = [Chain(point, folder / str(place), seed) for place, point in enumerate(POINTS)]
    work: list[tuple[Chain, int]] = [(chain, times) for chain in chains]
    if at_random:
        share = [at_random // AT_ONCE + (n < at_random % AT_ONCE) for n in range(AT_ONCE)]
        work += [(Chain(ANYWHERE, folder / f"r{n}", seed + n), many) for n, many in enumerate(share) if many]
    nurseries: Queue[Nursery] = Queue()
    made = [Nursery() for _ in range(AT_ONCE)]
    for nursery in made:
        nurseries.put(nursery)

    def one(chain: Chain, times: int) -> Row:
        nursery = nurseries.get()
        try:
            chain.run(times, nursery)
        except Exception as error:  # one chain's end is not that of the others
            chain.row.wrong.append(f"it broke off after {chain.row.kills} kills: {error!r}"[:2000])
            nursery.close()  # what it has forked may live on
            made.append(nursery := Nursery())
        nurseries.put(nursery)
        return chain.row

    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(one, *zip(*work, strict=True)))
    finally:
        for nursery in made:
            nursery.close()


def table(rows: Sequence[Row]) -> Iterator[str]:
    """For people."""
    yield f"{'point':20} {'kills':>5} {'acknowledged':>12} {'lost':>5} {'leaks':>6} {'twice':>6}"
    for row in [*rows, total(rows)]:
        yield (
            f"{row.point:20} {row.kills:5} {row.acknowledged:12} {row.lost:5} {row.leaks:6} {row.twice:6}"
            f"{'  ' + '; '.join(row.wrong[:3]) if row.wrong else ''}"
        )


def total(rows: Sequence[Row]) -> Row:
    """All of them."""
    names = ("kills", "acknowledged", "lost", "leaks", "twice")
    sums: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in names}
    return Row("all", **sums, wrong=[what for row in rows for what in row.wrong])


def main() -> int:
    """0 when nothing was lost, leaked or done twice outside of the one window."""
    parser = argparse.ArgumentParser(description="kill -9 at every step of a forget")
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--random", type=int, default=150)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quietus-kills-") as folder:
        rows = kill_all(Path(folder), given.times, given.random)
    sys.stdout.write("\n".join(table(rows)) + "\n")
    every = total(rows)
    return int(bool(every.lost or every.leaks or every.wrong))


if __name__ == "__main__":
    sys.exit(main())
