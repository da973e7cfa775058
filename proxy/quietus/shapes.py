"""The shapes of unmapped requests: method and path with everything that could be an identifier struck out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from quietus.core.exchange import Request
from quietus.profiles.profile import Profile
from quietus.shown import ShapeView

SHAPES = 500
"""Shapes remembered; at the bound the one seen longest ago goes."""


class Shapes:
    """Which requests the profile does not describe, without what they were about."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._seen: OrderedDict[str, int] = OrderedDict()
        self.seen = 0
        """How many this process has seen."""

    def saw(self, request: Request) -> None:
        """Counts one unmapped request under its shape: only segments that the profile knows stay."""
        self.seen += 1
        segments = request.path.split("/")[1:12]
        shape = "/".join(s if s in self._words else "{}" for s in segments)
        key = f"{request.method if request.method.isalpha() and len(request.method) < 12 else '{}'} /{shape}"
        self._seen[key] = self._seen.pop(key, 0) + 1
        if len(self._seen) > SHAPES:
            self._seen.popitem(last=False)

    def go_on(self, before: Iterable[tuple[str, int]]) -> None:
        """Adds what an earlier process has seen."""
        now, self._seen = self._seen, OrderedDict()
        for shape, count in (*before, *now.items()):
            self._seen[shape] = self._seen.pop(shape, 0) + count
        while len(self._seen) > SHAPES:
            self._seen.popitem(last=False)

    def listed(self) -> list[ShapeView]:
        """The shapes with their counts, the newest last."""
        return [{"shape": shape, "count": count} for shape, count in self._seen.items()]


def words_of(profile: Profile) -> frozenset[str]:
    """The literal path segments of a profile's routes: they identify nobody."""
    return frozenset(
        text for route in profile.routes for parameter, text in route.template.segments if not parameter
    )
