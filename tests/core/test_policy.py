"""Policies: what is refused at load, and which rule is the first to match."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from quietus.core.gate import Relation
from quietus.core.operations import Operation
from quietus.core.policy import (
    EFFECTS,
    Effect,
    Facts,
    Policy,
    Rule,
    Vector,
    Watch,
    When,
    matches,
    seconds,
    strictness,
)
from quietus.core.states import UNSETTLED, State
from tests.core.making import POLICIES

OTHERWISE = {"name": "otherwise", "effect": "allow"}


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    return Policy.model_validate(
        {"apiVersion": "quietus/v1", "kind": "Policy", "name": "p", "rules": list(rules), **more}
    )


def test_first_rule_that_matches_wins() -> None:
    made = policy(
        {"name": "a", "when": {"operation": "read"}, "effect": "block"},
        {"name": "b", "when": {"operation": ["read", "recall"]}, "effect": "screen"},
        OTHERWISE,
    )
    first = {operation: made.first(Facts(operation)).name for operation in Operation}
    assert first[Operation.READ] == "a"
    assert first[Operation.RECALL] == "b"
    assert first[Operation.WRITE] == first[Operation.FORGET] == "otherwise"


@pytest.mark.parametrize(
    ("when", "facts", "expected"),
    [
        ({}, {}, True),
        ({"operation": "recall"}, {}, True),
        ({"operation": "read"}, {}, False),
        ({"erasure": "inside"}, {"erasure": Relation.INSIDE}, True),
        ({"erasure": ["wider", "inside"]}, {"erasure": Relation.NONE}, False),
        ({"state": "leaking"}, {"state": State.LEAKING}, True),
        ({"state": "leaking"}, {"state": State.SETTLING}, False),
        ({"state": "unsettled"}, {"state": None}, False),
        ({"subject": "tombstoned"}, {"subject": "tombstoned"}, True),
        ({"subject": "readmitted"}, {"subject": "tombstoned"}, False),
        ({"write": "race"}, {"write": frozenset({Vector.RACE, Vector.DEDUP_MERGE})}, True),
        ({"write": "race"}, {}, False),
        ({"route": ["search", "unmapped"]}, {"route": "unmapped"}, True),
        ({"route": "search"}, {"route": "list"}, False),
        ({"tenant": "acme"}, {"tenant": frozenset({"acme", "other"})}, True),
        ({"tenant": "acme"}, {}, False),
        ({"principal": "agent"}, {"principal": "agent"}, True),
        ({"principal": "agent"}, {"principal": "nobody"}, False),
        ({"purpose": "ads"}, {"purpose": frozenset({"ads"})}, True),
        ({"purpose": "ads"}, {"purpose": frozenset({"sales"})}, False),
        ({"failure": "ledger"}, {"failure": "ledger"}, True),
        ({"failure": "ledger"}, {}, False),
        ({"route": "search", "principal": "agent"}, {"route": "search"}, False),
    ],
)
def test_conditions(when: dict[str, Any], facts: dict[str, Any], expected: bool) -> None:
    assert matches(When.model_validate(when), Facts(Operation.RECALL, **facts)) is expected


@pytest.mark.parametrize("state", State)
def test_unsettled_means_the_states_that_restrict(state: State) -> None:
    when = When.model_validate({"state": "unsettled"})
    assert matches(when, Facts(Operation.RECALL, state=state)) == (state in UNSETTLED)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ([{"name": "a", "when": {"operation": "read"}, "effect": "block"}], "must match everything"),
        ([{"name": "a", "effect": "allow"}, OTHERWISE], "can ever match"),
        (
            [{"name": "a", "when": {"route": "r"}, "effect": "block"},
             {"name": "a", "when": {"route": "q"}, "effect": "block"}, OTHERWISE],
            "two rules are named 'a'",
        ),
        (
            [{"name": "a", "when": {"route": "r"}, "effect": "block"},
             {"name": "b", "when": {"route": "r"}, "effect": "allow"}, OTHERWISE],
            "'b' can never match",
        ),
        (
            [{"name": "a", "when": {"operation": "write"}, "effect": "screen"}, OTHERWISE],
            "effect screen does not fit write; known: allow, annotate, delay, reject",
        ),
        ([{"name": "A rule", "effect": "allow"}], "pattern"),
        ([{"name": "a", "when": {"erasure": "none", "state": "unsettled"}, "effect": "allow"}, OTHERWISE],
         "can never match"),
        ([{"name": "a", "when": {"operation": "read", "write": "race"}, "effect": "block"}, OTHERWISE],
         "can never match"),
        ([{"name": "a", "when": {"operation": []}, "effect": "allow"}, OTHERWISE], "at least 1 item"),
        ([{"name": "a", "when": {"colour": "red"}, "effect": "allow"}, OTHERWISE], "Extra inputs"),
        ([{"name": "a", "effect": "maybe"}], "Input should be"),
        ([], "at least 1 item"),
    ],
)  # fmt: skip
def test_what_is_refused_at_load(rules: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        policy(*rules)


def test_unknown_keys_of_a_policy_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        policy(OTHERWISE, colour="red")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("900s", 900), ("1.5h", 5400), ("90d", 90 * 86400), ("250ms", 0.25), ("15m", 900), (30, 30), ("30", 30)],
)
def test_durations(text: str | int, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1w", "1 s s", True])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        seconds(text)


def test_watch_is_given_in_durations() -> None:
    watch = Watch.model_validate({"for": "2d", "patrol_every": "30m"})
    assert (watch.seconds, watch.patrol_seconds) == (172_800, 1800)


def test_effects_are_ordered_from_permissive_to_strict() -> None:
    assert strictness(Operation.RECALL, Effect.BLOCK) > strictness(Operation.RECALL, Effect.SCREEN)
    assert strictness(Operation.RECALL, Effect.SCREEN) > strictness(Operation.RECALL, Effect.ALLOW)
    assert strictness(Operation.WRITE, Effect.REJECT) == len(EFFECTS[Operation.WRITE]) - 1
    assert strictness(Operation.FORGET, Effect.REFUSE) == len(EFFECTS[Operation.FORGET]) - 1
    for operation in Operation:
        unknown = set(Effect) - set(EFFECTS[operation])
        assert {strictness(operation, effect) for effect in unknown} <= {0}


@pytest.mark.parametrize("name", POLICIES)
def test_shipped_policies_end_in_a_default_and_use_effects_that_fit(name: str) -> None:
    shipped = POLICIES[name]
    assert shipped.rules[-1].when == When()
    for rule in shipped.rules:
        assert Rule.model_validate(rule.model_dump()) == rule
