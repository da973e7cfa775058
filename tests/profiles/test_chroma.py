"""What Chroma 1.5's own client and server said to each other, as they said it."""

import json
from pathlib import Path
from typing import Any

import pytest

from quietus.core.exchange import Reply, Request
from quietus.core.operations import Operation
from quietus.core.scope import ANY, UNKNOWN
from quietus.profiles.faults import MissingValue, RequestFault
from quietus.profiles.loader import load_profile
from tests.profiles.speech import asked, replied

RECORDED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "bodies" / "chroma.json").read_text())
CHROMA = load_profile("chroma")
COLLECTION = "/api/v2/tenants/t/databases/d/collections/c"


def exchange(record: dict[str, Any]) -> tuple[Request, Reply]:
    headers = (("Content-Type", "application/json"),)
    request = Request(record["method"], record["target"], headers, record["request"].encode())
    return request, Reply(record["status"], headers, record["response"].encode())


@pytest.mark.parametrize("record", RECORDED, ids=[f"{r['method']} {r['target'][-20:]}" for r in RECORDED])
def test_every_recorded_exchange_is_mapped_and_read_whole(record: dict[str, Any]) -> None:
    request, reply = exchange(record)
    reading = CHROMA.read(request)
    assert reading.mapped and not reading.unreadable
    found = CHROMA.answer(reading, reply)
    if reading.call.operation is Operation.RECALL:
        body = json.loads(reply.body)
        ids = body["ids"] if request.path.endswith("/get") else [one for row in body["ids"] for one in row]
        assert [item.key for item in found.items] == ids
        assert [item.position for item in found.items] == list(range(len(ids)))
    spoken = {text for _, text in found.scalars()}
    for word in ("alice lives at 12 Elm Street", "bob likes green tea"):
        assert (word in spoken) == (word in record["response"])


def by(suffix: str, number: int = 0) -> dict[str, Any]:
    return [record for record in RECORDED if record["target"].endswith(suffix)][number]


def test_an_add_is_a_batch_with_a_subject_a_row() -> None:
    reading = CHROMA.read(exchange(by("/add"))[0])
    call = reading.call
    assert call.operation is Operation.WRITE
    assert [(item.key, item.subject) for item in call.items] == [
        ("a1", "alice"),
        ("a2", "alice"),
        ("b1", "bob"),
    ]
    assert call.scope.subject == {"alice", "bob"} and call.scope.key == {"a1", "a2", "b1"}
    assert call.texts == (
        "alice lives at 12 Elm Street",
        "alice flies to Lisbon in May",
        "bob likes green tea",
    )
    assert call.items[1].vector == pytest.approx((0.9, 0.1, 0, 0))
    assert call.capture["collection_id"] and call.scope.tenant == {"default_tenant"}


def test_a_nested_answer_loses_a_row_in_every_column_and_nothing_else() -> None:
    request, reply = exchange(by("/query", 1))
    found = CHROMA.answer(CHROMA.read(request), reply)
    assert [item.key for item in found.items] == ["a1", "a2", "b1", "a2"]
    edited = found.without({0, 1, 3})
    assert edited is not None
    body = json.loads(edited)
    assert body["ids"] == [[], ["b1"]] and body["documents"] == [[], ["bob likes green tea"]]
    assert body["metadatas"] == [[], [{"user_id": "bob"}]] and body["embeddings"] == [
        [],
        [[0.0, 1.0, 0.0, 0.0]],
    ]
    assert len(body["distances"][1]) == 1 and body["include"] == json.loads(reply.body)["include"]
    assert b"alice" not in edited
    assert found.without(set()) == reply.body


@pytest.mark.requirement("R19")
def test_scalars_know_their_rows_and_the_rest_has_none() -> None:
    request, reply = exchange(by("/query", 1))
    scalars = set(CHROMA.answer(CHROMA.read(request), reply).scalars())
    assert {(0, "a1"), (0, "alice lives at 12 Elm Street"), (2, "bob"), (3, "trip"), (3, "topic")} <= scalars
    assert {(None, "ids"), (None, "include"), (None, "distances")} <= scalars
    assert not {(None, "alice"), (None, "a1"), (None, "bob")} & scalars


def test_embeddings_alone_still_make_rows() -> None:
    request, reply = exchange(by("/query", 2))
    items = CHROMA.answer(CHROMA.read(request), reply).items
    assert [(item.key, item.subject, item.texts) for item in items] == [
        ("a1", None, ()),
        ("a2", None, ()),
        ("b2", None, ()),
    ]
    assert items[0].vector == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("where", "subject"),
    [
        (None, ANY),
        ({}, ANY),
        ({"user_id": "alice"}, {"alice"}),
        ({"user_id": {"$eq": "alice"}}, {"alice"}),
        ({"user_id": 7}, {"7"}),
        ({"user_id": {"$in": ["alice", "bob"]}}, {"alice", "bob"}),
        ({"$or": [{"user_id": "alice"}, {"user_id": "bob"}]}, {"alice", "bob"}),
        ({"$and": [{"user_id": "alice"}, {"topic": "trip"}]}, {"alice"}),
        ({"$and": [{"user_id": "alice"}, {"user_id": {"$ne": "bob"}}]}, {"alice"}),
        ({"$and": [{"user_id": {"$in": ["a", "b"]}}, {"user_id": {"$in": ["b", "c"]}}]}, {"b"}),
        ({"$and": [{"user_id": "alice"}, {"user_id": "bob"}]}, UNKNOWN),
        ({"$or": [{"user_id": "alice"}, {"topic": "trip"}]}, ANY),
        ({"topic": "trip"}, ANY),
        ({"user_id": {"$ne": "alice"}}, UNKNOWN),
        ({"user_id": {"$nin": ["alice"]}}, UNKNOWN),
        ({"user_id": {"$eq": "a", "$ne": "b"}}, UNKNOWN),
        ({"user_id": {"$in": []}}, UNKNOWN),
        ({"user_id": ["alice"]}, UNKNOWN),
        ({"user_id": None}, UNKNOWN),
        ({"$or": [{"user_id": "alice"}, {"user_id": {"$gt": "b"}}]}, UNKNOWN),
        ({"$or": []}, UNKNOWN),
        ({"$not": [{"user_id": "alice"}]}, UNKNOWN),
        ("user_id = alice", UNKNOWN),
        ([{"user_id": "alice"}], UNKNOWN),
    ],
)
@pytest.mark.requirement("R17")
def test_a_recalls_filter_is_an_upper_bound_or_unknown(where: object, subject: object) -> None:
    call = CHROMA.read(asked("POST", f"{COLLECTION}/get", {"where": where, "ids": None})).call
    assert call.scope.subject == subject


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": None, "where": None},
        {"ids": []},
        {"where": {}},
        {"ids": ["a"], "where": {}},
        {"ids": [], "where": {"user_id": "alice"}},
        {"ids": [None]},
        {"ids": ["a", None]},
        {"ids": "a", "where": {"user_id": "alice"}},
        {"where": {"user_id": {"$ne": "alice"}}},
        {"where": {"user_id": {"$in": []}}},
        {"where": {"topic": "trip"}},
        {"where": {"$and": [{"user_id": "alice"}, {"topic": "trip"}]}},
        {"where": {"$and": [{"user_id": {"$in": ["a", "b"]}}, {"user_id": "a"}]}},
        {"where": {"user_id": "alice"}, "where_document": {"$contains": "Elm"}},
        {"where": {"user_id": "alice"}, "limit": 1},
        {"where": "everything"},
        [],
    ],
)
@pytest.mark.requirement("R43", "R137")
def test_a_forget_that_nobody_could_verify_is_refused(body: object) -> None:
    with pytest.raises(RequestFault) as caught:
        CHROMA.read(asked("POST", f"{COLLECTION}/delete", body))
    assert (caught.value.problem, caught.value.status) == ("unverifiable-forget", 422)


@pytest.mark.requirement("R11", "R137")
def test_a_forget_names_its_subject_or_its_keys_and_its_ack_is_a_claim() -> None:
    by_subject = CHROMA.read(exchange(by("/delete", 0))[0])
    assert by_subject.call.scope.subject == {"alice"} and by_subject.call.scope.key is ANY
    assert CHROMA.ack(by_subject, exchange(by("/delete", 0))[1]).count == 2
    by_key = CHROMA.read(exchange(by("/delete", 1))[0])
    assert by_key.call.scope.key == {"b2"} and by_key.call.scope.subject is ANY
    both = CHROMA.read(
        asked(
            "POST",
            f"{COLLECTION}/delete",
            {"ids": None, "where": {"$or": [{"user_id": "alice"}, {"user_id": "bob"}]}},
        )
    )
    assert both.call.scope.subject == {"alice", "bob"}


def test_search_is_never_believed() -> None:
    call = CHROMA.read(
        asked("POST", f"{COLLECTION}/search", {"searches": [{"filter": {"user_id": "bob"}}]})
    ).call
    assert call.scope.subject is UNKNOWN


@pytest.mark.requirement("R204")
def test_what_copies_or_clears_a_collection_is_unmapped() -> None:
    for method, target in (("POST", f"{COLLECTION}/fork"), ("POST", "/api/v2/reset"), ("GET", "/docs")):
        reading = CHROMA.read(asked(method, target, {}))
        assert not reading.mapped and reading.call.recalls and reading.call.scope.tenant is UNKNOWN


def test_probes_remedies_and_forgets_are_what_the_server_takes() -> None:
    values = {
        "tenant": "t",
        "database": "d",
        "collection_id": "c",
        "subject": "alice",
        "key": "a1",
        "keys": ["a1", "a2"],
        "text": 'say "hi"',
        "vector": (0.5, 1.0),
    }
    surfaces = {surface.name: surface for surface in CHROMA.surfaces}
    bodies = {
        name: json.loads(surfaces[name].request(values).body) for name in ("record", "contains", "near")
    }
    assert bodies["record"]["ids"] == ["a1"] and bodies["near"]["query_embeddings"] == [[0.5, 1.0]]
    assert bodies["contains"]["where_document"] == {"$contains": 'say "hi"'}
    listed = surfaces["list"].request(values, 100)
    assert json.loads(listed.body)["offset"] == 100 and listed.path == f"{COLLECTION}/get"
    forget = CHROMA.forget("keys", values)
    assert forget is not None and json.loads(forget.body) == {"ids": ["a1", "a2"]}
    remedy = CHROMA.remedy("delete_record", values)
    assert remedy is not None and CHROMA.read(remedy).call.scope.key == {"a1"}
    assert CHROMA.forget("path", values) is None
    written = CHROMA.canary_write({**values, "key": "c1"})
    assert written is not None and json.loads(written.body)["embeddings"] == [[0.5, 1.0]]
    assert CHROMA.canary_key(replied({}, 201), "c1") == "c1"
    assert CHROMA.canary_key(replied({}, 400), "c1") is None
    with pytest.raises(MissingValue):
        CHROMA.canary_write({name: value for name, value in values.items() if name != "vector"})


def test_a_list_goes_on_until_a_page_is_short() -> None:
    surface = next(surface for surface in CHROMA.surfaces if surface.name == "list")
    full = replied({"ids": [f"k{n}" for n in range(100)], "documents": None, "metadatas": None})
    assert surface.read(full).next_page == 100 and surface.read(full, 100).next_page == 200
    assert surface.read(replied({"ids": ["a"], "documents": ["x"], "metadatas": None})).next_page is None
