"""The mutants of the core: each is one change, and a run that did not reach all of them says so."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from scripts.mutant_fresh import NO_END
from scripts.mutant_page import Row, page, summary, verdict
from scripts.mutants import mutants, mutated

TEXT = '''
"""A module."""
LIMIT = 3

def few(numbers: list[int], most: int = 2) -> bool:
    """Whether they are few."""
    if not numbers:
        raise ValueError("none are given")
    return len([n for n in numbers if n > 0]) <= most and max(numbers) < LIMIT
'''


def test_each_mutant_is_another_module_and_the_same_each_time() -> None:
    found = list(mutants(TEXT))
    made = [ast.unparse(mutated(TEXT, mutant.number)) for mutant in found]
    assert len({ast.unparse(ast.parse(TEXT)), *made}) == len(found) + 1
    assert len({mutant.name for mutant in found}) == len(found)
    for text in made:
        compile(text, "mutant", "exec")
    outside = [(mutant.name, mutant.before, mutant.after) for mutant in found if not mutant.inside]
    assert outside == [("module/constant/1", "3", "4"), ("few/constant/1", "2", "3")]


def test_docstrings_annotations_and_wordings_of_errors_have_no_mutants() -> None:
    said = {mutant.before for mutant in mutants(TEXT)}
    assert {"'A module.'", "'Whether they are few.'", "'none are given'"}.isdisjoint(said)


def row(total: int, killed: int, survived: int, *, stale: bool = False) -> Row:
    one = {"line": 1, "before": "1", "after": "2"}
    found: list[dict[str, Any]] = [
        {"name": f"f/constant/{number}", "killed": number < killed, **one}
        for number in range(killed + survived)
    ]
    return Row("gate", total, found, stale)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (row(10, 9, 1), 0),
        (row(10, 8, 2), 1),
        (row(10, 9, 0), 2),
        (row(10, 0, 0), 2),
        (row(10, 0, 0, stale=True), 2),
    ],
)
def test_only_a_run_of_all_ends_well(known: Row, expected: int) -> None:
    assert verdict([known]) == expected


def test_what_was_not_run_is_said_and_how_a_sample_was_drawn() -> None:
    assert summary([row(10, 9, 1)], 3) == ["**9 of 10 killed: 90.0 %.**"]
    told = " ".join(summary([row(10, 4, 1), row(7, 0, 0, stale=True)], 3))
    assert "4 of 5 killed" in told
    assert "12 of 17 mutants were not run" in told
    assert "drawn at random (seed 3)" in told
    assert "Changed since they were run: `gate`" in told


def test_what_never_came_to_an_end_is_told_of() -> None:
    known = row(3, 3, 0)
    known.found[0]["by"], known.found[1]["by"] = NO_END, "tests/core/test_gate.py::test_it"
    assert "1 of them without end" in " ".join(summary([known], 3))


def test_each_survivor_stands_on_the_page_with_what_was_judged_of_it() -> None:
    known = row(4, 1, 3)
    judged = {"gate/f/constant/2": "It changes nothing.", "gate/f/constant/[12]": "A table of words."}
    lines = [line for line in page([known], judged, 3).splitlines() if "f/constant" in line]
    told = [line.split("| ")[-1].removesuffix(" |") for line in lines]
    assert told == ["A table of words.", "It changes nothing.", "**not judged**"]
