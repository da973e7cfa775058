"""What is folded away, one rule at a time, and what is not."""

from __future__ import annotations

import pytest

from quietus.core.folding import (
    cleaned,
    folded,
    one_line,
    readings,
    sentences,
    spaceless,
    spans,
    split,
    unhyphened,
    words,
)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", ""),
        ("Plain Text", "plain text"),
        ("don't and can`t", "dont and cant"),
        ("don’t and canʼt", "dont and cant"),
        ("rock 'n' roll 'quoted'", "rock 'n' roll 'quoted'"),
        ("1,234 and 1.234 and 1'234", "1234 and 1234 and 1234"),
        ("12 345", "12345"),
        ("a.1,234", "a.1,234"),
        ("[Lisbon](https://x.example/a \"t\") rocks", "lisbon rocks"),
        ("![a cat](cat.png)", "a cat"),
        ("said so [1] and so [2, 3]", "said so   and so  "),
        ("said so [^4]", "said so  "),
        ("said so【3†source】", "said so "),
        ("said so \ue200cite\ue202turn0\ue201.", "said so  ."),
        ("[not a link] here", "[not a link] here"),
        ("<p>one</p><br/>two", " one  two"),
        ("<b>Lis</b>bon", "lisbon"),
        ("a &amp; b &lt;i&gt;", "a & b <i>"),
        ("caf&eacute;", "cafe"),
        ("a < b and b > a", "a < b and b > a"),
        ("**bold** and `code` and ~~gone~~", "bold and code and gone"),
        ("- one\n- two", "one\ntwo"),
        ("1. one\n2) two", "one\ntwo"),
        ("# head\n> quote", "head\nquote"),
        ("-5 degrees", "-5 degrees"),
        ("Ａｌｉｃｅ", "alice"),
        ("Аlice mоved", "alice moved"),
        ("Жанна", "жанна"),
        ("Al\u200bice mo\u00adved", "alice moved"),
        ("m\u00f6ved t\u00f3", "moved to"),
        ("ﬁne ß", "fine ss"),
        ("m² and H₂O", "m and h2o"),
        ("ædon œuvre", "aedon oeuvre"),
        ("“so” — she…", '"so" - she.'),
        ("a\u00a0b\u2009c", "a b c"),
    ],
)
def test_folded(text: str, form: str) -> None:
    assert folded(text) == form


def test_addresses_and_numbers_are_read_before_apostrophes_and_groups_go() -> None:
    assert cleaned("O'Neil <b>has</b> 1,234") == "o'neil has 1,234"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one two", ["one", "two"]),
        ("x-ray, e.g. 3rd", ["x", "ray", "e", "g", "3rd"]),
        ("жанна работает", ["жанна", "работает"]),
        ("在港口 works", ["在", "港", "口", "works"]),
        ("नमस्ते", ["नमस्ते"]),
        ("a_b", ["a", "b"]),
        ("...", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == split(folded(text)) == found


@pytest.mark.parametrize(
    ("character", "expected"),
    [("在", True), ("ก", True), ("ひ", True), ("a", False), ("é", False), ("ж", False), ("在港", False),
     ("あ", True), ("।", False), ("", False), ("\u2014", False), ("한", False)],
)  # fmt: skip
def test_characters_of_scripts_without_spaces(character: str, expected: bool) -> None:
    assert spaceless(character) is expected


def test_sentences_end_at_their_signs_and_at_lines() -> None:
    text = 'One two. Three "four"! Five\nsix? 1.5 e.g.x (Seven.) 八。九'
    assert sentences(folded(text)) == [
        ["one", "two"], ["three", "four"], ["five"], ["six"], ["1", "5", "e", "g", "x", "seven"], ["八"],
        ["九"],
    ]  # fmt: skip
    assert spans("a. b") == ["a", " b"]
    assert one_line("a\n\nb\rc") == "a b c"
    assert unhyphened("hand-painted x - y a.b") == "handpainted x - y ab"


def test_other_readings_of_lists_and_groups() -> None:
    assert readings("1. one 2 345") == ("one 2345", "1. one 2345", "one 2 345", "1. one 2 345")
    assert readings("- one") == ("one",)
    assert readings("1. **one**") == ("one", "1. one")
