"""The single experiments of a trial: one question each. What they saw goes into `facts`, unjudged.

Each begins before the watch, so that all wait through the same lag, and ends after it.
"""

from __future__ import annotations

from typing import Any, Final

from quietus.core.trial import drift
from quietus.profiles.faults import CannotQuote, MissingValue
from quietus.profiles.surface import Surface
from quietus.trial.asking import Asking
from quietus.trial.canary import Aviary, Canary
from quietus.trial.watching import Patience, prove, wait_gone

SALIENCE: Final = 0.91
TTL: Final = 5


class Experiments:
    """Asks what no row of looks can tell."""

    def __init__(self, asking: Asking, aviary: Aviary, patience: Patience, records: int) -> None:
        self._asking = asking
        self._aviary = aviary
        self._patience = patience
        self._records = records
        self._takes = asking.profile.canary_values or frozenset()
        self.facts: dict[str, Any] = {"queued": False}
        self.bystanders: list[Canary] = []
        self.ended: list[Canary] = []
        """Canaries of experiments that were forgotten."""

    async def planted(self, name: str, **how: Any) -> Canary:
        """A new canary, written and proven."""
        values, surfaces = how.pop("values", {}), how.pop("surfaces", None)
        canary = self._aviary.make(name, **how)
        written = await self._asking.write(canary, **values)
        if written.outcome == "queued":
            self.facts["queued"] = True
        await prove(self._asking, canary, self._patience.proof, surfaces)
        return canary

    async def told(self, canary: Canary, *, primary: bool = False) -> bool | None:
        """Whether the record itself is told now; None where nothing could be read."""
        seen: bool | None = None
        for surface in self._asking.surfaces:
            if primary and surface.kind != "primary":
                continue
            if not (surface.kind == "primary" or surface.enumerates):
                continue
            try:
                found = await self._asking.ask(canary, surface)
            except (MissingValue, CannotQuote):
                continue
            if found is not None:
                seen = bool(seen) or (found.seen and not found.foreign)
        return seen

    # --- before anything is forgotten ----------------------------------------------------------

    async def queries(self) -> None:
        """Is a query kept? Asked within one canary's own subject only, so that no other record is touched."""
        asking = self._asking
        scoped = [s for s in asking.surfaces if s.each == "text" and _names(s, "subject")]
        if not scoped:
            return
        safe = [s for s in asking.surfaces if s.each != "text" or s in scoped]
        canary = await self.planted("queries", surfaces=safe)
        word = self._aviary.word()
        asking.keeps, before = False, asking.keeps
        for surface in scoped:
            await asking.ask(canary, surface, extra=word)
        kept = False
        for surface in asking.surfaces:
            if surface.each in ("key", "subject"):
                found = await asking.ask(canary, surface)
                kept = kept or (found is not None and any(word in text.casefold() for text in found.texts))
        asking.keeps = kept or before
        self.facts["kept"] = kept
        self.bystanders.append(canary)

    async def baselines(self) -> None:
        """How two fresh canaries without a past are shown: what differs from this later was inherited."""
        for number in (1, 2):
            canary = self._aviary.make(f"baseline {number}")
            self.facts.setdefault("baselines", []).append(await self._shown(canary))
            self.bystanders.append(canary)

    async def _shown(self, canary: Canary) -> dict[str, str]:
        written = await self._asking.write(canary)
        await prove(self._asking, canary, self._patience.proof)
        shown = {f"write{place}": text for place, text in written.answer.items()}
        for surface in self._asking.surfaces:
            try:
                found = await self._asking.ask(canary, surface)
            except (MissingValue, CannotQuote):
                continue
            shown.update(found.rows if found is not None else {})
        return shown

    async def merges(self) -> None:
        """Does a near-duplicate by another subject take a live record away?"""
        one = await self.planted("merge 1")
        two = self._aviary.make("merge 2", near=one)
        await self._asking.write(two)
        await prove(self._asking, two, self._patience.proof)
        self.facts["merge_lost"] = await self.told(one, primary=True) is False
        self.bystanders.append(two)

    # --- with a forget -------------------------------------------------------------------------

    async def echo(self, when: str) -> None:
        """Does a write read what was derived from a forgotten record? And does the same text, written by
        another subject, bring the forgotten one back?
        """
        asking = self._asking
        more = {"salience": SALIENCE} if "salience" in self._takes else {}
        erased = await self.planted(f"echo {when}", values=more)
        again = await self.planted(f"again {when}")
        for canary in (erased, again):
            await asking.forget(canary)
            self.ended.append(canary)
        if when == "later":
            for canary in (erased, again):
                if not await wait_gone(asking, canary, self._patience.gone):
                    return
        near = self._aviary.make(f"near {when}", near=erased)
        shown = await self._shown(near)
        found = drift(self.facts.get("baselines", []), shown)
        self.facts["drift"] = tuple(sorted({*self.facts.get("drift", ()), *found}))
        scoped = [s for s in asking.surfaces if _names(s, "subject") and s.each != "key"]
        clean = [s for s in scoped if (one := await asking.ask(again, s)) is not None and not one.seen]
        same = self._aviary.make(f"same {when}", same=again)
        await asking.write(same)
        await prove(asking, same, self._patience.proof)
        back = [s.name for s in clean if (one := await asking.ask(again, s)) is not None and one.seen]
        self.facts["restated"] = tuple(sorted({*self.facts.get("restated", ()), *back}))
        self.bystanders += [near, same]

    async def acks(self, known: str, count: int | None) -> None:
        """Is a forget of someone who never was answered as one of somebody who was?"""
        nobody = self._aviary.make("nobody")
        nobody.keys.append(nobody.subject)
        ack = await self._asking.forget(nobody)
        if ack.answered:
            self.facts["same_ack"] = (ack.shape, ack.count) == (known, count)

    async def partial(self) -> None:
        """Many records of one subject, then one forget."""
        if not self._records:
            return
        first = self._aviary.make("many 1")
        many = [first]
        await self._asking.write(first)
        for number in range(2, self._records + 1):
            canary = self._aviary.make(f"many {number}", subject=first.subject)
            many.append(canary)
            await self._asking.write(canary)
        await prove(self._asking, many[-1], self._patience.proof)
        keys = [key for canary in many for key in canary.keys]
        self.facts["many"] = many
        ack = await self._asking.forget(first, keys=keys)
        self.facts["many_count"] = ack.count
        self.ended += many

    async def race(self) -> Canary:
        """A forget right behind a write: does the write land after it?"""
        canary = self._aviary.make("race")
        await self._asking.write(canary)
        await self._asking.forget(canary)
        return canary

    async def case(self) -> None:
        """Do reads and forgets compare subjects alike?"""
        canary = await self.planted("case", subject=f"{self._aviary.prefix}-Case")
        real, canary.subject = canary.subject, canary.subject.lower()
        folded = []
        for surface in self._asking.surfaces:
            if surface.each == "subject":
                found = await self._asking.ask(canary, surface)
                folded.append(found is not None and found.seen)
        if self._asking.profile.forget_each_record is None:
            await self._asking.forget(canary)
        canary.subject = real
        if folded:
            self.facts["reads_fold"] = any(folded)
            self.facts["case"] = canary

    async def siblings(self) -> None:
        """Does a forget take along what only begins alike?"""
        base = await self.planted("sibling", subject=f"{self._aviary.prefix}-u1")
        other = await self.planted("sibling of it", subject=f"{self._aviary.prefix}-u10")
        self.facts["siblings"] = {"subject": other}
        await self._asking.forget(base)
        self.ended.append(base)
        if "path" not in self._takes or "path" not in self._asking.profile.forget_kinds:
            return
        place = f"{self._aviary.prefix}/a"
        within = await self.planted("below", path=f"{place}/1")
        beside = await self.planted("beside", path=f"{place}b/1")
        await self._asking.forget(within, "path", path=place)
        self.facts["siblings"]["path"] = beside
        later = self._aviary.make("below, later", path=f"{place}/2")
        self.facts["swallowed"] = later
        self.facts["swallowed_since"] = self._asking.clock.monotonic()
        await self._asking.write(later)
        self.facts["swallowed_first"] = await self.told(later)
        self.ended.append(within)

    async def expiry(self) -> None:
        """What of a record is still told when its time to live is over?"""
        if "ttl" not in self._takes:
            return
        canary = await self.planted("expiry", values={"ttl": TTL})
        await self._asking.clock.sleep(TTL + 1.0)
        await self._asking.walk(canary)
        told = {look.surface for look in canary.case.looks if look.seen and not look.foreign}
        self.facts["expired"] = tuple(sorted(told & set(canary.case.proven)))
        self.facts["expired_of"] = tuple(sorted(canary.case.proven))
        self.ended.append(canary)


def _names(surface: Surface, value: str) -> bool:
    return surface.template is not None and value in surface.template.names
