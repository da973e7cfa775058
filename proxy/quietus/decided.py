"""What was decided, counted by everything that a policy can ask, and by nothing else.

It lives in memory (`decided_kept` writes it down) and is told to operators only. No subject, key, path, query
or text is ever in it; tenants, principals and purposes are, since rules can name them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quietus.core.decision import Decision, Question
from quietus.core.gate import Gate
from quietus.core.operations import Call, Operation
from quietus.core.policy import Effect, Mode
from quietus.core.replaying import ALONE, Faced, Said, faced, names, read, told
from quietus.profiles.profile import Reading
from quietus.shown_decisions import Counts

KINDS_MAX: Final = 20_000
"""Different calls that are counted apart; those of a kind that is not known by then are counted together."""
_OPEN: Final[frozenset[str]] = frozenset()


@dataclass(slots=True)
class Tally:
    """What was counted up to a moment."""

    since: float
    """Unix seconds."""
    calls: Counter[tuple[Faced, Said, bool]] = field(default_factory=Counter)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)
    faulty: Counter[str] = field(default_factory=Counter)
    left_out: int = 0

    @property
    def count(self) -> int:
        """How many calls were decided."""
        return sum(self.calls.values())

    @property
    def names(self) -> set[str]:
        """Every tenant and purpose that it names."""
        return {name for call, _, _ in self.calls for name in (*call.tenant, *call.purpose)}

    def told(self, without: Collection[str] = ()) -> Counts:
        """As JSON, the most frequent first; `without` are tenants and purposes that are not named."""
        calls = self.calls
        if without:
            calls = Counter()
            for (call, said, overridden), count in self.calls.items():
                kept = replace(
                    call, tenant=call.tenant.difference(without), purpose=call.purpose.difference(without)
                )
                calls[kept, said, overridden] += count
        return {
            "calls": [
                {**told(call), "rule": said.rule, "effect": said.effect, "mode": said.mode,
                 "overridden": overridden, "count": count}
                for (call, said, overridden), count in calls.most_common()
            ],
            "unreadable": [
                {"route": route, "field": name, "count": count}
                for (route, name), count in self.unread.most_common()
            ],
            "faulty": [{"problem": name, "count": count} for name, count in self.faulty.most_common()],
            "left_out": self.left_out,
        }  # fmt: skip

    @classmethod
    def read(cls, since: float, counts: Mapping[str, Any]) -> Tally:
        """The inverse of `told`. Raises ValueError, KeyError, TypeError, AttributeError."""
        found = cls(since, left_out=int(counts["left_out"]))
        for one in counts["calls"]:
            said = Said(str(one["rule"]), Effect(one["effect"]), Mode(one["mode"]))
            found.calls[read(one), said, bool(one["overridden"])] += int(one["count"])
        for one in counts["unreadable"]:
            found.unread[str(one["route"]), str(one["field"])] += int(one["count"])
        for one in counts["faulty"]:
            found.faulty[str(one["problem"])] += int(one["count"])
        return found


class Decided:
    """Counts decisions."""

    def __init__(self, gate: Gate, since: float) -> None:
        self._gate = gate
        self.since = since
        """Unix seconds at which counting began, which may be before this process did."""
        self.seen = 0
        """How much was counted by this process: whether there is anything new."""
        self._calls: Counter[tuple[Faced, Said, bool]] = Counter()
        self._plain: dict[tuple[Any, ...], int] = {}
        """Most calls: nothing erased is near them, and a policy can ask little of them."""
        self._unread: Counter[tuple[str, str]] = Counter()
        self._faulty: Counter[str] = Counter()
        self.left_out = 0

    def saw(self, question: Question, decision: Decision) -> None:
        """Counts one decision."""
        self.seen += 1
        if not decision.erasures and question.call.operation is not Operation.WRITE:
            self._saw_plain(question, decision)
            return
        call = faced(question, self._gate)
        key = (call, Said(decision.rule, decision.effect, decision.mode), decision.overridden)
        if key not in self._calls and self._full:
            self.left_out += 1
            return
        self._calls[key] += 1

    @property
    def kinds(self) -> int:
        """Different calls that are counted apart."""
        return len(self._calls) + len(self._plain)

    @property
    def _full(self) -> bool:
        return self.kinds >= KINDS_MAX

    def _saw_plain(self, question: Question, decision: Decision) -> None:
        call, scope = question.call, question.call.scope
        tenant = scope.tenant if isinstance(scope.tenant, frozenset) else _OPEN
        purpose = scope.purpose if isinstance(scope.purpose, frozenset) else _OPEN
        key = (call.operation, call.route, tenant, question.principal, purpose, question.failure,
               decision.rule, decision.effect, decision.mode)  # fmt: skip
        count = self._plain.get(key)
        if count is None and self._full:
            self.left_out += 1
            return
        self._plain[key] = (count or 0) + 1

    def unread(self, reading: Reading) -> None:
        """Counts what the profile could not read of a request: names of fields, at most one a dimension."""
        call: Call = reading.call
        for name in reading.unreadable:
            self.seen += 1
            self._unread[call.route, name] += 1

    def faulty(self, problem: str) -> None:
        """Counts a request that cannot be read in exactly one way, by the name of its problem."""
        self.seen += 1
        self._faulty[problem] += 1

    def tally(self) -> Tally:
        """Everything that was counted up to now; what is counted later is not in it."""
        calls = Counter(self._calls)
        for (operation, route, tenant, principal, purpose, failure, *said), count in self._plain.items():
            call = Faced(operation, route, names(tenant), principal, names(purpose), failure, (ALONE,))
            calls[call, Said(*said), False] += count
        return Tally(self.since, calls, Counter(self._unread), Counter(self._faulty), self.left_out)

    def listed(self) -> Counts:
        """Everything that was counted, as JSON; the most frequent first."""
        return self.tally().told()

    def go_on(self, before: Tally) -> None:
        """Adds what an earlier process has counted; counting has begun when that one began."""
        self.since = min(self.since, before.since)
        self.left_out += before.left_out
        self._unread.update(before.unread)
        self._faulty.update(before.faulty)
        for (call, said, overridden), count in before.calls.items():
            if call.cases != (ALONE,) or call.operation is Operation.WRITE or overridden:
                self._calls[call, said, overridden] += count
                continue
            key = (call.operation, call.route, call.tenant, call.principal, call.purpose, call.failure,
                   said.rule, said.effect, said.mode)  # fmt: skip
            self._plain[key] = self._plain.get(key, 0) + count
