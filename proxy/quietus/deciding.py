"""The decision on a call as everything stands now: the core's, unless people have overridden the gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quietus.core.decision import Decision, Question, decide, overridden
from quietus.core.orders import Override
from quietus.core.policy import Policy
from quietus.core.scope import Scope
from quietus.erasures import Erasures


class Deciding:
    """Asked at a call's entry, at each fence, and just before an answer leaves."""

    def __init__(
        self,
        erasures: Erasures,
        policy: Callable[[], Policy],
        overriding: Callable[[Scope], Override | None],
    ) -> None:
        self._erasures = erasures
        self._policy = policy
        self._overriding = overriding

    def __call__(self, question: Question) -> Decision:
        """The decision on a question."""
        if self._erasures.lapsed and question.failure is None:
            # What was admitted under a lease that is over is decided as if nothing were known.
            question = replace(question, failure="ledger")
        decision = decide(question, self._erasures.gate, self._policy())
        # Without word from the ledger nobody knows whether the override still stands.
        if decision.erasures and question.failure is None and self._overriding(question.scope) is not None:
            return overridden(decision, question.call.operation)
        return decision
