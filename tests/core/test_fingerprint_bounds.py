"""Which marks a text leaves, at the bounds of each rule."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quietus.core.fingerprint import (
    HALF,
    REACH,
    Run,
    alias_mark,
    beside_marks,
    joined,
    marks_of,
    part_of,
)
from tests.core.making import digest

RARE = [f"zygote{number:02}x" for number in range(30)]
COMMON = "we can see that it is good to be here with all of them now and then".split()


def kinds(text: str) -> dict[str, int]:
    """How many marks of each kind a text leaves."""
    found: dict[str, int] = {}
    for mark in marks_of(text, digest):
        found[mark.kind] = found.get(mark.kind, 0) + 1
    return found


def said(*words: str) -> str:
    return " ".join(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (RARE[0], {}),
        (said(*RARE[:2]), {"text": 1}),
        (said(*COMMON[:3]), {}),
        (said(*COMMON[:4]), {"text": 1}),
        (said(*RARE[:3]), {"text": 1}),
        (said(*RARE[:4]), {"text": 1, "run:4": 1}),
        (said(*RARE[:2], *COMMON[:2]), {"text": 1}),
        (said(*RARE[:3], *COMMON[:2]), {"text": 1, "run:5": 1}),
        (said(*RARE[:2], *COMMON[:3]), {"text": 1}),
        (said(*RARE[:2], *COMMON[:4]), {"text": 1, "run:6": 1}),
        (said(*RARE[:1], *COMMON[:6]), {"text": 1}),
        (said(*COMMON[:8]), {"text": 1, "run:8": 1}),
        (said(*RARE[:8]), {"text": 1, "run:8": 1}),
        (said(*RARE[:9]), {"text": 1, "run:8": 2}),
        (said(*RARE[:1], *COMMON[:7]), {"text": 1, "run:8": 1}),
        (said(*RARE[:1], *COMMON[:8]), {"text": 1, "run:9": 1}),
        (said(*COMMON[:11]), {"text": 1, "run:11": 1}),
        (said(*COMMON[:12]), {"text": 1, "run:12": 1}),
        (said(*COMMON[:13]), {"text": 1, "run:12": 2}),
        (said(*RARE[:2], *COMMON[:13]), {"text": 1, "run:8": 1, "run:12": 3}),
        (said(*COMMON[:12], *RARE[:2]), {"text": 1, "run:8": 1, "run:12": 2}),
    ],
)
def test_marks_of_one_sentence(text: str, expected: dict[str, int]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("sentence", "whole"), [("can see that it - is good", 0), ("can see that it - is so good", 1)]
)
def test_a_sentence_is_as_long_as_a_reader_counts_it(sentence: str, whole: int) -> None:
    spoken = len(sentence.replace("- ", "").split())
    assert kinds(f"{sentence}. {said(*RARE[:4])}").get(f"run:{spoken}", 0) == whole


@pytest.mark.parametrize(("size", "marked"), [(7, False), (8, True), (11, True), (12, True)])
def test_a_sentence_of_common_words_is_marked_from_eight_on(size: int, marked: bool) -> None:
    assert bool(part_of(COMMON[:size], digest)) is marked


def test_common_sentences_of_eight_words_together_are_no_run() -> None:
    assert kinds(f"{said(*COMMON[:4])}. {said(*COMMON[4:8])}.") == {"text": 1, "part:4": 2}
    assert kinds(f"{said(*RARE[:4])}. {said(*COMMON[:3])}.") == {"text": 1, "run:4": 1, "run:7": 1}


def test_common_sentences_of_a_text_leave_parts_and_are_told_apart_by_the_text() -> None:
    text = f"{said(*COMMON[:5])}. {said(*RARE[:4])}."
    assert kinds(text) == {"text": 1, "part:5": 1, "run:4": 1, "run:8": 2}
    [part] = [mark for mark in marks_of(text, digest) if mark.kind == "part:5"]
    whole = [mark for mark in marks_of(text, digest) if mark.kind == "text"][0]
    assert part.digest[:HALF] == digest("head", joined(COMMON[:4]))[:HALF]
    assert part.digest[HALF : HALF + 2] == whole.digest[:2]
    assert part.digest[HALF + 2 :] == digest("part:5", joined(COMMON[:5]))[: HALF - 2]
    assert "part:3" not in kinds(f"{said(*COMMON[:3])}. {said(*RARE[:4])}.")


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("里斯本港", False), ("里斯本港口", False), ("我在里斯本", False), ("我在里斯本港", True),
        ("上夜班不喜欢", True), ("是的我们可以去", False),
        (("是", "的", "我", "们", *COMMON[:4]), False), (("是", "的", "我", *COMMON[:5]), True),
    ],
)
def test_short_sentences_of_characters(sentence: Sequence[str], marked: bool) -> None:
    assert bool(part_of(list(sentence), digest)) is marked


def test_run_of_characters_is_longer_and_that_of_narrow_scripts_longest() -> None:
    han = list("我在里斯本的港口办公室上夜班不喜欢电话")
    assert {mark.kind for mark in part_of(han, digest)} == {"run:12"}
    thai = list("ฉันย้ายไปลิสบอนในฤดูใบไม้ผลิและทำงาน")
    assert f"run:{REACH}" in {mark.kind for mark in part_of(thai, digest)}
    assert f"run:{REACH}" not in {mark.kind for mark in part_of(han, digest)}
    first_letters = list("กขคงจฉชซญฎฏฐฑฒณด")
    assert f"run:{REACH}" in {mark.kind for mark in part_of(first_letters, digest)}


@pytest.mark.parametrize(("characters", "expected"), [(3, {"run:8"}), (4, {"run:8", "run:12"})])
def test_half_of_a_run_are_characters_or_it_is_one_of_words(characters: int, expected: set[str]) -> None:
    mixed = [*"里斯本港"[:characters], *RARE[: 12 - characters]]
    assert {mark.kind for mark in part_of(mixed, digest)} == expected


@pytest.mark.parametrize(
    ("alias", "given", "kind"),
    [
        ("adams", False, "alias:1"),
        ("adam", False, None),
        ("adam", True, "alias:1"),
        ("kim", True, "alias:1"),
        ("ki", True, None),
        ("李明", True, "alias:2"),
        ("李", True, None),
        ("李 a", True, "alias:2"),
        ("ada b", False, None),
        ("ada by", False, "alias:2"),
        ("12345", False, None),
        ("1234a", False, "alias:1"),
        (said(*["abcde"] * REACH), False, f"alias:{REACH}"),
        (said(*["abcde"] * (REACH + 1)), False, None),
    ],
)
def test_aliases(alias: str, given: bool, kind: str | None) -> None:
    mark = alias_mark(alias, digest, given=given)
    assert (mark.kind if mark else None) == kind


def test_words_beside_an_alias_carry_their_text_and_how_many_tell() -> None:
    texts = ["nothing", said(*RARE[:3], "friend"), said(*RARE[5:7])]
    found = beside_marks(texts, "Alice", digest)
    assert {mark.kind for mark in found} == {"beside"}
    places = sorted({mark.digest[HALF : HALF + 3] for mark in found})
    assert places == [bytes([0, 1, 3]), bytes([0, 2, 2])]
    assert [mark.digest[HALF : HALF + 3] for mark in found].count(places[0]) == 4
    assert all(len(mark.digest) == 2 * HALF for mark in found)
    whole = digest("beside", joined(["alice", RARE[5]]))
    assert any(mark.digest == whole[:HALF] + places[1] + whole[HALF : 2 * HALF - 3] for mark in found)


@pytest.mark.parametrize("words", [["one"], ["one", "two", "three"], ["één", "two", "ж", "x"], []])
def test_stretches_of_a_run_are_its_words_joined(words: list[str]) -> None:
    run = Run(words)
    for start in range(len(words)):
        for size in range(1, len(words) - start + 1):
            assert run.piece(start, size) == joined(words[start : start + size])
    for size in range(1, len(words) + 2):
        expected = [joined(words[at : at + size]) for at in range(len(words) - size + 1)]
        assert run.pieces(size) == expected
