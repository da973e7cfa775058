"""One simulation, from its plan to its findings."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from quietus.acts import BadAct, NoSuchErasure
from quietus.core.events import Event
from quietus.core.states import WrongState
from quietus.ledger.memory import MemoryLedger
from quietus.legacy.faults import Faults
from quietus.legacy.store import LegacyStore
from quietus.ports import LedgerError
from tests.simulation.calls import Finding
from tests.simulation.clients import Client
from tests.simulation.disk import Disk, DiskLedger
from tests.simulation.judge import Judge
from tests.simulation.monitor import Monitor, copied
from tests.simulation.network import Network
from tests.simulation.plan import Plan, Step
from tests.simulation.process import COMPACTED, Process, Tally, keyring_of, profile_in
from tests.simulation.virtual import Killed, Loop, Time

SETTLES_WITHIN: Final = 400.0
"""Virtual seconds after the last step within which a faithful store's erasures are settled."""


@dataclass
class Outcome:
    """What came of a seed."""

    seed: int
    findings: list[Finding]
    counts: Counter[str] = field(default_factory=Counter)
    virtual: float = 0.0
    spent: float = 0.0
    """Seconds of CPU time that it took."""


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="quietus-simulation-"))


class Simulation:
    """The world of one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.time = Time()
        self.store = LegacyStore(self.time, plan.seed, Faults(**plan.faults))
        self.judge = Judge()
        self.monitor = Monitor(self.time, self.store, self.judge, plan)
        self.network = Network(self.time, self.store, plan, self.judge)
        self._ripened: set[str] = set()
        if plan.hasty:
            self.monitor.ripe = self._ripened.add
        self.monitor.network_blind = lambda: self.time.elapsed < self.network.blind_until
        self.disk = Disk(self.time, plan.ledger_delay)
        self.inner = MemoryLedger(incarnation=f"{plan.seed:032x}")
        self.keyring = keyring_of(plan.seed)
        self.tally = Tally()
        self.counts: Counter[str] = Counter()
        self.process: Process | None = None
        self._up_at = 0.0
        self._crash: Step | None = None
        self._lives = 0

    # --- lives -----------------------------------------------------------------------------------

    def _start(self) -> None:
        self._lives += 1
        loop = Loop(self.time)
        ledger = DiskLedger(self.inner, self.disk, self.monitor.committed, self._known)
        self.process = Process(
            self._lives, self.time, loop, self.keyring, profile_in(_folder()), self.network, ledger,
            self.tally, self.plan.seed,
        )  # fmt: skip
        self.monitor.started = self.time.elapsed
        loop.create_task(self.process.live(self._loaded))

    def _loaded(self) -> None:
        self.judge.truth.reload(self._events())
        self.monitor.started = self.time.elapsed

    def _events(self) -> list[Event]:
        async def all_of() -> list[Event]:
            return [event async for event in self.inner.events()]

        return _at_once(all_of())

    def _die(self) -> None:
        assert self.process is not None
        crash = self._crash or {"for": 1.0, "how": "kill"}
        self._crash = None
        loop = self.process.loop
        self._surprises(loop)
        if crash["how"] == "cancel":
            loop.cancel()
        else:
            loop.kill()
        self.process = None
        self.judge.dies()
        self.network.deaths += 1
        self.counts["deaths"] += 1
        self._up_at = self.time.elapsed + crash["for"]

    def _surprises(self, loop: Loop) -> None:
        for text in [*loop.surprises, *self.tally.wrong]:
            self.judge.find("surprise", -1, text)
        loop.surprises.clear()
        self.tally.wrong.clear()

    def until(self, at: float) -> None:
        """Lets everything go on until that second."""
        while self.time.elapsed < at:
            if self.process is None:
                while self.time.step(min(at, self._up_at)):
                    pass
                if self.time.elapsed < self._up_at:
                    return
                self._start()
            assert self.process is not None
            try:
                self.process.loop.run(at)
            except Killed:
                self._die()

    # --- steps -----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        self._start()
        for step in self.plan.steps:
            self.until(step["at"])
            self._do(step)
        self._settle()
        return Outcome(self.plan.seed, self.judge.findings, self._counted(), self.time.elapsed)

    def _do(self, step: Step) -> None:
        do, until = step["do"], self.time.elapsed + step.get("for", 0.0)
        self.counts[do] += 1
        if do == "crash":
            if self.process is not None:
                self._crash = step
                self.process.loop.kill_at = self.process.loop.steps + step["steps"]
        elif do == "ledger_down":
            self.disk.down_until = until
        elif do == "disk_full":
            self.disk.full_until = until
        elif do == "store_down":
            self.network.down_until = until
        elif do == "blind":
            self.network.blind_until = until
        elif do == "store_restart":
            self.store.restart()
        elif do == "jump":
            self.time.jump(step["by"])
        else:
            self._call(step)

    def _call(self, step: Step) -> None:
        process = self.process
        if process is None or process.parts is None:
            self.counts["unreachable"] += 1
            return
        self.counts["calls"] += 1
        if step["do"] in ("readmit", "retry", "verify", "signal"):
            process.loop.create_task(self._act(process, step))
            return
        client = Client(self.time, self.judge, process.parts.gateway, step, self.counts)
        process.loop.create_task(client.live())

    def _known(self, events: Sequence[Event]) -> None:
        self.judge.truth.known(events)
        for event in events:
            if event.erasure in self._ripened:
                self._ripened.discard(event.erasure)
                self._ripe(event.erasure)

    def _ripe(self, erasure: str) -> None:
        """An operator sees the last clean round and does something at that moment."""
        process = self.process
        if process is not None and process.parts is not None:
            do = "retry" if len(erasure) % 2 == self.plan.seed % 2 else "verify"
            process.loop.create_task(self._act(process, {"do": do, "on": erasure}))

    async def _act(self, process: Process, step: Step) -> None:
        acts, do = process.acts, step["do"]
        try:
            if do == "readmit":
                await acts.readmit(step["subject"], step.get("tenant"), "they are back", "office")
                return
            if do == "signal":
                await acts.signal(COMPACTED, "office")
                return
            names = [name for name, erased in self.judge.truth.erased.items() if erased.unsettled]
            if names or "on" in step:
                name = step.get("on") or names[step["which"] % len(names)]
                if do == "retry":
                    await acts.retry(name, "office", "try anew")
                else:
                    await acts.verify(name, "office")
        except (NoSuchErasure, WrongState, BadAct, LedgerError):
            self.counts["refused_acts"] += 1

    # --- the end ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        """All is well from now on: what a faithful store forgets has to end settled."""
        last = self.plan.steps[-1]["at"] if self.plan.steps else 0.0
        self.until(max(self.time.elapsed, last) + 1.0)
        self.network.quiet = True
        self.network.down_until = self.network.blind_until = 0.0
        self.disk.down_until = self.disk.full_until = self.disk.delay = 0.0
        truth = self.judge.truth
        end = self.time.elapsed + (SETTLES_WITHIN if self.plan.faithful else 25.0)
        while self.time.elapsed < end:
            self.until(self.time.elapsed + 5.0)
            if self.process is not None and not any(e.unsettled for e in truth.erased.values()):
                break
        for erased in truth.erased.values():
            if erased.unsettled:
                self.counts["unsettled"] += 1
                if self.plan.faithful and erased.whole and not copied(self.store, erased, truth):
                    self.judge.find("liveness", erased.step, "it never settled", erased.id)
        self.monitor.at_the_end()
        self._fold_agrees()
        if self.process is not None:
            self._surprises(self.process.loop)
            self.process.loop.kill()

    def _fold_agrees(self) -> None:
        parts = self.process.parts if self.process is not None else None
        if parts is None:
            return
        for name, erased in self.judge.truth.erased.items():
            found = parts.erasures.get(name)
            if found is None:
                self.judge.find("lost", erased.step, "an erasure of the ledger is not known", name)
            elif found.unsettled != erased.unsettled:
                says = f"it is {found.state.value}, and the judge thinks otherwise"
                self.judge.find("fold", erased.step, says, name)

    def _counted(self) -> Counter[str]:
        counts = self.counts + self.judge.counts
        counts["erasures"] = len(self.judge.truth.erased)
        counts["settled"] = sum(not e.unsettled and not e.over for e in self.judge.truth.erased.values())
        counts["ledger calls"] = self.disk.calls
        for name, number in self.network.calls.items():
            counts[f"upstream {name}"] = number
        for name, number in self.network.ails.items():
            counts[f"ailment {name}"] = number
        for name in self.plan.faults:
            counts[f"fault {name}"] = 1
        for name, number in self.monitor.counts.items():
            counts[f"event {name}"] = number
        return counts


def _at_once(work: Any) -> Any:
    """The result of a coroutine that never gives way."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it gave way")


def simulate(plan: Plan) -> Outcome:
    """Plays a plan."""
    return Simulation(plan).run()
