"""Which words single one person out, in which forms they are one, and what is nobody's."""

from __future__ import annotations

import base64

import pytest

from quietus.core.tokens import BLOBS, TOKENS, tokens_of, unwrapped


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("write to Ada.Byron+x@mail.example.org.", ["mail:ada.byron+x@mail.example.org"]),
        ("a@b.co, c-d@e-f.io", ["mail:a@b.co", "mail:c-d@e-f.io"]),
        ("-ada@x.org- said so", ["mail:ada@x.org"]),
        ("no@where and @home", []),
        ("ring +41 44 668 18 00 today", ["number:446681800"]),
        ("ring 044 668 18 00 today", ["number:446681800"]),
        ("ring (044) 668-1800 today", ["number:446681800"]),
        ("ring 555-1234 today", ["number:5551234"]),
        ("ring 55-51234 today", []),
        ("ring 1234 5678 today", []),
        ("ring (44) 66 81 80 today", ["number:44668180"]),
        ("ring 44 66 81 80 today", []),
        ("my card: 4556 7375 8689 9855", ["number:586899855"]),
        ("number 123456789", ["number:123456789"]),
        ("number 1234567", ["number:1234567"]),
        ("number 123456", []),
        ("number 123-456-789", ["number:123456789"]),
        ("number 1212121", ["number:1212121"]),
        ("+1234567890", ["number:234567890"]),
        ("1234567890", []),
        ("1700000000123", []),
        ("2234567890", ["number:234567890"]),
        ("17000000001", ["number:000000001"]),
        ("7777777", []),
        ("1234000", []),
        ("about 1,234,567.00 or 1 234 567 in all", []),
        ("about 123,456,789 or 123 456 789 in all", []),
        ("on 2024-03-15, 15.03.2024 and 15/03/24", []),
        ("from 2019-2024 at 12:30:45", []),
        ("2024-03-15 10", []),
        ("12 34 56 78 91", []),
        ("+12 34 56 78 91", ["number:234567891"]),
        ("123456789012345678901234", ["number:678901234"]),
        ("1234567890123456789012345", []),
        ("CH93 0076 2011 6238 5295 7 is hers", ["id:ch9300762011623852957", "number:623852957"]),
        ("gb29 nwbk 6016 13 is theirs", ["id:gb29nwbk601613"]),
        ("gb29 nwbk 6016 1 is theirs", []),
        ("five five five one two three four", ["number:5551234"]),
        ("oh-four-four six six eight one eight nine", ["number:044668189"]),
        ("one two three four five six", []),
        ("badge AB-12345 and order x_2024_77", ["id:ab12345", "id:x202477"]),
        ("1234 steps, 1234kg, 1920x1080, a123, ab12", []),
        ("a1234", ["id:a1234"]),
        ("1234kg of b1234", ["id:b1234"]),
        ("see file/ab1234", ["id:fileab1234"]),
        ("see ./ab1234", []),
        ("mail ab1234@x", []),
        ("", []),
        ("Nothing of the kind on Monday, 3 May", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert tokens_of(text) == tokens


def test_each_token_is_told_once_and_only_so_many() -> None:
    assert tokens_of("a@b.co and A@B.CO") == ["mail:a@b.co"]
    assert len(tokens_of(" ".join(f"u{n}@x.org" for n in range(TOKENS + 5)))) == TOKENS


SAID = "Ada keeps the spare key under a pot"


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(SAID.encode()).decode(),
        base64.urlsafe_b64encode(SAID.encode()).decode().rstrip("="),
        SAID.encode().hex(),
        SAID.encode().hex().upper(),
        SAID.replace(" ", "%20"),
        SAID.replace(" ", "\\u0020"),
        f"data:text/plain;base64,{base64.b64encode(SAID.encode()).decode()}",
    ],
)
def test_what_is_said_in_another_writing_is_read(text: str) -> None:
    assert SAID in [plain.rpartition("\n")[2] for plain in unwrapped(text)]


@pytest.mark.parametrize(
    "text",
    [
        "", SAID, base64.b64encode(b"notaspaceword").decode(), "100 % of it", "extraordinarilylongword",
        "a" * 17, "0123456789abcdef" * 2, "C:\\users\\ada",
    ],
)
def test_what_is_no_other_writing_is_left_alone(text: str) -> None:
    assert unwrapped(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (base64.b64encode(b"a key inside").decode(), "a key inside"),
        (base64.urlsafe_b64encode(b"is?so> now or").decode(), "is?so> now or"),
        (base64.b64encode(b"is?so> now or").decode(), "is?so> now or"),
        (b"a key inside now".hex(), "a key inside now"),
        ("a%20key", "a key"),
        ("a\\u0020key", "a key"),
    ],
)
def test_the_shortest_of_another_writing_is_read(text: str, said: str) -> None:
    assert said in unwrapped(text)


def test_only_so_many_pieces_of_a_text_are_decoded() -> None:
    pieces = [base64.b64encode(f"piece number {number:03}".encode()).decode() for number in range(BLOBS + 3)]
    assert unwrapped(" ".join(pieces)) == [f"piece number {number:03}" for number in range(BLOBS)]
    written = [f"piece number {number:03}".encode().hex() for number in range(BLOBS + 3)]
    assert unwrapped(" ".join(written))[-1] == f"piece number {BLOBS - 1:03}"


def test_several_lines_in_base64_are_read_and_what_cannot_be_printed_is_not() -> None:
    assert unwrapped(base64.b64encode(b"a line of it\nand another").decode()) == ["a line of it\nand another"]
    assert unwrapped(base64.b64encode(b"a line of it\x00\x01 and no more").decode()) == []
    twice = base64.b64encode(base64.b64encode(SAID.encode())).decode()
    [once] = unwrapped(twice)
    assert unwrapped(once) == [SAID]
    assert unwrapped("\\ud800 and %41") == ["? and A"]
