"""Asking the store: one request after the other, bounded in rate and number, on fresh connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from quietus.core.erasure import Erasure
from quietus.core.exchange import Reply, Request
from quietus.core.operations import Call, Item, Operation
from quietus.core.probing import Finding, Probe, Witness, wording
from quietus.core.scope import Scope, Wild, holds, overlaps
from quietus.core.screening import Screener
from quietus.core.states import State
from quietus.owners import Owners
from quietus.permits import Granted, Purpose
from quietus.ports import Clock, Upstream, UpstreamError
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.profile import Profile
from quietus.profiles.surface import Surface, SurfaceAnswer
from quietus.recording import Observer

PAGES_MAX = 1000
"""Pages of one listing that are followed; at the bound the snapshot says that it was cut short."""
UNCACHED = ("Cache-Control", "no-cache")
UNREACHED = "the store could not be reached"
"""The reason of a finding whose probe was not answered."""


@dataclass(frozen=True, slots=True)
class ProbeLimits:
    """How much the store is asked at most."""

    in_flight: int = 8
    per_second: float = 5.0
    response_bytes: int = 8 * 1024 * 1024


class Prober:
    """Sends probes and remedies, and says what they found. It judges nothing."""

    def __init__(
        self,
        profile: Callable[[], Profile],
        upstream: Upstream,
        owners: Owners,
        screener: Screener,
        clock: Clock,
        limits: ProbeLimits,
        metrics: Observer,
        live: Callable[[], int] = lambda: 1,
    ) -> None:
        """`live` is how many replicas share the rate."""
        self._profile = profile
        self._upstream = upstream
        self._owners = owners
        self._screener = screener
        self._clock = clock
        self._limits = limits
        self._metrics = metrics
        self._live = live
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._next_at = 0.0
        self.waiting = 0
        """Probes that wait for their turn."""

    @property
    def profile(self) -> Profile:
        """The profile in force."""
        return self._profile()

    def now(self) -> float:
        """Unix seconds, to say when something was asked."""
        return self._clock.now()

    async def send(
        self,
        request: Request,
        purpose: Purpose,
        *,
        paced: bool = True,
        still: Callable[[], bool] | None = None,
    ) -> Reply:
        """One request of our own, on a fresh connection and past caches. Raises UpstreamError.

        `still` is asked when its turn has come, just before it goes.
        """
        if request.wire == "http":
            headers = (*request.headers, UNCACHED)
            request = Request(request.method, request.target, headers, request.body)
        self.waiting += 1
        try:
            if paced:
                await self._turn()
            async with self._slots:
                reply = await self._upstream.open(request, Granted(purpose, still=still), fresh=True)
                return await reply.read(self._limits.response_bytes)
        finally:
            self.waiting -= 1

    async def _turn(self) -> None:
        now = self._clock.monotonic()
        at = max(self._next_at, now)
        self._next_at = at + self._live() / self._limits.per_second
        if at > now:
            await self._clock.sleep(at - now)

    # --- one probe -----------------------------------------------------------------------------

    def values(self, surface: Surface, witness: Witness) -> dict[str, Any]:
        """The placeholders of a probe; its text is worded as the store's habit with queries allows."""
        filled = witness.values()
        if witness.text is not None:
            store = self.profile.store
            keeps = {"true": True, "false": False}.get(str(store.keeps_queries).lower())
            filled["text"] = wording(witness.text, keeps, store.neutral_query, [witness.subject or ""])
        return filled

    async def ask(
        self, surface: Surface, witness: Witness, *, page: object | None = None, paced: bool = True
    ) -> SurfaceAnswer:
        """One page of one surface. Raises UpstreamError, Unreadable, CannotQuote or MissingValue."""
        request = surface.request(self.values(surface, witness), page)
        return surface.read(await self.send(request, Purpose.PROBE, paced=paced), page)

    async def probe(
        self, surface: Surface, probe: Probe, erasure: Erasure, *, paced: bool = True
    ) -> tuple[Finding, list[Item]]:
        """One probe of a round, every page of it; the items that belong to the erased come along."""
        left: list[Item] = []
        page: object | None = None
        witness = dated(probe.witness, erasure)
        try:
            for _ in range(PAGES_MAX):
                answer = await self.ask(surface, witness, page=page, paced=paced)
                left += self.erased(surface, probe.witness, answer, erasure)
                page = answer.next_page
                if page is None or answer.clean:
                    break
        except (CannotQuote, MissingValue):
            return Finding(probe, readable=False, reason="the probe cannot be put together"), left
        except Unreadable:
            return self._unread(surface, probe, left, "the answer could not be read")
        except UpstreamError:
            return self._unread(surface, probe, left, UNREACHED)
        return Finding(probe, found=bool(left), residual=len(left)), left

    def _unread(
        self, surface: Surface, probe: Probe, left: list[Item], reason: str
    ) -> tuple[Finding, list[Item]]:
        return Finding(probe, readable=False, found=bool(left), residual=len(left), reason=reason), left

    async def finds(self, surface: Surface, witness: Witness, *, paced: bool = True) -> bool:
        """Whether a probe finds the very record that it asks for: a positive or a live control."""
        page: object | None = None
        try:
            for _ in range(PAGES_MAX):
                answer = await self.ask(surface, witness, page=page, paced=paced)
                if any(self._same(item, surface, witness) for item in answer.items):
                    return True
                page = answer.next_page
                if page is None or answer.clean:
                    return False
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            return False
        return False

    @staticmethod
    def _same(item: Item, surface: Surface, witness: Witness) -> bool:
        if item.key is not None and witness.key is not None:
            return item.key == witness.key
        if witness.text is not None and witness.text in item.texts:
            return True
        if witness.key is None and witness.text is None:
            return True  # a seed: anything that the surface returns for it is what it asks for
        return surface.each == "key" and item.key is None

    # --- what belongs to the erased --------------------------------------------------------------

    def erased(
        self, surface: Surface, witness: Witness, answer: SurfaceAnswer, erasure: Erasure
    ) -> list[Item]:
        """The items of an answer that are of the erased: by scope, by key, by content."""
        if answer.clean:
            return []
        hit: set[int] = set()
        call = self._call(surface, witness)
        scope = self._owners.digested(call.scope)
        defaults: Mapping[str, str] = {}
        if surface.each == "subject" and witness.subject is not None:
            defaults = {"subject": witness.subject}
        items = {item.position: item for item in answer.items}
        for item in answer.items:
            keyed = self._keyed(item, surface, witness)
            if self._belongs(keyed, call, scope, defaults, erasure) or self._dangles(keyed, call, erasure):
                hit.add(item.position)
        for position, text in answer.answered.scalars():
            item_at = items.get(position) if position is not None else None
            # A row's own key is judged with its path, above: elsewhere it may be somebody else's. Its tenant
            # is where it lies: a store may have one for each person, named like them.
            place = item_at is not None and text in (item_at.key, item_at.tenant)
            if position is not None and position not in hit and not place:
                mine = [h for h in self._screener.look(text) if h.strong and h.erasure.id == erasure.id]
                whole = bool(mine) and mine[0].whole and item_at is not None
                if mine and not (whole and item_at and self._twin(text, item_at, call, scope, defaults)):
                    hit.add(position)
        return [self._keyed(items[p], surface, witness) for p in sorted(hit) if p in items]

    def _twin(
        self, text: str, item: Item, call: Call, scope: Scope, defaults: Mapping[str, str]
    ) -> bool:
        """Whether a row that says the same is a bystander's own, from before the erasure."""
        return self._screener.twin(text, self._owners.scope_of(item, call, scope, defaults).subject)

    def _belongs(
        self, item: Item, call: Call, scope: Scope, defaults: Mapping[str, str], erasure: Erasure
    ) -> bool:
        its = self._owners.scope_of(item, call, scope, defaults)
        if self._newer(item, call, erasure):
            return False
        if not erasure.readmitted and holds(erasure.predicate, its):
            return True
        if item.key is None:
            return False
        if not isinstance(its.subject, Wild) and not overlaps(erasure.predicate, its):
            return False  # the store has given the id again, or it is another purpose's: not the erased
        found = self._screener.keys(item.key, self._owners.path_of(item, call))
        return any(hit.erasure.id == erasure.id for hit in found)

    def _dangles(self, item: Item, call: Call, erasure: Erasure) -> bool:
        """Whether a row points at the erased, or is derived from it and says that it points at nothing."""
        if erasure.before(self._owners.born(item, call)):
            return False
        sources = (hit for key in item.derived_from for hit in self._screener.keys(key, None))
        if any(hit.erasure.id == erasure.id for hit in sources):
            return True
        if item.provenance_resolved is not False or item.key is None:
            return False
        kin = self._screener.descends(item.key, self._owners.path_of(item, call))
        return any(hit.erasure.id == erasure.id for hit in kin)

    def of_another(self, surface: Surface, witness: Witness, item: Item, erasure: Erasure) -> bool:
        """Whether a row that tells of the erased is somebody else's own record: not ours to remove."""
        call = self._call(surface, witness)
        scope = self._owners.digested(call.scope)
        named = not isinstance(self._owners.scope_of(item, call, scope).subject, Wild)
        return named and not self._belongs(item, call, scope, {}, erasure)

    def _newer(self, item: Item, call: Call, erasure: Erasure) -> bool:
        """Whether a record is newer than the erasure, as far as its place tells; its content is judged apart.

        Once settled, a key or a path may be written again: only content then tells the old from the new.
        """
        if isinstance(erasure.predicate.subject, Wild) and erasure.state in (State.SETTLED, State.RELAPSED):
            return True
        return erasure.before(self._owners.born(item, call))

    @staticmethod
    def _keyed(item: Item, surface: Surface, witness: Witness) -> Item:
        if item.key is None and surface.each == "key" and witness.key is not None:
            return replace(item, key=witness.key)
        return item

    @staticmethod
    def _call(surface: Surface, witness: Witness) -> Call:
        asked = surface.template.names if surface.template is not None else {}
        # A row that does not say where it lies lies where the store was asked, not where the witness lay.
        placed = "path" in asked or not asked.keys().isdisjoint(witness.capture)
        scope = Scope(
            **{
                name: frozenset({value})
                for name in ("tenant", "subject", "path")
                if (value := getattr(witness, name)) is not None and (name != "path" or placed)
            }
        )
        return Call(Operation.RECALL, route=f"surface:{surface.name}", scope=scope, capture=witness.capture)


def dated(witness: Witness, erasure: Erasure) -> Witness:
    """The witness of a store that keeps its past, looked for where it stood last.

    `epoch_before`, where the profile captures it, is the epoch at which a record was seen; once the store has
    told the epoch of its forget, it is the one before that.
    """
    if erasure.store_epoch is None or "epoch_before" not in witness.capture:
        return witness
    return replace(witness, capture={**witness.capture, "epoch_before": str(erasure.store_epoch - 1)})
