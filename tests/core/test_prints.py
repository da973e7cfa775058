"""Prints of a text, and who shares it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.prints import COUNTED, GRAM, KEPT, SENTENCES, WINDOW, Sharing, prints_of, short
from tests.core.making import digest

ALICE, BOB, CAROL = b"alice---a", b"bob-----b", b"carol---c"
LEAST = GRAM + WINDOW - 1
words = st.lists(st.text("abcdefgh", min_size=3, max_size=5), min_size=LEAST, max_size=20)


def runs(text: str, most: int = 99) -> tuple[int, ...]:
    found = prints_of(text, digest, most)
    assert found is not None
    return found.runs


@settings(deadline=None, max_examples=60)
@given(words, words, st.data())
def test_texts_with_eight_words_in_a_row_in_common_have_a_print_in_common(
    one: list[str], other: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(one) - LEAST))
    quote = one[start : start + LEAST]
    place = data.draw(st.integers(0, len(other)))
    quoting = [*other[:place], *quote, *other[place:]]
    assert set(runs(" ".join(one))) & set(runs(" ".join(quoting)))
    assert set(runs(" ".join(quote))) <= set(runs(" ".join(one)))


def test_few_prints_are_kept_and_none_of_a_short_text() -> None:
    text = " ".join(f"word{number}" for number in range(200))
    assert len(runs(text, KEPT)) == KEPT
    assert runs(text, KEPT) == runs(text)[:KEPT]
    assert 200 // (WINDOW + 1) < len(runs(text)) < 200 // 2
    assert runs(" ".join(text.split()[: LEAST - 1])) == ()
    assert len(runs(" ".join(text.split()[:LEAST]))) == 1
    assert prints_of(" ... ", digest) is None


def test_whole_and_sentences_are_told_apart() -> None:
    found = prints_of("Ada plays the oboe. She left! Bob sings in the choir.", digest)
    alone = prints_of("Ada plays the oboe", digest)
    assert found is not None
    assert alone is not None
    assert alone.sentences == ()
    assert found.sentences[0] == alone.whole != found.whole
    assert len(found.sentences) == 2, "one of two words is nobody's"
    many = prints_of("Ada plays the oboe. " + "".join(f"Bob {n} sings it. " for n in range(20)), digest)
    assert many is not None
    assert len(many.sentences) == SENTENCES


def test_digest_is_known_by_its_first_eight_bytes() -> None:
    assert short(b"\0\0\0\0\0\0\1\2rest") == 0x102


# Who shares a text

TEXT = digest("text", b"a text")
NUMBER = short(TEXT)


def test_each_subject_counts_once_and_not_when_erased_or_gone() -> None:
    sharing = Sharing()
    assert sharing.live(TEXT) == 0
    for subject in (ALICE, BOB, ALICE, CAROL):
        sharing.held(NUMBER, subject)
    assert (len(sharing), sharing.live(TEXT), sharing.live(TEXT, [ALICE])) == (1, 3, 2)
    assert sharing.holding(TEXT, [BOB]) == (short(ALICE), short(CAROL))
    sharing.gone(NUMBER, BOB)
    sharing.gone(NUMBER, b"nobody---")
    assert sharing.holding(TEXT) == (short(ALICE), short(CAROL))
    sharing.gone(NUMBER, ALICE)
    sharing.gone(NUMBER, CAROL)
    sharing.gone(NUMBER, CAROL)
    assert (len(sharing), sharing.live(TEXT)) == (0, 0)


def test_so_many_subjects_of_a_text_are_remembered() -> None:
    sharing = Sharing()
    for number in range(COUNTED + 3):
        sharing.held(NUMBER, bytes([number + 1]) * 16)
    assert sharing.live(TEXT) == COUNTED


@pytest.mark.parametrize("touched", [False, True])
def test_at_the_bound_the_text_seen_longest_ago_is_forgotten(touched: bool) -> None:
    sharing = Sharing(bound=2)
    sharing.held(1, ALICE)
    sharing.held(2, ALICE)
    if touched:
        sharing.held(1, ALICE)
    sharing.held(3, BOB)
    assert len(sharing) == 2
    left = {number for number in (1, 2, 3) if sharing.live(number.to_bytes(8, "big"))}
    assert left == ({1, 3} if touched else {2, 3})
    sharing.held(3, CAROL)
    sharing.held(3, ALICE)
    assert sharing.holding((3).to_bytes(8, "big")) == (short(BOB), short(CAROL), short(ALICE))
