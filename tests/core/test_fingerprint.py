"""Marks of a text, and finding them again inside other texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.fingerprint import (
    LONG,
    MARKS_PER_TEXT,
    REACH,
    RUN,
    SHORTEST,
    alias_mark,
    beside_marks,
    marks_of,
    part_of,
)
from quietus.core.folding import folded, sentences, words
from tests.core.making import digest
from tests.core.searching import found

TEXT = "Alice moved to Lisbon in spring. She works nights at the harbour office and dislikes early calls!"


@pytest.mark.requirement("R8", "R93", "R124")
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
        "<p>Alice <b>moved</b> to <a href='x'>Lis</a>bon in&nbsp;spring.</p>",
        "**Alice** moved to _Lisbon_ [1] in spring【3†source】.",
        "Alice m\u00f6ved t\u00f3 Lisbon in spring",
        "Аlice mоved tо Lisbоn in sрring",
        "Al\u200bice moved\u00ad to Lis\u200dbon in spring",
    ],
    ids=["same", "case", "spacing", "punctuation", "decomposed", "full width", "inside", "sentence", "run",
         "html", "markdown", "accents", "look-alikes", "invisible"],
)  # fmt: skip
def test_restated_text_is_found(text: str) -> None:
    assert found(TEXT, text)


@pytest.mark.parametrize(
    "text",
    ["", "Alice moved", "works nights at the harbour office", "Bob moved to Lisbon in spring.",
     "Lisbon in spring moved to Alice", "Alice moved to Porto in spring."],
)  # fmt: skip
def test_other_text_is_not(text: str) -> None:
    assert not found(TEXT, text)


# Short texts: most memories are


@pytest.mark.parametrize(
    ("memory", "inside"),
    [
        ("Likes blue tea", False),  # three words are nobody's in particular
        ("Allergic to hazelnuts and shellfish", True),
        ("Ruben plays the oboe", True),
        ("Sounds good to me", False),  # nothing of it tells
        ("I love my new job", False),
        ("Prefers the window seat on overnight trains", True),
    ],
)
def test_a_short_memory_is_found_inside_another_text_when_it_tells_enough(memory: str, inside: bool) -> None:
    assert bool(found(memory, f"Notes of today: {memory.lower()}, and more of the same.")) is inside
    assert found(memory, memory.upper() + "."), "the whole text, said again, always is"


@pytest.mark.parametrize("text", ["", "  ", "...", "—!?", "See you", "Thanks!", "bye"])
def test_text_that_says_nothing_leaves_no_mark(text: str) -> None:
    assert marks_of(text, digest) == []


@pytest.mark.requirement("R56")
def test_common_words_are_nobodys_unless_they_are_a_whole_sentence() -> None:
    polite = "Let me know if you need any help with that."
    assert found(polite, f"Sure. {polite} Bye."), "a quoted sentence is found, however common"
    longer = "It was so nice that we could all be there and see each other again, as it has been so long now."
    assert not found(longer, "so nice that we could all be there")
    assert found(longer, "we could all be there and see each other again, as it has")


# Laws

word = st.text("abcdefghijklmnopqrstuvwxyzéñßЖ", min_size=3, max_size=6)
few_words = st.lists(word, max_size=5)
long_texts = st.lists(word, min_size=RUN, max_size=40)


@settings(deadline=None, max_examples=30)
@given(long_texts, st.data(), few_words, few_words)
def test_a_run_of_eight_words_that_tells_something_is_always_found(
    said: list[str], data: st.DataObject, before: list[str], after: list[str]
) -> None:
    start = data.draw(st.integers(0, len(said) - RUN))
    quote = said[start : start + RUN]
    marked = bool(part_of(words(" ".join(quote)), digest))
    assert marked, "eight words leave a mark, as a run or as a sentence"
    whole = " ".join([*said[:start], ". ", *quote, ". ", *said[start + RUN :]])
    assert found(whole, ", ".join([*before, *quote, *after]))


common = st.sampled_from("we can see that it is good to be here with all of them now and then".split())


@settings(deadline=None, max_examples=40)
@given(st.lists(common, min_size=RUN, max_size=30), few_words, few_words)
def test_a_sentence_of_common_words_is_found_as_a_whole(
    sentence: list[str], before: list[str], after: list[str]
) -> None:
    witness = f"Ruben plays. {' '.join(sentence)}. Zygote."
    assert found(witness, " ".join([*before, *sentence, *after]))


@settings(deadline=None, max_examples=40)
@given(st.lists(common, min_size=LONG, max_size=40), st.data())
def test_a_run_of_twelve_words_is_found_however_common(said: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(said) - LONG))
    assert found(" ".join(said), " ".join(said[start : start + LONG]))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_every_text_bears_its_own_marks(text: str) -> None:
    marks = marks_of(text, digest)
    assert len(set(marks)) == len(marks)
    assert all(len(mark.digest) == 16 for mark in marks)
    if marks:
        assert found(text, text)
    assert words(text) == [word for part in sentences(folded(text)) for word in part]


def test_marks_of_a_long_text_are_bounded() -> None:
    text = " ".join(f"word{number}" for number in range(3 * MARKS_PER_TEXT))
    assert len(marks_of(text, digest)) == MARKS_PER_TEXT
    assert found(text, text)


def test_marks_are_keyed_and_normalised_alike_on_both_sides() -> None:
    def other_key(kind: str, data: bytes) -> bytes:
        return digest("other" + kind, data)

    marks = set(marks_of(TEXT, digest))
    assert marks.isdisjoint(marks_of(TEXT, other_key))
    assert marks == set(marks_of(TEXT.upper().replace(" ", "  "), digest))


# Scripts without spaces


@pytest.mark.parametrize(
    ("witness", "text"),
    [
        ("我在里斯本的港口办公室上夜班，不喜欢电话。", "听说：我在里斯本的港口办公室上夜班，是真的。"),
        ("私は春にリスボンへ引っ越して港で夜勤をします。", "「春にリスボンへ引っ越して港で夜勤」とのこと"),
        ("ฉันย้ายไปลิสบอนในฤดูใบไม้ผลิและทำงานกะกลางคืน", "บันทึก ย้ายไปลิสบอนในฤดูใบไม้ผลิ จบ"),
        ("在港口上夜班", "她说过她在港口上夜班很久了"),
    ],
    ids=["han", "kana", "thai", "short han"],
)
def test_a_quote_in_a_script_without_spaces_is_found(witness: str, text: str) -> None:
    assert found(witness, text)


def test_another_sentence_in_a_script_without_spaces_is_not() -> None:
    assert not found("我在里斯本的港口办公室上夜班。", "他在波尔图的银行上白班，喜欢早上的电话。")
    assert not found("是的，我们可以", "是的，我们可以去看看那个地方")


@pytest.mark.parametrize(
    "text",
    [
        "नमस्ते, मैं लिस्बन में बंदरगाह पर रात को काम करती हूँ।",
        "Жанна работает по ночам в порту и не любит звонков.",
    ],
)
def test_words_with_vowel_signs_and_of_other_alphabets_stay_words(text: str) -> None:
    assert len(words(text)) == len(text.split())
    assert found(text, f"x {text} y")


# Aliases


def test_a_name_is_found_inside_a_text() -> None:
    assert "alias:2" in {mark.kind for mark in [alias_mark("Alice Example", digest)] if mark}
    assert found("", "I met ALICE, Example in hand", alias="Alice Example")
    assert not found("", "I met Alice an example", alias="Alice Example")


@pytest.mark.parametrize("alias", ["", "kim", "12345678", "a b", "--", " ".join("a" * (REACH + 1))])
def test_a_name_that_says_too_little_is_no_mark(alias: str) -> None:
    assert alias_mark(alias, digest) is None


def test_a_name_that_somebody_gave_may_be_shorter() -> None:
    assert alias_mark("Kim", digest, given=True) is not None
    assert alias_mark("李明", digest, given=True) is not None
    assert alias_mark("x", digest, given=True) is None


@pytest.mark.requirement("R130")
def test_most_of_a_text_counts_beside_an_alias_and_nowhere_else() -> None:
    memory = "Alice sold the bakery in Porto"
    assert found(memory, "The Porto bakery? It was Alice who sold that.", alias="Alice", beside=True)
    assert not found(memory, "The Porto bakery? It was Maria who sold that.", alias="Alice", beside=True)
    assert not found(memory, "Alice was in Porto.", alias="Alice", beside=True)


def test_words_beside_an_alias_are_bound_to_it() -> None:
    """Nothing that stands in a ledger tells that two people spoke of the same thing."""
    texts = ["sold the bakery in Porto"]
    hers, his = beside_marks(texts, "Alice", digest), beside_marks(texts, "Ruben", digest)
    assert {m.digest for m in hers}.isdisjoint(m.digest for m in his)
    assert beside_marks(["Porto"], "Alice", digest) == []


def test_short_sentences_have_a_least_length() -> None:
    assert not part_of(["zygote"] * (SHORTEST - 1), digest)


@pytest.mark.requirement("R93")
def test_two_common_sentences_of_one_text_are_found_in_a_longer_one() -> None:
    memory = "You all look so happy! How long have you been here? Nature is all we need."
    both = "In short: how long have you been here, she asked, and that you all look so happy."
    assert found(memory, both)
    assert not found(memory, "In short: you all look so happy."), "one of them is anybody's"
    assert not found(memory, "You all look so happy, and you all look so happy.")


@pytest.mark.parametrize("form", ["hand-painted", "hand painted", "handpainted"])
def test_a_hyphen_may_come_and_go(form: str) -> None:
    memory = "Keeps a hand-painted bowl with blue herons on it. Nothing else."
    assert found(memory, f"She keeps a {form} bowl with blue herons on it")


def test_a_dash_counts_as_a_reader_counts_it() -> None:
    memory = "Some words. You are doing great things - keep it up! More words."
    assert found(memory, "He said: you are doing great things, keep it up, and left")
