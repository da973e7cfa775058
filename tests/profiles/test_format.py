"""The words of the format that the shipped profiles do not all use."""

import json

import pytest

from quietus.core.operations import Operation
from quietus.core.scope import ANY, UNKNOWN
from quietus.profiles.faults import CannotQuote, MissingValue, RequestFault, Unreadable
from quietus.profiles.loader import load_profile
from tests.profiles.speech import asked, profile, replied, texts

TOOL = load_profile("memory-tool")

EXAMPLE = profile(
    """
  - name: dry
    operation: ignore
    http: {method: POST, path: "/find"}
    when: {$.query.dry_run: "true"}
  - name: find
    operation: recall
    http: {method: POST, path: "/find"}
    capture: {collection: $.headers.x-collection}
    request:
      tenant: $.headers.x-tenant
      subject: [$.body.user_id, $.query.user_id]
      path: {select: "$.body.namespace[*]", join: "/"}
    response:
      epoch: $.headers.x-read-epoch
      items:
        - {items: $.body.notes, item: {key: $.id, subject: $.who, path: {template: "{collection}"}}}
        - items: {select: "$.body.content[*].text", decode: json, then: $.rows}
          item: {key: $.id, content: $.t}
        - {items: $.body.entity, item: {key: $.id, capture: {kind: $.kind}}}
  - name: put
    operation: write
    http: {method: PUT, path: "/files/{bucket}/{name...}"}
    request: {path: $.path.bucket, key: $.path.name, content: $.body.parts}
    response:
      ack:
        outcomes:
          - {when: {status: 200, $.body.success: false}, is: not_found}
          - {when: {status: 202}, is: queued}
        token: $.body.token
        count: $.body.deleted
        epoch: $.body.erasure_epoch
""",
    """
strengthen:
  - {route: find, set: {$.body.consistency: strong, $.query.fresh: "1", $.headers.min-epoch: "{epoch?}"}}
""",
)


def test_agreement_joins_and_conditions() -> None:
    headers = (("X-Tenant", "t"), ("X-Collection", "c"))
    body = {"user_id": "alice", "namespace": ["a", "b"]}
    call = EXAMPLE.read(asked("POST", "/find?user_id=alice", body, headers)).call
    assert (call.scope.tenant, call.scope.subject, call.scope.path) == ({"t"}, {"alice"}, {("a", "b")})
    assert call.capture == {"collection": "c"}
    assert EXAMPLE.read(asked("POST", "/find?dry_run=true", body)).call.operation is Operation.IGNORE
    assert EXAMPLE.read(asked("POST", "/find?dry_run=false", body)).call.route == "find"
    assert EXAMPLE.read(asked("POST", "/find", {"namespace": ["a/b"]})).call.scope.path is UNKNOWN
    assert EXAMPLE.read(asked("POST", "/find", {})).call.scope.subject is ANY
    for target, headers in (
        ("/find?user_id=bob", ()),
        ("/find", (("x-tenant", "t"), ("X-Tenant", "u"))),
        ("/find?dry_run=true&dry_run=false", ()),
    ):
        with pytest.raises(RequestFault) as caught:
            EXAMPLE.read(asked("POST", target, body, headers))
        assert caught.value.problem == "ambiguous-request"


def test_several_groups_and_rows_inside_a_string_are_dropped_and_written_again() -> None:
    reading = EXAMPLE.read(asked("POST", "/find", {}, (("x-collection", "c"),)))
    inner = json.dumps({"rows": [{"id": "i1", "t": "x"}, {"id": "i2", "t": "y"}], "n": 1.50})
    body = {"notes": [{"id": "n1", "who": "alice"}], "content": [{"text": inner}, {"text": None}]}
    found = EXAMPLE.answer(reading, replied(body, headers=(("X-Read-Epoch", "17"),)))
    assert [(item.position, item.key) for item in found.items] == [(0, "n1"), (1, "i1"), (2, "i2")]
    assert found.epoch == 17 and found.items[0].path == ("c",)
    assert {(1, "x"), (2, "y"), (0, "alice"), (None, "rows"), (None, "content")} <= texts(found)
    edited = json.loads(found.without({0, 1}) or b"")
    assert edited["notes"] == [] and json.loads(edited["content"][0]["text"])["rows"] == [
        {"id": "i2", "t": "y"}
    ]
    single = EXAMPLE.answer(reading, replied({"entity": {"id": "e", "kind": "person"}}))
    assert single.single and single.items[0].capture == {"kind": "person"} and single.without({0}) is None
    with pytest.raises(Unreadable):
        EXAMPLE.answer(reading, replied({"other": 1}))


def test_the_rest_of_a_path_and_containers_as_content() -> None:
    call = EXAMPLE.read(
        asked("PUT", "/files/b/x/y%20z", {"parts": [{"a": "one"}, "two", {"b": ["three", 4]}]})
    ).call
    assert (
        call.scope.key == {"x/y z"}
        and call.scope.path == {("b",)}
        and call.texts == ("one", "two", "three", "4")
    )


@pytest.mark.requirement("R43", "R134")
@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, {}, "accepted"),
        (204, b"", "accepted"),
        (200, {"success": False}, "not_found"),
        (202, {}, "queued"),
        (200, {"success": 0}, "accepted"),
        (404, {}, "not_found"),
        (410, b"gone", "not_found"),
        (400, {}, "refused"),
        (401, {}, "refused"),
        (403, {}, "refused"),
        (405, {}, "refused"),
        (413, {}, "refused"),
        (415, {}, "refused"),
        (422, {}, "refused"),
        (429, {}, "refused"),
        (409, {}, "unclear"),
        (500, {}, "unclear"),
        (503, b"<x", "unclear"),
        (301, {}, "unclear"),
        (418, {}, "unclear"),
    ],
)
def test_acknowledgements(status: int, body: object, outcome: str) -> None:
    reading = EXAMPLE.read(asked("PUT", "/files/b/x", {"parts": "t"}))
    assert EXAMPLE.ack(reading, replied(body, status)).outcome == outcome


@pytest.mark.requirement("R14", "R45")
def test_what_an_acknowledgement_claims() -> None:
    reading = EXAMPLE.read(asked("PUT", "/files/b/x", {}))
    ack = EXAMPLE.ack(reading, replied({"token": "del_9f3a", "deleted": "412", "erasure_epoch": 17}))
    assert (ack.token, ack.count, ack.epoch) == ("del_9f3a", 412, 17)
    assert EXAMPLE.ack(reading, replied({"deleted": "4x", "erasure_epoch": True})).epoch is None


def test_strengthen_sets_and_leaves_the_rest() -> None:
    request = asked("POST", "/find?user_id=a%20b&fresh=0", b'{"n":1.10,"consistency":"weak"}')
    made = EXAMPLE.strengthen(EXAMPLE.read(request), request, 9)
    assert made.target == "/find?user_id=a%20b&fresh=1" and made.body == b'{"n":1.10,"consistency":"strong"}'
    assert ("min-epoch", "9") in made.headers and ("Content-Length", str(len(made.body))) in made.headers
    other = asked("PUT", "/files/b/x", {})
    assert EXAMPLE.strengthen(EXAMPLE.read(other), other, 9) is other


def test_batches_have_a_subject_a_row_or_the_requests() -> None:
    rows = [
        {"value": "x", "retention": {"subject": "alice"}, "key": "1"},
        {"value": "y", "key": "2", "derived_from": ["1"]},
    ]
    call = TOOL.read(asked("POST", "/v1/memories", {"memories": rows, "retention": {"subject": "bob"}})).call
    assert [item.subject for item in call.items] == ["alice", "bob"] and call.scope.subject == {
        "alice",
        "bob",
    }
    assert call.texts == ("x", "y") and call.derived_from == ("1",) and call.scope.key == {"1", "2"}
    for row in (
        {"retention": {"subject": ["a"]}},
        {"retention": {"subject": {}}},
        {"retention": "a"},
        {"retention": {"subject": "a\u0000"}},
        {"key": ["k"]},
    ):
        with pytest.raises(RequestFault):
            TOOL.read(asked("POST", "/v1/memories", {"memories": [row]}))
    with pytest.raises(RequestFault):
        TOOL.read(asked("POST", "/v1/memories", {"memories": "many"}))


def test_events_of_a_stream() -> None:
    reading = TOOL.read(asked("POST", "/v1/recall", {"query": "q"}))
    found = TOOL.event(reading, b'{"key":"a","subject":"alice","value":"x"}')
    assert found.single and found.items[0].subject == "alice"
    assert list(TOOL.event(reading, b"[DONE]").scalars()) == [(None, "[DONE]")]


def test_paging_by_cursor_ends_and_never_turns_in_circles() -> None:
    surface = next(surface for surface in TOOL.surfaces if surface.name == "list")
    assert surface.request({"subject": "alice"}).target == "/v1/memories?subject=alice&limit=100"
    assert surface.request({"subject": "a", "tenant": "t"}, "c 1").target.endswith(
        "&tenant=t&limit=100&cursor=c%201"
    )
    page = surface.read(replied({"results": [{"key": "a"}], "next": "c1"}))
    assert page.next_page == "c1" and page.items[0].key == "a" and not page.clean
    assert surface.read(replied({"results": [], "next": None})).next_page is None
    with pytest.raises(Unreadable):
        surface.read(replied({"results": [], "next": "c1"}), "c1")


@pytest.mark.requirement("R18", "R62")
def test_a_probe_that_found_nothing_to_read_is_not_clean() -> None:
    record, listed = TOOL.surfaces[0], TOOL.surfaces[1]
    assert record.read(replied({"error": "no"}, 404)).clean
    for surface, reply in (
        (record, replied({}, 401)),
        (record, replied({}, 500)),
        (listed, replied({}, 404)),
        (listed, replied({"rows": []})),
        (listed, replied(b"<html>")),
    ):
        with pytest.raises(Unreadable):
            surface.read(reply)


def test_placeholders_keep_their_type_and_refuse_what_cannot_be_quoted() -> None:
    surface = TOOL.surfaces[0]
    with pytest.raises(MissingValue):
        surface.request({})
    for key in ("", ".", "..", "a\x00", "a\nb", "\ud800", ["a"]):
        with pytest.raises(CannotQuote):
            surface.request({"key": key})
    body = json.loads(TOOL.surfaces[3].request({"text": 'a"}', "subject": "{tenant}"}).body)
    assert body == {"query": 'a"}', "subject": "{tenant}", "top_k": 50}
    epoch = TOOL.epoch_request()
    assert epoch is not None and TOOL.epoch_value(replied({"read_epoch": 4})) == 4
    canary = TOOL.canary_write({"subject": "c", "text": "t"})
    assert canary is not None and json.loads(canary.body) == {"value": "t", "retention": {"subject": "c"}}
    assert TOOL.canary_key(replied({"key": "k"}, 201)) == "k"
    forget = TOOL.forget("subject", {"subject": "alice"})
    assert forget is not None and TOOL.read(forget).call.scope.subject == {"alice"}
