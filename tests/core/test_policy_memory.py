"""What a policy remembers of its answers is told apart by what its rules look at, and bounded."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.decision import Question, decide
from quietus.core.gate import Gate, Relation
from quietus.core.memory import KEPT
from quietus.core.operations import Call, Operation
from quietus.core.policy import Effect, Facts, Policy, Vector
from quietus.core.scope import Scope
from quietus.core.states import State

RECALL = Operation.RECALL


def policy(**when: Any) -> Policy:
    """Blocks what is asked about, and allows everything else."""
    rules = [{"name": "asked", "when": when, "effect": "block"}, {"name": "otherwise", "effect": "allow"}]
    return Policy.model_validate({"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": rules})


@pytest.mark.parametrize(
    ("when", "facts"),
    [
        ({"operation": "recall"}, {"operation": RECALL}),
        ({"erasure": "wider"}, {"erasure": Relation.WIDER}),
        ({"state": "leaking"}, {"state": State.LEAKING}),
        ({"subject": "readmitted"}, {"subject": "readmitted"}),
        ({"write": "race"}, {"write": frozenset({Vector.RACE})}),
        ({"route": "search"}, {"route": "search"}),
        ({"failure": "ledger"}, {"failure": "ledger"}),
        ({"tenant": "acme"}, {"tenant": frozenset({"acme"})}),
        ({"principal": "agent"}, {"principal": "agent"}),
        ({"purpose": "ads"}, {"purpose": frozenset({"ads"})}),
    ],
)
def test_one_answer_is_never_given_to_a_call_that_differs_in_what_a_rule_looks_at(
    when: dict[str, Any], facts: dict[str, Any]
) -> None:
    made = policy(**when)
    plain: dict[str, Any] = {"operation": Operation.READ}
    for _ in range(2):
        assert made.first(Facts(**{**plain, **facts})).name == "asked"
        assert made.first(Facts(**plain)).name == "otherwise"


@pytest.mark.parametrize(
    ("when", "asked", "other"),
    [
        ({"tenant": "acme"}, {"tenant": "acme"}, {"tenant": "other"}),
        ({"purpose": "ads"}, {"purpose": "ads"}, {"purpose": "billing"}),
        ({"principal": "agent"}, {"principal": "agent"}, {"principal": "nobody"}),
        ({"route": "search"}, {"route": "search"}, {"route": "list"}),
        ({"failure": "internal"}, {"failure": "internal"}, {"failure": None}),
        ({"operation": "read"}, {"operation": Operation.READ}, {"operation": RECALL}),
    ],
)
def test_one_decision_is_never_given_to_a_call_that_differs_in_what_a_rule_looks_at(
    when: dict[str, Any], asked: dict[str, Any], other: dict[str, Any]
) -> None:
    made, gate = policy(**when), Gate()

    def effect(operation: Operation = RECALL, route: str = "r", **named: Any) -> Effect:
        values = {name: frozenset({named.pop(name)}) for name in ("tenant", "purpose") if name in named}
        call = Call(operation, route=route, scope=Scope(**values))
        return decide(Question(call, Scope(), **named), gate, made).effect

    for _ in range(2):
        assert effect(**asked) is Effect.BLOCK
        assert effect(**other) is Effect.ALLOW


def test_callers_that_no_rule_looks_at_share_one_answer() -> None:
    made = policy(route="search")
    for number in range(9):
        made.first(Facts(RECALL, principal=f"agent-{number}", tenant=frozenset({f"t{number}"})))
    assert len(made.memory.firsts) == 1


def test_memory_is_emptied_when_it_is_full_and_not_before() -> None:
    made = policy(principal="agent-0")
    for number in range(KEPT):
        made.first(Facts(RECALL, principal=f"agent-{number}"))
    assert len(made.memory.firsts) == KEPT
    assert made.first(Facts(RECALL, principal="one more")).name == "otherwise"
    assert len(made.memory.firsts) == 1


def test_changed_copy_of_a_policy_remembers_nothing_of_the_other() -> None:
    one, other = policy(route="search"), policy(route="list")
    facts = Facts(RECALL, route="search")
    assert one.first(facts).name == "asked"
    copy = one.model_copy(update={"rules": other.rules})
    assert copy.first(facts).name == "otherwise"
    assert one.first(facts).name == "asked"
    assert copy.memory is not one.memory


def test_fingerprint_is_of_what_a_policy_says() -> None:
    assert policy(route="a").fingerprint == policy(route="a").fingerprint
    assert policy(route="a").fingerprint != policy(route="b").fingerprint
    assert len(policy(route="a").fingerprint) == 64
