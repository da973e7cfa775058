"""One inquiry into an erasure: a round of probes, what it is evidence of, and what is done about it."""

from __future__ import annotations

from typing import Any

from quietus.core.due import Due, Progress
from quietus.core.erasure import Erasure
from quietus.core.events import Draft, EventType
from quietus.core.probing import Failure, failure_of
from quietus.core.states import Happening, State, step
from quietus.erasures import Erasures
from quietus.flights import Flights, write_name
from quietus.lineage_rounds import Severing
from quietus.recording import Log, Measures
from quietus.remedies import Remedies
from quietus.rounds import Round, Rounds
from quietus.snapshots import PREDICATE, SNAPSHOT, Descendant, Predicate, Snapshot
from quietus.snapshotter import Snapshotter
from quietus.timetable import Timetable


class Inquiry:
    """Probes, and writes down what was found."""

    def __init__(
        self,
        erasures: Erasures,
        rounds: Rounds,
        severing: Severing,
        remedies: Remedies,
        snapshotter: Snapshotter,
        flights: Flights,
        timetable: Timetable,
        metrics: Measures,
        log: Log,
    ) -> None:
        self._erasures = erasures
        self._rounds = rounds
        self._severing = severing
        self._remedies = remedies
        self._snapshotter = snapshotter
        self._flights = flights
        self._table = timetable
        self._metrics = metrics
        self._log = log
        self._clock = erasures.clock
        self._remedied: dict[str, dict[str, int]] = {}

    async def probe(self, erasure: Erasure, progress: Progress, what: Due) -> bool:
        """One round; False when it says nothing about what is now. Raises LedgerError, Conflict."""
        found = await self._unsealed(erasure)
        if found is None:
            progress.next_at = self._clock.monotonic() + 60.0
            return False
        predicate, snapshot = found
        began = self._clock.monotonic()
        result = await self._rounds.run(erasure, snapshot, progress.rounds, began)
        kin = await self._severing.look(erasure, predicate, snapshot, progress.rounds, result.surfaces)
        if kin is not None:
            result.add(kin.surface)
        progress.rounds += 1
        current = self._erasures.gate.erasures[erasure.id]
        if current.base_version != erasure.base_version:
            progress.next_at = self._clock.monotonic()
            return False  # something happened meanwhile
        back = self._came_back(result)
        current = await self._epochs(current, result)
        counted = what.counted and not back and current.base_version == erasure.base_version
        await self._note(current, result, counted)
        if result.outcome == "leaking":
            await self.leak(
                current, progress, began, result.leaking, "probe", failure_of(result.surfaces)
            )
            await self._remedy(current, predicate, result, kin.to_sever if kin is not None else [])
        elif result.uncontrolled and result.reached and current.state is not State.SETTLED:
            await self._renew_controls(current, predicate, snapshot, result.uncontrolled)
        # Past its bound, a store that goes on leaking is asked less and less often.
        late = result.outcome == "leaking" and self._now(erasure).state is State.VIOLATION
        progress.failures = progress.failures + 1 if late or result.outcome == "inconclusive" else 0
        return True

    def _came_back(self, result: Round) -> bool:
        """Whether the store answers again: after an outage it may have come back from anywhere."""
        back = self._table.lost and result.reached
        self._table.lost = not result.reached
        if back:
            self._table.disturb()
        return back

    async def _epochs(self, erasure: Erasure, result: Round) -> Erasure:
        before, now = erasure.read_epoch, result.read_epoch
        if before is not None and now is not None and now < before:
            self._metrics.count("violations", cause="epoch_regression")
            await self._append(erasure, EventType.LEAKED_LATE, {"cause": "epoch_regression"}, gate=True)
        return self._now(erasure)

    def _now(self, erasure: Erasure) -> Erasure:
        return self._erasures.gate.erasures[erasure.id]

    async def _note(self, erasure: Erasure, result: Round, counted: bool) -> None:
        same = result.read_epoch is None or result.read_epoch == erasure.read_epoch
        if erasure.state is State.SETTLED and result.outcome != "leaking" and same:
            return  # a patrol that finds nothing is counted, not chained
        facts: dict[str, Any] = {"outcome": result.outcome, "counted": counted, "surfaces": result.surfaces}
        if result.read_epoch is not None:
            facts["read_epoch"] = result.read_epoch
        draft = Draft(EventType.ROUND, erasure.id, self._clock.now(), facts=facts)
        await self._erasures.append([draft], expect=self._erasures.gate.erasures[erasure.id])

    async def leak(
        self, erasure: Erasure, progress: Progress, started: float, surfaces: list[str], seen: str,
        failure: Failure = Failure.UNKNOWN,
    ) -> None:  # fmt: skip
        """Writes down that something of the erased was met, in a call that began at `started`."""
        late = started >= progress.bound_at and erasure.state is not State.SETTLED
        kind = EventType.LEAKED_LATE if late else EventType.LEAKED
        was = erasure.state
        moves = step(was, Happening(kind.value)) is not was
        seen_at = self._clock.now() - (self._clock.monotonic() - started)
        if erasure.settled_once:
            failure = Failure.RESURRECTION
        facts = {"surfaces": surfaces, "seen": seen, "seen_at": seen_at, "failure": failure.value}
        await self._append(erasure, kind, facts, gate=moves)
        now = self._erasures.gate.erasures[erasure.id]
        if now.terms.claims_completion:
            for surface in surfaces:
                self._metrics.count("premature_assurance", surface=surface)
        if was is State.SETTLED:
            self._metrics.count("resurrections", vector="relapse")
        if now.state is State.VIOLATION and was is not State.VIOLATION:
            self._metrics.count("violations", cause="late_leak")
        self._log.info("leak", erasure=erasure.id, state=now.state.value, surfaces=sorted(surfaces),
                       failure=failure.value)

    async def _remedy(
        self, erasure: Erasure, predicate: Predicate, result: Round, to_sever: list[Descendant]
    ) -> None:
        if erasure.readmitted or not (result.residual or to_sever):
            return
        done = self._remedied.setdefault(erasure.id, {})

        def held() -> bool:  # a hold may be placed while the round goes on
            return self._now(erasure).held

        asked = await self._remedies.delete(_left(predicate, result), done, held)
        severed = await self._remedies.delete(self._severing.severed(to_sever), done, held)
        if not asked and not severed:
            return
        facts = {"count": len(asked) + len(severed), **({"cascaded": len(severed)} if severed else {})}
        await self._append(erasure, EventType.REMEDIED, facts)
        digests = [self._erasures.keyring.pseudonym("key", key) for key in asked]
        self._flights.landed(digests)
        for name in (write_name(digest) for digest in digests):
            if name in erasure.undrained:
                await self._append(erasure, EventType.WRITE_CLOSED, {"write": name, "cause": "removed"})

    async def _renew_controls(
        self, erasure: Erasure, predicate: Predicate, snapshot: Snapshot, wanting: set[str]
    ) -> None:
        renewed = Snapshot.unseal(snapshot.seal())
        await self._snapshotter.find_controls(predicate, renewed)
        if wanting.isdisjoint(renewed.controls):
            renewed.canaries = [key for key in renewed.canaries if key not in snapshot.canaries]
            await self._snapshotter.remove_canaries(predicate, renewed)
            return
        marks = [(erasure.id, mark) for mark in self._snapshotter.canary_marks(renewed)]
        await self._erasures.append(
            [Draft(EventType.RESTARTED, erasure.id, self._clock.now(), facts={"cause": "controls renewed"})],
            marks=marks,
            secrets=[self._erasures.seal(erasure.id, SNAPSHOT, renewed.seal())],
        )

    async def put_away(self, erasure: Erasure) -> None:
        """Removes the canaries that stood as controls; a patrol goes on without them."""
        self._remedied.pop(erasure.id, None)
        found = await self._unsealed(erasure)
        if found is None or not found[1].canaries:
            return
        predicate, snapshot = found
        await self._snapshotter.remove_canaries(predicate, snapshot)
        snapshot.controls.clear()
        draft = Draft(EventType.RESTARTED, erasure.id, self._clock.now(), facts={"cause": "canaries removed"})
        sealed = self._erasures.seal(erasure.id, SNAPSHOT, snapshot.seal())
        await self._erasures.append([draft], secrets=[sealed])

    async def _unsealed(self, erasure: Erasure) -> tuple[Predicate, Snapshot] | None:
        predicate = await self._erasures.unseal(erasure.id, PREDICATE)
        snapshot = await self._erasures.unseal(erasure.id, SNAPSHOT)
        if predicate is None or snapshot is None:
            return None
        return Predicate.unseal(predicate), Snapshot.unseal(snapshot)

    async def _append(
        self, erasure: Erasure, kind: EventType, facts: dict[str, Any], gate: bool = False
    ) -> None:
        await self._erasures.append([Draft(kind, erasure.id, self._clock.now(), facts=facts, gate=gate)])


def _left(predicate: Predicate, result: Round) -> list[tuple[str | None, dict[str, Any]]]:
    """What the store still lists of the erased, by key and the values that a delete is made of."""
    seed = predicate.seeds()[0].values()
    return [
        (item.key, {
            **seed, **item.capture, **({"path": "/".join(item.path)} if item.path is not None else {}),
            "key": item.key,
        })
        for _, item in result.residual
    ]  # fmt: skip
