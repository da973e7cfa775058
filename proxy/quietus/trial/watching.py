"""Proving that canaries can be recalled, and watching them after they were forgotten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from quietus.core.trial import Case, Look
from quietus.profiles.faults import CannotQuote, MissingValue
from quietus.profiles.surface import Surface
from quietus.trial.asking import Asking
from quietus.trial.canary import Canary

FIRST: Final = 0.25
"""Seconds between the first two walks; later ones are further apart, in proportion to what has passed."""
SHARE: Final = 0.04
"""Of the time that has passed: how far apart two walks are, and so how exact a lag is measured."""
WIDEST: Final = 20.0

Progress = Callable[[str, float, float], None]
"""Told which part of a trial runs, how far it is, and of how much."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a trial waits. Seconds."""

    proof: float = 30.0
    """For a canary to be told after it was written."""
    gone: float = 1800.0
    """For it to be gone after it was forgotten."""
    watch: float = 60.0
    """After it was gone, for it to come back."""


async def prove(
    asking: Asking, canary: Canary, limit: float, surfaces: Sequence[Surface] | None = None
) -> dict[str, float]:
    """Waits until every surface tells a canary; the seconds that each took. What never does is `dull`."""
    clock = asking.clock
    began = clock.monotonic()
    proven: dict[str, float] = {}
    wanted = list(asking.surfaces if surfaces is None else surfaces)
    gap = FIRST
    while wanted:
        for surface in list(wanted):
            try:
                found = await asking.ask(canary, surface)
            except (MissingValue, CannotQuote):
                wanted.remove(surface)
                continue
            if found is not None and found.seen:
                proven[surface.name] = clock.monotonic() - began
                wanted.remove(surface)
            elif found is None:
                canary.case.unread |= {surface.name}
        passed = clock.monotonic() - began
        if all(one.name in asking.dull for one in wanted) or passed > limit:
            break
        await clock.sleep(gap)
        gap = min(gap * 1.5, 3.0)
    asking.dull |= {surface.name for surface in wanted}
    canary.case.proven = proven
    return proven


async def first_looks(asking: Asking, canary: Canary, *, both: bool) -> None:
    """The looks right after an acknowledgement. Reads by key come after the others, then once more before
    them: a read that brings a record back, or is the last to see it, shows.
    """
    turn = max((look.turn for look in canary.case.looks), default=0) + 1
    by_key = [surface for surface in asking.surfaces if surface.each == "key"]
    others = [surface for surface in asking.surfaces if surface.each != "key"]
    for at, order in enumerate(([*others, *by_key], [*by_key, *others])):
        for surface in order:
            await asking.look(canary, surface, turn + at)
    if both:
        await asking.walk(canary, both=True)


async def watch(
    asking: Asking, canaries: Sequence[Canary], patience: Patience, progress: Progress, *, both: int = 0
) -> None:
    """Walks over all canaries until all were gone for the time of the watch, or patience is at its end.

    The first `both` of them are also asked about as a sidecar's probe asks.
    """
    clock = asking.clock
    began = clock.monotonic()
    gone_since: float | None = None
    gap = FIRST
    while canaries:
        for at, canary in enumerate(canaries):
            await asking.walk(canary, both=at < both)
        now = clock.monotonic()
        if all(canary.case.gone for canary in canaries):
            gone_since = now if gone_since is None else gone_since
            progress("watching whether it comes back", now - gone_since, patience.watch)
            if now - gone_since >= patience.watch:
                return
            gap = max(min(patience.watch / 12, gap * 1.5), FIRST)
        else:
            gone_since = None
            progress("waiting until it is gone", now - began, patience.gone)
            if now - began >= patience.gone:
                return
            gap = min(max(FIRST, (now - began) * SHARE), WIDEST)
        await clock.sleep(gap)


async def wait_gone(asking: Asking, canary: Canary, limit: float) -> bool:
    """Walks over one canary until it is gone; False when it was not in time."""
    clock = asking.clock
    began = clock.monotonic()
    while True:
        await asking.walk(canary)
        passed = clock.monotonic() - began
        if canary.case.gone:
            return True
        if passed >= limit:
            return False
        await clock.sleep(min(max(FIRST, passed * SHARE), WIDEST))


def telling(case: Case, within: int = 0) -> list[Look]:
    """The newest look at each surface that tells; of the newest turns only, where `within` says so."""
    newest: dict[str, Look] = {}
    for look in case.looks:
        if look.client and not look.reworded and look.seen is not None and look.turn >= within:
            newest[look.surface] = look
    return [look for look in newest.values() if look.seen]
