"""Screening of answers: what is dropped, why, and that nothing but removing happens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.decision import Screening
from quietus.core.erasure import Erasure
from quietus.core.events import EventType
from quietus.core.fingerprint import Mark, alias_mark
from quietus.core.operations import Item
from quietus.core.scope import UNKNOWN, Scope
from quietus.core.screening import CACHED, Screener, record_name, screen
from quietus.core.states import State
from tests.core.making import World, digest, digested, pseudonym, scope

ALICES = "Alice moved to Lisbon in spring and works nights at the harbour office."
BOBS = "Bob prefers the window seat and never drinks coffee after noon."
ALICE = scope(tenant="acme", subject="alice")


def row(position: int = 0, subject: str | None = "bob", text: str = BOBS, **more: object) -> Item:
    return Item(position, subject=subject, texts=(text,), **more)  # type: ignore[arg-type]


def scalars_of(items: Iterable[Item]) -> list[tuple[int | None, str]]:
    """Every scalar of the rows, as a codec would walk them."""
    found: list[tuple[int | None, str]] = []
    for item in items:
        said = (item.key, item.subject, item.tenant, item.purpose, *item.texts, *item.derived_from)
        found += [(item.position, text) for text in said if text is not None]
    return found


class Answers(World):
    """A world whose answers are screened."""

    def __init__(self) -> None:
        super().__init__()
        self.screener = Screener(self.gate, pseudonym, digest)

    def alice(
        self, state: State = State.SETTLING, predicate: Scope = ALICE, readmitted: bool = False
    ) -> Erasure:
        """Alice erased, with the marks that her snapshot leaves."""
        erasure = self.erase(predicate, state, name="alice", readmitted=readmitted)
        marks = [
            Mark("subject", pseudonym("subject", "alice")),
            Mark("id", pseudonym("key", "memory-0001")),
            Mark("key", pseudonym("record", record_name(("notes",), "memory-0001"))),
        ]
        self.mark(erasure, *marks, texts=[ALICES])
        return erasure

    def screen(
        self,
        items: Sequence[Item],
        extra: Iterable[tuple[int | None, str]] = (),
        call: Scope | None = None,
        own: str = "",
    ) -> Screening:
        call = call or scope(tenant="acme")

        def scope_of(item: Item) -> Scope:
            said = {"subject": item.subject, "purpose": item.purpose, "key": item.key, "path": item.path}
            raw = {name: UNKNOWN if v is None else frozenset({v}) for name, v in said.items()}
            tenant = call.tenant if item.tenant is None else frozenset({item.tenant})
            return digested(replace(Scope(**raw), tenant=tenant))  # type: ignore[arg-type]

        return screen(items, [*scalars_of(items), *extra], gate=self.gate, screener=self.screener, scope=call,
                      scope_of=scope_of, paths_of=lambda item: item.path, own=own)  # fmt: skip


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_without_an_erasure_nothing_is_dropped(answers: Answers) -> None:
    assert answers.screen([row(0, "alice", ALICES), row(1, None)], [(None, "alice")]) == Screening()


# What is dropped


@pytest.mark.requirement("R8")
@pytest.mark.parametrize("state", [State.REQUESTED, State.SETTLING, State.VIOLATION, State.SETTLED])
@pytest.mark.parametrize(
    ("item", "cause"),
    [
        (row(subject="alice", text="a note"), "subject"),
        (row(0, None, key="memory-0001"), "key"),
        (row(0, None, key="memory-0001", path=("notes",)), "key"),
        (row(text=ALICES), "content"),
        (row(text=f"As was said: {ALICES.upper()} And more."), "content"),
        (row(text="in spring and works nights at the harbour office, they said"), "content"),
        (row(text="a digest", derived_from=("memory-0001",)), "derived"),
        (row(text="alice"), "subject"),
    ],
)
def test_rows_of_the_erased_are_dropped(answers: Answers, item: Item, cause: str, state: State) -> None:
    erasure = answers.alice(state)
    screening = answers.screen([replace(item, position=1), row(2)])
    assert screening.dropped == {1}
    assert cause in screening.causes
    assert screening.erased == (erasure,)
    assert not screening.outside


@pytest.mark.parametrize("resolved", [None, True, False])
def test_rows_whose_provenance_dangles_are_dropped(answers: Answers, resolved: bool | None) -> None:
    screening = answers.screen([row(provenance_resolved=resolved)])
    assert screening.dropped == (frozenset({0}) if resolved is False else frozenset())


def test_rows_of_nobody_in_particular_are_held_back_while_unsettled(answers: Answers) -> None:
    erasure = answers.alice()
    screening = answers.screen([row(0, None), row(1)])
    assert (screening.dropped, screening.causes) == ({0}, {"unattributed"})
    assert screening.erased == (), "nobody knows that it was theirs: no evidence of a leak"
    answers.happen(erasure.id, EventType.CLEAN)
    assert answers.screen([row(0, None), row(1)]) == Screening()


def test_the_rest_of_a_forgets_own_answer_is_still_screened_for_others(answers: Answers) -> None:
    own = answers.alice()
    assert answers.screen([row(0, None)], own=own.id) == Screening()
    assert answers.screen([row(0, "alice", ALICES)], [(None, "memory-0001")], own=own.id) == Screening()
    answers.erase(scope(tenant="acme", subject="carol"))
    assert answers.screen([row(0, None)], own=own.id).dropped == {0}


@pytest.mark.parametrize("text", ["alice", ALICES, "memory-0001"])
def test_a_hit_outside_the_rows_refuses_the_whole_answer(answers: Answers, text: str) -> None:
    erasure = answers.alice()
    screening = answers.screen([row(0)], [(None, text)])
    assert (screening.outside, screening.dropped, screening.erased) == (True, frozenset(), (erasure,))


def test_short_words_of_another_are_no_mention(answers: Answers) -> None:
    erasure = answers.alice()
    answers.mark(erasure, Mark("id", pseudonym("key", "k1")))
    assert answers.screen([row(0, text="k1")]).dropped == frozenset()
    assert answers.screen([row(0, key="k1", text="a note")]).dropped == {0}


def test_a_name_inside_a_text_counts_while_unsettled_and_is_no_evidence(answers: Answers) -> None:
    erasure = answers.alice()
    alias = alias_mark("Alice Example", digest)
    assert alias is not None
    answers.mark(erasure, alias)
    screening = answers.screen([row(text="Lunch with alice EXAMPLE on Friday")])
    assert (screening.dropped, screening.erased) == ({0}, ())
    answers.happen(erasure.id, EventType.CLEAN)
    assert answers.screen([row(text="Lunch with alice EXAMPLE on Friday")]) == Screening()


def test_a_mention_of_the_name_does_not_hide_what_is_quoted_beside_it(answers: Answers) -> None:
    erasure = answers.alice()
    alias = alias_mark("alice", digest)
    assert alias is not None
    answers.mark(erasure, alias)
    assert answers.screen([row(text=f"alice: {ALICES}")]).erased == (erasure,)


def test_canaries_are_shown_to_nobody_and_are_no_leak(answers: Answers) -> None:
    erasure = answers.alice()
    answers.mark(erasure, Mark("canary", pseudonym("key", "canary-0001")))
    screening = answers.screen([row(0, key="canary-0001"), row(1)])
    assert (screening.dropped, screening.causes, screening.erased) == ({0}, {"canary"}, ())


# What is not


@pytest.mark.requirement("R10")
def test_purpose_kept_is_let_through_and_the_purpose_erased_is_not(answers: Answers) -> None:
    answers.alice(predicate=scope(tenant="acme", subject="alice", purpose="ads"))
    rows = [row(0, "alice", "a note", purpose="ads"), row(1, "alice", "a bill", purpose="billing"),
            row(2, "alice", "of no stated purpose")]  # fmt: skip
    assert answers.screen(rows).dropped == {0, 2}


@pytest.mark.requirement("R11")
def test_erased_key_leaves_the_other_records_of_its_subject(answers: Answers) -> None:
    answers.alice(predicate=scope(tenant="acme", subject="alice", key="memory-0001"))
    rows = [row(0, "alice", "a note", key="memory-0001"), row(1, "alice", "a note", key="memory-0002")]
    assert answers.screen(rows).dropped == {0}


def test_another_tenant_is_another_world(answers: Answers) -> None:
    answers.alice()
    other = scope(tenant="other")
    rows = [row(0, "alice", "a note"), row(1, key="memory-0001"), row(2, text=ALICES),
            row(3, derived_from=("memory-0001",)), row(4, None)]  # fmt: skip
    assert answers.screen(rows, [(None, "alice")], call=other) == Screening()
    everywhere = answers.screen([replace(r, position=r.position) for r in rows], call=Scope())
    assert everywhere.dropped == {0, 1, 2, 3, 4}


@pytest.mark.requirement("R190")
def test_id_that_was_given_again_belongs_to_its_new_owner_once_settled(answers: Answers) -> None:
    erasure = answers.alice()
    again = [row(0, "bob", key="memory-0001")]
    assert answers.screen(again).dropped == {0}
    answers.happen(erasure.id, EventType.CLEAN)
    assert answers.screen(again) == Screening()
    assert answers.screen([row(0, "alice", BOBS, key="memory-0001")]).dropped == {0}
    assert answers.screen([row(0, None, key="memory-0001")]).dropped == {0}


def test_same_key_under_another_path_is_another_record(answers: Answers) -> None:
    answers.alice()
    rows = [row(0, key="memory-0001", path=("notes",)), row(1, key="memory-0001", path=("diary",))]
    assert answers.screen(rows).dropped == {0}


def test_subject_let_in_again_is_shown_what_is_new(answers: Answers) -> None:
    answers.alice(State.SETTLED, readmitted=True)
    rows = [row(0, "alice", "Likes cats now.", key="memory-0002"), row(1, "alice", ALICES),
            row(2, "alice", "a note", key="memory-0001"), row(3, text="alice")]  # fmt: skip
    assert answers.screen(rows).dropped == {1, 2}


def test_readmission_may_allow_the_old_content_too(answers: Answers) -> None:
    erasure = answers.alice(State.SETTLED)
    answers.happen(erasure.id, EventType.READMITTED, allows_old=True)
    assert answers.screen([row(0, "alice", ALICES), row(1, "alice", "x", key="memory-0001")]) == Screening()


def test_refused_erasure_leaves_no_tombstone_and_a_released_one_does(answers: Answers) -> None:
    answers.alice(State.REFUSED)
    assert answers.screen([row(0, "alice", ALICES)]) == Screening()
    released = Answers()
    released.alice(State.RELEASED)
    assert released.screen([row(0, "alice"), row(1, text=ALICES), row(2, None)]).dropped == {0, 1}


# Laws

SOME = [None, "alice", "bob", "carol"]
rows = st.lists(
    st.builds(
        row,
        subject=st.sampled_from(SOME),
        text=st.sampled_from([ALICES, BOBS, "a note", f"{BOBS} {ALICES}", "alice", ""]),
        key=st.sampled_from([None, "memory-0001", "memory-0002"]),
        tenant=st.sampled_from([None, "acme", "other"]),
        purpose=st.sampled_from([None, "ads"]),
        derived_from=st.sampled_from([(), ("memory-0001",)]),
        provenance_resolved=st.sampled_from([None, True, False]),
    ),
    max_size=8,
).map(lambda found: [replace(item, position=place) for place, item in enumerate(found)])


@settings(max_examples=200, deadline=None)
@given(rows, st.sampled_from(list(State)), st.booleans(), st.sampled_from(SOME))
def test_screening_only_removes_keeps_order_and_is_done_in_one_go(
    items: list[Item], state: State, readmitted: bool, also: str | None
) -> None:
    answers = Answers()
    answers.alice(state, readmitted=readmitted)
    first = answers.screen(items)
    assert first.dropped <= {item.position for item in items}
    left = [item for item in items if item.position not in first.dropped]
    assert [item.position for item in left] == sorted(item.position for item in left)
    assert answers.screen(left) == Screening()
    if also is not None:
        answers.erase(scope(subject=also))
        assert answers.screen(items).dropped >= first.dropped


def test_verdicts_are_kept_for_one_generation_and_in_bounds(answers: Answers) -> None:
    assert answers.screener.look("alice") == ()
    erasure = answers.alice()
    assert [hit.erasure for hit in answers.screener.look("alice")] == [erasure]
    for number in range(CACHED + 10):
        answers.screener.look(str(number))
    assert len(answers.screener._seen) == CACHED
