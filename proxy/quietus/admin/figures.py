"""What one page tells of all processes of a sidecar: of the only one, or of a supervisor and its workers."""

from __future__ import annotations

from typing import Protocol

from quietus.assembly import Parts
from quietus.metrics import Metrics
from quietus.shown import ShapeView
from quietus.shown_decisions import Counts


class Figures(Protocol):
    """What is counted in each process, told of all."""

    @property
    def unready(self) -> str | None:
        """Why no call is taken, where that is so though the gate is open."""

    async def metrics(self) -> bytes:
        """Prometheus's text format."""

    async def decisions(self) -> Counts:
        """What was decided."""

    async def unmapped(self) -> list[ShapeView]:
        """Shapes of requests that the profile does not describe, the newest last."""

    async def bypasses(self) -> dict[str, int]:
        """By cause, how many calls were let through undecided, or overridden."""


class OwnFigures:
    """Those of this process, which is the only one."""

    unready = None

    def __init__(self, parts: Parts, metrics: Metrics) -> None:
        self._parts = parts
        self._metrics = metrics

    async def metrics(self) -> bytes:
        """Prometheus's text format."""
        return self._metrics.render()

    async def decisions(self) -> Counts:
        """What was decided."""
        return self._parts.gateway.decided.listed()

    async def unmapped(self) -> list[ShapeView]:
        """Shapes of requests that the profile does not describe."""
        return self._parts.shapes.listed()

    async def bypasses(self) -> dict[str, int]:
        """By cause, how many calls were let through undecided, or overridden."""
        return self._metrics.bypasses()
