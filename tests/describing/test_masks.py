"""Masks: nothing in clear, nothing that can be turned back; shape, type and equality as they were."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.core.exchange import Reply, Request
from quietus.describing.masking import Masker
from quietus.describing.masks import Masks
from quietus.describing.pairs import Pair, pairs_of, written
from quietus.documents import read
from quietus.profiles.loader import find_profile, load_profile

WORDS = st.text(min_size=3, max_size=30).filter(lambda text: any(char.isalpha() for char in text))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(WORDS, below, max_size=4), max_leaves=20,
)  # fmt: skip


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(each) for each in value.values()]
    if isinstance(value, list):
        return [shape(each) for each in value]
    return bool if isinstance(value, bool) else type(value)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in (("name", key), *leaves(each))]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_shape_types_and_equality_stay(value: Any) -> None:
    data = json.dumps(value).encode()
    after = json.loads(Masks(b"k" * 32, ()).json(data))
    before = json.loads(data)
    assert shape(after) == shape(before)
    pairs = list(zip(leaves(before), leaves(after), strict=True))
    for one, masked in pairs:
        for other, again in pairs:
            if type(one) is type(other) and isinstance(one, str | int | tuple):
                assert (one == other) == (masked == again), (one, other, masked, again)


@settings(max_examples=100, deadline=None)
@given(WORDS)
def test_no_word_of_a_value_is_left(word: str) -> None:
    for value in (word, f"{word} and more", f"a/{word}:b", json.dumps({word: [word]})):
        masked = Masks(b"k" * 32, ()).json(json.dumps({"x": value}).encode()).decode()
        for part in (part for part in word.replace("\\", " ").split() if len(part) > 4):
            assert part not in masked, (word, masked)


def test_layout_stays_byte_for_byte_but_for_the_values() -> None:
    data = b'{ "id" : "u-1",\n  "n": [12, 0, 1, -7.50, true, null, ""] ,"id2":"u-1"}'
    masks = Masks(b"k" * 32, {"id", "n"})
    assert masks.json(data) == b'{ "id" : "v0",\n  "n": [10, 0, 1, 2.5, true, null, ""] ,"n0":"v0"}'


def test_two_recordings_of_the_same_tell_nothing_of_each_other() -> None:
    first, second = Masks(b"a" * 32, ()), Masks(b"b" * 32, ())
    first.text("somebody-else")
    assert first.text("alice") != second.text("alice")


def pair(target: str, body: Any, answer: Any, headers: tuple[tuple[str, str], ...] = ()) -> Pair:
    kind = ("Content-Type", "application/json; charset=utf-8; boundary=alice")
    reply = Reply(200, (kind, ("Set-Cookie", "s=alice")), json.dumps(answer).encode())
    return Pair(Request("POST", target, (kind, *headers), json.dumps(body).encode()), reply)


def masker(name: str = "memory-tool") -> Masker:
    profile = load_profile(name, frozenset({"http"}))
    return Masker(profile, read(find_profile(name)).value, b"k" * 32)


def test_a_call_keeps_its_route_and_loses_everybody() -> None:
    given_ = pair(
        "/v1/recall?trace=alice&subject=alice",
        {"subject": "alice", "query": "where does alice live", "alice": 1},
        {"results": [{"key": "alice/1", "subject": "alice", "value": "Alice is in", "x": {"alice": "x"}}]},
        (("Authorization", "Bearer alice-secret"), ("Cookie", "alice"), ("X-Who", "alice")),
    )  # fmt: skip
    masked = masker().masked(given_)
    line = written(masked)
    assert "alice" not in line.lower() and "secret" not in line
    assert masked.request.path == "/v1/recall" and '\\"subject\\"' in line
    assert [name for name, _ in masked.request.headers] == ["Content-Type"]
    (again,) = pairs_of([line])
    assert again.request == masked.request and again.reply.body == masked.reply.body
    told = json.loads(masked.reply.body)["results"][0]
    assert told["subject"] == json.loads(masked.request.body)["subject"]
    assert told["key"].split("/")[0] == told["subject"] and told["key"].endswith("/1")


def test_a_key_in_a_path_is_masked_and_a_call_of_no_route_keeps_only_known_segments() -> None:
    profile = masker()
    known = profile.masked(Pair(Request("GET", "/v1/memories/alice%20m?tenant=acme"), Reply(204)))
    assert known.request.target.startswith("/v1/memories/text%200?tenant=")
    unknown = profile.masked(Pair(Request("GET", "/v1/alice/memories"), Reply(204)))
    assert unknown.request.target == "/v1/v1/memories"  # the middle one is a mask


def test_bodies_that_are_no_json() -> None:
    profile = masker()
    events = b'event: row\ndata: {"value": "Alice lives here", "key": "a1"}\n\ndata: [DONE]\n'
    stream = Pair(Request("POST", "/v1/recall"), Reply(200, (("Content-Type", "text/event-stream"),), events))
    masked = profile.masked(stream).reply.body.decode()
    assert "Alice" not in masked and '"value"' in masked and masked.count("\n") == events.count(b"\n")
    image = Pair(Request("GET", "/v1/export"), Reply(200, (("Content-Type", "image/png"),), b"\x89PNG alice"))
    left = profile.masked(image)
    assert left.left_out and left.reply.body == b""
