"""Whom a value belongs to, one kind of mark at a time."""

from __future__ import annotations

import base64

import pytest

from quietus.core.events import EventType
from quietus.core.fingerprint import Mark, alias_mark, beside_marks, marks_of
from quietus.core.likeness import SHARED
from quietus.core.screener import Screener, record_name, twin_mark
from quietus.core.states import State
from tests.core.making import World, digest, pseudonym, scope
from tests.core.searching import found

TEXT = "Alice moved to Lisbon in spring and works nights at the harbour office"
RARE = [f"zygote{number:02}x" for number in range(2 * SHARED)]


def screener(*marks: Mark, state: State = State.SETTLING, text: str = "") -> Screener:
    world = World()
    erasure = world.erase(scope(subject="alice"), state, name="er")
    world.mark(erasure, *marks, texts=[text] if text else [])
    return Screener(world.gate, pseudonym, digest)


@pytest.mark.parametrize(
    ("witness", "text", "causes"),
    [
        ("ring +41 44 668 18 00", "is it 044 668 18 00?", {"token"}),
        ("ada@x.example", "to Ada@X.example", {"token"}),
        ("Ruben plays the oboe", "Ruben plays the oboe.", {"content"}),
        ("Ruben plays the oboe", "Ruben plays an oboe", set()),
        ("Alice left. Ruben plays the oboe.", "Ruben plays the oboe", {"content"}),
    ],
)
def test_a_text_is_found_by_what_its_marks_are_of(witness: str, text: str, causes: set[str]) -> None:
    assert found(witness, text) == causes


@pytest.mark.parametrize(
    "text",
    ["thank you for that day you all look so happy", "thank you for that day - and you all look so happy",
     "you all look so happy, thank you for that day"],
)  # fmt: skip
def test_two_common_sentences_are_found_beside_each_other(text: str) -> None:
    memory = "You all look so happy. Thank you for that day."
    assert {mark.kind for mark in marks_of(memory, digest)} == {"text", "part:5"}
    assert found(memory, f"so {text} so")
    assert not found(memory, "so you all look so happy so")
    assert not found(memory, "so thank you for that night and you all look so happy")
    assert not found("You look so happy. Thank you for that.", "so thank you for that you look so happy")


@pytest.mark.parametrize(("theirs", "cause"), [(2 * SHARED, "beside"), (SHARED, "beside")])
def test_half_of_the_telling_words_of_a_text_are_most_of_it(theirs: int, cause: str) -> None:
    memory = " ".join(["Alice", *RARE[:theirs]])
    assert cause in found(memory, " ".join(["Alice", *RARE[:SHARED]]), alias="Alice", beside=True)


def test_less_than_half_of_them_is_a_mere_suspicion() -> None:
    memory = " ".join(["Alice", *RARE, "quarkword"])
    assert found(memory, " ".join(["Alice", *RARE[:SHARED]]), alias="Alice", beside=True) == {"overlap"}
    theirs = "Alice zygote01x quarkword friend"
    one_tells = found(theirs, "Alice zygote01x friend", alias="Alice", beside=True)
    assert one_tells == {"overlap"}, "one telling word is not enough, however few there are"


def test_words_beside_a_name_are_no_evidence_and_not_the_text_itself() -> None:
    name = alias_mark("Alice Example", digest)
    assert name is not None
    looking = screener(name, *beside_marks([" ".join(RARE)], "Alice Example", digest))
    for text, cause in ((RARE, "beside"), (RARE[:1], "alias"), ([*RARE[:2], "the", "new", "one"], "beside")):
        hits = looking.look(" ".join(["Alice Example:", *text]))
        assert {hit.cause for hit in hits} == {"alias", cause}
        assert not any(hit.strong or hit.whole for hit in hits)


def test_a_suspicion_is_not_the_text_itself() -> None:
    name = alias_mark("Alice", digest)
    assert name is not None
    looking = screener(name, *beside_marks([" ".join([*RARE, "quarkword"])], "Alice", digest))
    hits = looking.look(" ".join(["Alice", *RARE[:SHARED]]))
    assert [(hit.cause, hit.whole, hit.strong) for hit in hits if hit.cause != "alias"] == [
        ("overlap", False, False)
    ]


def test_a_word_beside_a_name_is_confirmed_to_its_last_byte() -> None:
    name = alias_mark("Alice Example", digest)
    assert name is not None
    for wrong in (0, 1):
        marks = beside_marks([" ".join(RARE)], "Alice Example", digest)
        marks = [Mark(m.kind, m.digest[:-1] + bytes([m.digest[-1] ^ wrong])) for m in marks]
        hits = screener(name, *marks).look(" ".join(["Alice Example:", *RARE]))
        assert ("beside" in {hit.cause for hit in hits}) is not bool(wrong)


def test_what_is_hidden_in_another_writing_is_not_the_text_and_nothing_else() -> None:
    looking = screener(text=TEXT)
    [hit] = looking.look(TEXT)
    assert (hit.cause, hit.whole, hit.strong) == ("content", True, True)
    [hidden] = looking.look(base64.b64encode(TEXT.encode()).decode())
    assert (hidden.cause, hidden.whole) == ("content", False)
    twice = base64.b64encode(base64.b64encode(TEXT.encode())).decode()
    assert [hit.cause for hit in looking.look(twice)] == ["content"]
    assert looking.look(base64.b64encode(twice.encode()).decode()) == ()


@pytest.mark.parametrize(("state", "doubtful"), [(State.SETTLING, True), (State.SETTLED, False)])
@pytest.mark.parametrize("path", [None, ("notes", "a")])
def test_a_record_that_was_derived_is_held_back_for_good_or_until_it_is_known(
    state: State, doubtful: bool, path: tuple[str, ...] | None
) -> None:
    key = pseudonym("key", "k") if path is None else pseudonym("record", record_name(path, "k"))
    for kind, held in (("descendant", True), ("escalated", doubtful)):
        looking = screener(Mark(kind, key), state=state)
        assert [hit.cause for hit in looking.descends("k", path)] == (["derived"] if held else [])
        assert looking.descends("other", path) == ()
        assert looking.descends("k", ("elsewhere",)) == ()


def test_an_identifier_is_found_by_itself_and_a_short_key_only_as_a_key() -> None:
    marks = [Mark("subject", pseudonym("subject", "alice")), Mark("id", pseudonym("key", "key-0001")),
             Mark("id", pseudonym("key", "key-001"))]  # fmt: skip
    looking = screener(*marks)
    expected = {"alice": ["subject"], "key-0001": ["key"], "key-001": [], "bob": []}
    assert {text: [hit.cause for hit in looking.look(text)] for text in expected} == expected
    assert [hit.cause for hit in looking.keys("key-001", None)] == ["key"]
    assert record_name(("a", "b"), "k") == "a\x1fb\x1ek", "digests of it lie at rest"
    assert looking.keys("key-001", ("notes",)) == ()


def test_a_twin_is_one_persons_own_text() -> None:
    bob, carol = pseudonym("subject", "bob"), pseudonym("subject", "carol")
    looking = screener(twin_mark(bob, b"ruben plays the oboe", digest))
    assert looking.look("Ruben plays the oboe!") == (), "it is asked about what was looked at"
    assert looking.twin("Ruben plays the oboe!", frozenset({bob}))
    assert not looking.twin("Ruben plays the oboe!", frozenset({carol}))
    assert not looking.twin("Ruben plays the oboe!", frozenset({bob, carol}))
    assert not looking.twin("Ruben plays an oboe!", frozenset({bob}))
    assert not looking.twin("Ruben plays the oboe!", scope().subject)
    assert twin_mark(bob[:8], b"words", digest) == twin_mark(bob, b"words", digest), "eight bytes of it count"
    assert not screener().twin("Ruben plays the oboe!", frozenset({bob}))


def test_a_control_is_known_by_its_key() -> None:
    looking = screener(Mark("canary", pseudonym("key", "c1")))
    assert (looking.canary("c1"), looking.canary("c2"), screener().canary("c1")) == (True, False, False)


@pytest.mark.parametrize(("state", "told"), [(State.SETTLING, ["alias"]), (State.SETTLED, [])])
def test_a_settled_erasure_does_not_make_its_name_unspeakable(state: State, told: list[str]) -> None:
    mark = alias_mark("Alice Example", digest)
    assert mark is not None
    looking = screener(mark, state=state)
    hits = looking.look("I met Alice Example in town")
    assert [hit.cause for hit in hits] == told
    hidden = screener(mark, state=state, text=TEXT).look(base64.b64encode(b"I met Alice Example").decode())
    assert hidden == (), "a name in another writing is no mention"
    assert not any(hit.strong or hit.whole for hit in hits)


def test_what_a_text_means_is_told_anew_when_the_gate_changes() -> None:
    mark = alias_mark("Alice Example", digest)
    assert mark is not None
    world = World()
    world.mark(world.erase(scope(subject="alice"), name="er"), mark)
    looking = Screener(world.gate, pseudonym, digest)
    assert [hit.cause for hit in looking.look("I met Alice Example")] == ["alias"]
    world.happen("er", EventType.CLEAN)
    assert looking.look("I met Alice Example") == ()


def test_who_was_let_in_again_hides_nobody_else_of_whom_the_same_is_said() -> None:
    world = World()
    shared = Mark("token", digest("token", b"mail:ada@x.example"))
    for number, readmitted in enumerate((True, False, True)):
        reach = scope(subject=f"s{number}")
        world.mark(world.erase(reach, name=f"er{number}", readmitted=readmitted), shared)
    hits = Screener(world.gate, pseudonym, digest).look("to ada@x.example")
    assert [hit.erasure.id for hit in hits] == ["er1"]


def test_marks_that_were_not_there_are_found_once_they_are() -> None:
    world = World()
    erasure = world.erase(scope(subject="alice"), name="er")
    looking = Screener(world.gate, pseudonym, digest)
    assert looking.look(TEXT) == ()
    world.mark(erasure, texts=[TEXT])
    assert [hit.cause for hit in looking.look(TEXT)] == ["content"]


def test_a_record_that_was_derived_of_two_is_held_back_for_the_one_who_was_not_let_in_again() -> None:
    world, mark = World(), Mark("descendant", pseudonym("key", "k"))
    for number, readmitted in enumerate((True, False)):
        reach = scope(subject=f"s{number}")
        world.mark(world.erase(reach, name=f"er{number}", readmitted=readmitted), mark)
    assert [hit.erasure.id for hit in Screener(world.gate, pseudonym, digest).descends("k", None)] == ["er1"]
