"""Policy cases: given these erasures, this call gets that effect, by that rule, for that reason.

They are documents (`kind: PolicyCases`), shipped under `policies/cases`, and users write their own for their
own policies; `quietus check` runs both. A case is decided by the core itself, over a gate that is folded
from the events that lead to the states it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from quietus.core.decision import Decision, Question, decide
from quietus.core.events import Draft, Event, EventType, scope_to_facts
from quietus.core.gate import Gate
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import Effect, Many, Mode, Policy, Vector
from quietus.core.problems import PROBLEMS, Reason
from quietus.core.scope import ANY, UNKNOWN, Scope, split_path
from quietus.core.states import State
from quietus.documents import Document, read, validate
from quietus.policies import SHIPPED, folder, load_policy

PATHS_TO: Final[dict[State, tuple[EventType, ...]]] = {
    State.REQUESTED: (),
    State.SETTLING: (EventType.ACCEPTED,),
    State.LEAKING: (EventType.ACCEPTED, EventType.LEAKED),
    State.VIOLATION: (EventType.ACCEPTED, EventType.LEAKED_LATE),
    State.SETTLED: (EventType.ACCEPTED, EventType.CLEAN),
    State.RELAPSED: (EventType.ACCEPTED, EventType.CLEAN, EventType.LEAKED),
    State.REFUSED: (EventType.REFUSED,),
    State.RELEASED: (EventType.RELEASED,),
}
"""The events that lead to each state."""

Dimension = Literal["tenant", "subject", "purpose", "path", "key"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Reach(_Part):
    """A scope as people write it; what is not written is left open."""

    tenant: Many[str] | None = None
    subject: Many[str] | None = None
    purpose: Many[str] | None = None
    path: Many[str] | None = None
    key: Many[str] | None = None

    def scope(self, unreadable: Sequence[str] = ()) -> Scope:
        found: dict[str, Any] = {}
        for name in ("tenant", "subject", "purpose", "path", "key"):
            given = getattr(self, name)
            if name in unreadable:
                found[name] = UNKNOWN
            elif given is None:
                found[name] = ANY
            else:
                found[name] = frozenset(split_path(v) if name == "path" else v for v in given)
        return Scope(**found)


class GivenErasure(_Reach):
    """An erasure that stands when the call comes."""

    state: State = State.SETTLING
    readmitted: bool = False
    touched: bool = False
    """Whether the write's content or lineage names it, though its scope does not."""


class GivenCall(_Reach):
    """The call that is decided."""

    operation: Operation = Operation.RECALL
    route: str = "route"
    principal: str = "anonymous"
    unreadable: Many[Dimension] = Field(default_factory=list)
    write: Many[Vector] = Field(default_factory=list)
    failure: Literal["ledger", "internal"] | None = None


class Expected(_Part):
    """What the decision must be; what is not written may be anything."""

    effect: Effect
    rule: str
    reason: Reason | None = None
    problem: str | None = None
    mode: Mode | None = None
    marked: bool | None = None
    """Whether the answer is marked as touched by an unsettled erasure."""


class Case(_Part):
    """One case."""

    name: str = Field(min_length=1)
    erasures: list[GivenErasure] = Field(default_factory=list)
    call: GivenCall
    expect: Expected


class Cases(_Part):
    """A document of cases for one policy: a name that ships, or a path beside the document."""

    apiVersion: Literal["quietus/v1"]
    kind: Literal["PolicyCases"]
    policy: str
    cases: list[Case] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case went; `differences` is empty when it holds."""

    file: str
    line: int
    name: str
    policy: str
    differences: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the decision was the expected one."""
        return not self.differences


def shipped_cases() -> list[Path]:
    """The case documents that ship."""
    return sorted((folder() / "cases").glob("*.yaml"))


def run(path: Path) -> list[Outcome]:
    """Runs the cases in a file against the policy it names. Raises DocumentError."""
    return run_document(read(path), path.parent)


def run_document(document: Document, beside: Path) -> list[Outcome]:
    """Runs the cases of a document; a policy given by path is looked for in `beside`."""
    cases = validate(document, Cases)
    policy = load_policy(cases.policy if cases.policy in SHIPPED else beside / cases.policy)
    found = []
    for number, case in enumerate(cases.cases):
        line = document.line(("cases", number))
        differences = tuple(compare(case.expect, decision_of(case, policy)))
        found.append(Outcome(document.file, line, case.name, policy.name, differences))
    return found


def decision_of(case: Case, policy: Policy) -> Decision:
    """What the core decides in that case."""
    gate, touched = Gate(), []
    for number, given in enumerate(case.erasures):
        for event in _events(f"er_{number}", given, gate):
            gate.apply(event)
        if given.touched:
            touched.append(gate.erasures[f"er_{number}"])
    return decide(question_of(case.call, tuple(touched)), gate, policy)


def question_of(given: GivenCall, touched: tuple[Any, ...] = ()) -> Question:
    """The question that a case's call asks the core."""
    unreadable = given.unreadable
    if given.route == UNMAPPED and not unreadable:
        unreadable = ["tenant"]
    scope = given.scope(unreadable)
    call = Call(operation=given.operation, route=given.route, scope=scope)
    return Question(
        call=call,
        scope=_digested(scope),
        principal=given.principal,
        vectors=frozenset(given.write),
        named=touched,
        failure=given.failure,
    )


def compare(expected: Expected, decision: Decision) -> Iterator[str]:
    """In words, every difference between what was expected and what was decided."""
    problem = PROBLEMS.get(decision.problem)
    got: dict[str, Any] = {
        "effect": decision.effect.value,
        "rule": decision.rule,
        "reason": problem.reason.value if problem and decision.refuses else "",
        "problem": decision.problem if decision.refuses else "",
        "mode": decision.mode.value,
        "marked": decision.overlaps,
    }
    for name, wanted in expected.model_dump(mode="json", exclude_none=True).items():
        if got[name] != wanted:
            yield f"{name}: expected {wanted!r}, decided {got[name]!r}"


def _events(name: str, given: GivenErasure, gate: Gate) -> Iterator[Event]:
    number = max((e.version for e in gate.erasures.values()), default=0)
    terms = {"settling_interval": 900.0, "effectuation_bound": 1800.0, "clean_rounds": 3}
    facts = {"store": "case", "predicate": scope_to_facts(_digested(given.scope())), "terms": terms}
    types = [(EventType.REQUESTED, facts), *((type_, {}) for type_ in PATHS_TO[given.state])]
    if given.readmitted:
        types.insert(len(types) - (given.state is State.RELAPSED), (EventType.READMITTED, {}))
    for type_, its in types:
        number += 1
        draft = Draft(type_, name, at=float(number), facts=its, gate=True)
        yield Event(number, draft.type, name, draft.at, draft.actor, draft.facts, draft.gate, hash="")


def _digested(scope: Scope) -> Scope:
    # A case has no keys: the bytes of an atom stand for its digest.
    def out(values: Any) -> Any:
        return frozenset(v.encode() for v in values) if isinstance(values, frozenset) else values

    paths = scope.path
    path: Any = (
        frozenset(tuple(str(s).encode() for s in p) for p in paths)
        if isinstance(paths, frozenset)
        else paths
    )
    return Scope(out(scope.tenant), out(scope.subject), out(scope.purpose), path, out(scope.key))
