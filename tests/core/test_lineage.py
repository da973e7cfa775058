"""The graph of records: its closure, its bound, its form at rest, what a text is suspected of, and fates."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.lineage import DESCENDANTS, Detector, Edge, Record, Records
from quietus.core.lineage_form import BadForm, pack, unpack
from quietus.core.operations import Item
from quietus.core.prints import COUNTED, SHARED, Prints, Sharing, prints_of
from quietus.core.scope import ANY, UNKNOWN
from quietus.core.severance import Fate, Sources, Span, decide

SOURCE = "Alice Moreau moved to the Quai Voltaire in Lyon in the middle of May"


def digest(kind: str, data: bytes) -> bytes:
    """A keyed digest, as the keyring's."""
    return blake2b(kind.encode() + b"\0" + data, digest_size=16, key=b"test").digest()


def name(label: str) -> bytes:
    """A digest of a label."""
    return digest("name", label.encode())


def record(label: str, subject: str = "", *parents: str, detector: Detector = Detector.DECLARED) -> Record:
    """A record whose link is its label's digest."""
    whose = frozenset({name(subject)}) if subject else UNKNOWN
    edges = tuple(Edge(name(parent), detector) for parent in parents)
    return Record(name(f"r-{label}"), name(label), b"", whose, ANY, UNKNOWN, parents=edges)


def printed(label: str, subject: str, text: str) -> tuple[Record, Prints]:
    """A record with the prints of a text."""
    prints = prints_of(text, digest)
    assert prints is not None
    base = record(label, subject)
    return Record(base.name, base.link, b"", base.subject, ANY, UNKNOWN, whole=prints.whole,
                  prints=prints.runs), prints  # fmt: skip


def reached(records: Records, *roots: str, suspected: bool = True) -> set[bytes]:
    """Links of the descendants."""
    found = records.descendants([name(root) for root in roots], suspected=suspected)
    return {kin.record.link for kin in found}


GRAPHS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


@given(GRAPHS, st.sets(st.integers(0, 9), min_size=1, max_size=3))
def test_the_closure_is_that_of_the_graph(edges: list[tuple[int, int]], roots: set[int]) -> None:
    records = Records()
    for child in range(10):
        parents = {str(parent) for at, parent in edges if at == child and parent != child}
        records.put(record(str(child), "", *sorted(parents)))
    expected, last = set(roots), set[int]()
    while expected != last:
        last = set(expected)
        expected |= {child for child, parent in edges if parent in expected and child != parent}
    assert reached(records, *map(str, roots)) == {name(str(n)) for n in expected - roots}


@given(GRAPHS, st.integers(0, 9))
def test_one_more_edge_never_frees_a_descendant(edges: list[tuple[int, int]], root: int) -> None:
    """Monotony: what hangs on a root still does when more is known."""
    fewer, more = Records(), Records()
    for records, known in ((fewer, edges[:-1]), (more, edges)):
        for child in range(10):
            parents = {str(p) for at, p in known if at == child and p != child}
            records.put(record(str(child), "", *sorted(parents)))
    assert reached(fewer, str(root)) <= reached(more, str(root))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60), st.integers(1, 6))
def test_whatever_is_put_and_dropped_the_bound_holds_and_nothing_is_left_over(
    steps: list[tuple[int, int]], bound: int
) -> None:
    records = Records(bound)
    for number, other in steps:
        if number == other:
            records.drop(name(f"r-{number}"))
        else:
            records.put(record(str(number), "somebody", str(other)))
        assert len(records) <= bound
    for each in list(records):
        records.drop(each.name)
    assert (len(records), records._children, records._prints) == (0, {}, {})


def test_what_is_derived_is_let_go_last() -> None:
    records = Records(3)
    records.put(record("summary", "team", "source"))
    for number in range(5):
        records.put(record(f"plain-{number}", "bob"))
    assert records.get(name("r-summary")) is not None and records.evicted == 3
    assert records.changed[name("r-plain-0")] is None, "and it is taken out at rest"


def test_a_declared_way_outranks_a_suspected_one() -> None:
    records = Records()
    records.put(record("quote", "bob", "source", detector=Detector.QUOTE))
    records.put(record("pair", "team", "quote"))
    assert reached(records, "source", suspected=False) == set()
    found = {kin.record.link: kin for kin in records.descendants([name("source")])}
    assert found[name("quote")].detector is Detector.QUOTE
    assert (found[name("pair")].detector, found[name("pair")].depth) == (Detector.DECLARED, 2)


def test_the_walk_is_bounded() -> None:
    records = Records(DESCENDANTS + 100)
    for number in range(DESCENDANTS + 50):
        records.put(record(f"child-{number}", "team", "source"))
    assert len(records.descendants([name("source")])) == DESCENDANTS


@given(
    st.sampled_from([ANY, UNKNOWN, frozenset({name("a")}), frozenset({name("a"), name("b")})]),
    st.sampled_from([ANY, UNKNOWN, frozenset({(name("x"), name("y"))}), frozenset({(), (name("x"),)})]),
    st.integers(0, 2**40),
    st.lists(st.sampled_from(list(Detector)), max_size=4),
    st.one_of(st.none(), st.binary(min_size=1, max_size=300)),
)
def test_at_rest_a_record_is_what_it_was(subject, path, born, detectors, address) -> None:  # type: ignore[no-untyped-def]
    edges = tuple(Edge(name(str(number)), detector) for number, detector in enumerate(detectors))
    given_ = Record(name("r"), name("l"), name("t"), subject, ANY, path, born, edges, 7, (1, 2**63), address)
    assert unpack(name("r"), pack(given_)) == given_


@settings(max_examples=50)
@given(st.binary(max_size=80))
def test_bytes_that_are_no_record_are_refused(data: bytes) -> None:
    try:
        unpack(name("r"), data)
    except BadForm:
        return
    assert data[:1] == b"\x01"


# --- suspicion ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "detector"),
    [
        (f"They said: {SOURCE}. Closed.", Detector.CONTAINMENT),
        ("I heard that Alice Moreau moved to the Quai Voltaire in the end", Detector.QUOTE),
        ("She lives somewhere else by now", None),
        (SOURCE, None),
    ],
)
def test_a_run_of_eight_words_in_common_is_always_suspected(text: str, detector: Detector | None) -> None:
    records = Records()
    source, _ = printed("source", "alice", SOURCE)
    records.put(source)
    prints = prints_of(text, digest, 512)
    assert prints is not None
    found = records.suspects(prints, record("later", "bob"))
    # Of a long text only the first prints are kept: whatever holds those looks like the whole of it.
    assert [edge.source for edge in found] == ([] if detector is None else [name("source")])
    assert detector is not Detector.CONTAINMENT or found[0].detector is detector
    assert records.suspects(prints, record("later", "alice")) == [], "nobody launders their own"


WORDS = st.lists(st.sampled_from("the a flat river two of piano old bridge rooms view and lives by".split()))


@given(WORDS, WORDS, WORDS, st.integers(0, 20))
def test_whatever_stands_around_it(before: list[str], after: list[str], own: list[str], at: int) -> None:
    run = "marigold quenby of unit forty asked for refunds".split()
    source = prints_of(" ".join([*own[:at], *run, *own[at:]]), digest, 512)
    later = prints_of(" ".join([*before, *run, *after]), digest, 512)
    assert source is not None and later is not None
    assert set(source.runs) & set(later.runs)


@pytest.mark.requirement("R56")
def test_how_many_live_subjects_hold_a_text() -> None:
    sharing = Sharing(bound=4)
    text = prints_of("Welcome aboard", digest)
    assert text is not None
    whole = digest("text", b"welcome aboard")
    for who in ("a", "b", "b", "c"):
        sharing.held(text.whole, name(who))
    assert sharing.live(whole) == SHARED == 3
    assert sharing.live(whole, but=[name("a")]) == 2, "who is erased does not count"
    sharing.gone(text.whole, name("c"))
    assert sharing.live(whole) == 2
    for number in range(50):
        sharing.held(text.whole, name(f"w{number}"))
        sharing.held(number, name("x"))
    assert len(sharing) == 4 and sharing.live(whole) == COUNTED


# --- fates -------------------------------------------------------------------------------------


def fate(text: str | None, *, row: Item | None = None, **known: bool) -> Fate:
    """The fate of a declared descendant with that text."""
    sources = Sources([SOURCE], [(1.0, 0.0, 0.5)], ["alice-moreau"])
    facts = {"readable": True, "erased_edge": False, "declared": True, "attested": False, **known}
    item = row if row is not None else None if text is None else Item(0, texts=(text,))
    return decide(item, [text] if text else [], sources, **facts).fate


@pytest.mark.requirement("R89", "R91", "R104", "R105", "R106")
def test_there_are_three_outcomes_for_what_is_there_and_doubt_is_the_third() -> None:
    assert fate(f"Summary: {SOURCE}.") is Fate.CASCADE
    assert fate("She wrote that it was the middle of May") is Fate.ESCALATE, "a few words in common"
    assert fate("alice-moreau was here") is Fate.ESCALATE, "the name"
    assert fate("Somebody changed flats") is Fate.ESCALATE, "nobody vouches"
    assert fate("Somebody changed flats", attested=True) is Fate.UNLINK
    assert fate("Somebody changed flats", attested=True, erased_edge=True) is Fate.ESCALATE, "the edge stands"
    assert fate(f"Summary: {SOURCE}.", attested=True) is Fate.CASCADE, "no attestation outweighs a quote"
    assert fate(None) is Fate.GONE
    assert fate(None, readable=False) is Fate.ESCALATE, "an opaque service"
    vector = Item(0, texts=("Somebody",), vector=(2.0, 0.0, 1.0))
    assert fate("Somebody", row=vector, attested=True) is Fate.CASCADE, "its vector is the source's"
    assert fate("Somebody changed flats", declared=False) is Fate.DISMISSED
    assert fate("Somebody changed flats", declared=False, erased_edge=True) is Fate.ESCALATE


def test_numbers_and_addresses_are_quotes_by_themselves() -> None:
    sources = Sources(["Call me on +41 79 555 01 02 or write to a.moreau@example.org, account 4471-2290"])
    assert sources.span("the number was 41 79 555 0102") is Span.QUOTE
    assert sources.span("mail a.moreau@example.org") is Span.QUOTE
    assert sources.span("account 44712290 is closed") is Span.QUOTE
    assert sources.span("account 9999 is closed") is Span.NONE


@given(*(st.booleans() for _ in range(4)), st.sampled_from(["quote", "short", "none"]))
def test_only_a_proof_lets_a_descendant_stay(
    readable: bool, edge: bool, declared: bool, attested: bool, bears: str
) -> None:
    text = {"quote": SOURCE, "short": "it was the middle of May", "none": "nothing"}[bears]
    known = {"readable": readable, "erased_edge": edge, "declared": declared, "attested": attested}
    stays = fate(text, **known) in (Fate.UNLINK, Fate.DISMISSED)
    proven = readable and not edge and bears == "none" and attested
    suspected = readable and not edge and not declared and bears != "quote"
    assert stays == (proven or suspected)
