"""A whole trial: plant, prove, forget, watch, ask what is left to ask, and leave nothing behind."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.trial import Case, came_back, revived
from quietus.core.trial_findings import Observed
from quietus.ports import Clock, Upstream, UpstreamError
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.profile import Profile
from quietus.trial.asking import Asking
from quietus.trial.canary import Aviary, Canary
from quietus.trial.clearing import clear
from quietus.trial.experiments import Experiments
from quietus.trial.watching import Patience, Progress, first_looks, telling, wait_gone, watch

PILOTED: Final = 8
"""Forgets around which the first canary is looked at: a removal that others' removals bring about shows."""
LAGGING: Final = 1.0
"""From this median lag on, in seconds, a repeat of the forget can be told from the first."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a trial does, and how hard."""

    values: Mapping[str, Any] = field(default_factory=dict)
    """Placeholders that the canaries do not fill: the tenant, a collection."""
    prefix: str = "quietus-canary-"
    trials: int = 20
    records: int = 120
    rate: float = 20.0
    dimension: int | None = None
    patience: Patience = Patience()


class Refused(Exception):
    """A trial that cannot be made; the message says what to add."""


def lacking(profile: Profile, plan: Plan) -> str | None:
    """What a profile or a plan lacks for a trial; None when it can begin."""
    takes = profile.canary_values
    if takes is None:
        return (
            f"the profile {profile.name} has no canary: add `canary: {{write: {{http: …}}, key: …}}`, how a "
            "record with {subject} and {text} is written and where its key is in the answer"
        )
    if profile.forget_each_record is None and "subject" not in profile.forget_kinds:
        return f"the profile {profile.name} has no `forgets: subject`, and no `forgets: each_record`: add one"
    if "vector" in takes and plan.dimension is None:
        return "the canary takes a vector: give --vector-dimension, or keep a record that shows one"
    filled = {"subject", "text", "key", "keys", "path", "vector", "salience", "ttl", *plan.values}
    missing = sorted(profile.canary_required - filled)
    return f"the canary needs {', '.join(missing)}: give --set {missing[0]}=…" if missing else None


async def dimension_of(profile: Profile, upstream: Upstream, clock: Clock, plan: Plan) -> int | None:
    """The dimension of the vectors that a store's records have; nothing else of them is looked at."""
    if profile.controls is None:
        return None
    aviary = Aviary(plan.prefix, random.Random(0), None, paths=False)
    asking = Asking(profile, upstream, clock, aviary, plan.values, random.Random(0), plan.rate)
    try:
        reply = await asking.send(profile.controls.request(dict(plan.values)))
        answer = profile.controls.read(reply)
    except (CannotQuote, MissingValue, Unreadable):
        return None
    return next((len(item.vector) for item in answer.items if item.vector), None)


class Trial:
    """One trial against one store. Run it once."""

    def __init__(
        self, profile: Profile, upstream: Upstream, clock: Clock, plan: Plan, rng: random.Random,
        progress: Progress,
    ) -> None:  # fmt: skip
        takes = profile.canary_values or frozenset()
        self._clock = clock
        self._plan = plan
        self._progress = progress
        self._aviary = Aviary(plan.prefix, rng, plan.dimension, paths="path" in takes)
        self._asking = Asking(profile, upstream, clock, self._aviary, plan.values, rng, plan.rate)
        self._experiments = Experiments(self._asking, self._aviary, plan.patience, plan.records)
        self._trials: list[Canary] = []
        self._facts = self._experiments.facts

    async def run(self) -> Observed:
        """The whole trial. Whatever happens, what was written is removed; raises UpstreamError."""
        began = self._clock.monotonic()
        by_key = frozenset(s.name for s in self._asking.surfaces if s.each == "key")
        try:
            await self._before()
            await self._forget_all()
            await self._after()
        finally:
            self._progress("cleaning up", 0, 1)
            left, residue = await clear(
                self._asking, self._aviary.all, self._plan.patience, self._slow(),
                again=any(came_back(case) is not None for case in self._cases),
                by_key=not any(revived(case, by_key) for case in self._cases),
            )  # fmt: skip
        kinds = {surface.name: surface.kind for surface in self._asking.surfaces}
        return Observed(
            kinds=kinds,
            by_key=by_key,
            cases=self._cases,
            facts=self._facts,
            left=left,
            residue=residue,
            patience=self._plan.patience.gone,
            watched=self._plan.patience.watch,
            seconds=self._clock.monotonic() - began,
            requests=self._asking.sent,
        )

    async def _before(self) -> None:
        self._progress("asking with nothing forgotten", 0, 1)
        experiments = self._experiments
        # First: from here on nobody else's record may be searched for in words that would stay in it.
        await experiments.queries()
        stander = await experiments.planted("bystander")
        if not stander.case.proven:
            unread = ", ".join(sorted(stander.case.unread)) or "none"
            raise Refused(
                f"the first canary was never told by any surface (unreadable answers: {unread}): nothing can "
                "be measured; see whether the profile reads this store's answers"
            )
        experiments.bystanders.append(stander)
        await experiments.baselines()
        await experiments.merges()

    async def _forget_all(self) -> None:
        plan, asking = self._plan, self._asking
        await self._one(1)
        for number in range(2, plan.trials):
            self._progress("forgetting canaries", number, plan.trials)
            pilot = self._trials[0]
            if number > PILOTED or pilot.case.gone:
                await self._one(number)
                continue
            canary = await self._planted(number)
            await asking.walk(pilot)
            before = telling(pilot.case)
            await self._forgotten(canary)
            await asking.walk(pilot)
            if before and not self._facts.get("batched"):
                self._facts["batched"] = 0 if telling(pilot.case) else number

    async def _one(self, number: int) -> None:
        await self._forgotten(await self._planted(number))

    async def _planted(self, number: int) -> Canary:
        canary = await self._experiments.planted(f"trial {number}")
        self._trials.append(canary)
        return canary

    async def _forgotten(self, canary: Canary) -> None:
        ack = await self._asking.forget(canary)
        if not ack.answered:
            self._facts["unanswered"] = self._facts.get("unanswered", 0) + 1
        await first_looks(self._asking, canary, both=canary is self._trials[0])
        await self._read_epoch()

    async def _after(self) -> None:
        experiments, patience = self._experiments, self._plan.patience
        self._progress("asking single questions", 0, 1)
        first = self._trials[0].case.acked
        await experiments.acks(first.shape if first else "", first.count if first else None)
        await experiments.case()
        await experiments.siblings()
        await experiments.echo("now")
        await experiments.partial()
        race = await experiments.race()
        # The last one is forgotten when nothing is written any more: no later write hides what is left of it.
        await self._one(self._plan.trials)
        await watch(self._asking, [*self._trials, race], patience, self._progress, both=1)
        landed = bool(await experiments.told(race))
        self._facts["race_landed"] = landed and all(c.case.gone for c in self._trials)
        await self._read_epoch()
        if self._slow() > LAGGING and any(canary.case.gone for canary in self._trials):
            await self._repeat()
            await experiments.echo("later")
        await experiments.expiry()
        await self._ends()

    async def _repeat(self) -> None:
        """Forgets one canary twice: does the second start the clock again?"""
        self._progress("repeating a forget", 0, 1)
        canary = await self._experiments.planted("repeat")
        first = await self._asking.forget(canary)
        lag = self._slow()
        await self._clock.sleep(lag / 2)
        second = await self._asking.forget(canary)
        await wait_gone(self._asking, canary, lag * 3)
        self._facts["repeat_tokens"] = [first.token, second.token]
        self._facts["repeat_answered"] = second.outcome
        self._facts["repeat"] = canary.case
        self._facts["repeat_after"] = second.sent - first.at

    async def _ends(self) -> None:
        facts, experiments = self._facts, self._experiments
        self._progress("seeing what is still there", 0, 1)
        if "case" in facts:
            facts["forget_folds"] = await experiments.told(facts["case"]) is False
        facts["lost"] = {
            name: await experiments.told(canary) is False
            for name, canary in facts.get("siblings", {}).items()
        }
        later: Canary | None = facts.get("swallowed")
        if later is not None and not facts["swallowed_first"]:
            told = bool(await experiments.told(later))
            since = self._clock.monotonic() - facts["swallowed_since"]
            facts["swallowed_for"] = since if told else None
        facts["bystanders"] = len(experiments.bystanders)
        gone = [await experiments.told(canary) is False for canary in experiments.bystanders]
        facts["bystanders_lost"] = sum(gone)
        many: list[Canary] = facts.get("many", [])
        facts["many_left"] = [at for at, one in enumerate(many) if await experiments.told(one, primary=True)]
        forgotten = {key for canary in (*self._trials, *experiments.ended) for key in canary.keys}
        every = [key for canary in self._aviary.all for key in canary.keys]
        facts["reused"] = len([key for key in forgotten if every.count(key) > 1])

    async def _read_epoch(self) -> None:
        request = self._asking.profile.epoch_request()
        if request is None:
            return
        try:
            value = self._asking.profile.epoch_value(await self._asking.send(request))
        except UpstreamError:
            return
        acked = [f.epoch for canary in self._trials for f in canary.case.forgets if f.epoch is not None]
        if value is not None and acked:
            self._facts["epoch"] = {"acked": max(acked), "read": value}
            leaks = any(not canary.case.gone for canary in self._trials)
            if leaks and value >= max(acked):
                self._facts["epoch_early"] = True

    def _slow(self) -> float:
        """The median time that canaries took to be gone."""
        took = sorted(_took(canary.case) for canary in self._trials if canary.case.gone)
        return took[len(took) // 2] if took else 0.0

    @property
    def _cases(self) -> list[Case]:
        return [canary.case for canary in self._trials]


def _took(case: Case) -> float:
    told = [look.asked for look in case.after() if look.seen]
    return max(told) - case.acked.at if told and case.acked else 0.0
