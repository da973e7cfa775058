"""One simulation of several replicas, from its plan to its findings.

All machines share the virtual time: whoever has something to do takes a turn, and when nobody has, the time
moves on to what comes next. Nothing passes between replicas but through the ledger's server and the store.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from quietus.acts import BadAct, NoSuchErasure
from quietus.core.events import Event
from quietus.core.states import WrongState
from quietus.erasures import Erasures
from quietus.legacy.faults import Faults
from quietus.legacy.store import LegacyStore
from quietus.ports import LedgerError
from tests.simulation.machines import PATIENCE
from tests.simulation.monitor import copied
from tests.simulation.plan import Step
from tests.simulation.process import COMPACTED, keyring_of, profile_in
from tests.simulation.replica import Replica, ReplicaTally, World
from tests.simulation.replica_plan import ReplicaPlan
from tests.simulation.run import SETTLES_WITHIN, Outcome
from tests.simulation.server import LedgerServer
from tests.simulation.views import SharedJudge, SharedMonitor
from tests.simulation.virtual import Killed, Time

STARTS_WITHIN: Final = 60.0
"""Virtual seconds after everything is well within which every replica serves."""
ACTS: Final = ("readmit", "retry", "verify", "signal")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="quietus-replicas-"))


class Cluster:
    """The world of one plan."""

    def __init__(self, plan: ReplicaPlan) -> None:
        self.plan = plan
        self.time = Time()
        self.store = LegacyStore(self.time, plan.seed, Faults(**plan.faults))
        self.judge = SharedJudge(
            plan.replicas, plan.lease, lambda: self.time.elapsed, lambda number: self.replicas[number].read
        )
        self.monitor = SharedMonitor(self.time, self.store, self.judge, plan)
        self.server = LedgerServer(f"{plan.seed:032x}")
        self.server.committed, self.server.expelled = self._committed, self._expelled
        self.tally = ReplicaTally()
        self.counts: Counter[str] = Counter()
        world = World(
            plan, self.time, self.store, self.server, self.judge, keyring_of(plan.seed),
            profile_in(_folder()), self.tally, self.counts, self._learned, self._listed,
        )  # fmt: skip
        self.replicas = [Replica(number, world) for number in range(plan.replicas)]
        self._sessions: dict[str, int] = {}
        self._ripened: set[str] = set()
        if plan.hasty:
            self.monitor.ripe = self._ripened.add

    # --- what the ledger's server sees -----------------------------------------------------------

    def _committed(self, events: Sequence[Event]) -> None:
        self.monitor.committed(events)
        self.judge.written(events)

    def _listed(self, replica: int, session: str) -> None:
        self._sessions[session] = replica
        self.judge.listed[replica] = True

    def _expelled(self, session: str) -> None:
        replica = self._sessions.pop(session)
        self.counts["expelled"] += 1
        self.judge.listed[replica] = replica in self._sessions.values()
        self.judge.lost(replica, dead=False)

    def _learned(self, replica: int, event: Event) -> None:
        self.judge.views[replica].learned(event)
        if event.erasure in self._ripened:
            self._ripened.discard(event.erasure)
            self._ripe(event.erasure)

    def _ripe(self, erasure: str) -> None:
        """An operator sees the last clean round at some replica and does something there at that moment."""
        do = "retry" if len(erasure) % 2 == self.plan.seed % 2 else "verify"
        self._act(self.replicas[sum(map(ord, erasure)) % len(self.replicas)], {"do": do, "on": erasure})

    # --- time ------------------------------------------------------------------------------------

    def until(self, at: float) -> None:
        """Lets everything go on until that second."""
        first = 0
        while True:
            went = False
            for place in range(len(self.replicas)):
                replica = self.replicas[(first + place) % len(self.replicas)]
                try:
                    went = replica.go() or went
                except Killed:
                    went = True
                    self._die(replica)
            first += 1
            if not went and not self.time.step(at):
                return

    def _die(self, replica: Replica) -> None:
        replica.end()
        self.judge.lost(replica.number, dead=True)
        self.counts["deaths"] += 1
        self.time.after(replica.down_for, replica.start)

    # --- steps -----------------------------------------------------------------------------------

    def run(self) -> Outcome:
        for replica in self.replicas:
            replica.start()
        for step in self.plan.steps:
            self.until(step["at"])
            self._do(step)
        self._settle()
        return Outcome(self.plan.seed, self.judge.findings, self._counted(), self.time.elapsed)

    def _do(self, step: Step) -> None:
        do, until = step["do"], self.time.elapsed + step.get("for", 0.0)
        self.counts[do] += 1
        if "replica" in step:
            self._befall(self.replicas[step["replica"]], step)
        elif do == "ledger_down":
            for replica in self.replicas:
                replica.cable.cut_until = max(replica.cable.cut_until, until)
        elif do == "ledger_full":
            self.server.full = True
            self.time.after(step["for"], self._room)
        elif do == "ledger_restart":
            lost = [name for name, number in self._sessions.items() if number in step["lost"]]
            self.server.restart([name for name in lost if name in self.server.members])
        elif do == "store_down":
            for replica in self.replicas:
                replica.network.down_until = until
        elif do == "store_restart":
            self.store.restart()
        else:
            self._call(self.replicas[step["via"]], step)

    def _room(self) -> None:
        self.server.full = False

    def _befall(self, replica: Replica, step: Step) -> None:
        do, machine = step["do"], replica.machine
        if do == "cut_off":
            replica.cable.cut_until = max(replica.cable.cut_until, self.time.elapsed + step["for"])
        elif do == "lag":
            replica.cable.delay = step["delay"]
            self.time.after(step["for"], replica.hurry)
        elif do == "jump":
            replica.clock.jump(step["by"])
        elif machine is None:
            return
        elif do == "freeze":
            machine.stop_at, machine.stop_for = machine.steps + step["steps"], step["for"]
        elif step["how"] == "leave":
            if replica.taking:
                replica.down_for = step["for"]
                replica.leave()
        else:
            replica.down_for = step["for"]
            machine.kill_at = machine.steps + step["steps"]

    def _call(self, replica: Replica, step: Step) -> None:
        if not replica.taking:
            self.counts["unreachable"] += 1
            return
        self.counts["calls"] += 1
        if step["do"] in ACTS:
            self._act(replica, step)
        else:
            replica.call(step)

    def _act(self, replica: Replica, step: Step) -> None:
        if replica.taking and replica.machine is not None:
            replica.machine.create_task(self._acting(replica, step))

    async def _acting(self, replica: Replica, step: Step) -> None:
        acts, do = replica.acts, step["do"]
        try:
            if do == "readmit":
                await acts.readmit(step["subject"], step.get("tenant"), "they are back", "office")
            elif do == "signal":
                await acts.signal(COMPACTED, "office")
            else:
                names = [name for name, erased in self.judge.truth.erased.items() if erased.unsettled]
                name = step.get("on") or (names[step["which"] % len(names)] if names else None)
                if name is not None and do == "retry":
                    await acts.retry(name, "office", "try anew")
                elif name is not None:
                    await acts.verify(name, "office")
        except (NoSuchErasure, WrongState, BadAct, LedgerError):
            self.counts["refused_acts"] += 1

    # --- the end ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        """All is well from now on: everybody agrees soon, and what a faithful store forgets ends settled."""
        last = self.plan.steps[-1]["at"] if self.plan.steps else 0.0
        self.until(max(self.time.elapsed, last) + 1.0)
        self._heal()
        self._converge()
        truth = self.judge.truth
        end = self.time.elapsed + (SETTLES_WITHIN if self.plan.faithful else 25.0)
        while self.time.elapsed < end and any(e.unsettled for e in truth.erased.values()):
            self.until(self.time.elapsed + 5.0)
        for erased in truth.erased.values():
            if erased.unsettled:
                self.counts["unsettled"] += 1
                if self.plan.faithful and erased.whole and not copied(self.store, erased, truth):
                    self.judge.find("liveness", erased.step, "it never settled", erased.id)
        self.monitor.at_the_end()
        self._converge()
        for replica in self.replicas:
            if replica.parts is not None:
                self._fold_agrees(replica, replica.parts.erasures)
            self.tally.wrong.extend(replica.machine.surprises if replica.machine is not None else ())
        for text in self.tally.wrong:
            self.judge.find("surprise", -1, text)
        for replica in self.replicas:
            if replica.machine is not None:
                replica.machine.kill()

    def _heal(self) -> None:
        self.server.full = False
        for replica in self.replicas:
            replica.heal()
        end = self.time.elapsed + STARTS_WITHIN
        while not all(replica.serving for replica in self.replicas):
            self.until(self.time.elapsed + 0.25)
            if self.time.elapsed > end:
                down = [replica.number for replica in self.replicas if not replica.serving]
                self.judge.find("start", -1, f"replicas {down} do not serve")
                return

    def _converge(self) -> None:
        """Everybody gates on the same: at once, but for calls that still wait for an answer that was lost."""
        healed, within = self.time.elapsed, PATIENCE + self.plan.lease / 3 + 1.0
        while not all(replica.current for replica in self.replicas):
            if self.time.elapsed > healed + within:
                behind = [r.number for r in self.replicas if not r.current]
                self.judge.find("convergence", -1, f"replicas {behind} are behind after {within:.1f} s")
                return
            self.until(self.time.elapsed + 0.05)
        self.counts["converged_ms"] += round((self.time.elapsed - healed) * 1000)

    def _fold_agrees(self, replica: Replica, erasures: Erasures) -> None:
        for name, erased in self.judge.truth.erased.items():
            found = erasures.get(name)
            if found is None:
                self.judge.find("lost", erased.step, f"replica {replica.number} does not know of it", name)
            elif found.unsettled != erased.unsettled:
                says = f"it is {found.state.value} at replica {replica.number}; the judge thinks otherwise"
                self.judge.find("fold", erased.step, says, name)

    def _counted(self) -> Counter[str]:
        truth = self.judge.truth
        counts = self.counts + self.judge.counts
        counts["erasures"] = len(truth.erased)
        counts["settled"] = sum(not e.unsettled and not e.over for e in truth.erased.values())
        counts["ledger calls"] = self.server.steps
        counts["sent again"] = sum(number - 1 for number in self.judge.sends.values())
        for replica in self.replicas:
            for name, number in replica.network.calls.items():
                counts[f"upstream {name}"] += number
            for name, number in replica.network.ails.items():
                counts[f"ailment {name}"] += number
        for name in self.plan.faults:
            counts[f"fault {name}"] = 1
        for name, number in self.monitor.counts.items():
            counts[f"event {name}"] = number
        return counts
