"""What late, early and repeated evidence does to an erasure, a scope and the name of a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quietus.core.decision import Question, cases
from quietus.core.erasure import advance
from quietus.core.events import EventType
from quietus.core.gate import Gate, Relation
from quietus.core.operations import Call, Operation
from quietus.core.probing import LINEAGE, Failure, failure_of
from quietus.core.scope import DIMENSIONS, UNKNOWN, Scope, Wild, holds, split_path
from tests.core.making import Story, World, requested, scope, surface

E = EventType


def test_relapse_after_its_tombstone_was_collected_is_screened_again() -> None:
    story = Story()
    for kind in (E.ACCEPTED, E.CLEAN, E.COLLECTED):
        story.then(kind)
    assert not story.erasure.tombstoned
    story.then(E.LEAKED)
    assert story.erasure.tombstoned


@pytest.mark.parametrize(
    ("kinds", "compacted"),
    [
        (((E.SIGNALLED, {}), (E.ACCEPTED, {})), False),
        (((E.ACCEPTED, {}), (E.SIGNALLED, {})), True),
        (((E.ACCEPTED, {}), (E.SIGNALLED, {}), (E.ACCEPTED, {})), True),
        (((E.ACCEPTED, {}), (E.ACCEPTED, {})), False),
        (((E.ACCEPTED, {"epoch": 5}), (E.SIGNALLED, {}), (E.ACCEPTED, {"epoch": 5})), True),
        (((E.ACCEPTED, {"epoch": 5}), (E.SIGNALLED, {}), (E.ACCEPTED, {"epoch": 6})), False),
    ],
)
def test_signal_from_before_an_acknowledgement_says_nothing_of_it(
    kinds: tuple[tuple[EventType, dict[str, Any]], ...], compacted: bool
) -> None:
    story = Story()
    story.then(E.FORWARDED)
    for kind, facts in kinds:
        story.then(kind, **facts)
    assert story.erasure.compacted is compacted


def test_writes_that_were_open_at_the_intent_are_waited_for() -> None:
    born = advance(None, requested(1, scope(subject="alice"), undrained={"w1": 9.0}))
    assert born.undrained == {"w1": 9.0}
    assert advance(None, requested(1, scope(subject="alice"))).undrained == {}


@pytest.mark.parametrize(
    ("surfaces", "failure"),
    [
        ([surface(outcome="LEAKING"), surface(LINEAGE, "derived", "LEAKING")], Failure.MISSING_DELETE),
        ([surface(), surface(LINEAGE, "derived", "LEAKING")], Failure.PROPAGATION),
        ([surface(), surface("search", "index", "LEAKING")], Failure.ORDERING),
        ([surface(outcome="INCONCLUSIVE"), surface("search", "index", "LEAKING")], Failure.UNKNOWN),
        ([surface("list", "index"), surface("search", "index", "LEAKING")], Failure.UNKNOWN),
        ([surface(), surface("past", "history", "LEAKING")], Failure.UNKNOWN),
        ([surface()], Failure.UNKNOWN),
        ([], Failure.UNKNOWN),
    ],
)
def test_failure_is_the_gravest_that_a_round_shows(surfaces: list[dict[str, Any]], failure: Failure) -> None:
    assert failure_of(surfaces) is failure


@pytest.mark.parametrize("name", DIMENSIONS)
def test_row_is_held_by_what_leaves_open_what_the_row_leaves_unsaid(name: str) -> None:
    full = scope(tenant="t", subject="s", purpose="p", path="a/b", key="k")
    unsaid = replace(full, **{name: UNKNOWN})
    assert holds(replace(full, **{name: Wild.ANY}), unsaid)
    assert holds(Scope(), unsaid)
    assert not holds(full, unsaid)
    assert holds(full, full)
    assert unsaid.unknown == (name,)
    assert full.unknown == ()


def test_paths_are_split_at_slashes_and_wild_values_name_themselves() -> None:
    assert split_path("a/b/") == split_path("a/b") == ("a", "b")
    assert split_path("a//b") == ("a", "", "b")
    assert [repr(wild) for wild in Wild] == [wild.name for wild in Wild]


def test_policy_is_asked_of_a_call_alone_and_beside_each_erasure_that_touches_it() -> None:
    world = World()
    world.erase(scope(subject="alice"))
    touched = [facts.erasure for facts in cases(Question(Call(Operation.RECALL), Scope()), world.gate)]
    assert touched == [Relation.NONE, Relation.WIDER]
    ignored = cases(Question(Call(Operation.IGNORE), Scope()), world.gate)
    assert [facts.erasure for facts in ignored] == [Relation.NONE]
    assert len(list(cases(Question(Call(Operation.RECALL), Scope()), Gate()))) == 1
