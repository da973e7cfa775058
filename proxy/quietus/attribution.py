"""Asking the store itself whose a record is, where neither the row nor traffic has told.

After a restart nothing is known of what was written before. A row that names nobody would then be held back
with the erased; its primary surface is asked by key, a bounded number of times, before it is.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from quietus.core.gate import Gate
from quietus.core.operations import Call, Item
from quietus.core.probing import Witness
from quietus.core.scope import UNKNOWN, Scope, Values, Wild
from quietus.core.screening import Screener
from quietus.owners import Owners
from quietus.ports import Clock, UpstreamError
from quietus.prober import Prober
from quietus.profiles.faults import CannotQuote, MissingValue, Unreadable
from quietus.profiles.surface import Surface

LOOKUPS: Final = 50
"""Records of one answer that are looked up; the rest stays held back until it is asked for again."""
SECONDS: Final = 5.0
"""How long an answer waits for them."""


class Attribution:
    """Finds the owners of rows."""

    def __init__(
        self, gate: Gate, owners: Owners, screener: Screener, prober: Prober, clock: Clock
    ) -> None:
        self._gate = gate
        self._screener = screener
        self._owners = owners
        self._prober = prober
        self._clock = clock

    async def attribute(self, items: tuple[Item, ...], call: Call, scope: Scope) -> None:
        """Learns the owners of the rows that an unsettled erasure would hold back for want of one."""
        surface = next((s for s in self._prober.profile.surfaces if _by_key(s)), None)
        if surface is None:
            return
        unknown = [item for item in items if self._held(item, call, scope)][:LOOKUPS]
        if not unknown:
            return
        lookups = [asyncio.ensure_future(self._look_up(surface, item, call, scope)) for item in unknown]
        timer = asyncio.ensure_future(self._clock.sleep(SECONDS))
        left: set[asyncio.Future[None]] = set(lookups)
        try:
            while left and not timer.done():
                done, _ = await asyncio.wait({*left, timer}, return_when=asyncio.FIRST_COMPLETED)
                left -= done
        finally:
            timer.cancel()
            for lookup in left:
                lookup.cancel()

    def _held(self, item: Item, call: Call, scope: Scope) -> bool:
        if item.key is None or item.subject is not None:
            return False
        if self._screener.keys(item.key, self._owners.path_of(item, call)):
            return False  # it is dropped for its key
        its = self._owners.scope_of(item, call, scope)
        return its.subject is UNKNOWN and bool(self._gate.restricting(its))

    async def _look_up(self, surface: Surface, item: Item, call: Call, scope: Scope) -> None:
        witness = Witness(
            key=item.key,
            tenant=item.tenant if item.tenant is not None else _only(call.scope.tenant),
            path=self._owners.path_of(item, call),
            capture={**call.capture, **item.capture},
        )
        try:
            answer = await self._prober.ask(surface, witness, paced=False)
        except (UpstreamError, Unreadable, CannotQuote, MissingValue):
            return
        found = {row.subject for row in answer.items if row.key in (None, item.key)}
        if len(found) == 1 and (subject := found.pop()) is not None:
            self._owners.learn(replace(item, subject=subject), call, scope)


def _by_key(surface: Surface) -> bool:
    return surface.probeable and surface.kind == "primary" and surface.each == "key"


def _only(values: Values) -> str | None:
    return str(next(iter(values))) if not isinstance(values, Wild) and len(values) == 1 else None
