"""Remedies: the store is asked again, record by record, to delete what should be gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from quietus.permits import Purpose
from quietus.ports import UpstreamError
from quietus.prober import Prober
from quietus.profiles.faults import CannotQuote, MissingValue
from quietus.recording import Observer

A_RECORD: Final = 3
"""After so many deletes that did not hold, the record is a resurrection: no delete loop."""


class Remedies:
    """Sends deletes, each counted by what came of it."""

    def __init__(self, prober: Prober, metrics: Observer) -> None:
        self._prober = prober
        self._metrics = metrics

    async def delete(
        self,
        records: Iterable[tuple[str | None, Mapping[str, Any]]],
        done: dict[str, int],
        stopped: Callable[[], bool],
    ) -> list[str]:
        """Asks for each record, by key and values, once; the keys that were asked for, sorted.

        `done` counts what a record was asked for before. `stopped` is asked before each, and again before its
        first byte goes: a legal hold may be placed in between.
        """
        asked: set[str] = set()
        for key, values in records:
            if not key or key in asked or done.get(key, 0) >= A_RECORD:
                continue
            if stopped():
                break
            try:
                request = self._prober.profile.remedy("delete_record", values)
                if request is None:
                    break
                reply = await self._prober.send(request, Purpose.REMEDY, still=lambda: not stopped())
            except (UpstreamError, CannotQuote, MissingValue):
                self._metrics.count("remedies", outcome="failed")
                continue
            asked.add(key)
            done[key] = done.get(key, 0) + 1
            self._metrics.count("remedies", outcome="accepted" if reply.status < 400 else "refused")
        return sorted(asked)
