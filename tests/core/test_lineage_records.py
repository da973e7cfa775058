"""The graph of records as a table: what is in it, what a print leads to, what is written down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quietus.core.lineage import SUSPECTS, Coverage, Detector, Edge, Record, Records
from quietus.core.prints import KEPT, SHARED, Prints
from quietus.core.scope import UNKNOWN
from tests.core.test_lineage import name, printed, record

TEXT = "Alice Moreau moved to the Quai Voltaire in Lyon in the middle of May"


@pytest.mark.parametrize(("gap", "complete"), [("", True), ("no scan was completed", False)])
def test_lineage_is_complete_without_a_gap(gap: str, complete: bool) -> None:
    assert Coverage(1, 0, 0, None, gap).complete is complete


def test_plain_and_derived_records_are_all_there_and_got_by_name() -> None:
    records = Records()
    plain, derived = record("plain", "ann"), record("derived", "bob", "plain")
    for one in (derived, plain):
        records.put(one)
    assert list(records) == [plain, derived]
    assert (len(records), records.get(plain.name), records.get(derived.name)) == (2, plain, derived)
    assert records.get(name("nobody")) is None
    assert list(records.of_subjects([name("bob")])) == [derived]
    assert list(records.of_subjects([name("ann"), name("bob")])) == [plain, derived]
    assert list(records.of_subjects([])) == []
    records.put(record("unknown"))
    assert list(records.of_subjects([name("ann")])) == [plain]


def test_what_is_not_written_down_yet_is_told_once() -> None:
    records = Records()
    one, two = record("one"), record("two")
    records.put(one)
    records.put(two, written=True)
    assert records.changed == {one.name: one}
    records.drop(two.name, written=True)
    assert records.changed == {one.name: one}
    records.drop(one.name)
    assert records.changed == {one.name: None}
    records.drop(name("nobody"))
    assert records.changed == {one.name: None}


def test_record_put_again_replaces_itself_and_lets_nobody_go() -> None:
    records = Records(bound=2)
    one, two = record("one"), record("two")
    records.put(one)
    records.put(two)
    records.put(replace(one, parents=(Edge(name("two")),)))
    assert (len(records), records.evicted) == (2, 0)
    assert [kin.record.link for kin in records.descendants([name("two")])] == [name("one")]
    records.put(one)
    assert records.descendants([name("two")]) == []
    records.put(record("three"))
    assert (len(records), records.evicted) == (2, 1)
    assert records.get(two.name) is None, "it had not been touched for longest"


@pytest.mark.parametrize("quoting", range(1, SHARED + 2))
def test_print_leads_to_the_first_few_records_that_bear_it(quoting: int) -> None:
    records = Records()
    for number in range(quoting):
        source, _ = printed(f"s{number}", f"subject-{number}", f"{TEXT}, said number {number} of many others")
        records.put(source)
    own, prints = printed("own", "bob", f"They say that {TEXT}, and so on.")
    found = records.suspects(prints, own)
    assert [edge.source for edge in found] == [name(f"s{n}") for n in range(min(quoting, SHARED))]
    records.drop(name("r-s0"))
    left = [edge.source for edge in records.suspects(prints, own)]
    assert name("s0") not in left
    assert len(left) == min(quoting, SHARED) - 1


def test_whole_text_inside_another_is_containment_and_a_part_of_it_a_quote() -> None:
    records = Records()
    source, _ = printed("source", "ann", f"{TEXT}. {'And more of it goes on, word by word, for long.' * 3}")
    records.put(source)
    own, prints = printed("own", "bob", f"They say that {TEXT}, and so on.")
    [edge] = records.suspects(prints, own)
    assert edge == Edge(name("source"), Detector.QUOTE)
    short, _ = printed("short", "cleo", TEXT)
    records.put(short)
    assert Edge(name("short"), Detector.CONTAINMENT) in records.suspects(prints, own)


def test_sentence_that_is_a_whole_text_of_another_is_suspected_however_short() -> None:
    records = Records()
    source, whole = printed("source", "ann", "She plays the oboe")
    assert source.prints == ()
    records.put(source)
    own, prints = printed("own", "bob", "A note of today. She plays the oboe! The end of it.")
    assert records.suspects(prints, own) == [Edge(name("source"), Detector.CONTAINMENT)]
    assert whole.whole in prints.sentences
    other = replace(own, tenant=b"other")
    assert records.suspects(prints, other) == []
    assert records.suspects(prints, replace(own, subject=source.subject)) == []
    assert records.suspects(prints, replace(own, name=source.name)) == []
    assert records.suspects(prints, replace(own, subject=UNKNOWN)) != []
    assert records.suspects(whole, own) == [], "the same words of two people are two people's"


def test_only_so_many_are_suspected() -> None:
    records, numbers = Records(), range(1, SUSPECTS + 4)
    for number in numbers:
        records.put(replace(record(f"s{number}", f"p{number}"), whole=number))
    own = record("own", "bob")
    found = records.suspects(Prints(99, (), tuple(numbers)), own)
    assert [edge.source for edge in found] == [name(f"s{n}") for n in range(1, SUSPECTS + 1)]
    assert KEPT > 0


def test_texts_are_counted_for_each_subject_and_no_more_when_the_record_goes() -> None:
    records = Records()
    one, prints = printed("one", "ann", "She plays the oboe. He sings in the choir.")
    records.held(one, [prints])
    numbers = (prints.whole, *prints.sentences)
    live = [records.sharing.live(number.to_bytes(8, "big")) for number in numbers]
    assert live == [1, 1, 1]
    unknown = replace(one, subject=UNKNOWN)
    records.held(unknown, [prints])
    assert records.sharing.live(prints.whole.to_bytes(8, "big")) == 1
    records.put(one)
    records.drop(one.name)
    assert records.sharing.live(prints.whole.to_bytes(8, "big")) == 0


def test_depth_and_detector_of_a_descendant() -> None:
    records = Records()
    for child, parent, detector in [
        ("b", "a", Detector.DECLARED), ("c", "b", Detector.QUOTE), ("d", "c", Detector.DECLARED),
    ]:  # fmt: skip
        records.put(record(child, "", parent, detector=detector))
    told = [(kin.record.link, kin.depth, kin.detector) for kin in records.descendants([name("a")])]
    assert told == [
        (name("b"), 1, Detector.DECLARED), (name("c"), 2, Detector.QUOTE), (name("d"), 3, Detector.DECLARED),
    ]  # fmt: skip
    assert len(records.descendants([name("a")], suspected=False)) == 1
    both: Record = replace(record("e"), parents=(Edge(name("a"), Detector.QUOTE), Edge(name("a"))))
    records.put(both)
    assert {k.detector for k in records.descendants([name("a")]) if k.record is both} == {Detector.DECLARED}
