"""What may happen with a call, and which rows of an answer may leave: always with rule and reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from quietus.core.erasure import Erasure
from quietus.core.gate import Gate, Relation
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import Effect, Facts, Mode, Policy, Rule, Vector, strictness
from quietus.core.replacing import replacer
from quietus.core.scope import Paths, Scope, Wild, is_prefix
from quietus.core.states import State


@dataclass(frozen=True, slots=True)
class Question:
    """A call as the core sees it: what it said, and the same scope with every atom digested."""

    call: Call
    scope: Scope
    principal: str = "anonymous"
    vectors: frozenset[Vector] = frozenset()
    named: tuple[Erasure, ...] = ()
    """Erasures that a write's content or lineage touches, beside those of its scope."""
    owned: tuple[Erasure, ...] = ()
    """Erasures whose own records the call names by key without naming a subject."""
    rows: tuple[int, ...] = ()
    """Of a batch: the rows that may not be written, from 0 on, as far as that is known."""
    suspected: bool = False
    """A write that may be made of what was erased, in other words: it is marked, and goes on."""
    failure: str | None = None


_HOLDING: Final = {Effect.WAIT: Effect.BLOCK, Effect.DELAY: Effect.REJECT}
"""Effects that refuse a call only as long as something unsettled touches it, and what they end in."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer: the effect, the rule that gave it, and the problem that a refusal is worded as."""

    effect: Effect
    rule: str
    mode: Mode = Mode.ENFORCE
    problem: str = ""
    erasures: tuple[Erasure, ...] = ()
    """The unsettled erasures that the call touches (one of each class of them), strictest first."""
    relation: Relation = Relation.NONE
    vectors: frozenset[Vector] = frozenset()
    overridden: bool = False
    """People have overridden the gate: what it would have withheld passes, marked and counted."""

    @property
    def overlaps(self) -> bool:
        """Whether an unsettled erasure touches the call: its answer must be marked."""
        return bool(self.erasures)

    @property
    def refuses(self) -> bool:
        """Whether the call, or its answer, must not pass now."""
        return self.effect in (Effect.BLOCK, Effect.REJECT, Effect.REFUSE) or self.holds

    @property
    def holds(self) -> bool:
        """Whether the call may pass later: it is let wait. A forget that waits was sent; its answer waits."""
        return self.effect in _HOLDING and bool(self.problem)

    @property
    def ended(self) -> Decision:
        """The decision on a call that waits no longer: a refusal where it would have been let wait."""
        return replace(self, effect=_HOLDING[self.effect]) if self.holds else self


_case = replacer(Facts)


def decide(question: Question, gate: Gate, policy: Policy) -> Decision:
    """The decision for a call as the gate stands now. Of several erasures the strictest answer wins."""
    operation = question.call.operation
    touching = [] if operation is Operation.IGNORE else gate.restricting(question.scope)
    if touching or operation is Operation.WRITE:
        return _decide(question, gate, policy, touching)
    call, memory = question.call, policy.memory
    key = (
        operation, call.route, question.failure, question.vectors,
        *memory.told_apart(_names(call.scope.tenant), question.principal, _names(call.scope.purpose)),
    )  # fmt: skip
    found: Decision | None = memory.decisions.get(key)
    if found is None:
        found = _decide(question, gate, policy, touching)
        memory.keep(memory.decisions, key, found)
    return found


def _decide(
    question: Question, gate: Gate, policy: Policy, touching: list[tuple[Erasure, Relation]]
) -> Decision:
    operation = question.call.operation
    base = _facts(question)
    strictest: tuple[int, Rule, Erasure | None, Facts] | None = None
    for facts, erasure in _cases(question, base, gate, touching):
        rule = policy.first(facts)
        rank = strictness(operation, rule.effect)
        if _mode(rule, policy) is Mode.OBSERVE:
            rank -= 100  # what is only observed never outweighs what is enforced
        # A rule that asks for no erasure refuses a recall for the sake of the one that it touches, if any.
        mapped = question.call.recalls and question.call.route != UNMAPPED
        named = strictest is not None and strictest[2] is None and mapped
        if strictest is None or rank > strictest[0] or (named and rank == strictest[0]):
            strictest = (rank, rule, erasure, facts)
    assert strictest is not None
    _, rule, erasure, facts = strictest
    waited_for = bool(touching or question.named or question.owned or facts.write or facts.failure)
    refusing = waited_for or rule.effect not in _HOLDING
    ordered = sorted(touching, key=lambda pair: (pair[0] is not erasure, pair[1] is Relation.WIDER))
    return Decision(
        effect=rule.effect,
        rule=rule.name,
        mode=_mode(rule, policy),
        problem=_problem(question, facts, rule.effect, erasure) if refusing else "",
        erasures=tuple(pair[0] for pair in ordered),
        relation=facts.erasure,
        vectors=facts.write,
    )


def cases(question: Question, gate: Gate) -> Iterable[Facts]:
    """What a policy is asked about a call: alone first, then beside each erasure that touches it."""
    operation = question.call.operation
    touching = [] if operation is Operation.IGNORE else gate.restricting(question.scope)
    return (facts for facts, _ in _cases(question, _facts(question), gate, touching))


def stricter(a: Decision, b: Decision, operation: Operation) -> Decision:
    """The stricter of two decisions on one call; both sets of erasures are kept."""
    if a is b:
        return a
    first, second = (b, a) if _rank(b, operation) > _rank(a, operation) else (a, b)
    seen = {e.id for e in first.erasures}
    more = tuple(e for e in second.erasures if e.id not in seen)
    if not more:
        return first
    return replace(first, erasures=(*first.erasures, *more))


def overridden(decision: Decision, operation: Operation) -> Decision:
    """What a break-glass override makes of a decision: a recall that an erasure restricts is only marked."""
    recalls = operation in (Operation.READ, Operation.RECALL)
    restricted = strictness(operation, decision.effect) > strictness(operation, Effect.ANNOTATE)
    if not recalls or decision.mode is Mode.OBSERVE or not restricted or not decision.erasures:
        return decision
    return replace(decision, effect=Effect.ANNOTATE, rule="override", problem="", overridden=True)


def _rank(decision: Decision, operation: Operation) -> int:
    return strictness(operation, decision.effect) - (100 if decision.mode is Mode.OBSERVE else 0)


def _mode(rule: Rule, policy: Policy) -> Mode:
    return Mode.OBSERVE if policy.mode is Mode.OBSERVE else (rule.mode or Mode.ENFORCE)


def _facts(question: Question) -> Facts:
    call = question.call
    return Facts(
        operation=call.operation,
        route=call.route,
        tenant=_names(call.scope.tenant),
        purpose=_names(call.scope.purpose),
        principal=question.principal,
        write=question.vectors,
        failure=question.failure,
    )


def _names(values: object) -> frozenset[str]:
    if isinstance(values, frozenset):
        return frozenset(v for v in values if isinstance(v, str))
    return frozenset()


def _cases(
    question: Question, base: Facts, gate: Gate, touching: list[tuple[Erasure, Relation]]
) -> Iterable[tuple[Facts, Erasure | None]]:
    yield base, None
    operation = question.call.operation
    if operation is Operation.IGNORE:
        return
    if operation is Operation.WRITE:
        yield from _of_writers(question, base, gate)
    for erasure, how in touching:
        subject = "readmitted" if erasure.readmitted else None
        write = base.write | _quarantine(erasure, operation, question.scope.path)
        if erasure.readmitted and erasure.settled_once and how is Relation.INSIDE:
            how = Relation.WIDER  # a subject let in again is screened; their scope is not shut
        yield _case(base, erasure=how, state=erasure.state, subject=subject, write=write), erasure
    if operation is Operation.WRITE:
        for erasure in question.named:
            yield _case(base, erasure=Relation.WIDER, state=erasure.state), erasure


def _of_writers(question: Question, base: Facts, gate: Gate) -> Iterable[tuple[Facts, Erasure]]:
    # Who lost single keys was not erased: a write that names no key is none of these.
    keyed = not isinstance(question.scope.key, Wild)
    named = [e for e in gate.of_subject(question.scope) if keyed or isinstance(e.predicate.key, Wild)]
    for erasure in (*named, *question.owned):
        status = "readmitted" if erasure.readmitted else "tombstoned"
        yield _case(base, erasure=Relation.INSIDE, state=erasure.state, subject=status), erasure


def _quarantine(erasure: Erasure, operation: Operation, paths: Paths) -> frozenset[Vector]:
    """A write at or below the path of an unsettled erasure of that path is a write into a quarantine.

    One above it lands elsewhere: it touches the erased only by content, which is looked at apart.
    """
    scope = erasure.predicate
    if operation is not Operation.WRITE or isinstance(scope.path, Wild) or isinstance(paths, Wild):
        return frozenset()
    whole = isinstance(scope.subject, Wild) and isinstance(scope.key, Wild)
    below = any(is_prefix(erased, path) for erased in scope.path for path in paths)
    return frozenset({Vector.QUARANTINED_PATH}) if whole and below else frozenset()


def _problem(question: Question, facts: Facts, effect: Effect, erasure: Erasure | None) -> str:
    if facts.failure == "ledger":
        return "ledger-unavailable"
    if facts.failure == "internal":
        return "internal"
    if effect in (Effect.REJECT, Effect.DELAY):
        laundering = facts.write - {Vector.RACE}
        if facts.subject == "tombstoned" or not laundering:
            return "record-quarantined" if erasure is not None and erasure.by_hand else "erased-subject"
        return "scope-laundering"
    if effect is Effect.REFUSE:
        return "legal-hold" if facts.erasure is not Relation.NONE else "unmapped-route"
    if effect is Effect.BLOCK or (effect is Effect.WAIT and question.call.operation is not Operation.FORGET):
        if question.call.route == UNMAPPED and facts.erasure is Relation.NONE:
            return "unmapped-route"
        if erasure is not None and erasure.by_hand:
            return "record-quarantined"
        if facts.state is State.VIOLATION:
            return "consistency-violation"
        return "erasure-not-settled" if facts.state else "unmapped-route"
    return ""


@dataclass(frozen=True, slots=True)
class Screening:
    """Which rows of an answer must not leave, and whether the answer may leave at all."""

    dropped: frozenset[int] = frozenset()
    outside: bool = False
    """Something erased stands outside the rows: the whole answer is refused."""
    erased: tuple[Erasure, ...] = ()
    """Whose erased records or content were met: each is evidence of a leak."""
    causes: frozenset[str] = field(default_factory=frozenset)
