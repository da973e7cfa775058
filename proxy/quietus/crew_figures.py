"""What a supervisor and its workers have counted, told as of one: `admin.figures.Figures`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from quietus.admin.figures import OwnFigures
from quietus.assembly import Parts
from quietus.decided import KINDS_MAX
from quietus.metrics import Metrics
from quietus.shapes import SHAPES
from quietus.shown import ShapeView
from quietus.shown_decisions import Counts
from quietus.workers.crew import Crew
from quietus.workers.figures import counts_of, listed, page, told


class CrewFigures:
    """Asks every worker anew each time; what a lost one told last is kept."""

    def __init__(self, parts: Parts, metrics: Metrics, *, written_down: bool) -> None:
        """`written_down`: decisions are kept beside the ledger; who comes in a lost one's place goes on."""
        self._written_down = written_down
        self._parts = parts
        self._metrics = metrics
        self._own = OwnFigures(parts, metrics)
        self._gone: dict[str, Any] = {}
        self.crew: Crew | None = None
        """The workers, once they are begun."""

    def lose(self, known: dict[str, Any]) -> None:
        """A worker ended by itself: what it had counted stays counted, what it had learned may be lost."""
        self._parts.lineage.lose("a worker ended without writing down all that it had learned")
        if not known:
            return
        if self._written_down:
            known = {**known, "decisions": _decisions([]), "unmapped": []}
        both = [each for each in (self._gone, known) if each]
        self._gone = {
            "families": counts_of(each["families"] for each in both),
            "decisions": _decisions([each["decisions"] for each in both]),
            "unmapped": _shapes([each["unmapped"] for each in both]),
            "bypasses": _sums([each["bypasses"] for each in both]),
        }

    async def _all(self, name: str) -> list[Any]:
        workers = await self.crew.figures() if self.crew is not None else []
        return [each[name] for each in (*workers, self._gone) if each]

    @property
    def unready(self) -> str | None:
        """`workers` while none of them serves."""
        return None if self.crew is not None and self.crew.serving else "workers"

    async def metrics(self) -> bytes:
        """Prometheus's text format."""
        return page([told(self._metrics.registry), *await self._all("families")])

    async def decisions(self) -> Counts:
        """What was decided."""
        return _decisions([await self._own.decisions(), *await self._all("decisions")])

    async def unmapped(self) -> list[ShapeView]:
        """Shapes of requests that the profile does not describe, the rarest first."""
        return _shapes([await self._own.unmapped(), *await self._all("unmapped")])

    async def bypasses(self) -> dict[str, int]:
        """By cause, how many calls were let through undecided, or overridden."""
        return _sums([await self._own.bypasses(), *await self._all("bypasses")])


def _sums(each: list[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for counts in each:
        total.update(counts)
    return dict(total)


def _shapes(each: list[Any]) -> list[ShapeView]:
    return listed((row for rows in each for row in rows), SHAPES)[::-1]


def _decisions(each: list[Any]) -> Counts:
    def rows(name: str) -> list[Any]:
        return listed((row for counts in each for row in counts[name]), KINDS_MAX)

    return {
        "calls": rows("calls"), "unreadable": rows("unreadable"), "faulty": rows("faulty"),
        "left_out": sum(counts["left_out"] for counts in each),
    }  # fmt: skip
