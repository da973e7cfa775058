"""One record of each call: it feeds the counters, the histograms and the decision log alike."""

from __future__ import annotations

from typing import Any, Protocol

from quietus.core.decision import Decision
from quietus.core.exchange import Wire
from quietus.core.operations import Call
from quietus.core.policy import Effect, Vector


class Observer(Protocol):
    """Where things are counted."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to the series of these labels."""


class Log(Protocol):
    """A structured log; events carry only allowed keys."""

    def info(self, event: str, **facts: Any) -> Any:
        """Something that is as it should be."""

    def error(self, event: str, **facts: Any) -> Any:
        """Something that is not."""


class Measures(Observer, Protocol):
    """Counters, and histograms of seconds."""

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Adds a value, in seconds, to the histogram of these labels."""


class Recorder:
    """Writes down what was decided. No subject, key, path or text is ever among the facts."""

    def __init__(self, metrics: Measures, log: Log) -> None:
        self._metrics = metrics
        self._log = log

    def refused(self, rule: str, wire: Wire) -> None:
        """A request that never became a call."""
        self._metrics.count(
            "operations", wire=wire, operation="none", effect="refuse", rule=rule, mode="enforce"
        )

    def call(self, call: Call, decision: Decision, overhead: float, wire: Wire) -> None:
        """A decided call; `overhead` is the time that deciding took, in seconds."""
        operation, mode, effect = call.operation.value, decision.mode.value, decision.effect.value
        self._metrics.count(
            "operations", wire=wire, operation=operation, effect=effect, rule=decision.rule, mode=mode
        )
        for vector in sorted(decision.vectors - {Vector.RACE}) if decision.vectors else ():
            self._metrics.count("laundering_attempts", vector=vector.value, effect=effect)
        if decision.problem == "erased-subject" or Vector.RESTATED_CONTENT in decision.vectors:
            self._metrics.count("resurrections", vector="reingest")
        if decision.effect is not Effect.ALLOW:
            self._log.info(
                "decision",
                route=call.route,
                operation=operation,
                effect=effect,
                rule=decision.rule,
                mode=mode,
            )
        self._metrics.observe("overhead_seconds", overhead, wire=wire, operation=operation)
