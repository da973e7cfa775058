"""Many seeds on every core, and what they add up to."""

from __future__ import annotations

import gc
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tests.simulation.calls import Finding
from tests.simulation.families import Family, simulate
from tests.simulation.plan import AILMENTS, MENU, Plan
from tests.simulation.run import Outcome
from tests.simulation.switches import switched_off

AT_ONCE: Final = max(1, min(len(os.sched_getaffinity(0)), 8))
WORLD: Final = (
    "deaths", "ledger_down", "disk_full", "store_down", "store_restart", "jump", "blind", "gone away",
    "cut_off", "freeze", "lag", "ledger_full", "ledger_restart",
)  # fmt: skip
LEAKS: Final = ("leak", "inside", "held_back")
"""Findings in which something of the erased reached a client."""
REPLAY: Final = "python -m tests.simulation --seed {seed} {options}"


@dataclass
class Total:
    """What came of many seeds."""

    family: Family
    seeds: int = 0
    failed: dict[int, list[Finding]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    virtual: float = 0.0
    spent: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.counts += outcome.counts
        self.virtual += outcome.virtual
        self.spent += outcome.spent
        if outcome.findings:
            self.failed[outcome.seed] = outcome.findings

    @property
    def answered(self) -> int:
        """Recalls that were answered, with memories or with a refusal."""
        return self.counts["passed"] + self.counts["refused"] + self.counts["failed"]

    @property
    def operations(self) -> tuple[int, int, int]:
        """What was really done, on each side of the sidecar: this is what an *operation* is here.

        A call of a client or an operator that the sidecar took (one to a dead sidecar is none); a request
        that the sidecar sent to the store (a client's, a probe's, a remedy's, a canary's); a call at its
        ledger (an append, however many events are in it, or a read). Steps of the judge, of the loop and of
        the store's own background work are not counted.
        """
        c = self.counts
        asked = sum(number for name, number in c.items() if name.startswith("upstream "))
        return c["calls"], asked, c["ledger calls"]

    @property
    def events(self) -> int:
        """Events that were written to ledgers."""
        return sum(number for name, number in self.counts.items() if name.startswith("event "))

    @property
    def leaks(self) -> int:
        """Tokens of the erased that reached a client who must not have them."""
        return sum(f.property in LEAKS for found in self.failed.values() for f in found)

    @property
    def kinds(self) -> list[str]:
        """The kinds of faults that befell somebody: of the store, the network, the ledger, the process."""
        return [
            *(name for name in MENU if self.counts[f"fault {name}"]),
            *(name for name in AILMENTS if self.counts[f"ailment {name}"]),
            *(name for name in WORLD if self.counts[name]),
        ]

    def say(self, seconds: float) -> str:
        """The figures in a few lines."""
        c, seconds = self.counts, max(seconds, 0.001)
        done, asked, called = self.operations
        return "\n".join([
            f"{self.seeds} seeds, {self.answered} recalls answered ({c['marked']} marked, {c['refused']} "
            f"refused), {c['met']} of them met an unsettled erasure",
            f"{c['erasures']} erasures, {c['settled']} settled by the end; {c['write']} writes, "
            f"{c['forget']} forgets, {c['delete']} deletes, {c['readmit']} readmissions, "
            f"{c['deaths']} deaths of the sidecar",
            f"{len(self.kinds)} kinds of faults: {', '.join(self.kinds)}",
            f"{done} calls of clients and operators, {asked} requests at the store, {called} calls at the "
            f"ledger ({self.events} events) in {seconds:.0f} s on {AT_ONCE} processes: "
            f"{(done + asked + called) / seconds:.0f} operations/s, "
            f"{(done + asked + called) / max(self.spent, 0.001):.0f} for each second of CPU time; "
            f"{self.virtual / 3600:.1f} h of virtual time",
            *self._replicas(),
            f"{self.leaks} leaks; {len(self.failed)} seeds failed",
        ])  # fmt: skip

    def _replicas(self) -> list[str]:
        c, many = self.counts, self.family.replicas
        if many == 1:
            return []
        return [
            f"{many} replicas: cut off {c['cut_off'] + c['ledger_down']} times, slow {c['lag']}, frozen "
            f"{c['freeze']}; {c['expelled']} left or were taken out of the roster; {c['event forwarded']} "
            f"forgets forwarded for {c['erasures']} erasures, {c['sent again']} sent again; all agreed "
            f"{c['converged_ms'] / max(2 * self.seeds, 1):.0f} ms after healing on average"
        ]

    def complaint(self) -> str:
        """The first failing seeds, each with the command that plays it again."""
        lines = []
        for seed in sorted(self.failed)[:10]:
            command = REPLAY.format(seed=seed, options=self.family.options)
            lines += [f"seed {seed}: {command}", *(f"    {f}" for f in self.failed[seed][:4])]
        return "\n".join(lines)


def _play(off: str, make: Callable[[int], Plan], seed: int) -> Outcome:
    # A dead process is one knot of cycles: it is collected once a seed, not all the time.
    began = time.process_time()
    gc.disable()
    try:
        with switched_off(off):
            outcome = simulate(make(seed))
    finally:
        gc.enable()
        gc.collect()
    outcome.spent = time.process_time() - began
    return outcome


def _started() -> None:
    simulate(Plan(0))  # what is read once is read now
    gc.freeze()  # what is there by now stays: it is not looked through after each seed


def play(seeds: Sequence[int], family: Family, off: str = "") -> Iterator[Outcome]:
    """The outcomes of these seeds, in their order. `off`: a protection switched off."""
    one = partial(_play, off, family.make)
    if AT_ONCE == 1 or len(seeds) <= 1:
        yield from map(one, seeds)
        return
    # Spawned: a fork would take along whatever threads the other tests have left.
    with multiprocessing.get_context("spawn").Pool(AT_ONCE, _started) as pool:
        yield from pool.imap(one, seeds, chunksize=2)
