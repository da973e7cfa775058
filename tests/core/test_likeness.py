"""What two texts have in common, stem by stem."""

from __future__ import annotations

import pytest

from quietus.core.likeness import COMMON, PARTS, STEMS, TELLING, alike, parts_of, stem, stems_of


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("baking", "bak"), ("bake", "bake"), ("bakes", "bak"), ("baked", "bak"), ("bakery", "bakery"),
        ("seemingly", "seem"), ("excitedly", "excit"), ("ponies", "pon"), ("studied", "stud"),
        ("quickly", "quick"), ("bridge", "bridg"), ("cats", "cat"), ("ring", "ring"), ("bus", "bus"),
        ("bring", "bring"), ("goes", "goe"), ("shed", "shed"), ("ruling", "rul"),
        ("dove", "dove"), ("drove", "drov"),
    ],
)  # fmt: skip
def test_stems(word: str, root: str) -> None:
    assert stem(word) == root


def test_words_weigh_by_what_they_tell_and_those_that_say_nothing_weigh_nothing() -> None:
    found = stems_of("the oboist was at zermatt with my friend by it".split())
    assert found == {"oboist": TELLING, "zermatt": TELLING, "friend": COMMON}
    assert stems_of(["ax", "axe", "lisbon"], but=["lisbon"]) == {"axe": TELLING}
    assert stems_of(["我", "ab"]).keys() == {"我"}


def test_a_stem_weighs_as_its_weightiest_word_and_only_so_many_are_kept() -> None:
    words = [f"zygote{number:03}x" for number in range(STEMS + 3)]
    assert list(stems_of(words)) == words[:STEMS]
    assert stems_of([words[0]] * 3) == {words[0]: TELLING}


def test_likeness_is_the_share_of_the_weight_that_is_met() -> None:
    text = {"oboist": 3, "zermatt": 3, "friend": 1, "walk": 1}
    assert alike(text, ["oboist", "friend"]) == 0.5
    assert alike(text, ["oboist", "other"]) == 0.0, "one is not enough"
    assert alike(text, text) == 1.0
    assert alike(text, []) == 0.0


def test_each_sentence_is_compared_by_itself_beside_the_whole() -> None:
    one, two = ["one", "plays"], ["two", "sing"]
    assert parts_of("One plays. Two sing!") == [[*one, *two], one, two]
    assert parts_of("One plays") == [["one", "plays"]]
    assert len(parts_of("Ada sings. " * (PARTS + 5))) == PARTS + 1
