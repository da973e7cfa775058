"""Milvus's messages as recorded from milvus-lite and pymilvus: columns, filters, and what is left of both."""

from __future__ import annotations

import pytest
from pymilvus.client.search_result import SearchResult
from pymilvus.grpc_gen import common_pb2, milvus_pb2, schema_pb2

from quietus.core.operations import Operation
from quietus.core.scope import ANY, UNKNOWN, Scope
from quietus.profiles.faults import CannotQuote, RequestFault, Unreadable
from quietus.profiles.loader import load_profile
from tests.profiles.messages import asked, recorded, told

MILVUS = load_profile("milvus")
SAID = recorded("milvus")
SERVICE = "/milvus.proto.milvus.MilvusService/"
PLACE = frozenset({("memories",)})


def scope_of(name: str) -> Scope:
    return MILVUS.read(SAID[name].request).call.scope


def answer(name: str):  # type: ignore[no-untyped-def]
    one = SAID[name]
    return MILVUS.answer(MILVUS.read(one.request), one.reply)


def test_requests_as_pymilvus_makes_them() -> None:
    assert scope_of("search") == Scope(path=PLACE)
    assert scope_of("search-filter") == Scope(path=PLACE, subject=frozenset({"alice"}))
    assert scope_of("query-or") == Scope(path=PLACE, subject=frozenset({"alice", "bob"}))
    assert scope_of("get") == Scope(path=PLACE, key=frozenset({"1", "2"}))
    assert scope_of("query-template") == Scope(path=PLACE, subject=frozenset({"alice"}))
    assert scope_of("query-broken").subject is UNKNOWN
    assert MILVUS.read(SAID["search"].request).call.capture == {"collection": "memories"}


def test_a_database_is_a_tenant_in_message_or_metadata() -> None:
    message = milvus_pb2.QueryRequest(collection_name="memories", db_name="acme").SerializeToString()
    assert MILVUS.read(asked(SERVICE + "Query", message)).call.scope.tenant == frozenset({"acme"})
    message = milvus_pb2.QueryRequest(collection_name="memories").SerializeToString()
    assert MILVUS.read(asked(SERVICE + "Query", message, dbname="acme")).call.scope.tenant == frozenset(
        {"acme"}
    )
    assert MILVUS.read(asked(SERVICE + "Query", message, dbname="")).call.scope.tenant is ANY
    delete = SAID["delete-alice"].request.body  # pymilvus sends the name of the default database as nothing
    assert MILVUS.read(asked(SERVICE + "Delete", delete, dbname="")).call.scope == scope_of("delete-alice")


def test_writes_are_rows_of_whoever_they_say() -> None:
    call = MILVUS.read(SAID["insert"].request).call
    assert call.operation is Operation.WRITE
    assert [(item.key, item.subject, item.texts) for item in call.items] == [
        ("1", "alice", ("lives at 12 Elm Street",)), ("2", "bob", ("likes tea",)),
        ("3", "alice", ("has a cat",)),
    ]  # fmt: skip
    assert call.items[1].vector is None  # only a probe looks at one
    assert call.scope.subject == frozenset({"alice", "bob"})
    typed = MILVUS.read(SAID["insert-typed"].request).call
    assert [(item.key, item.subject, item.texts) for item in typed.items] == [
        ("a", "alice", ("lives",)), ("b", "bob", ()),
    ]  # fmt: skip
    assert MILVUS.ack(MILVUS.read(SAID["insert"].request), SAID["insert"].reply).outcome == "accepted"
    assert [item.key for item in answer("insert").items] == ["1", "2", "3"]


def test_rows_of_searches_and_queries() -> None:
    assert [(item.key, item.subject) for item in answer("search").items] == [
        ("1", "alice"), ("3", "alice"), ("2", "bob"), ("2", "bob"), ("1", "alice"), ("3", "alice"),
    ]  # fmt: skip
    rows = answer("query-all").items
    assert [(row.key, row.subject, row.texts) for row in rows][0] == (
        "1",
        "alice",
        ("lives at 12 Elm Street",),
    )
    assert rows[0].capture == {"key_type": "int64"}
    assert rows[0].path == ("memories",)
    typed = answer("query-typed").items
    assert [(row.key, row.texts, row.capture["key_type"]) for row in typed] == [
        ("a", ("lives",), "varchar"), ("b", (), "varchar"),
    ]  # fmt: skip
    assert answer("search").items[1].score == pytest.approx(0.9938837)


def test_scalars_are_whose_row_they_stand_in() -> None:
    said = set(answer("query-all").scalars())
    assert {
        (0, "alice"),
        (0, "lives at 12 Elm Street"),
        (1, "bob"),
        (2, "has a cat"),
        (None, "memories"),
    } <= said
    assert (None, "alice") not in said


@pytest.mark.parametrize("dropped", [{0}, {1, 2}, {0, 1, 4, 5}, {0, 1, 2, 3, 4, 5}])
def test_a_dropped_row_leaves_every_column_and_pymilvus_reads_the_rest(dropped: set[int]) -> None:
    before = milvus_pb2.SearchResults.FromString(SAID["search"].reply.body)
    left = answer("search").without(dropped)
    assert left is not None
    after = milvus_pb2.SearchResults.FromString(left)
    keep = [at for at in range(6) if at not in dropped]
    ids = list(before.results.ids.int_id.data)
    assert list(after.results.ids.int_id.data) == [ids[at] for at in keep]
    assert list(after.results.scores) == [before.results.scores[at] for at in keep]
    assert list(after.results.topks) == [sum(at < 3 for at in keep), sum(at >= 3 for at in keep)]
    metas = before.results.fields_data[0].scalars.json_data.data
    assert list(after.results.fields_data[0].scalars.json_data.data) == [metas[at] for at in keep]
    read = SearchResult(after.results)
    assert [[hit["id"] for hit in hits] for hits in read] == [
        [ids[at] for at in keep if at < 3], [ids[at] for at in keep if at >= 3],
    ]  # fmt: skip


def test_vectors_leave_with_their_row() -> None:
    before = milvus_pb2.QueryResults.FromString(SAID["query-all"].reply.body)
    left = answer("query-all").without({0, 2})
    after = milvus_pb2.QueryResults.FromString(left)
    assert list(after.fields_data[0].scalars.long_data.data) == [2]
    assert list(after.fields_data[1].vectors.float_vector.data) == [0.0, 1.0, 0.0, 0.0]
    assert after.fields_data[1].vectors.dim == before.fields_data[1].vectors.dim
    typed = milvus_pb2.QueryResults.FromString(answer("query-typed").without({1}))
    assert [list(one.valid_data) for one in typed.fields_data if one.field_name == "text"] == [[True]]


def results(**columns: schema_pb2.FieldData) -> bytes:
    data = schema_pb2.SearchResultData(
        num_queries=1, top_k=2, topks=[2], scores=[1, 0.5],
        ids=schema_pb2.IDs(str_id=schema_pb2.StringArray(data=["a", "b"])),
        fields_data=list(columns.values()),
    )  # fmt: skip
    return milvus_pb2.SearchResults(results=data).SerializeToString()  # type: ignore[no-any-return]


def column(name: str, **field: object) -> schema_pb2.FieldData:
    return schema_pb2.FieldData(field_name=name, **field)


VECTORS = {
    "binary": (schema_pb2.VectorField(dim=16, binary_vector=b"\x01\x02\xff\xfe"), b"\xff\xfe"),
    "float16": (
        schema_pb2.VectorField(dim=2, float16_vector=b"\x01\x02\x03\x04\x05\x06\x07\x08"),
        b"\5\6\7\x08",
    ),
    "int8": (schema_pb2.VectorField(dim=3, int8_vector=b"abcdef"), b"def"),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_vectors_of_bytes_are_cut_by_their_width(kind: str) -> None:
    vectors, kept = VECTORS[kind]
    request = SAID["search"].request
    answered = MILVUS.answer(MILVUS.read(request), told(results(v=column("v", vectors=vectors))))
    after = milvus_pb2.SearchResults.FromString(answered.without({0}))
    assert getattr(after.results.fields_data[0].vectors, f"{kind}_vector") == kept


def test_sparse_vectors_and_every_kind_of_scalar_are_cut() -> None:
    strings = schema_pb2.ScalarField(string_data=schema_pb2.StringArray(data=["x", "y"]))
    columns = {
        "s": column("s", vectors=schema_pb2.VectorField(
            sparse_float_vector=schema_pb2.SparseFloatArray(contents=[b"\1", b"\2"], dim=9))),
        "f": column("f", scalars=schema_pb2.ScalarField(float_data=schema_pb2.FloatArray(data=[1, 2]))),
        "b": column("b", scalars=schema_pb2.ScalarField(bool_data=schema_pb2.BoolArray(data=[True, False]))),
        "a": column("a", scalars=schema_pb2.ScalarField(
            array_data=schema_pb2.ArrayArray(data=[strings, strings]))),
    }  # fmt: skip
    answered = MILVUS.answer(MILVUS.read(SAID["search"].request), told(results(**columns)))
    after = milvus_pb2.SearchResults.FromString(answered.without({0})).results.fields_data
    assert list(after[0].vectors.sparse_float_vector.contents) == [b"\2"]
    assert list(after[1].scalars.float_data.data) == [2]
    assert list(after[2].scalars.bool_data.data) == [False]
    assert len(after[3].scalars.array_data.data) == 1


def test_columns_that_do_not_run_in_parallel_are_unreadable() -> None:
    one = column("t", scalars=schema_pb2.ScalarField(string_data=schema_pb2.StringArray(data=["only one"])))
    with pytest.raises(Unreadable):
        MILVUS.answer(MILVUS.read(SAID["search"].request), told(results(t=one)))
    short = column(
        "v", vectors=schema_pb2.VectorField(dim=4, float_vector=schema_pb2.FloatArray(data=[1] * 7))
    )
    with pytest.raises(Unreadable):
        MILVUS.answer(MILVUS.read(SAID["search"].request), told(results(v=short)))


def test_an_answer_of_which_no_single_row_can_be_taken_is_not_cut() -> None:
    data = schema_pb2.SearchResultData(
        topks=[1], ids=schema_pb2.IDs(int_id=schema_pb2.LongArray(data=[1])),
        group_by_field_value=column(
            "g", scalars=schema_pb2.ScalarField(string_data=schema_pb2.StringArray(data=["alice"]))
        ),
    )  # fmt: skip
    message = milvus_pb2.SearchResults(results=data).SerializeToString()
    answered = MILVUS.answer(MILVUS.read(SAID["search"].request), told(message))
    assert answered.without({0}) is None
    assert (None, "alice") in set(answered.scalars())


def test_deletes_by_expression_and_by_ids() -> None:
    by_ids = MILVUS.read(SAID["delete-ids"].request)
    assert by_ids.call.operation is Operation.FORGET
    assert by_ids.call.scope == Scope(path=PLACE, key=frozenset({"3"}))
    assert scope_of("delete-alice") == Scope(path=PLACE, subject=frozenset({"alice"}))
    ack = MILVUS.ack(by_ids, SAID["delete-ids"].reply)
    assert (ack.outcome, ack.count) == ("accepted", 1)
    nobody = SAID["delete-nobody"]
    assert MILVUS.ack(MILVUS.read(nobody.request), nobody.reply).outcome == "not_found"


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"code": 100, "error_code": 4}, "refused"),
        ({"code": 65535}, "unclear"),
        ({"error_code": 1}, "unclear"),
    ],
)
def test_errors_come_as_ok_with_a_status(fields: dict[str, int], outcome: str) -> None:
    message = milvus_pb2.MutationResult(status=common_pb2.Status(**fields)).SerializeToString()
    assert MILVUS.ack(MILVUS.read(SAID["delete-ids"].request), told(message)).outcome == outcome


@pytest.mark.parametrize(
    "expr",
    ["", "id > 3", 'user_id != "bob"', 'user_id == "a" and age > 3', 'text like "%elm%"', "user_id == name",
     'user_id == "a" or id in [3]', 'not (user_id == "bob")', 'user_id in []', "user_id == {u}", "x =="],
)  # fmt: skip
def test_a_delete_that_nobody_could_verify_is_refused(expr: str) -> None:
    message = milvus_pb2.DeleteRequest(collection_name="memories", expr=expr).SerializeToString()
    with pytest.raises(RequestFault) as refused:
        MILVUS.read(asked(SERVICE + "Delete", message))
    assert refused.value.problem == "unverifiable-forget"


def test_a_delete_within_a_partition_is_refused() -> None:
    message = milvus_pb2.DeleteRequest(collection_name="m", expr='user_id == "a"', partition_name="p")
    with pytest.raises(RequestFault):
        MILVUS.read(asked(SERVICE + "Delete", message.SerializeToString()))


def test_a_hybrid_search_asks_for_whomever_any_of_its_searches_asks_for() -> None:
    def hybrid(*filters: str) -> Scope:
        requests = [milvus_pb2.SearchRequest(dsl=one, collection_name="memories") for one in filters]
        message = milvus_pb2.HybridSearchRequest(collection_name="memories", requests=requests)
        return MILVUS.read(asked(SERVICE + "HybridSearch", message.SerializeToString())).call.scope

    assert hybrid('user_id == "alice"', 'user_id == "bob"').subject == frozenset({"alice", "bob"})
    assert hybrid('user_id == "alice"', "").subject is ANY
    assert hybrid('user_id == "alice"', 'user_id =="').subject is UNKNOWN


def test_a_recall_is_asked_for_strong_and_nothing_else_of_it_changes() -> None:
    reading = MILVUS.read(SAID["search-filter"].request)
    strong = MILVUS.strengthen(reading, reading.request, None)
    before = milvus_pb2.SearchRequest.FromString(reading.request.body)
    after = milvus_pb2.SearchRequest.FromString(strong.body)
    assert before.use_default_consistency
    assert not after.use_default_consistency
    assert after.consistency_level == 0
    assert after.guarantee_timestamp == 0
    before.use_default_consistency = False
    before.guarantee_timestamp = 0
    assert after == before
    eventually = milvus_pb2.QueryRequest(collection_name="m", expr="id > 0", consistency_level=3)
    weak = MILVUS.read(asked(SERVICE + "Query", eventually.SerializeToString()))
    sent = milvus_pb2.QueryRequest.FromString(MILVUS.strengthen(weak, weak.request, None).body)
    assert sent.consistency_level == 0


def surface(name: str):  # type: ignore[no-untyped-def]
    return next(one for one in MILVUS.surfaces if one.name == name)


def test_probes_quote_whatever_they_are_about() -> None:
    values = {"collection": "memories", "subject": 'o"brien\\', "key": "7", "key_type": "int64"}
    message = milvus_pb2.QueryRequest.FromString(surface("list").request(values).body)
    assert message.expr == 'user_id == "o\\"brien\\\\"'
    again = MILVUS.read(surface("list").request(values))
    assert again.call.scope.subject == frozenset({'o"brien\\'})
    record = milvus_pb2.QueryRequest.FromString(surface("record").request(values).body)
    assert record.expr == "id in [7]"
    text = {**values, "key_type": "varchar"}
    assert milvus_pb2.QueryRequest.FromString(surface("record").request(text).body).expr == 'id in ["7"]'
    for bad in ({**values, "subject": "a\nb"}, {**values, "key": "7] or id > 0"}):
        with pytest.raises(CannotQuote):
            surface("list" if "\n" in bad["subject"] else "record").request(bad)


def test_a_vector_is_packed_as_the_placeholder_wants_it() -> None:
    request = surface("near").request({"collection": "memories", "vector": [1.0, 0.0, 0.0, 0.0]})
    message = milvus_pb2.SearchRequest.FromString(request.body)
    recorded_one = milvus_pb2.SearchRequest.FromString(SAID["search-filter"].request.body)
    assert message.placeholder_group == recorded_one.placeholder_group


def test_an_error_is_not_an_empty_answer() -> None:
    with pytest.raises(Unreadable):
        surface("list").read(SAID["query-no-collection"].reply)
    found = surface("list").read(SAID["query-all"].reply).items
    assert found[0].capture == {"key_type": "int64"}
    assert found[1].vector == (0.0, 1.0, 0.0, 0.0)


def test_refusals_say_what_pymilvus_does_not_repeat() -> None:
    assert MILVUS.store.refusals == {"grpc": "PERMISSION_DENIED"}
