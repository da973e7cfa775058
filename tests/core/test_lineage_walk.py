"""How a graph of records is walked, what stays of one that goes, and which runs of a text are its prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quietus.core.lineage import Detector, Edge, Records
from quietus.core.prints import GRAM, SHARED, Sharing, prints_of, short
from quietus.core.severance import Sources
from tests.core.making import digest
from tests.core.test_lineage import name, printed, record

TEXT = "Alice Moreau moved to the Quai Voltaire in Lyon in the middle of May"
QUOTE, DECLARED = Detector.QUOTE, Detector.DECLARED


def test_who_is_reached_by_declared_edges_alone_is_no_suspect_however_long_the_way() -> None:
    records = Records()
    records.put(record("b", "", "a"))
    records.put(replace(record("c"), parents=(Edge(name("a"), QUOTE), Edge(name("b"), DECLARED))))
    told = [(kin.record.link, kin.depth, kin.detector) for kin in records.descendants([name("a")])]
    assert told == [(name("b"), 1, DECLARED), (name("c"), 2, DECLARED)]


def test_an_edge_to_somebody_else_makes_nobody_more_than_a_suspect() -> None:
    records = Records()
    records.put(replace(record("c"), parents=(Edge(name("a"), QUOTE), Edge(name("z"), DECLARED))))
    assert records.descendants([name("a")], suspected=False) == []
    [kin] = records.descendants([name("a")])
    assert kin.detector is QUOTE


def test_a_suspect_that_is_not_followed_does_not_hide_those_after_it() -> None:
    records = Records()
    records.put(record("suspect", "", "a", detector=QUOTE))
    records.put(record("child", "", "a"))
    assert [kin.record.link for kin in records.descendants([name("a")], suspected=False)] == [name("child")]
    assert {kin.record.link for kin in records.descendants([name("a")])} == {name("child"), name("suspect")}


def test_what_has_gone_takes_no_place_among_those_that_bear_a_print() -> None:
    records = Records()
    for number in range(2):
        gone, _ = printed(f"gone-{number}", f"g{number}", TEXT)
        records.put(gone)
        records.drop(gone.name)
    for number in range(SHARED):
        source, _ = printed(f"s{number}", f"subject-{number}", f"{TEXT}, said number {number} of many others")
        records.put(source)
    own, prints = printed("own", "bob", f"They say that {TEXT}, and so on.")
    assert [e.source for e in records.suspects(prints, own)] == [name(f"s{n}") for n in range(SHARED)]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("one two three four five six seven eight", ["four five six seven eight"]),
        (TEXT, ["to the quai voltaire in", "voltaire in lyon in the"]),
    ],
)
def test_the_runs_that_were_chosen_are_chosen_again(text: str, chosen: list[str]) -> None:
    """Prints lie at rest for years: whoever chooses others finds none of those."""
    found = prints_of(text, digest)
    assert found is not None
    assert found.runs == tuple(short(digest("run", run.encode())) for run in chosen)
    assert all(len(run.split()) == GRAM for run in chosen)


def test_who_holds_a_text_is_told_also_beyond_the_bound_of_whom_is_remembered() -> None:
    sharing = Sharing(bound=3)
    whos = [bytes([number]) * 16 for number in range(1, 6)]
    for who in (*whos, *whos):
        sharing.held(7, who)
    assert sharing.holding((7).to_bytes(8, "big")) == tuple(short(who) for who in whos)


def test_a_name_at_the_end_of_a_text_is_a_name() -> None:
    assert Sources([], names=["adams"]).span("with adams") == Sources([], names=["adams"]).span("adams said")
