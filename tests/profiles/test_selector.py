import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.profiles.faults import Ambiguous, CompileFault, Unread
from quietus.profiles.jsonpaths import Path, Repeated
from quietus.profiles.selector import Selector
from quietus.profiles.words import SelectorModel

VIEW = {
    "path": {"id": "k1", "database": "db"},
    "query": {"user": "alice", "many": Repeated(["a", "b"])},
    "headers": {"x-tenant": "t1"},
    "body": {
        "ids": ["a", None, "b"],
        "n": {"x-y": {"z": 7}},
        "text": '{"rows":[{"id":1}]}',
        "ns": ["a", "b"],
        "csv": "a, b,,c",
        "who": "user:alice",
        "null": None,
        "rows": [{"t": "x"}, {"t": "y"}],
    },
}


def nodes(model: str | dict[str, str], captures: dict[str, str] | None = None) -> list[object]:
    made = Selector(model if isinstance(model, str) else SelectorModel(**model), ())  # type: ignore[arg-type]
    return made.nodes(VIEW, captures or {})


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("$.body.ids[*]", ["a", "b"]),
        ("$.body.ids[0]", ["a"]),
        ("$.body.ids[-1]", ["b"]),
        ("$.body.ids[7]", []),
        ("$.body['n']['x-y'].z", [7]),
        ("$.body.null", []),
        ("$.body.missing.deeper", []),
        ("$.body.null.deeper", []),
        ("$.body.rows[*].t", ["x", "y"]),
        ("$.body.rows[?@.t=='y'].t", ["y"]),
        ("$.headers.x-tenant", ["t1"]),
        ("$.headers.X-Tenant", ["t1"]),
        ("$.query.user[*]", ["alice"]),
        ("$.query.many[*]", ["a", "b"]),
        ({"select": "$.body.text", "decode": "json", "then": "$.rows[*].id"}, [1]),
        ({"select": "$.body.csv", "split": ","}, ["a", " b", "c"]),
        ({"select": "$.body.who", "match": "^user:(?P<value>.+)$"}, ["alice"]),
        ({"select": "$.body.ids[0]", "match": "^user:(?P<value>.+)$", "on_mismatch": "skip"}, []),
        ({"select": "$.body.ns[*]", "join": "/"}, ["a/b"]),
        ({"select": "$.body.ns[*]", "join": "/", "template": "root/{value}"}, ["root/a/b"]),
        ({"template": "{database}/{collection}"}, ["db/c"]),
    ],
)
def test_selectors_find_what_they_say(selector: str | dict[str, str], found: list[object]) -> None:
    assert nodes(selector, {"database": "db", "collection": "c"}) == found


@pytest.mark.parametrize(
    "selector",
    [
        "$.body.csv.deeper",
        "$.body.csv[*]",
        "$.body.ids.deeper",
        {"select": "$.body.csv", "decode": "json"},
        {"select": "$.body.ids[0]", "match": "^user:(?P<value>.+)$"},
        {"select": "$.body.csv", "template": "{nobody}/{value}"},
        {"select": "$.body.n", "split": ","},
        {"select": "$.body.rows[*]", "join": "/"},
    ],
)
def test_what_a_selector_cannot_take_is_unread(selector: str | dict[str, str]) -> None:
    with pytest.raises(Unread):
        nodes(selector)


def test_join_refuses_a_segment_that_holds_its_separator() -> None:
    made = Selector(SelectorModel(select="$.ns[*]", join="/"), ())
    for segments in (["a/b", "c"], ["a", ""]):
        with pytest.raises(Unread):
            made.nodes({"ns": segments})


def test_a_repeated_parameter_is_ambiguous_unless_one_or_many_are_taken() -> None:
    with pytest.raises(Ambiguous):
        nodes("$.query.many")


@pytest.mark.parametrize("path", ["body.x", "$.body[", "$.a b", "$.body^", "$.a.~", "", "$.x[01]", " $.a"])
def test_what_is_no_rfc_9535_path_is_refused_with_its_place(path: str) -> None:
    with pytest.raises(CompileFault) as caught:
        Selector(SelectorModel(select=path or "x"), ("routes", 0))
    assert caught.value.place[:2] == ("routes", 0)


def test_a_pattern_needs_its_group() -> None:
    for pattern in ("user:(.+)", "(", "x"):
        with pytest.raises(CompileFault):
            Selector(SelectorModel(select="$.a", match=pattern), ())


NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(NAMES | st.integers(-3, 3), min_size=1, max_size=4)
TREES = st.recursive(
    st.none() | st.integers(0, 3) | st.just("s"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=400, deadline=None)
@given(STEPS, st.booleans(), TREES)
def test_closures_find_what_the_library_finds(steps: list[str | int], star: bool, tree: object) -> None:
    text = "$" + "".join(f"[{step!r}]" for step in steps) + ("[*]" if star else "")
    path = Path(text)
    assert path.steps == tuple(steps) and path.star is star
    by_library = path.by_library(tree)
    try:
        assert path.find(tree) == by_library
    except Unread:  # the library finds nothing where a shape does not fit; we say so
        assert by_library == []
