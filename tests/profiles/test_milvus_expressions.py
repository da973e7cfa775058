"""Milvus's expressions: never read as narrower than they are, and a forget only when exactly understood.

Expressions are made at random together with their meaning, and the reading is held against that meaning over
rows: a row that the expression takes must lie within the reading; where the reading claims to be exact, a row
that lies within it must be taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.scope import UNKNOWN
from quietus.profiles.expressions import read_milvus
from quietus.profiles.filters import FilterReading

FIELDS = {"user_id": "subject", "id": "key", "*": "narrows"}
PEOPLE = ["alice", "bob", 'o"brien', "back\\slash", "*", ""]
ROWS = [
    {"user_id": person, "id": number, "age": age}
    for person, number, age in product([*PEOPLE, None], [1, 2, 30], [None, 7])
]
Row = dict[str, Any]


@dataclass(frozen=True)
class Said:
    """An expression and what it means."""

    text: str
    holds: Callable[[Row], bool]


def literal(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return str(value)


def compared(left: Any, sign: str, right: Any) -> bool:
    if left is None or right is None or isinstance(left, str) != isinstance(right, str):
        return False
    return bool({"==": left == right, "!=": left != right, "<": left < right, ">=": left >= right}[sign])


quotes = st.sampled_from(['"', "'"])
names = st.sampled_from(["user_id", '$meta["user_id"]', "$meta['user_id']"])


@st.composite
def atoms(draw: st.DrawFn) -> Said:
    field, values = draw(st.sampled_from([
        ("user_id", st.sampled_from(PEOPLE)), ("id", st.integers(0, 3)), ("age", st.integers(0, 9)),
    ]))  # fmt: skip
    shown = draw(names) if field == "user_id" else field
    quote = draw(quotes)
    kind = draw(st.sampled_from(["compare", "turned", "in", "not in", "chain", "like", "sum", "true"]))
    value = draw(values)
    if kind in ("in", "not in"):
        some = draw(st.lists(values, min_size=1, max_size=3))
        listed = ", ".join(literal(one, quote) for one in some)
        inside = kind == "in"
        word = draw(st.sampled_from([kind, kind.upper()]))
        return Said(
            f"{shown} {word} [{listed}]",
            lambda row: row[field] is not None and (row[field] in some) is inside,
        )
    if kind == "chain" and field != "user_id":
        return Said(f"0 <= {shown} < {value}", lambda row: row[field] is not None and 0 <= row[field] < value)
    if kind == "like" and field == "user_id":
        return Said(f"{shown} like {quote}ali%{quote}", lambda row: str(row[field] or "").startswith("ali"))
    if kind == "sum" and field == "age":
        return Said(
            f"({shown} + 1) * 2 >= {value}",
            lambda row: row[field] is not None and (row[field] + 1) * 2 >= value,
        )
    if kind == "true":
        return Said("1 == 1", lambda row: True)
    sign = draw(st.sampled_from(["==", "!=", "<", ">="]))
    if kind == "turned" and sign in ("==", "!="):
        return Said(f"{literal(value, quote)} {sign} {shown}", lambda row: compared(row[field], sign, value))
    return Said(f"{shown}{sign}{literal(value, quote)}", lambda row: compared(row[field], sign, value))


def joined(inner: st.SearchStrategy[Said]) -> st.SearchStrategy[Said]:
    def both(word: str, left: Said, right: Said) -> Said:
        either = word in ("or", "OR", "||")
        return Said(
            f"({left.text}) {word} ({right.text})",
            (lambda row: left.holds(row) or right.holds(row)) if either
            else (lambda row: left.holds(row) and right.holds(row)),
        )  # fmt: skip

    words = st.sampled_from(["and", "AND", "&&", "or", "OR", "||"])
    negations = st.sampled_from(["not (%s)", "NOT (%s)", "!(%s)", "not(not (%s))"])
    return st.one_of(
        st.builds(both, words, inner, inner),
        st.builds(
            lambda form, one: Said(
                form % one.text, one.holds if form.count("not") > 1 else lambda row: not one.holds(row)
            ),
            negations, inner,
        ),
    )  # fmt: skip


@st.composite
def flat(draw: st.DrawFn) -> Said:
    """Without brackets: `and` binds tighter than `or`."""
    groups = draw(st.lists(st.lists(atoms(), min_size=1, max_size=3), min_size=1, max_size=3))
    text = " or ".join(" and ".join(one.text for one in group) for group in groups)
    return Said(text, lambda row: any(all(one.holds(row) for one in group) for group in groups))


expressions = st.one_of(flat(), st.recursive(atoms(), joined, max_leaves=6))


def lies_within(row: Row, reading: FilterReading) -> bool:
    for dimension, field in (("subject", "user_id"), ("key", "id")):
        bound = reading.bounds.get(dimension)
        if isinstance(bound, frozenset) and (row[field] is None or str(row[field]) not in bound):
            return False
    return True


@pytest.mark.timeout(240)  # it makes many examples
@given(expressions)
@settings(max_examples=300, deadline=None)
def test_a_reading_is_never_narrower_than_the_truth_and_exact_where_it_says_so(said: Said) -> None:
    reading = read_milvus(said.text, FIELDS)
    exact = not (reading.narrowed or reading.empty or UNKNOWN in reading.bounds.values())
    for row in ROWS:
        if said.holds(row):
            assert lies_within(row, reading), (said.text, row, reading)
        elif exact:
            assert not lies_within(row, reading), (said.text, row, reading)


@pytest.mark.timeout(240)  # it makes many examples
@given(st.text(max_size=40) | st.text(alphabet="ab_\"'\\[](){}=!<>&|, 01.not in", max_size=40))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_is_read(text: str) -> None:
    reading = read_milvus(text, FIELDS)
    assert not any(bound == frozenset() for bound in reading.bounds.values())


def subject(text: Any, **more: Any) -> Any:
    return read_milvus({"expr": text, **more}, FIELDS).bounds.get("subject")


UNREAD = [
    'user_id == name', 'user_id["x"] == "alice"', 'json_contains(user_id, "alice")', 'user_id == 7.0',
    'user_id == "al\\x69ce"', 'user_id == true', 'user_id == "alice', 'user_id = "alice"', "user_id == {u}",
    'user_id == "alice" and', '(user_id == "alice"', 'user_id == "*"', "user_id == 010", "user_id in {u}",
    'user_id == "a" xor id == 1', 'user_id == "alice" // bob', 'not (user_id != "alice")', "user_id == $meta",
    'ｕser_id == "alice"', 'user_id + "" == "alice"', "user_id in [name]",
    'user_id not in ["a", true]', "user_id",
]  # fmt: skip


@pytest.mark.parametrize("text", UNREAD)
def test_what_is_not_wholly_understood_is_unknown(text: str) -> None:
    assert subject(text) is UNKNOWN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('user_id == "alice"', {"alice"}),
        ("  USER == 1 and ( user_id IN ['alice' , \"bob\"] )", {"alice", "bob"}),
        ('user_id == "alice" && text_match(text, "elm") && !(age > 3 || tags["x"] like "a%")', {"alice"}),
        ('exists tags["x"] and user_id == "alice"', {"alice"}),
        ('"alice" == user_id and 1 < age <= 7 and age % 2 == 0', {"alice"}),
        ('array_contains(tags, "x") and name is not null and user_id == "alice"', {"alice"}),
        ("user_id == -5", {"-5"}),
        ("user_id == 0x10", {"16"}),
        ('user_id == "alice" or user_id == "bob"', {"alice", "bob"}),
        ('user_id == "alice" or 1 == 1', None),
        ('user_id != "alice"', None),
        ('not (user_id == "alice")', None),
        ("", None),
    ],
)
def test_what_is_understood(text: str, found: set[str] | None) -> None:
    assert subject(text) == (frozenset(found) if found else None)


def test_a_product_that_is_wider_than_its_branches_is_no_exact_reading() -> None:
    reading = read_milvus('(user_id == "a" and id == 1) or (user_id == "b" and id == 2)', FIELDS)
    assert reading.bounds == {"subject": frozenset({"a", "b"}), "key": frozenset({"1", "2"})}
    assert reading.narrowed


def test_template_values_are_read_where_they_stand() -> None:
    one = {"u": {"string_val": "alice"}}
    many = {"u": {"array_val": {"string_data": {"data": ["alice", "bob"]}}}}
    assert subject("user_id == {u}", expr_template_values=one) == frozenset({"alice"})
    assert subject("user_id in {u}", expr_template_values=many) == frozenset({"alice", "bob"})
    assert subject("user_id == {u}", expr_template_values={"u": {"json_val": "x"}}) is UNKNOWN
    assert subject("user_id == {v}", expr_template_values=one) is UNKNOWN


def test_a_field_that_nobody_knows_may_be_a_person() -> None:
    assert read_milvus('name == "alice"', {"user_id": "subject"}).bounds["subject"] is UNKNOWN


def test_nesting_and_length_are_bounded() -> None:
    assert subject("(" * 40 + 'user_id == "a"' + ")" * 40) is UNKNOWN
    assert subject("(((((((((((((((age+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1)+1) > 3") in (UNKNOWN, None)
    assert subject("not " * 5000 + "true") is UNKNOWN
    ids = ", ".join(str(number) for number in range(20_000))
    assert len(read_milvus(f"id in [{ids}]", FIELDS).bounds["key"]) == 20_000
    assert read_milvus(f'user_id == "{"a" * 2_000_000}"', FIELDS).bounds["subject"] is UNKNOWN
