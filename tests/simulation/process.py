"""One life of the sidecar: the real parts over a ledger that outlives it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from quietus.acts import Acts, Signal
from quietus.assembly import Active, Bounds, Parts, Surroundings, assemble
from quietus.core.policy import Policy
from quietus.key_file import USES, Key
from quietus.keys import Keyring
from quietus.lease import Lease
from quietus.policies import load_policy
from quietus.ports import LedgerUnavailable
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile
from quietus.views import status_view
from tests.simulation.disk import DiskLedger
from tests.simulation.network import Network
from tests.simulation.plan import BOUND, INTERVAL, ROUNDS
from tests.simulation.virtual import Loop, Time

PAGE: Final = 4
"""Rows in a page of a probe's listing: with few records it still has to turn pages."""
_SHIPPED: Final = Path(__file__).resolve().parents[2] / "policies" / "profiles" / "memory-tool.yaml"


@cache
def profile_in(folder: Path) -> Profile:
    """The shipped profile with short intervals and short pages."""
    text = _SHIPPED.read_text(encoding="utf-8")
    assert "limit: 100" in text
    short = folder / "memory-tool.yaml"
    short.write_text(text.replace("limit: 100", f"limit: {PAGE}"), encoding="utf-8")
    terms = {"settling_interval": INTERVAL, "effectuation_bound": BOUND, "clean_rounds": ROUNDS}
    return load_profile(short).with_store(**terms)


@cache
def policy() -> Policy:
    """The shipped policy, read once."""
    return load_policy("default")


def keyring_of(seed: int) -> Keyring:
    """Keys that are the same whenever the seed is played."""
    rng = random.Random(f"keys {seed}")
    return Keyring([Key(use, rng.randbytes(32)) for use in USES])


class Tally:
    """Metrics that only count, and a log that only keeps what went wrong."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.wrong: list[str] = []

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counted[name] += int(amount)

    def observe(self, name: str, value: float, **labels: str) -> None:
        pass

    def info(self, event: str, **facts: Any) -> None:
        pass

    def error(self, event: str, **facts: Any) -> None:
        if event != "not_destroyed":  # it is tried again
            self.wrong.append(f"{event}: {facts.get('exc_info')!r}")


@dataclass
class Process:
    """From its start to its death."""

    number: int
    time: Time
    loop: Loop
    keyring: Keyring
    profile: Profile
    network: Network
    ledger: DiskLedger
    tally: Tally
    seed: int
    parts: Parts | None = None
    """None until it has read its ledger: until then it takes no calls."""

    def _assembled(self) -> Parts:
        ids = itertools.count(1)
        return assemble(Surroundings(
            Active(self.profile, policy()),
            self.ledger,
            self.keyring,
            self.time,
            self.network,
            "memories",
            self.tally,
            self.tally,
            lambda: f"e{self.number}x{next(ids):03d}",
            random.Random(f"{self.seed}/{self.number}"),
            lambda erasure, verdict: status_view(erasure, verdict=verdict),
            Bounds(),
        ))  # fmt: skip

    async def live(self, loaded: Any) -> None:
        """Reads the ledger, as often as it takes, and works until it dies."""
        while True:
            parts = self._assembled()
            try:
                await self.ledger.close()
                await parts.erasures.load()
                break
            except LedgerUnavailable:
                await self.time.sleep(1.0)
        loaded()
        self.parts = parts
        parts.timetable.start()
        lease = self.loop.create_task(Lease(parts.erasures, 2.0).run())
        try:
            await parts.reconciler.run()
        finally:
            lease.cancel()

    @property
    def acts(self) -> Acts:
        assert self.parts is not None
        return Acts(self.parts.erasures, self.parts.timetable.wake)


COMPACTED: Final = Signal("compaction_complete", 1_000_000)
