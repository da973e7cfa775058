"""Any rows out of any columns: what is left is the message that a store without them would have sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pymilvus.grpc_gen import milvus_pb2, schema_pb2

from quietus.profiles.loader import load_profile
from tests.profiles.messages import asked, told

MILVUS = load_profile("milvus")
SEARCH = asked(
    "/milvus.proto.milvus.MilvusService/Search",
    milvus_pb2.SearchRequest(collection_name="m").SerializeToString(),
)
WIDTH = {"binary_vector": 2, "float16_vector": 32, "int8_vector": 16}
"""Bytes of a vector of 16 dimensions."""
KINDS = ("string", "long", "bool", "double", "json", "array", "float_vector", "sparse", *WIDTH)


number = st.floats(width=32, allow_nan=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "long": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "double": st.floats(allow_nan=False),
    "json": st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
    "array": st.lists(st.sampled_from(["x", "yy"]), max_size=2),
    "float_vector": st.tuples(*[number] * 16),
    "sparse": st.binary(max_size=6),
    **{kind: st.binary(min_size=width, max_size=width) for kind, width in WIDTH.items()},
}


def column(name: str, kind: str, values: list[Any]) -> schema_pb2.FieldData:
    scalar, vector = schema_pb2.ScalarField(), schema_pb2.VectorField(dim=16)
    if kind in WIDTH:
        setattr(vector, kind, b"".join(values))
    elif kind == "float_vector":
        vector.float_vector.data.extend(number for row in values for number in row)
    elif kind == "sparse":
        vector.sparse_float_vector.contents.extend(values)
    elif kind == "json":
        scalar.json_data.data.extend(json.dumps(row).encode() for row in values)
    elif kind == "array":
        scalar.array_data.SetInParent()  # a column without rows is still a column of its kind
        for row in values:
            scalar.array_data.data.add().string_data.data.extend(row)
    else:
        getattr(scalar, f"{kind}_data").data.extend(values)
    found = schema_pb2.FieldData(field_name=name)
    if kind in (*WIDTH, "float_vector", "sparse"):
        found.vectors.CopyFrom(vector)
    else:
        found.scalars.CopyFrom(scalar)
    return found


def message(rows: list[dict[str, Any]], kinds: list[str], topks: list[int], typed: bool) -> bytes:
    data = schema_pb2.SearchResultData(
        num_queries=len(topks), top_k=10, topks=topks, scores=[row["score"] for row in rows],
        fields_data=[column(f"f{at}", kind, [row[at] for row in rows]) for at, kind in enumerate(kinds)],
    )  # fmt: skip
    if typed:
        data.ids.str_id.data.extend(f"k{row['id']}" for row in rows)
    else:
        data.ids.int_id.data.extend(row["id"] for row in rows)
    return milvus_pb2.SearchResults(results=data).SerializeToString()  # type: ignore[no-any-return]


@st.composite
def answers(draw: st.DrawFn) -> tuple[list[dict[Any, Any]], list[str], list[int], bool, set[int]]:
    kinds = draw(st.lists(st.sampled_from(KINDS), max_size=3))
    topks = draw(st.sampled_from([[1], [3], [2, 0], [0, 2, 1], [2, 2]]))
    row = st.fixed_dictionaries(
        {"id": VALUES["long"], "score": number, **{at: VALUES[kind] for at, kind in enumerate(kinds)}}
    )
    rows = draw(st.lists(row, min_size=sum(topks), max_size=sum(topks)))
    return rows, kinds, topks, draw(st.booleans()), draw(st.sets(st.integers(0, len(rows) - 1)))


@pytest.mark.timeout(240)  # it makes many examples
@given(answers())
@example(([{"id": 0, "score": 0.0, 0: []}], ["array"], [1], False, {0}))
@settings(max_examples=40, deadline=None)
def test_what_is_left_is_what_a_store_without_the_rows_would_have_sent(
    answer: tuple[list[dict[str, Any]], list[str], list[int], bool, set[int]],
) -> None:
    rows, kinds, topks, typed, dropped = answer
    reading = MILVUS.read(SEARCH)
    answered = MILVUS.answer(reading, told(message(rows, kinds, topks, typed)))
    assert [item.key for item in answered.items] == [
        f"k{row['id']}" if typed else str(row["id"]) for row in rows
    ]
    left = answered.without(dropped)
    ends = [sum(topks[: at + 1]) for at in range(len(topks))]
    kept = [at for at in range(len(rows)) if at not in dropped]
    counts = [sum(end - count <= at < end for at in kept) for count, end in zip(topks, ends, strict=True)]
    expected = message([rows[at] for at in kept], kinds, counts, typed)
    assert left is not None
    assert milvus_pb2.SearchResults.FromString(left) == milvus_pb2.SearchResults.FromString(expected)
    assert answered.without(set()) == message(rows, kinds, topks, typed)
