"""Several replicas as real processes in front of one store, on one ledger that lies on a real server."""

from __future__ import annotations

import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, shipped
from tests.e2e.stores import Served
from tests.harness.cable import Cable
from tests.harness.servers import Server
from tests.replicas.lying_store import LyingStore

BAY = "bay"
FAST: dict[str, Any] = {
    "limits": {"probe_rate_per_second": 500},
    "timeouts": {"barrier": "5s", "wait": "30s"},
}


@dataclass
class Cluster:
    """The replicas, each with its own cable to the server."""

    server: Server
    folder: Path
    count: int
    lease: str = "1s"
    upstream: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    arm: str = ""
    arms: dict[int, str] = field(default_factory=dict)
    """What is different about one of them."""
    store: Served | None = None
    replicas: list[Quietus] = field(default_factory=list)
    cables: list[Cable] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"q{secrets.token_hex(6)}")
    subjects: int = 0

    def start(self) -> Cluster:
        if not self.upstream:
            self.store = Served(Faults())
            self.upstream = self.store.url
        profile = shipped("memory-tool", self.folder, settling_interval="1s", effectuation_bound="120s")
        for place in range(self.count):
            folder = self.folder / f"replica{place}"
            folder.mkdir()
            keys = folder / "keys.json"
            if place:
                shutil.copy(self.folder / "replica0" / "keys.json", keys)
            cable = Cable(self.server.url)
            self.cables.append(cable)
            ledger = {"url": cable.url, "name": self.name, "lease": self.lease}
            settings = {**FAST, "ledger": ledger, "keys": {"file": str(keys)}, **self.settings}
            self.replicas.append(Quietus(folder, self.upstream, str(profile), settings))
            self.replicas[-1].arm = self.arms.get(place, self.arm)
            self.replicas[-1].start()
        return self

    def stop(self) -> None:
        for replica in self.replicas:
            if replica.process is not None and replica.process.poll() is None:
                replica.process.send_signal(signal.SIGCONT)
                replica.kill()
        for cable in self.cables:
            cable.close()
        if self.store is not None:
            self.store.close()

    def subject(self) -> str:
        """Somebody new with two memories."""
        assert self.store is not None
        self.subjects += 1
        name = f"subject-{self.subjects}"
        for part in ("a", "b"):
            text = f"The {name} owns painting number {self.subjects}{part} of the bay"
            self.store.store.put(text, key=f"{name}-{part}", subject=name, tenant=BAY)
        return name

    def freeze(self, place: int) -> None:
        """SIGSTOP."""
        process = self.replicas[place].process
        assert process is not None
        process.send_signal(signal.SIGSTOP)

    def thaw(self, place: int) -> None:
        """SIGCONT."""
        process = self.replicas[place].process
        assert process is not None
        process.send_signal(signal.SIGCONT)


@dataclass
class Pair:
    """Two replicas, and the store behind them, which goes on telling of whom it has forgotten."""

    cluster: Cluster
    store: LyingStore
    count: int = 0

    @property
    def one(self) -> Quietus:
        return self.cluster.replicas[0]

    @property
    def two(self) -> Quietus:
        return self.cluster.replicas[1]

    def person(self) -> str:
        """Somebody new with one memory."""
        self.count += 1
        name = f"person{self.count}"
        self.store.person(name)
        return name


@contextmanager
def cluster(server: Server, folder: Path, count: int, **more: Any) -> Iterator[Cluster]:
    """Starts a cluster, and stops it whatever happens."""
    made = Cluster(server, folder, count, **more)
    try:
        yield made.start()
    finally:
        made.stop()
