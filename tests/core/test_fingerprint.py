"""Marks of a text, and finding them again inside other texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.fingerprint import MARKS_PER_TEXT, RUN, SHORTEST, Mark, alias_mark, marks_of, traces, words
from tests.core.making import digest

TEXT = "Alice moved to Lisbon in spring. She works nights at the harbour office and dislikes early calls!"


def found(witness: str, text: str) -> set[Mark]:
    """The marks of the witness that the text bears."""
    marks = set(marks_of(witness, digest))
    return marks & set(traces(text, {mark.kind for mark in marks}, digest))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.upper(),
        "  " + TEXT.replace(" ", "\n\t "),
        TEXT.replace(".", " ...").replace("!", ""),
        unicodedata.normalize("NFD", TEXT),
        "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in TEXT),
        f"Summary: {TEXT} (end)",
        "He said that alice moved to lisbon in spring, and then left.",
        "works nights at the harbour office and dislikes",
    ],
    ids=["same", "case", "spacing", "punctuation", "decomposed", "full width", "inside", "sentence", "run"],
)
def test_restated_text_is_found(text: str) -> None:
    assert found(TEXT, text)


@pytest.mark.parametrize(
    "text",
    ["", "Alice moved", "works nights at the harbour office", "Bob moved to Lisbon in spring.",
     "Lisbon in spring moved to Alice", "Alice mövéd to Lisbon in spring."],
)  # fmt: skip
def test_other_text_is_not(text: str) -> None:
    assert not found(TEXT, text)


def test_short_sentences_count_only_as_a_whole_text() -> None:
    assert found("Likes blue tea", "likes BLUE tea.")
    assert not found("Likes blue tea", "She likes blue tea a lot.")


@pytest.mark.parametrize("text", ["", "  ", "...", "—!?"])
def test_text_without_words_leaves_no_mark(text: str) -> None:
    assert marks_of(text, digest) == []
    assert list(traces(text, ["text", "shingle:8"], digest)) == []


word = st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=6).filter(
    lambda w: len(words(w)) == 1
)
few_words = st.lists(word, max_size=5)
long_texts = st.lists(word, min_size=RUN, max_size=40)


@settings(deadline=None)
@given(long_texts, st.data(), few_words, few_words)
def test_a_run_of_eight_words_is_always_found(
    said: list[str], data: st.DataObject, before: list[str], after: list[str]
) -> None:
    start = data.draw(st.integers(0, len(said) - RUN))
    quote = said[start : start + RUN]
    assert found(" ".join(said), ", ".join([*before, *quote, *after]))


@settings(deadline=None)
@given(st.lists(word, min_size=SHORTEST, max_size=RUN - 1), few_words, few_words)
def test_a_short_sentence_is_found_whole_inside_another(
    sentence: list[str], before: list[str], after: list[str]
) -> None:
    witness = f"First things first. {' '.join(sentence)}. Then the rest."
    assert found(witness, " ".join([*before, *sentence, *after]))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_every_text_bears_its_own_marks(text: str) -> None:
    marks = marks_of(text, digest)
    assert bool(marks) == bool(words(text))
    assert len(set(marks)) == len(marks)
    if marks:
        assert marks[0] in set(traces(text, [marks[0].kind], digest))


def test_marks_of_a_long_text_are_bounded() -> None:
    text = " ".join(f"word{number}" for number in range(3 * MARKS_PER_TEXT))
    marks = marks_of(text, digest)
    assert len(marks) == MARKS_PER_TEXT
    assert found(text, text)


def test_only_kinds_in_use_are_looked_for() -> None:
    assert {mark.kind for mark in traces(TEXT, ["shingle:5"], digest)} == {"shingle:5"}
    assert list(traces(TEXT, ["subject", "id", "key", "canary"], digest)) == []


def test_marks_are_keyed_and_normalised_alike_on_both_sides() -> None:
    def other_key(kind: str, data: bytes) -> bytes:
        return digest("other" + kind, data)

    marks = set(marks_of(TEXT, digest))
    assert marks.isdisjoint(marks_of(TEXT, other_key))
    assert marks == set(marks_of(TEXT.upper().replace(" ", "  "), digest))
    assert all(len(mark.digest) == 16 for mark in marks)


def test_a_name_is_found_inside_a_text() -> None:
    mark = alias_mark("Alice Example", digest)
    assert mark is not None
    assert mark.kind == "alias:2"
    assert mark in set(traces("I met ALICE, Example in hand", [mark.kind], digest))
    assert mark not in set(traces("I met Alice an example", [mark.kind], digest))


@pytest.mark.parametrize("alias", ["", "kim", "12345678", "a b", "--"])
def test_a_name_that_says_too_little_is_no_mark(alias: str) -> None:
    assert alias_mark(alias, digest) is None
