"""Why a row is dropped: each cause by itself, and what looks like one and is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from quietus.core.decision import Screening
from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.fingerprint import Mark, alias_mark, beside_marks, joined, words
from quietus.core.operations import Item
from quietus.core.scope import UNKNOWN, Scope
from quietus.core.screener import record_name, twin_mark
from quietus.core.screening import screen
from quietus.core.states import State
from tests.core.making import digest, digested, pseudonym, scope
from tests.core.test_screening import ALICE, ALICES, BOBS, Answers, row, scalars_of

ACME = scope(tenant="acme")


@pytest.fixture
def answers() -> Answers:
    return Answers()


def look(
    answers: Answers,
    items: Sequence[Item],
    *,
    newer: Callable[[Item, Erasure], bool] = lambda item, erasure: False,
    written: frozenset[str] = frozenset(),
    own: str = "",
) -> Screening:
    """Screens what a call in the tenant acme is answered."""

    def scope_of(item: Item) -> Scope:
        said = {"subject": item.subject, "purpose": item.purpose, "key": item.key, "path": item.path}
        raw = {name: UNKNOWN if v is None else frozenset({v}) for name, v in said.items()}
        tenant = frozenset({item.tenant or "acme"})
        return digested(replace(Scope(**raw), tenant=tenant))  # type: ignore[arg-type]

    return screen(
        items, scalars_of(items), gate=answers.gate, screener=answers.screener, scope=ACME, scope_of=scope_of,
        paths_of=lambda item: item.path, own=own, newer=newer, written=written,
    )  # fmt: skip


def test_empty_row_says_nothing_of_anybody_and_one_dropped_has_the_cause_that_was_found(
    answers: Answers,
) -> None:
    answers.alice()
    assert answers.screen([Item(0)]) == Screening()
    found = answers.screen([row(0, None, key="memory-0001"), row(1, None)])
    assert found.dropped == {0, 1}
    assert answers.screen([row(0, None, key="memory-0001")]).causes == {"key"}


@pytest.mark.parametrize(
    ("item", "causes"),
    [
        (row(subject="alice", text="a note"), {"subject"}),
        (row(text=ALICES), {"content"}),
        (row(text="a digest", derived_from=("memory-0001",)), {"derived", "key"}),
        (row(provenance_resolved=False), {"provenance"}),
    ],
)
def test_causes_are_named(answers: Answers, item: Item, causes: set[str]) -> None:
    answers.alice()
    assert answers.screen([item]).causes == causes
    if causes != {"provenance"}:
        outside = answers.screen([row(1)], [(None, item.texts[0])])
        assert outside.causes == (causes & {"content"})


@pytest.mark.parametrize(
    ("text", "cause"), [("alice", "subject"), (ALICES, "content"), ("memory-0001", "key")]
)
def test_cause_of_what_stands_outside_the_rows_is_named(answers: Answers, text: str, cause: str) -> None:
    answers.alice()
    assert answers.screen([row(0)], [(None, text)]).causes == {cause}


def test_what_stands_at_a_place_without_a_row_is_dropped_there(answers: Answers) -> None:
    answers.alice()
    assert answers.screen([row(0)], [(5, "alice")]).dropped == {5}


def test_own_erasure_does_not_hide_another_that_left_the_same_text(answers: Answers) -> None:
    own = answers.alice()
    other = answers.erase(scope(tenant="acme", subject="carol"))
    answers.mark(other, texts=[ALICES])
    found = answers.screen([row(text=ALICES)], own=own.id)
    assert (found.dropped, found.erased) == ({0}, (other,))


# Twins: what was a bystander's own, too


def twin(subject: str, text: str) -> Mark:
    return twin_mark(pseudonym("subject", subject), joined(words(text)), digest)


def test_what_was_a_bystanders_own_word_for_word_stays_theirs(answers: Answers) -> None:
    erasure = answers.alice(State.SETTLED)
    answers.mark(erasure, twin("bob", ALICES))
    assert answers.screen([row(text=ALICES)]) == Screening()
    assert answers.screen([row(text=f"{ALICES} Really.")]).dropped == {0}
    assert answers.screen([row(0, "carol", ALICES)]).dropped == {0}
    assert answers.screen([row(0, None, ALICES)]).dropped == {0}
    longer = f"They told us that {ALICES} And that was that."
    answers.mark(erasure, twin("bob", longer))
    assert answers.screen([row(text=longer)]).dropped == {0}, "a quote in it is not the whole of it"


def test_twin_of_one_erasure_does_not_hide_the_quote_of_another(answers: Answers) -> None:
    erasure = answers.alice(State.SETTLED)
    answers.mark(erasure, twin("bob", ALICES))
    other = answers.erase(scope(tenant="acme", subject="carol"), State.SETTLED)
    answers.mark(other, texts=[f"They told us that {ALICES} And that was that."])
    found = answers.screen([row(text=ALICES)])
    assert (found.dropped, found.erased) == ({0}, (other,))


# Names


def test_likeness_beside_a_name_counts_in_writes_and_never_in_answers(answers: Answers) -> None:
    memory = "Alice sold the bakery in Porto"
    erasure = answers.erase(ALICE, State.SETTLED)
    alias = alias_mark("Alice", digest)
    assert alias is not None
    answers.mark(erasure, alias, *beside_marks([memory], "Alice", digest))
    said = "The Porto bakery? It was Alice who sold that."
    assert "beside" in {hit.cause for hit in answers.screener.look(said)}
    assert answers.screen([row(text=said)], [(None, said)]) == Screening()


def test_row_of_a_purpose_that_was_kept_may_name_its_own_subject(answers: Answers) -> None:
    erasure = answers.alice(predicate=scope(tenant="acme", subject="alice", purpose="ads"))
    alias = alias_mark("alice", digest)
    assert alias is not None
    answers.mark(erasure, alias)
    kept = row(0, "alice", "a bill", purpose="billing")
    assert answers.screen([kept]) == Screening()
    assert answers.screen([replace(kept, texts=("to alice",))]).causes == {"alias"}
    assert answers.screen([row(0, "bob", "alice", purpose="billing")]).dropped == {0}


def test_address_in_what_was_erased_is_no_name_of_a_row(answers: Answers) -> None:
    erasure = answers.erase(ALICE, State.SETTLED)
    answers.mark(erasure, texts=["Write to ada@example.org about the spare key of the house"])
    found = answers.screen([row(0, "ada@example.org", "a note")])
    assert (found.dropped, found.causes) == ({0}, {"token"})


# Keys


@pytest.mark.parametrize("tenants", [("other", "acme"), ("acme", "other")])
def test_key_of_two_tenants_is_found_in_the_one_that_asks(answers: Answers, tenants: tuple[str, ...]) -> None:
    for tenant in tenants:
        erasure = answers.erase(scope(tenant=tenant, subject="alice"))
        answers.mark(erasure, Mark("id", pseudonym("key", "memory-0001")))
    assert look(answers, [row(0, "alice", "a note", key="memory-0001")]).dropped == {0}
    assert look(answers, [row(0, "dora", "a note", key="memory-0001")]).dropped == {0}


def test_key_of_a_record_of_nobody_known_is_not_given_again(answers: Answers) -> None:
    answers.alice(State.SETTLED, scope(tenant="acme", subject="alice", purpose="ads"))
    again = row(0, None, key="memory-0001", purpose="billing")
    assert look(answers, [again]).dropped == {0}
    assert look(answers, [replace(again, subject="alice")]).dropped == frozenset()


@pytest.mark.parametrize("state", [State.SETTLING, State.SETTLED])
@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_key_that_was_written_again_is_another_records_once_settled_or_by_this_call(
    answers: Answers, state: State, newer: bool, written: bool
) -> None:
    answers.alice(state)
    again = row(0, "alice" if state is State.SETTLING else None, "a note", key="memory-0001")
    keys = frozenset({"memory-0001"}) if written else frozenset()
    found = look(answers, [again], newer=lambda item, erasure: newer, written=keys)
    assert ("key" in found.causes) is not (newer and (state is State.SETTLED or written))


# Descendants


@pytest.mark.parametrize("path", [None, ("notes",)])
def test_record_that_was_derived_is_held_back_as_long_as_its_mark_says(
    answers: Answers, path: tuple[str, ...] | None
) -> None:
    erasure = answers.erase(ALICE, name="alice")
    kind, name = ("key", "d-1") if path is None else ("record", record_name(path, "d-1"))
    answers.mark(erasure, Mark("descendant", pseudonym(kind, name)))
    derived = row(0, "bob", BOBS, key="d-1", path=path)
    found = look(answers, [derived, row(1, key="d-2", path=path)])
    assert (found.dropped, found.causes, found.erased) == ({0}, {"derived"}, ())
    assert look(answers, [replace(derived, tenant="other")]) == Screening()
    assert look(answers, [derived], newer=lambda item, erasure: True) == Screening()
    answers.happen(erasure.id, EventType.CLEAN)
    answers.happen(erasure.id, EventType.ACCEPTED)
    answers.happen(erasure.id, EventType.CLEAN)
    assert look(answers, [derived]).dropped == {0}


def test_record_of_which_it_is_not_known_is_held_back_until_it_is_settled(answers: Answers) -> None:
    erasure = answers.erase(ALICE, name="alice")
    answers.mark(erasure, Mark("escalated", pseudonym("key", "d-1")))
    doubtful = row(0, "bob", BOBS, key="d-1")
    assert look(answers, [doubtful]).causes == {"derived"}
    for kind in (EventType.ACCEPTED, EventType.CLEAN):
        answers.happen(erasure.id, kind)
    assert look(answers, [doubtful]) == Screening()


def test_a_tenant_that_is_named_like_the_erased_is_where_a_row_lies(answers: Answers) -> None:
    answers.alice(predicate=scope(subject="alice"))
    assert look(answers, [row(tenant="alice")]) == Screening()
    assert look(answers, [row(subject="alice", tenant="alice")]).dropped == {0}
    assert look(answers, [row(text="alice", tenant="other")]).dropped == {0}
