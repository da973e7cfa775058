"""What of a client's request goes on to the store: its own bytes, less the headers that are for us."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quietus.core.exchange import Request
from quietus.core.operations import Operation
from quietus.flights import Flight
from quietus.profiles.faults import CannotQuote, MissingValue
from quietus.profiles.profile import Profile, Reading

CONDITIONAL: Final = frozenset(
    {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range", "range"}
)
"""Headers that would let a cache or a store answer with a part or with nothing: not screenable."""


def outgoing(request: Request, *, screened: bool = False) -> Request:
    """The request less `Quietus-*` and `Prefer`; where the answer is screened, unconditional."""
    headers = tuple(pair for pair in request.headers if not _ours(pair[0].lower(), screened))
    if len(headers) == len(request.headers):
        return request
    return replace(request, headers=headers)


def prepared(flight: Flight, reading: Reading, profile: Profile) -> Request:
    """The request of a call under way; beside an open erasure it asks for an answer that has caught up."""
    request = outgoing(reading.request, screened=flight.concerned and reading.call.recalls)
    if not flight.touched or reading.call.operation is not Operation.RECALL:
        return request
    epochs = [e.store_epoch for e in flight.decision.erasures if e.store_epoch is not None]
    try:
        return profile.strengthen(reading, request, max(epochs, default=None))
    except (CannotQuote, MissingValue):
        return request  # the store has named no epoch to ask for


def _ours(name: str, screened: bool) -> bool:
    return name == "prefer" or name.startswith("quietus-") or (screened and name in CONDITIONAL)
