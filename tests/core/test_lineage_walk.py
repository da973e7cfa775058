"""How a graph of records is walked, what stays of one that goes, and which runs of a text are its prints."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from quietus.core.lineage import Detector, Edge, Records
from quietus.core.prints import GRAM, SHARED, Prints, Sharing, prints_of, short
from quietus.core.severance import Sources
from tests.core.making import digest
from tests.core.test_lineage import name, record

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
    records, named = Records(), [f"s{number}" for number in range(SHARED + 2)]
    bearing = [replace(record(label, label), whole=at, prints=(7,)) for at, label in enumerate(named, 1)]
    for gone in bearing[:2]:
        records.put(gone)
        records.drop(gone.name)
    for one in bearing[2:]:
        records.put(one)
    found = records.suspects(Prints(99, (7,)), record("own", "bob"))
    assert [edge.source for edge in found] == [name(label) for label in named[2:]]


def test_a_record_of_another_tenant_hides_none_of_ones_own() -> None:
    records = Records()
    own = replace(record("owned", "bob"), prints=(7,))
    records.put(own)
    for label, tenant in (("far", b"far"), ("near", b""), ("again", b"far"), ("next", b"")):
        records.put(replace(record(label, label), tenant=tenant, prints=(7,) if label != "next" else (8,)))
    found = records.suspects(Prints(99, (7, 8)), record("own", "bob"))
    assert [edge.source for edge in found] == [name("near"), name("next")]
    records.put(replace(record("unsaid"), prints=(8,)))
    assert name("unsaid") in {e.source for e in records.suspects(Prints(99, (8,)), record("own", "bob"))}


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


def test_of_a_long_text_the_runs_that_were_chosen_are_chosen_again() -> None:
    words = [f"word{number}" for number in range(60)]
    found = prints_of(" ".join(words), digest, 99)
    assert found is not None
    begins = {short(digest("run", " ".join(words[at : at + GRAM]).encode())): at for at in range(56)}
    assert [begins[run] for run in found.runs] == [
        3, 6, 8, 12, 13, 16, 18, 19, 23, 26, 28, 29, 33, 37, 38, 42, 43, 45, 48, 52,
    ]  # fmt: skip


def test_who_holds_a_text_is_told_also_beyond_the_bound_of_whom_is_remembered() -> None:
    sharing = Sharing(bound=3)
    whos = [bytes([number]) * 16 for number in range(1, 6)]
    for who in (*whos, *whos):
        sharing.held(7, who)
    assert sharing.holding((7).to_bytes(8, "big")) == tuple(short(who) for who in whos)


def test_no_more_is_remembered_of_a_thousand_subjects_than_of_ten() -> None:
    sharing, sizes = Sharing(bound=4), []
    for number in range(1, 1001):
        sharing.held(number % 7, number.to_bytes(16, "little"))
        sizes.append(len(pickle.dumps(sharing)))
    assert max(sizes[10:]) < 2 * max(sizes[:10])


def test_a_name_at_the_end_of_a_text_is_a_name() -> None:
    assert Sources([], names=["adams"]).span("with adams") == Sources([], names=["adams"]).span("adams said")
