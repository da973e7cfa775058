"""A decision asked again of another policy, from what policies look at alone: no content, no scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from typing_extensions import TypedDict

from quietus.core.decision import Question, cases
from quietus.core.gate import Gate, Relation
from quietus.core.operations import UNMAPPED, Operation
from quietus.core.policy import Effect, Facts, Mode, Policy, Rule, Vector, strictness
from quietus.core.states import State

Case = tuple[Relation, State | None, str | None, frozenset[Vector]]
"""One erasure beside a call: how they lie, its state, what its subject is to it, what a write brings back."""

ALONE: Final[Case] = (Relation.NONE, None, None, frozenset())
"""A call beside nothing that was erased."""


def names(values: object) -> frozenset[str]:
    """The names that a dimension of a scope has; none where it is open or could not be read."""
    if not isinstance(values, frozenset):
        return frozenset()
    return frozenset(value for value in values if isinstance(value, str))


@dataclass(frozen=True, slots=True)
class Faced:
    """Everything that any policy can ask about one call."""

    operation: Operation
    route: str
    tenant: frozenset[str] = frozenset()
    principal: str = ""
    purpose: frozenset[str] = frozenset()
    failure: str | None = None
    cases: tuple[Case, ...] = ()
    """Each once, in the order in which a decision looks at them: of two as strict the first counts."""

    def facts(self) -> Iterable[Facts]:
        """What a rule's conditions are held against, one after the other."""
        for relation, state, subject, write in self.cases:
            yield Facts(
                self.operation, relation, state, subject, write, self.route, self.tenant, self.principal,
                self.purpose, self.failure,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """What a policy said of a call."""

    rule: str
    effect: Effect
    mode: Mode

    @property
    def shown(self) -> str:
        """What a client sees of it: of what is only observed, nothing."""
        passes = self.mode is Mode.OBSERVE or self.effect in (Effect.ALLOW, Effect.FORWARD)
        return "passes" if passes else self.effect.value

    @property
    def refuses(self) -> bool:
        """Whether it refuses, or would if it were enforced."""
        return self.effect in (Effect.BLOCK, Effect.REJECT, Effect.REFUSE)


def faced(question: Question, gate: Gate) -> Faced:
    """What policies can ask about a call as the gate stands now."""
    found = list(cases(question, gate))
    first = found[0]
    return Faced(
        first.operation, first.route, first.tenant, first.principal, first.purpose, first.failure,
        tuple(dict.fromkeys((f.erasure, f.state, f.subject, f.write) for f in found)),
    )  # fmt: skip


def asked(call: Faced, policy: Policy) -> Said:
    """What this policy says of a call: of several erasures the strictest answer, as when it is decided."""
    best: tuple[int, Rule, Mode] | None = None
    mapped = call.operation in (Operation.READ, Operation.RECALL) and call.route != UNMAPPED
    alone = False
    for facts in call.facts():
        rule = policy.first(facts)
        mode = Mode.OBSERVE if policy.mode is Mode.OBSERVE else (rule.mode or Mode.ENFORCE)
        rank = strictness(call.operation, rule.effect) - (100 if mode is Mode.OBSERVE else 0)
        # As when it is decided: a recall is told the rule of an erasure that it touches, if any is as strict.
        if best is None or rank > best[0] or (alone and mapped and rank == best[0]):
            best, alone = (rank, rule, mode), facts.erasure is Relation.NONE
    if best is None:
        raise ValueError("a call without a case")
    return Said(best[1].name, best[1].effect, best[2])


class ToldCase(TypedDict):
    """One erasure beside a call, as JSON."""

    erasure: Relation
    state: State | None
    subject: str | None
    write: list[Vector]


class ToldCall(TypedDict):
    """Everything that a policy can ask about one call, as JSON."""

    operation: Operation
    route: str
    tenant: list[str]
    principal: str
    purpose: list[str]
    failure: str | None
    cases: list[ToldCase]


def told(call: Faced) -> ToldCall:
    """A call as JSON."""
    return {
        "operation": call.operation, "route": call.route, "tenant": sorted(call.tenant),
        "principal": call.principal, "purpose": sorted(call.purpose), "failure": call.failure,
        "cases": [
            {"erasure": how, "state": state, "subject": subject, "write": sorted(write)}
            for how, state, subject, write in call.cases
        ],
    }  # fmt: skip


def read(call: Mapping[str, Any]) -> Faced:
    """The inverse of `told`. Raises ValueError, KeyError, TypeError."""
    return Faced(
        Operation(call["operation"]), str(call["route"]), frozenset(map(str, call["tenant"])),
        str(call["principal"]), frozenset(map(str, call["purpose"])), call["failure"],
        tuple(
            (Relation(one["erasure"]), State(one["state"]) if one["state"] else None, one["subject"],
             frozenset(map(Vector, one["write"])))
            for one in call["cases"]
        ),
    )  # fmt: skip
