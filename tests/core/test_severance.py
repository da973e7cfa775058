"""What a descendant has in common with the erased, at the bounds of each rule, and why it goes or stays."""

from __future__ import annotations

import pytest

from quietus.core.operations import Item
from quietus.core.severance import ALIKE, Fate, Sources, Span, decide

SOURCE = "one two three four five six seven eight nine ten. Small words here too!"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("one two three four five six seven eight", Span.QUOTE),
        ("x two three four five six seven eight nine x", Span.QUOTE),
        ("one two three four five six seven x", Span.SHORT),
        ("x one two three four x", Span.SHORT),
        ("x one two three x four", Span.NONE),
        ("so small words here too then", Span.QUOTE),
        ("small words here too", Span.QUOTE),
        ("small words here", Span.NONE),
        ("smaller words here too", Span.NONE),
        ("", Span.NONE),
    ],
)
def test_runs_and_sentences(text: str, span: Span) -> None:
    assert Sources([SOURCE]).span(text) is span


@pytest.mark.parametrize(
    ("name", "text", "span"),
    [
        ("ada byron", "met Ada Byron today", Span.SHORT),
        ("ada byron", "met Ada today, Byron not", Span.NONE),
        ("adams", "with adams", Span.SHORT),
        ("adam", "with adam", Span.NONE),
        ("adams", "with adamson", Span.NONE),
        ("-----", "anything", Span.NONE),
    ],
)
def test_names(name: str, text: str, span: Span) -> None:
    assert Sources([], names=[name]).span(text) is span


@pytest.mark.parametrize(
    ("source", "text", "span"),
    [
        ("badge 4471-22", "badge 447122", Span.QUOTE),
        ("badge 4471", "badge 4471", Span.NONE),
        ("code X44y7", "code x44Y7", Span.QUOTE),
        ("code X4y7", "code x4Y7", Span.NONE),
        ("A@b.io", "to a@B.io", Span.QUOTE),
        ("ring +41 44 668 18 00", "ring 044 668 18 00", Span.QUOTE),
    ],
)
def test_numbers_codes_and_addresses(source: str, text: str, span: Span) -> None:
    assert Sources([source]).span(text) is span


@pytest.mark.parametrize(
    ("vector", "alike"),
    [
        ((1.0, 0.0), True),
        ((3.0, 0.0), True),
        ((1.0, 0.1), True),
        ((1.0, 0.3), False),
        ((-1.0, 0.0), False),
        ((0.0, 1.0), False),
        ((0.0, 0.0), False),
        ((1.0, 0.0, 0.0), False),
        (None, False),
    ],
)
def test_vectors(vector: tuple[float, ...] | None, alike: bool) -> None:
    assert Sources([], [(2.0, 0.0)]).alike(vector) is alike
    assert Sources([], [(0.0, 7.0, 7.0), (2.0, 0.0)]).alike(vector) is alike
    assert Sources([]).alike(vector) is False
    assert ALIKE < 1


@pytest.mark.parametrize(
    ("text", "known", "fate", "reason"),
    [
        (SOURCE, {}, Fate.CASCADE, "quote"),
        ("one two three four", {}, Fate.ESCALATE, "few words"),
        ("one two three four", {"declared": False}, Fate.DISMISSED, "suspected"),
        ("one two three four", {"declared": False, "erased_edge": True}, Fate.ESCALATE, "few words"),
        ("nothing", {"erased_edge": True, "attested": True}, Fate.ESCALATE, "its edge"),
        ("nothing", {}, Fate.ESCALATE, "nobody vouches"),
        ("nothing", {"attested": True}, Fate.UNLINK, "attested"),
        ("nothing", {"readable": False, "attested": True}, Fate.ESCALATE, "cannot be read"),
    ],
)
def test_fate_and_reason(text: str, known: dict[str, bool], fate: Fate, reason: str) -> None:
    facts = {"readable": True, "erased_edge": False, "declared": True, "attested": False, **known}
    found = decide(Item(0, texts=(text,)), ["nothing", text], Sources([SOURCE], [(1.0, 0.0)]), **facts)
    assert found.fate is fate
    assert reason in found.reason
    assert decide(None, [], Sources([SOURCE]), **{**facts, "readable": True}).fate is Fate.GONE
