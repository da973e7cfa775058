"""What was decided since the process began, counted by everything that a policy can ask, and by nothing else.

It lives in memory and is told to operators only. No subject, key, path, query or text is ever in it; tenants,
principals and purposes are, since rules can name them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from quietus.core.decision import Decision, Question
from quietus.core.gate import Gate
from quietus.core.operations import Call, Operation
from quietus.core.replaying import ALONE, Faced, Said, faced, names, told
from quietus.profiles.profile import Reading
from quietus.shown_decisions import Counts

KINDS_MAX: Final = 20_000
"""Different calls that are counted apart; those of a kind that is not known by then are counted together."""


class Decided:
    """Counts decisions."""

    def __init__(self, gate: Gate, since: float) -> None:
        self._gate = gate
        self.since = since
        self._calls: Counter[tuple[Faced, Said, bool]] = Counter()
        self._plain: dict[tuple[Any, ...], int] = {}
        """Most calls: nothing erased is near them, and a policy can ask little of them."""
        self._unread: Counter[tuple[str, str]] = Counter()
        self._faulty: Counter[str] = Counter()
        self.left_out = 0

    def saw(self, question: Question, decision: Decision) -> None:
        """Counts one decision."""
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
    def _full(self) -> bool:
        return len(self._calls) + len(self._plain) >= KINDS_MAX

    def _saw_plain(self, question: Question, decision: Decision) -> None:
        call, scope = question.call, question.call.scope
        key = (call.operation, call.route, scope.tenant, question.principal, scope.purpose, question.failure,
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
            self._unread[call.route, name] += 1

    def faulty(self, problem: str) -> None:
        """Counts a request that cannot be read in exactly one way, by the name of its problem."""
        self._faulty[problem] += 1

    def listed(self) -> Counts:
        """Everything that was counted, as JSON; the most frequent first."""
        calls = Counter(self._calls)
        for (operation, route, tenant, principal, purpose, failure, *said), count in self._plain.items():
            call = Faced(operation, route, names(tenant), principal, names(purpose), failure, (ALONE,))
            calls[call, Said(*said), False] += count
        return {
            "calls": [
                {**told(call), "rule": said.rule, "effect": said.effect, "mode": said.mode,
                 "overridden": overridden, "count": count}
                for (call, said, overridden), count in calls.most_common()
            ],
            "unreadable": [
                {"route": route, "field": name, "count": count}
                for (route, name), count in self._unread.most_common()
            ],
            "faulty": [{"problem": name, "count": count} for name, count in self._faulty.most_common()],
            "left_out": self.left_out,
        }  # fmt: skip
