"""The table of marks: what was added, loaded and dropped is found as a plain list of marks would find it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.fingerprint import HALF, Mark
from quietus.core.marks import Loading, Marks

OWNERS = ["o1", "o2", "o3", "o4", "o5"]
HEADS = [bytes([n]) * HALF for n in (0, 1, 255)]
TAILS = [bytes([n]) * HALF for n in (0, 7)]
marks = st.builds(
    lambda kind, head, tail: Mark(kind, head + tail),
    st.sampled_from(["text", "id"]), st.sampled_from(HEADS), st.sampled_from(TAILS),
)  # fmt: skip
added = st.tuples(st.just("add"), st.sampled_from(OWNERS), st.lists(marks, max_size=4))
loaded = st.tuples(st.just("load"), st.sampled_from(OWNERS), st.lists(marks, max_size=4))
dropped = st.tuples(st.just("drop"), st.sampled_from(OWNERS), st.just([]))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(added, loaded, dropped), max_size=10))
def test_table_finds_what_a_list_finds(acts: list[tuple[str, str, list[Mark]]]) -> None:
    table = Marks()
    held: set[tuple[str, Mark]] = set()
    for act, owner, some in acts:
        before = table.version
        if act == "add":
            table.add(owner, some)
        elif act == "load":
            table.load((owner, mark) for mark in some)
        else:
            table.drop(owner)
        known = act != "drop" or any(name == owner for name, _ in held)
        assert table.version > before or not known
        gone = {pair for pair in held if act == "drop" and pair[0] == owner}
        held = (held | {(owner, mark) for mark in some}) - gone
        for kind in ("text", "id", "never"):
            for digest in (head + tail for head in HEADS for tail in TAILS):
                mark = Mark(kind, digest)
                assert set(table.holders(mark)) == {name for name, one in held if one == mark}
        assert set(table.kinds) == {mark.kind for _, mark in held}
        for place, head in enumerate(HEADS):
            found = {(kind, tail, name) for kind, tail, name in table.headed(head)}
            assert found == {(m.kind, m.digest[HALF:], n) for n, m in held if m.digest[:HALF] == head}
            if found:
                assert place in table.among(HEADS)
        assert len(table) >= len(held)


def test_nothing_is_held_at_first_and_short_digests_are_filled_up() -> None:
    table = Marks()
    assert (len(table), table.kinds, table.version, table.holders(Mark("id", b"x"))) == (0, (), 0, ())
    assert table.among(HEADS) == []
    table.add("o1", [Mark("id", b"x"), Mark("id", b"x")])
    assert table.holders(Mark("id", b"x")) == ("o1",)
    assert table.holders(Mark("id", b"y")) == ()
    assert (len(table), table.version) == (2, 1)
    table.drop("o1")
    assert (len(table), table.version, table.kinds) == (0, 3, ())
    table.drop("o1")
    assert table.version == 3


def test_what_is_loaded_makes_a_new_version() -> None:
    table = Marks()
    table.load([("o1", Mark("id", b"x"))])
    assert table.version > 0
    assert table.holders(Mark("id", b"x")) == ("o1",)
    assert table.headed(b"x".ljust(HALF, b"\0")) == [("id", b"\0" * HALF, "o1")]


def test_digest_of_another_head_or_tail_or_kind_is_another_mark() -> None:
    for load in (False, True):
        table = Marks()
        one = Mark("id", HEADS[0] + TAILS[0])
        if load:
            table.load([("o1", one), ("o2", one), ("o1", one)])
        else:
            table.add("o1", [one])
            table.add("o2", [one])
            table.add("o1", [one])
        assert table.holders(one) == ("o1", "o2")
        for other in (("id", HEADS[1] + TAILS[0]), ("id", HEADS[0] + TAILS[1]), ("text", one.digest)):
            assert table.holders(Mark(*other)) == ()


def many(owner: int, count: int) -> list[tuple[str, Mark]]:
    made = ((owner << 20 | n).to_bytes(2 * HALF, "little") for n in range(count))
    return [(f"o{owner}", Mark("id", digest)) for digest in made]


def test_packed_marks_of_many_owners_are_found_and_few_others_are_looked_for() -> None:
    table, rows = Marks(), [pair for owner in range(8) for pair in many(owner, 900)]
    loading = Loading(table)
    for owner, mark in rows:
        loading.take(owner, mark)
    assert table.holders(rows[0][1]) == ()
    loading.done()
    assert all(table.holders(mark) == (owner,) for owner, mark in rows)
    table.load(many(9, 10))
    assert all(table.holders(mark) == (owner,) for owner, mark in rows)
    strangers = [n.to_bytes(HALF, "little") for n in range(1 << 40, (1 << 40) + 4000)]
    assert len(table.among([mark.digest[:HALF] for _, mark in rows])) == len(rows)
    assert len(table.among(strangers)) < 1000


def test_of_many_marks_those_of_one_that_has_gone_are_thrown_away_in_time() -> None:
    table = Marks()
    for owner in range(8):
        table.load(many(owner, 900))
    for owner in range(3):
        table.drop(f"o{owner}")
        for name, mark in many(owner, 3):
            assert (table.holders(mark), table.headed(mark.digest[:HALF])) == ((), []), name
        for name, mark in many(owner + 1, 3):
            assert table.holders(mark) == (name,)
        assert len(table) == (7200 if owner < 2 else 4500)
    assert table.kinds == ("id",)
