"""Replicas are stopped (SIGSTOP) in the midst of things; what they then say first is refused, or current.

Each replica that is frozen has a recall on its way, a write that the store has already, and a forget whose
snapshot is being taken; a recall and a write wait at its socket. Meanwhile the people of the first two are
forgotten through another replica, and that one takes over the third.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from tests.e2e.process import Quietus, Response
from tests.replicas.calls import PATIENCE, acknowledged, answered, forget, recall, tells, written
from tests.replicas.cluster import Cluster
from tests.replicas.lying_store import LyingStore

REFUSED: Final = (409, 502, 503, 504)
KINDS: Final = ("recall under way", "first recall", "first write", "write under way", "forget under way")


class Freeze:
    """One freeze of some replicas of a cluster, for at least so many seconds. Replica 0 is never frozen."""

    def __init__(
        self, made: Cluster, store: LyingStore, places: Iterable[int], label: str, seconds: float = 0.0
    ) -> None:
        self.made = made
        self.store = store
        self.places = tuple(places)
        self.seconds = seconds
        self._label = label
        self._names = {(place, what): f"{label}r{place}{what}" for place in self.places for what in "rwf"}
        self._asked: dict[tuple[int, str], Future[Response]] = {}
        for name in self._names.values():
            store.person(name)

    def run(self) -> list[str]:
        """Freezes, thaws, and returns what was wrong: nothing, if all is well."""
        one, doors = self.made.replicas[0], f"{self._label}door"
        with ThreadPoolExecutor(len(KINDS) * len(self.places)) as threads:
            listings = self._begin(threads, doors)
            began = time.monotonic()
            for place in self.places:
                self.made.freeze(place)
            try:
                self._wait_at_the_socket(threads)
                for listing in listings:
                    self.store.open(listing)
                for (_, what), name in self._names.items():
                    if what != "f":
                        acknowledged(one, name)
                for name in self._of("f"):
                    self._until_sent(name)
                threading.Event().wait(max(0.0, began + self.seconds - time.monotonic()))
            finally:
                for place in self.places:
                    self.made.thaw(place)
            self.store.open(doors)
            answers = {key: asked.result(PATIENCE) for key, asked in self._asked.items()}
        return [*self._judge(answers), *self._afterwards()]

    # --- what happens ----------------------------------------------------------------------------

    def _begin(self, threads: ThreadPoolExecutor, door: str) -> list[str]:
        """Gets every replica into the middle of its three calls; the doors at which snapshots wait."""
        listings = [self.store.shut(name) for name in self._of("f")]
        for place in self.places:
            two = self.made.replicas[place]
            recalled, wrote, forgotten = (self._names[place, what] for what in "rwf")
            answered(two, recalled)
            self._ask(threads, place, 0, lambda r=two, n=recalled: recall(r, n, X_Door=door))
            self._ask(threads, place, 3, lambda r=two, n=wrote: r.call(
                "POST", "/v1/memories", written(n, "on its way"), {"X-Door": door}))  # fmt: skip
            self._ask(threads, place, 4, lambda r=two, n=forgotten: _broken_off(r, n))
        held = 2 * len(self.places)
        self.store.until(lambda: self.store.waiting(door) >= held, "recalls and writes are on their way")
        for listing in listings:
            self.store.until(lambda at=listing: self.store.waiting(at) > 0, "each snapshot lists")  # type: ignore[misc]
        return listings

    def _wait_at_the_socket(self, threads: ThreadPoolExecutor) -> None:
        waiting = threading.Barrier(2 * len(self.places) + 1)
        for place in self.places:
            two, name = self.made.replicas[place], self._names[place, "r"]

            def first_recall(r: Quietus = two, n: str = name) -> Response:
                waiting.wait(PATIENCE)
                return recall(r, n)

            def first_write(r: Quietus = two, n: str = name) -> Response:
                waiting.wait(PATIENCE)
                return r.call("POST", "/v1/memories", written(n, "waits"))

            self._ask(threads, place, 1, first_recall)
            self._ask(threads, place, 2, first_write)
        waiting.wait(PATIENCE)

    def _ask(
        self, threads: ThreadPoolExecutor, place: int, kind: int, call: Callable[[], Response]
    ) -> None:
        self._asked[place, KINDS[kind]] = threads.submit(call)

    def _until_sent(self, name: str) -> None:
        self.store.until(lambda: bool(self.store.arrived("forget", name)), "another replica sends it")

    def _of(self, what: str) -> Sequence[str]:
        return [name for (_, kind), name in self._names.items() if kind == what]

    # --- what came of it -------------------------------------------------------------------------

    def _judge(self, answers: dict[tuple[int, str], Response]) -> list[str]:
        wrong = []
        for (place, kind), answer in answers.items():
            what = KINDS.index(kind)
            name = self._names[place, "rrrwf"[what]]
            if what == 4:
                fine = answer.status in (*REFUSED, 200, 202)  # the same erasure, whoever has sent it
            else:
                fine = answer.status in REFUSED and not tells(answer, name)
            if not fine:
                wrong.append(f"replica {place}, {kind}: answered {answer.status}")
        return wrong

    def _afterwards(self) -> list[str]:
        wrong = []
        for (place, what), name in self._names.items():
            if what == "r" and self.store.arrived("write", name):
                wrong.append(f"replica {place}: a write that waited at its socket reached the store")
            sent = len(self.store.arrived("forget", name))
            if sent != 1:
                wrong.append(f"replica {place}: a forget reached the store {sent} times")
            for number, replica in enumerate(self.made.replicas):
                if tells(answered(replica, name), name):
                    wrong.append(f"replica {number} tells of somebody who was forgotten")
        return wrong


def _broken_off(replica: Quietus, name: str) -> Response:
    """A forget whose client is still there when the replica goes on, or has lost its connection."""
    try:
        return forget(replica, name)
    except OSError:
        return Response(503, {}, b"")
