"""The erasure machine: every cell is written out here once more, by hand."""

from __future__ import annotations

import pytest

from quietus.core.states import TABLE, TOMBSTONED, UNSETTLED, Happening, State, WrongState, diagram, step
from scripts.tables import shown

EXPECTED = """
            ACCEPTED   REFUSED    UNCLEAR    CLEAN      LEAKED     LEAKED_LATE  RETRIED    RELEASED
REQUESTED   SETTLING   REFUSED    REQUESTED  REQUESTED  REQUESTED  REQUESTED    REQUESTED  RELEASED
SETTLING    SETTLING   SETTLING   SETTLING   SETTLED    LEAKING    VIOLATION    SETTLING   RELEASED
LEAKING     LEAKING    LEAKING    LEAKING    SETTLED    LEAKING    VIOLATION    SETTLING   RELEASED
VIOLATION   VIOLATION  VIOLATION  VIOLATION  SETTLED    VIOLATION  VIOLATION    SETTLING   RELEASED
SETTLED     SETTLED    SETTLED    SETTLED    SETTLED    RELAPSED   RELAPSED     -          RELEASED
RELAPSED    RELAPSED   RELAPSED   RELAPSED   SETTLED    RELAPSED   VIOLATION    SETTLING   RELEASED
REFUSED     REFUSED    REFUSED    REFUSED    REFUSED    REFUSED    REFUSED      -          REFUSED
RELEASED    RELEASED   RELEASED   RELEASED   RELEASED   RELEASED   RELEASED     -          RELEASED
"""

HEAD, *ROWS = (line.split() for line in EXPECTED.strip().splitlines())
CELLS = [
    (state, happening, target)
    for state, *targets in ROWS
    for happening, target in zip(HEAD, targets, strict=True)
]


def test_written_out_table_is_total() -> None:
    assert {(State[state], Happening[happening]) for state, happening, _ in CELLS} == set(TABLE)
    assert len(CELLS) == len(TABLE) == len(State) * len(Happening) == 64


@pytest.mark.requirement("R194")
@pytest.mark.parametrize(("state", "happening", "target"), CELLS)
def test_cell(state: str, happening: str, target: str) -> None:
    if target == "-":
        with pytest.raises(WrongState, match="has no meaning while"):
            step(State[state], Happening[happening])
    else:
        assert step(State[state], Happening[happening]) is State[target]


def test_leaking_is_neither_refused_nor_settled() -> None:
    assert step(State.SETTLING, Happening.LEAKED) is State.LEAKING
    assert State.LEAKING in UNSETTLED
    assert State.LEAKING not in (State.REFUSED, State.SETTLED)


def test_only_clean_evidence_settles() -> None:
    settles = {h for (state, h), target in TABLE.items() if state is not target is State.SETTLED}
    assert settles == {Happening.CLEAN}


def test_only_an_operator_releases_and_nothing_leaves_a_final_state() -> None:
    releases = {h for (s, h), target in TABLE.items() if s is not target is State.RELEASED}
    assert releases == {Happening.RELEASED}
    for final in (State.REFUSED, State.RELEASED):
        assert {TABLE[final, happening] for happening in Happening} <= {final, None}


def test_late_evidence_is_never_an_error() -> None:
    impossible = {happening for (_, happening), target in TABLE.items() if target is None}
    assert impossible == {Happening.RETRIED}


def test_refusal_lifts_the_fence_only_before_anything_was_acknowledged() -> None:
    refused = {state for state in State if TABLE[state, Happening.REFUSED] is State.REFUSED}
    assert refused == {State.REQUESTED, State.REFUSED}


def test_unclear_outcome_keeps_the_gate_shut() -> None:
    assert TABLE[State.REQUESTED, Happening.UNCLEAR] in UNSETTLED


def test_tombstone_outlives_the_restriction() -> None:
    assert State.SETTLED not in UNSETTLED
    assert {State.SETTLED, State.RELEASED} | UNSETTLED == TOMBSTONED
    assert State.REFUSED not in TOMBSTONED


def test_every_state_but_the_first_can_be_reached() -> None:
    reached, todo = {State.REQUESTED}, [State.REQUESTED]
    while todo:
        state = todo.pop()
        new = {TABLE[state, happening] for happening in Happening} - reached - {None}
        reached |= {target for target in new if target}
        todo += [target for target in new if target]
    assert reached == set(State)


def test_diagram_says_what_was_written_out() -> None:
    lines = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in diagram().splitlines()]
    assert lines[0] == ["", *HEAD]
    assert lines[2:] == ROWS


def test_architecture_shows_the_table_as_it_is() -> None:
    assert shown("states") == diagram(), "run: make docs"
