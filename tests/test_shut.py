"""docs/shut.md: whatever an erasure says of itself is found there, once, with commands that exist."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quietus.acts import Acts
from quietus.core.erasure import Erasure
from quietus.core.states import State
from quietus.core.verdict import Outcome
from quietus.legacy.faults import Faults
from quietus.whys import why
from scripts.tables import commands
from tests.admin.desk import office
from tests.gateway.scenes import ALICE, BOB, answering, lost, path, settle, short

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "shut.md").read_text()
ROW = re.compile(r"^\| ([a-z]+) \| `([^`]+)` \| ([^|]+) \| (.+) \|$", re.MULTILINE)
ROWS = [match.groups() for match in ROW.finditer(PAGE)]


def found(state: str, sentence: str) -> tuple[str, str]:
    """What a reader finds for an erasure: what is wrong, and what to do."""
    rows = [(words, wrong, todo) for name, words, wrong, todo in ROWS
            if name in (state, "any") and words in sentence]  # fmt: skip
    # Of two that fit the one that says more is meant: a violation leaks, too.
    held = [row for row in rows if row[0].startswith("A legal hold")]
    best = held or sorted(rows, key=lambda row: -sentence.index(row[0]))
    assert best, f"{state}: {sentence}"
    return best[0][1], best[0][2]


@pytest.mark.parametrize("state", State)
async def test_every_state_is_explained(state: State) -> None:
    async with office() as (desk, _, world):
        erasure = await desk.erasure(state)
        wrong, todo = found(state.value, why(erasure, world.parts.verdict(erasure)))
        assert wrong and todo


@pytest.mark.parametrize(
    ("state", "change", "says"),
    [
        (State.REQUESTED, {"unclear": True}, "its answer was lost"),
        (State.SETTLING, {"overdue": True}, "before the interval"),
        (State.LEAKING, {"held": True}, "a hold forbids"),
    ],
)
async def test_what_else_it_may_say_is_explained(state: State, change: dict[str, Any], says: str) -> None:
    async with office() as (desk, _, world):
        erasure: Erasure = replace(await desk.erasure(state), **change)
        assert says in found(state.value, why(erasure, world.parts.verdict(erasure)))[0]


def test_its_commands_and_outcomes_exist() -> None:
    known = {name for name, _ in commands()}
    named = set(re.findall(r"`?(quietus [a-z]+(?: [a-z]+)?)", PAGE))
    for words in named:
        assert words in known or words.rsplit(" ", 1)[0] in known, words
    assert {outcome.value for outcome in Outcome} <= set(re.findall(r"^\| ([A-Z_]+) \|", PAGE, re.MULTILINE))


@pytest.mark.requirement("R123", "R29", "R30")
async def test_five_open_erasures_and_what_is_done_about_each() -> None:
    async with short(Faults(lazy_index=100.0)) as world:
        for name in ("fay", "ann", "ben", "cat", "dan"):
            await world.write(f"{name}-1", ALICE, name, tenant=f"of-{name}")
            await world.write(f"{name}-2", BOB, "somebody", tenant=f"of-{name}")
        await world.forget(subject="fay", tenant="of-fay")
        await settle(world)
        await world.forget(subject="ann", tenant="of-ann")
        await world.until(lambda: world.erasure().state is State.VIOLATION, 90.0)
        restored = {"tenant": "of-fay", "key": "fay-1", "value": ALICE, "retention": {"subject": "fay"}}
        assert world.direct("POST", "/v1/memories", restored).status == 201
        await world.recall("spare key", tenant="of-fay")
        await world.until(lambda: world.erasure(0).state is State.RELAPSED, 5.0)
        await world.forget(subject="ben", tenant="of-ben")
        await world.until(lambda: world.erasure().state is State.LEAKING, 25.0)
        await world.forget(subject="cat", tenant="of-cat")
        world.upstream.hooks.append(answering(path("/v1/forget"), lost()))
        assert (await world.forget(subject="dan", tenant="of-dan")).status == 504

        open_now = list(world.parts.erasures.all())
        expected = {
            State.RELAPSED: ("backup", "scan --config FILE --reapply"),
            State.VIOLATION: ("after the bound", "quietus erasures retry"),
            State.LEAKING: ("before its own bound", "wait for its compaction"),
            State.SETTLING: ("nothing", "wait"),
            State.REQUESTED: ("its answer was lost", "asked again with the same token"),
        }
        assert [erasure.state for erasure in open_now] == list(expected)
        for erasure in open_now:
            wrong, todo = found(erasure.state.value, why(erasure, world.parts.verdict(erasure)))
            assert expected[erasure.state][0] in wrong and expected[erasure.state][1] in todo
            assert not erasure.may_assert_non_recallability
            unsaid = erasure.state in (State.REQUESTED, State.RELAPSED)
            assert erasure.may_assert_erasure is not unsaid

        # And it is done as the page says: the store purges, the violation is waited for anew, the rest waits.
        world.upstream.hooks.clear()
        acts = Acts(world.parts.erasures, world.parts.timetable.wake)
        await acts.retry(open_now[1].id, "eve", "the index was compacted")
        await world.until(lambda: all(e.state is State.SETTLED for e in world.parts.erasures.all()), 900.0)
