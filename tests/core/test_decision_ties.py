"""Decisions where two things speak at once: several erasures, named records, keys, and vectors of a write."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.decision import Decision, Question, decide
from quietus.core.gate import Gate, Relation
from quietus.core.operations import UNMAPPED, Call, Operation
from quietus.core.policy import Effect, Policy, Vector
from quietus.core.scope import Scope
from quietus.core.states import State
from tests.core.making import World, scope

ALICE = scope(tenant="acme", subject="alice")
BOB = scope(tenant="acme", subject="bob")
RECALL, WRITE = Operation.RECALL, Operation.WRITE


def policy(*rules: dict[str, Any]) -> Policy:
    named = [{"name": f"rule-{number}", **rule} for number, rule in enumerate(rules)]
    return Policy.model_validate({"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": named})


def ask(gate: Gate, made: Policy, operation: Operation, reach: Scope = ALICE, **more: Any) -> Decision:
    return decide(Question(Call(operation, more.pop("route", "r")), reach, **more), gate, made)


def test_a_recall_that_nobody_described_is_told_the_rule_that_asks_for_no_erasure() -> None:
    made = policy(
        {"when": {"operation": "recall", "erasure": "none"}, "effect": "block"},
        {"when": {"operation": "recall"}, "effect": "block"},
        {"effect": "allow"},
    )
    world = World()
    world.erase(ALICE)
    assert ask(world.gate, made, RECALL, route="search").rule == "rule-1"
    assert ask(world.gate, made, RECALL, route=UNMAPPED).rule == "rule-0"


@pytest.mark.parametrize("how", ["named", "owned"])
def test_a_write_of_the_erased_waits_for_their_erasure_also_outside_its_scope(how: str) -> None:
    made = policy({"when": {"operation": "write"}, "effect": "delay"}, {"effect": "allow"})
    erased = World().erase(ALICE)
    found = ask(Gate(), made, WRITE, BOB, **{how: (erased,)})
    assert (found.effect, found.problem, found.holds) == (Effect.DELAY, "erased-subject", True)
    assert not ask(Gate(), made, WRITE, BOB).holds


@pytest.mark.parametrize("names", [("inside", "narrow"), ("narrow", "inside")])
def test_where_no_erasure_gave_the_answer_those_around_the_call_stand_first(names: tuple[str, ...]) -> None:
    reaches = {"inside": ALICE, "narrow": scope(tenant="acme", subject="alice", path="x")}
    made = policy(
        {"when": {"operation": "recall", "erasure": "none"}, "effect": "block"}, {"effect": "annotate"}
    )
    world = World()
    for name in names:
        world.erase(reaches[name], name=name)
    found = ask(world.gate, made, RECALL)
    assert (found.rule, [one.id for one in found.erasures]) == ("rule-0", ["inside", "narrow"])
    assert found.relation is Relation.NONE


def test_a_call_that_leaves_the_tenant_open_is_of_no_tenant_that_a_policy_names() -> None:
    made = policy({"when": {"tenant": "acme"}, "effect": "block"}, {"effect": "allow"})
    for tenant, effect in ((frozenset({"acme"}), Effect.BLOCK), (Scope().tenant, Effect.ALLOW)):
        question = Question(Call(RECALL, "r", Scope(tenant=tenant)), ALICE)
        assert decide(question, Gate(), made).effect is effect


# Writes of those who were erased, in part or as a whole

REFUSED = policy(
    {"when": {"operation": "write", "subject": "tombstoned"}, "effect": "reject"},
    {"when": {"operation": "write", "subject": "readmitted"}, "effect": "annotate"},
    {"effect": "allow"},
)


@pytest.mark.parametrize(
    ("key", "effect"), [("k", Effect.REJECT), ("other", Effect.ALLOW), (None, Effect.ALLOW)]
)
def test_whose_single_keys_were_erased_writes_others_and_none(key: str | None, effect: Effect) -> None:
    world = World()
    world.erase(scope(tenant="acme", subject="alice", key="k"), State.SETTLED)
    reach = ALICE if key is None else scope(tenant="acme", subject="alice", key=key)
    assert ask(world.gate, REFUSED, WRITE, reach).effect is effect


def test_a_write_of_who_was_let_in_again_is_that_of_one_let_in_again() -> None:
    for readmitted, effect in ((True, Effect.ANNOTATE), (False, Effect.REJECT)):
        world = World()
        world.erase(ALICE, State.SETTLED, readmitted=readmitted)
        assert ask(world.gate, REFUSED, WRITE).effect is effect


def test_a_path_that_was_erased_of_one_subject_alone_is_no_quarantine_to_them_either() -> None:
    made = policy({"when": {"write": "quarantined_path", "operation": "write"}, "effect": "reject"},
                  {"effect": "allow"})  # fmt: skip
    reach = scope(subject="alice", path="a/b/c")
    for predicate, refused in ((scope(path="a/b"), True), (scope(path="a/b", subject="alice"), False)):
        world = World()
        world.erase(predicate)
        found = ask(world.gate, made, WRITE, reach)
        assert (found.effect is Effect.REJECT, Vector.QUARANTINED_PATH in found.vectors) == (refused, refused)


def test_a_subject_that_was_erased_is_told_so_before_what_their_write_does() -> None:
    world = World()
    world.erase(ALICE, State.SETTLED)
    merging = frozenset({Vector.DEDUP_MERGE})
    assert ask(world.gate, REFUSED, WRITE, vectors=merging).problem == "erased-subject"
    other = policy({"when": {"operation": "write", "write": "dedup_merge"}, "effect": "reject"},
                   {"effect": "allow"})  # fmt: skip
    assert ask(world.gate, other, WRITE, BOB, vectors=merging).problem == "scope-laundering"
