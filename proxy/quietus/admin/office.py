"""What the routes of the admin API work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from aiohttp import web

from quietus.acts import Acts
from quietus.admin.figures import Figures
from quietus.admin.paces import Paces
from quietus.admin.reviews import Reviews
from quietus.admin.tokens import Identity, Tokens
from quietus.assembly import Active
from quietus.core.erasure import Erasure
from quietus.core.policy import Mode
from quietus.core.verdict import Verdict
from quietus.demands import Demands
from quietus.erasures import Erasures
from quietus.ordering import Ordering
from quietus.ports import Clock
from quietus.shown import ErasureView
from quietus.views import Declared, erasure_view


class Allowance(Protocol):
    """Says whether one more fits into a budget."""

    def allows(self, now: float) -> bool:
        """Whether one more fits in; counts it if so."""


@dataclass(frozen=True, slots=True)
class Office:
    """Everything a route may use."""

    erasures: Erasures
    acts: Acts
    demands: Demands
    ordering: Ordering
    active: Active
    started_at: float
    """Unix seconds at which this process began."""
    figures: Figures
    tokens: Tokens
    clock: Clock
    verdict: Callable[[Erasure], Verdict]
    estimate: Callable[[Erasure], float | None]
    """Seconds after which it may be settled, if nothing leaks."""
    declared: Callable[[], Iterable[Declared]]
    counting_since: Callable[[], float]
    """Unix seconds since which decisions are counted: mostly before this process began."""
    client_calls: Mapping[str, int]
    """How often clients have asked for each erasure since the process began, where it was more than once."""
    hosts: frozenset[str]
    version: str
    refusals: Allowance
    paces: Paces
    described: Callable[[], dict[str, Any]]
    """The OpenAPI document of this API."""
    reviews: Reviews | None = None
    """Kubernetes, where it says who is who beside the tokens."""

    async def identify(self, authorization: str | None) -> Identity | None:
        """Whose an `Authorization` header is; None when it is nobody's. Raises NoRole, ReviewsAway."""
        known = self.tokens.identify(authorization)
        if known is None and self.reviews is not None:
            return await self.reviews.identify(authorization)
        return known

    def observing(self) -> bool:
        """Whether the policy in force only observes."""
        return self.active.policy.mode is Mode.OBSERVE

    def view(self, erasure: Erasure) -> ErasureView:
        """The JSON of an erasure."""
        asked = max(erasure.client_calls, self.client_calls.get(erasure.id, 1))
        counted = replace(erasure, client_calls=asked)
        return erasure_view(
            counted, verdict=self.verdict(erasure), now=self.clock.now(), declared=self.declared(),
            estimate=self.estimate(erasure),
        )


OFFICE: Final = web.AppKey("office", Office)
