"""A quote is found however its lines are broken, its numbers stand, and its punctuation was changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.fingerprint import RUN, marks_of
from quietus.core.folding import folded, readings, split
from tests.core.making import digest
from tests.core.searching import found

COMMON = "Yup, I still remember this story from when I was 10."
"""Eleven words, all of them common: found as a whole or not at all."""


@pytest.mark.requirement("R93", "R124")
@pytest.mark.parametrize(
    "space", ["\n", "\n  ", "\r\n", "\r", "\t", "\n\n", " \n > ", "\u2028", "\u00a0", "\n- "]
)
def test_a_number_at_the_beginning_of_a_line_may_be_the_sentences(space: str) -> None:
    quoted = COMMON.replace(" ", space)
    assert found(COMMON, f"Notes of today. {quoted} Another thing.")
    assert found(f"Before. {quoted} Another thing.", f"He said: {COMMON}")


@pytest.mark.parametrize("number", ["1. ", "2) ", "  10. ", "- ", "> 3. ", "**4.** "])
def test_a_number_may_be_a_lists(number: str) -> None:
    memory = "We all went there together after the long day.\nIt was good to see them again at last."
    listed = "\n".join(number + line for line in memory.split("\n"))
    assert found(memory, f"In short:\n{listed}")
    assert found(listed, "We all went there together after the long day")
    assert found(listed, "it was good to see them again at last")


@pytest.mark.parametrize(
    "said",
    ["It was the day when 12, 300 of us were there", "It was the day when 12,300 of us were there",
     "It was the day when 12 300 of us were there", "it was the day when 12\n300 of us were there!"],
)  # fmt: skip
@pytest.mark.parametrize(
    "memory",
    ["It was the day when 12, 300 of us were there.", "It was the day when 12 300 of us were there."],
)
def test_numbers_side_by_side_are_one_or_several(memory: str, said: str) -> None:
    assert found(memory, f"She told me: {said}, so to say")


def test_a_number_in_groups_is_one_however_they_are_parted() -> None:
    forms = ["1,234,567", "1.234.567", "1'234'567", "1 234 567", "1\n234  567", "1234567"]
    assert {folded(form) for form in forms} == {"1234567"}
    assert folded("1,234.567") == "1234.567", "groups are parted alike"


def test_a_sentence_that_the_page_breaks_is_one() -> None:
    memory = "Ruben plays the oboe.\nIt was so good to\nbe there with all\nof you again. Zygote."
    assert found(memory, "He wrote: it was so good to be there with all of you again, and left")
    assert not found(memory, "He wrote: it was so good to be there, and left"), "a part of it is anybody's"


def test_one_sentence_in_two_readings_is_not_two() -> None:
    memory = "1) You all look so happy here\n2) Thank you for the nice day"
    assert found(memory, "You all look so happy here. Thank you for the nice day.")
    assert not found(memory, "1) You all look so happy here")


def test_most_texts_have_one_reading() -> None:
    assert readings("Alice moved to Lisbon in 2021. She has 3 cats - and 1 dog.") == (
        folded("Alice moved to Lisbon in 2021. She has 3 cats - and 1 dog."),
    )
    assert len(readings("1. It was 1,234 of them")) == 4
    assert readings("") == ("",)
    assert readings("1. It was so")[0] == folded("1. It was so")


def test_a_number_alone_leaves_no_mark() -> None:
    assert marks_of("10. ", digest) == []
    assert marks_of("\n 1) ", digest) == []


# A law: whatever stands between the words of a quoted sentence

words_and_numbers = st.one_of(
    st.sampled_from("we can see that it is good to be here with all of them now and then".split()),
    st.integers(0, 999).map(str),
)
between = st.sampled_from(
    [" ", "\n", "\n  ", ", ", ". ", ") ", "\n\t", " - ", "; ", ".\n", "! ", " (", "\r\n"]
)


@settings(deadline=None, max_examples=150)
@given(st.lists(words_and_numbers, min_size=RUN, max_size=14), st.data())
def test_a_sentence_is_found_whatever_parts_its_words(sentence: list[str], data: st.DataObject) -> None:
    """All parted alike: every number is the sentence's, or each stands by itself."""
    mark = data.draw(between)
    witness = f"Ruben plays the oboe. {' '.join(sentence)}. Zygote."
    if len(split(folded(witness))) < len(sentence) + 5:
        return  # the source itself reads as numbers in groups
    assert found(witness, f"In short: {mark.join(sentence)} and so on")
