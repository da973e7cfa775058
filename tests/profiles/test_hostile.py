"""Requests that could mean two things, and answers that lie about their shape."""

import gzip
import json

import pytest

from quietus.core.exchange import Reply
from quietus.core.scope import ANY, UNKNOWN
from quietus.profiles.faults import RequestFault, Unreadable
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Profile
from tests.profiles.speech import JSON, asked, replied

TOOL = load_profile("memory-tool")
RECALL = {"query": "where", "subject": "alice"}

PATHS = [
    "//v1/recall",
    "/v1//recall",
    "/./v1/recall",
    "/v1/../v1/recall",
    "/v1/%2e%2e/v1/recall",
    "/v1/%2E/recall",
    "/v1/recall/..",
    "/v1/recall;x",
    "/v1/recall;jsessionid=1",
    "/v1\\recall",
    "/v1/recall#x",
    "/v1/recall%",
    "/v1/recall%zz",
    "http://evil/v1/recall",
    "*",
    "",
    "v1/recall",
    "/v1/rec all",
    "/v1/recall\x00",
    "/v1/réc",
    "/v1/recall\t",
    "/v1/memories/a%2Fb",
    "/v1/memories/a%2fb",
    "/v1/memories/a%5Cb",
    "/v1/memories/%00",
    "/v1/memories/%0a",
    "/v1/memories/%c3%28",
    "/v1/memories/%ff",
    "/v1/memories/..%2fx",
    "/v1/memories/a^b",
    "/v1/memories/%2e%2e",
    "/v1/memories/%c2%80",
    "/v1/recall?a=%zz",
    "/v1/recall?a=b;c=d",
    "/v1/recall?a=%ff",
    "/v1/recall?a=é",
    "/v1/memories?subject=a%00b",
]
OTHERS = [
    "/V1/recall",
    "/v1/Recall",
    "/v1/recall/",
    "/v1/%72ecall",
    "/v1/recall.json",
    "/v1/recallx",
    "/v1",
    "/",
]


@pytest.mark.requirement("R204")
@pytest.mark.parametrize("path", PATHS)
def test_paths_with_two_meanings_are_malformed(path: str) -> None:
    for method in ("GET", "POST"):
        with pytest.raises(RequestFault) as caught:
            reading = TOOL.read(asked(method, path, RECALL if method == "POST" else None))
            # A query is judged only where a route reads it; on other methods the path is unmapped.
            assert not reading.mapped
            raise RequestFault("malformed-request", "unmapped")
        assert caught.value.status == 400
        assert path not in caught.value.detail or len(path) < 2


@pytest.mark.parametrize("path", OTHERS)
def test_other_spellings_of_a_route_are_unmapped_never_it(path: str) -> None:
    reading = TOOL.read(asked("POST", path, RECALL))
    assert not reading.mapped and reading.call.scope.tenant is UNKNOWN


@pytest.mark.requirement("R204")
def test_every_mutation_of_every_route_is_refused_or_unmapped() -> None:
    from tests.profiles.mutations import mutations

    tried = 0
    for profile in map(load_profile, ("memory-tool", "chroma", "mem0")):
        for route in profile.routes:
            names = "/".join("k" if parameter else text for parameter, text in route.template.segments)
            for target in mutations("/" + names):
                tried += 1
                assert _other(profile, route.method, target, route.name), (route.name, target)
    assert tried >= 400


def _other(profile: Profile, method: str, target: str, name: str) -> bool:
    """Whether the target is refused, or is not this route: it may rightly be another."""
    try:
        return profile.read(asked(method, target)).call.route != name
    except RequestFault as fault:
        return fault.problem in ("malformed-request", "unverifiable-forget")


@pytest.mark.case(121)
def test_an_escaped_id_is_the_id_it_spells() -> None:
    for target in (
        "/v1/memories/agm%3Amain%3A9119",
        "/v1/memories/agm:main:9119",
        "/v1/memories/agm%3amain%3a9119",
    ):
        reading = TOOL.read(asked("GET", target))
        assert reading.call.scope.key == {"agm:main:9119"}
        assert reading.request.target == target


BODIES = [
    b"",
    b"{",
    b'{"subject":"alice","subject":"bob","query":"x"}',
    b"\xef\xbb\xbf{}",
    b"[NaN]",
    b"[" * 100_000,
    '{"query":"x"}'.encode("utf-16"),
    b'{"subject":["alice"]}',
    b'{"subject":{"id":"alice"}}',
    b'{"subject":""}',
    b'{"subject":"alice "}',
    b'{"subject":" alice"}',
    b'{"subject":"al\\u0000ice"}',
    b'{"subject":"al\\u200bice"}',
    b'{"subject":"alice\\n"}',
    b'{"subject":"\\u202ealice"}',
    b'{"tenant":["t"]}',
    b'{"scope":"a//b"}',
    b'{"scope":"a/../b"}',
    b'{"scope":["a"]}',
    b'{"scope":"/"}',
    b'{"subject":"\\ud800"}',
    b"\x80",
]


@pytest.mark.parametrize("body", BODIES[1:], ids=range(1, len(BODIES)))
@pytest.mark.requirement("R17", "R204")
def test_bodies_with_two_meanings_are_refused(body: bytes) -> None:
    with pytest.raises(RequestFault) as caught:
        TOOL.read(asked("POST", "/v1/recall", body))
    assert caught.value.status == 400 and caught.value.problem in ("malformed-request", "ambiguous-request")
    assert "alice" not in str(caught.value)


def test_a_number_as_a_subject_is_its_text_and_null_is_nothing() -> None:
    assert TOOL.read(asked("POST", "/v1/recall", b'{"subject":7}')).call.scope.subject == {"7"}
    assert TOOL.read(
        asked("POST", "/v1/recall", b'{"subject":1234567890123456789012}')
    ).call.scope.subject == {"1234567890123456789012"}
    assert TOOL.read(asked("POST", "/v1/recall", b'{"subject":null}')).call.scope.subject is ANY


def test_a_body_of_another_shape_is_unknown_and_says_what_was_not_read() -> None:
    reading = TOOL.read(asked("POST", "/v1/recall", b"[]"))
    assert reading.call.scope.subject is UNKNOWN and set(reading.unreadable) >= {"tenant", "subject", "path"}
    write = TOOL.read(asked("POST", "/v1/memories", {"value": "x", "retention": "alice"}))
    assert write.call.scope.subject is UNKNOWN and "subject" in write.unreadable


@pytest.mark.case(152)
def test_compressed_or_foreign_requests_are_refused_on_mapped_routes() -> None:
    body = gzip.compress(b"{}")
    with pytest.raises(RequestFault) as caught:
        TOOL.read(asked("POST", "/v1/recall", body, (*JSON, ("Content-Encoding", "gzip"))))
    assert caught.value.status == 415
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"):
        with pytest.raises(RequestFault) as caught:
            TOOL.read(asked("POST", "/v1/recall", RECALL, (("Content-Type", kind),)))
        assert caught.value.status == 400
    for headers in (
        (),
        (("content-type", "application/vnd.x+json"),),
        (("content-type", 'Application/JSON; charset="UTF-8"'),),
    ):
        assert TOOL.read(asked("POST", "/v1/recall", RECALL, headers)).call.scope.subject == {"alice"}


def test_a_repeated_parameter_is_ambiguous() -> None:
    for query in ("subject=alice&subject=bob", "subject=alice&subject=alice", "subject=alice&%73ubject=bob"):
        with pytest.raises(RequestFault) as caught:
            TOOL.read(asked("GET", f"/v1/memories?{query}"))
        assert caught.value.problem == "ambiguous-request"
    assert TOOL.read(asked("GET", "/v1/memories?subject=a+b%20c")).call.scope.subject == {"a b c"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tenant": "t"},
        {"subject": None},
        {"keys": []},
        {"subject": "alice", "keys": []},
        {"subject": "alice", "purposes": []},
        {"keys": [""]},
        {"keys": {"a": "b"}},
        {"keys": "a", "subject": "b"},
    ],
)
@pytest.mark.requirement("R43", "R137")
def test_forgets_that_would_mean_everything_are_refused(body: object) -> None:
    with pytest.raises(RequestFault) as caught:
        TOOL.read(asked("POST", "/v1/forget", body))
    assert caught.value.status in (400, 422)
    assert caught.value.problem in ("unverifiable-forget", "malformed-request")


@pytest.mark.requirement("R9")
def test_a_forget_of_purposes_needs_a_store_that_knows_them() -> None:
    call = TOOL.read(
        asked("POST", "/v1/forget", {"subject": "alice", "purposes": ["a", "b"], "basis": "gdpr"})
    ).call
    assert call.scope.purpose == {"a", "b"} and call.basis == "gdpr"


def test_head_is_its_get_route_and_min_epoch_is_a_number() -> None:
    reading = TOOL.read(asked("HEAD", "/v1/memories/k"))
    assert reading.call.route == "read" and TOOL.answer(reading, Reply(200)).items == ()
    headers = (*JSON, ("Quietus-Min-Epoch", "17"))
    assert TOOL.read(asked("POST", "/v1/recall", RECALL, headers)).call.min_epoch == 17
    with pytest.raises(RequestFault):
        TOOL.read(asked("POST", "/v1/recall", RECALL, (("Quietus-Min-Epoch", "-1"),)))


def test_a_compressed_answer_is_read_through_a_copy() -> None:
    reading = TOOL.read(asked("POST", "/v1/recall", RECALL))
    body = gzip.compress(
        json.dumps({"results": [{"key": "a", "value": "x"}, {"key": "b", "value": "y"}]}).encode()
    )
    found = TOOL.answer(reading, replied(body, headers=(*JSON, ("Content-Encoding", "gzip"))))
    assert [item.key for item in found.items] == ["a", "b"]
    assert json.loads(found.without({0}) or b"") == {"results": [{"key": "b", "value": "y"}]}
    for coding in ("br", "zstd", "deflate", "gzip, gzip"):
        with pytest.raises(Unreadable):
            TOOL.answer(reading, replied(body, headers=(*JSON, ("Content-Encoding", coding))))


def test_rows_that_say_nothing_or_two_things_are_unattributed() -> None:
    rows = [
        7,
        "text",
        None,
        [],
        {},
        {"key": {"a": 1}, "subject": ["alice", "bob"]},
        {"key": 5, "subject": True},
    ]
    items = TOOL.answer(TOOL.read(asked("POST", "/v1/recall", RECALL)), replied({"results": rows})).items
    assert [item.subject for item in items] == [None] * 6 + ["true"]
    assert items[6].key == "5" and len(items) == 7


@pytest.mark.requirement("R95")
def test_dangling_provenance_is_read_as_false() -> None:
    rows = [
        {"key": str(n), "provenance_resolved": value} for n, value in enumerate((True, False, None, "yes"))
    ]
    reading = TOOL.read(asked("POST", "/v1/recall", RECALL))
    items = TOOL.answer(reading, replied({"results": [*rows, {"key": "4"}]})).items
    assert [item.provenance_resolved for item in items] == [True, False, False, False, None]


def test_answers_that_are_no_json_are_text_where_no_rows_are_declared() -> None:
    export = TOOL.read(asked("GET", "/v1/export"))
    lines = b'{"key":"a"}\n{"key":"b"}\n'
    found = TOOL.answer(export, Reply(200, (("Content-Type", "application/x-ndjson"),), lines))
    assert list(found.scalars()) == [(None, lines.decode())] and found.without({0}) is None
    for headers, body in (
        ((("Content-Type", "application/octet-stream"),), b"x"),
        ((("Content-Type", "text/plain"),), b"\xff"),
    ):
        with pytest.raises(Unreadable):
            TOOL.answer(export, Reply(200, headers, body))
    unmapped = TOOL.read(asked("GET", "/debug"))
    found = TOOL.answer(unmapped, replied({"a": ["b", 1, 1.5, True, None]}))
    assert set(found.scalars()) == {(None, text) for text in ("a", "b", "1", "1.5", "true")}
