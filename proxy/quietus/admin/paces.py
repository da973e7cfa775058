"""How fast one caller of the admin API may go: so many requests a second, and some ahead of that."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

RATE: Final = 100.0
"""Requests of one actor in a second, in the long run."""
BURST: Final = 2000.0
"""Requests of one actor that may come at once."""
WAITING: Final = 64
"""Long polls of one actor at a time."""
KEPT: Final = 4096
"""Actors that are remembered; the one that was seen longest ago goes, and begins anew."""


class Paces:
    """One bucket for each actor, filled at `RATE` up to `BURST`."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._waiting: dict[str, int] = {}

    def allows(self, actor: str, now: float) -> bool:
        """Whether one more request of this actor may pass at a monotonic second; counts it if so."""
        left, at = self._known.pop(actor, (BURST, now))
        left = min(BURST, left + (now - at) * RATE)
        allowed = left >= 1.0
        self._known[actor] = (left - 1.0 if allowed else left, now)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return allowed

    def wait(self, actor: str) -> bool:
        """Whether this actor may wait for one more change; whoever may says `waited` in the end."""
        if self._waiting.get(actor, 0) >= WAITING:
            return False
        self._waiting[actor] = self._waiting.get(actor, 0) + 1
        return True

    def waited(self, actor: str) -> None:
        """One of its long polls has ended."""
        self._waiting[actor] -= 1
        if not self._waiting[actor]:
            del self._waiting[actor]
