"""What a canary trial has observed, and what follows from one canary's looks.

A *look* is one answer of one surface about one canary. The looks after an acknowledgement are a time
line; from it follow how long a surface still told (a bracket: it was last seen at `low`, first not seen
at `high`), whether reads disagree, and whether a record came back. Nothing here sends anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

UNSTEADY: Final = 2
"""Times that one surface tells again after it had not, from which on its reads are said to disagree."""


@dataclass(frozen=True, slots=True)
class Look:
    """One answer. `seen` is None where it could not be read. Monotonic seconds."""

    surface: str
    asked: float
    at: float
    seen: bool | None
    turn: int = 0
    """Which walk over all surfaces it belongs to."""
    client: bool = True
    """Asked as an agent asks, with a User-Agent; a sidecar's probe carries none."""
    reworded: bool = False
    """Asked in other words than ever before, so that no cache of answers knows it."""
    foreign: bool = False
    """Only another record repeated it."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How a forget was answered. `shape` is the answer without what differs from call to call."""

    sent: float
    at: float
    answered: bool = True
    status: int = 0
    outcome: str = "unclear"
    count: int | None = None
    token: str | None = None
    epoch: int | None = None
    shape: str = ""


@dataclass(slots=True)
class Case:
    """One canary that was forgotten, and everything that was seen of it."""

    name: str
    proven: Mapping[str, float] = field(default_factory=dict)
    """The surfaces that told it before, with the seconds that they took after the write."""
    unread: frozenset[str] = frozenset()
    """Surfaces whose answers could not be read."""
    forgets: list[Acknowledged] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)

    @property
    def acked(self) -> Acknowledged | None:
        """The first acknowledgement."""
        return self.forgets[0] if self.forgets else None

    def after(self, surface: str | None = None, *, client: bool = True) -> list[Look]:
        """The readable looks after the acknowledgement, in order, asked in the usual words."""
        if self.acked is None:
            return []
        return [
            look for look in self.looks
            if look.seen is not None and look.asked >= self.acked.at and look.client == client
            and not look.reworded and surface in (None, look.surface)
        ]  # fmt: skip

    @property
    def gone(self) -> bool:
        """Whether the newest look at each surface that was ever looked at tells nothing."""
        newest = {look.surface: look.seen for look in self.after()}
        return bool(newest) and not any(newest.values())


@dataclass(frozen=True, slots=True)
class Span:
    """How long one surface told one canary after the acknowledgement. Seconds; `high` None: to the end."""

    low: float
    high: float | None
    flips: int = 0
    """How often it told again after it had not."""

    @property
    def leaked(self) -> bool:
        """Whether it told at all."""
        return self.low > 0 or self.high is None


def span(case: Case, surface: str) -> Span | None:
    """The span of one surface; None where nothing was seen of it either way."""
    looks = case.after(surface)
    if case.acked is None or not looks:
        return None
    flips = sum(1 for one, two in zip(looks, looks[1:], strict=False) if not one.seen and two.seen)
    # What came back once is no late removal: it was gone, and its return is told apart.
    until = looks if flips >= UNSTEADY or came_back(case) is None else _before_return(looks)
    told = [look for look in until if look.seen]
    if not told:
        return Span(0.0, max(until[0].at - case.acked.at, 0.0), flips)
    last = told[-1]
    after = next((look for look in until if look.asked >= last.at and not look.seen), None)
    low = max(last.asked - case.acked.at, 1e-9)
    return Span(low, None if after is None else after.at - case.acked.at, flips)


def _before_return(looks: Sequence[Look]) -> Sequence[Look]:
    for at, (one, two) in enumerate(zip(looks, looks[1:], strict=False)):
        if not one.seen and two.seen:
            return looks[: at + 1]
    return looks


def came_back(case: Case) -> float | None:
    """Seconds after the acknowledgement at which a canary was told again that no surface had told."""
    turns: dict[int, list[Look]] = {}
    for look in case.after():
        turns.setdefault(look.turn, []).append(look)
    surfaces = {look.surface for look in case.after()}
    gone = False
    for _, looks in sorted(turns.items()):
        told = [look for look in looks if look.seen]
        if gone and told and case.acked is not None:
            return told[0].at - case.acked.at
        gone = gone or (not told and {look.surface for look in looks} == surfaces)
    return None


def revived(case: Case, by_key: Set[str]) -> bool:
    """Whether, right after the acknowledgement, a read by key was told what nothing else told any more."""
    first = min((look.turn for look in case.after()), default=0)
    looks = [look for look in case.after() if look.turn == first]
    before = [look.seen for look in looks if look.surface not in by_key]
    return bool(before) and not any(before) and any(look.seen for look in looks if look.surface in by_key)


def unsteady(case: Case) -> frozenset[str]:
    """The surfaces whose reads disagree: told, not told, told, not told, told."""
    spans = {look.surface: span(case, look.surface) for look in case.after()}
    return frozenset(name for name, one in spans.items() if one is not None and one.flips >= UNSTEADY)


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of one surface over all cases: upper ends of the brackets, in seconds."""

    p50: float
    p99: float
    max: float
    resolution: float
    """The widest bracket: by so much at most the true lag is shorter."""
    cases: int
    leaked: int
    never: int
    """Cases in which it had not ended when the trial did."""


def lag_of(cases: Iterable[Case], surface: str) -> Lag | None:
    """The lag of a surface; None where no case proved it before."""
    spans = [one for case in cases if surface in case.proven and (one := span(case, surface)) is not None]
    if not spans:
        return None
    ended = sorted(one.high for one in spans if one.high is not None and one.leaked)
    # A surface that told nothing on the first look has no lag that could be measured.
    told = [one for one in spans if one.leaked]
    values = sorted([0.0] * (len(spans) - len(told)) + ended) or [0.0]
    widths = [one.high - one.low for one in told if one.high is not None]
    return Lag(
        p50=quantile(values, 0.5),
        p99=quantile(values, 0.99),
        max=values[-1],
        resolution=max(widths, default=0.0),
        cases=len(spans),
        leaked=len(told),
        never=sum(one.high is None for one in told),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which that share of `ordered` lies (nearest rank)."""
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def drift(baselines: Sequence[Mapping[str, str]], shown: Mapping[str, str]) -> tuple[str, ...]:
    """The places in which a record differs though all baselines agree there; or that none of them has.

    What differs between the baselines by itself (times, ids, texts) tells nothing and is left out.
    """
    if len(baselines) < 2:
        return ()
    first, *others = baselines
    stable = {place: text for place, text in first.items() if all(one.get(place) == text for one in others)}
    known = set().union(*baselines)
    changed = {place for place, text in stable.items() if shown.get(place) != text}
    return tuple(sorted(changed | (set(shown) - known)))
