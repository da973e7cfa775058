"""Leaving no canary behind, and making sure of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quietus.ports import UpstreamError
from quietus.profiles.faults import CannotQuote, MissingValue
from quietus.trial.asking import Asking
from quietus.trial.canary import Canary
from quietus.trial.watching import Patience

PASSES: Final = 4
"""Times that removal is tried."""


async def clear(
    asking: Asking, canaries: Sequence[Canary], patience: Patience, slow: float, *, again: bool, by_key: bool
) -> tuple[list[str], list[str]]:
    """Removes every canary. What is left: names of records, and names of those of which only copies are told.

    `slow` is how long a removal usually takes. `again`: this store has brought records back, so it is given
    the time to do so. Without `by_key` nothing is read by its key, since that would bring it back.
    """
    left: list[Canary] = [canary for canary in canaries if canary.keys]
    copies: list[Canary] = []
    for number in range(PASSES):
        for canary in left:
            await _remove(asking, canary, forget=number > 0)
        if again:
            await asking.clock.sleep(patience.watch)
        elif number and left:
            await asking.clock.sleep(min(max(slow * 1.5, 1.0) * number, patience.gone))
        told = [
            (canary, await _told(asking, canary, by_key)) for canary in (canaries if number == 0 else left)
        ]
        left = [canary for canary, (record, _) in told if record]
        copies = [canary for canary, (record, copy) in told if copy and not record]
        if not left:
            break
    return [canary.name for canary in left], [canary.name for canary in copies]


async def _remove(asking: Asking, canary: Canary, *, forget: bool) -> None:
    for key in dict.fromkeys(canary.keys):
        try:
            request = asking.removal(key)
            if request is None:
                forget = True
                break
            await asking.send(request)
        except (UpstreamError, CannotQuote, MissingValue):
            continue
    if forget:
        try:
            await asking.forget(canary)
        except (UpstreamError, CannotQuote, MissingValue):
            return


async def _told(asking: Asking, canary: Canary, by_key: bool) -> tuple[bool, bool]:
    """Whether the record is told by whatever reads records, and whether a copy is told elsewhere."""
    record = copy = False
    for surface in asking.surfaces:
        if surface.each == "key" and not by_key:
            continue
        try:
            found = await asking.ask(canary, surface, extra=asking.aviary.word())
        except (CannotQuote, MissingValue):
            continue
        if found is None or not found.seen:
            continue
        # The answer to its write was lost, perhaps: it can be removed all the same.
        canary.keys += [key for key in found.strays if key not in canary.keys]
        if (surface.kind == "primary" or surface.enumerates) and not found.foreign:
            record = True
        else:
            copy = True
    return record, copy
