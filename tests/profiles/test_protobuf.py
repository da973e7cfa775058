"""The codec: a view of a message by the names of its fields, and the same bytes back but for what was cut."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from quietus.profiles.descriptors import Descriptors, MessageType, NoDescriptors, of_module
from quietus.profiles.faults import CannotQuote
from quietus.profiles.message_scalars import guesses, of_metadata, scalars
from quietus.profiles.messages import Edits, encode, rewrite, with_fields
from quietus.profiles.protobuf import NODES_MAX, Floats, NotMessage, Opaque, decode
from quietus.profiles.rows import Anchors
from quietus.stubs import memory_v1_pb2 as memory

F = descriptor_pb2.FieldDescriptorProto
KINDS = {
    "double": F.TYPE_DOUBLE, "float": F.TYPE_FLOAT, "int64": F.TYPE_INT64, "uint64": F.TYPE_UINT64,
    "int32": F.TYPE_INT32, "fixed64": F.TYPE_FIXED64, "fixed32": F.TYPE_FIXED32, "bool": F.TYPE_BOOL,
    "string": F.TYPE_STRING, "bytes": F.TYPE_BYTES, "uint32": F.TYPE_UINT32, "sfixed32": F.TYPE_SFIXED32,
    "sfixed64": F.TYPE_SFIXED64, "sint32": F.TYPE_SINT32, "sint64": F.TYPE_SINT64,
}  # fmt: skip


def everything() -> descriptor_pb2.FileDescriptorSet:
    """A message with a field of every kind, single and repeated, a map, a choice, an enum and itself."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    mood = file.enum_type.add(name="Mood")
    mood.value.add(name="CALM", number=0)
    mood.value.add(name="LOUD", number=3)
    one = file.message_type.add(name="All")
    for number, (name, kind) in enumerate(KINDS.items(), 1):
        one.field.add(name=f"a_{name}", number=number, type=kind, label=F.LABEL_OPTIONAL)
        one.field.add(name=f"r_{name}", number=100 + number, type=kind, label=F.LABEL_REPEATED)
    one.field.add(name="mood", number=50, type=F.TYPE_ENUM, type_name=".t.Mood", label=F.LABEL_OPTIONAL)
    one.field.add(name="inner", number=51, type=F.TYPE_MESSAGE, type_name=".t.All", label=F.LABEL_OPTIONAL)
    one.field.add(name="rows", number=52, type=F.TYPE_MESSAGE, type_name=".t.All", label=F.LABEL_REPEATED)
    one.oneof_decl.add(name="choice")
    for number, name in ((54, "this"), (55, "that")):
        one.field.add(name=name, number=number, type=F.TYPE_STRING, oneof_index=0, label=F.LABEL_OPTIONAL)
    entry = one.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    one.field.add(name="tags", number=53, type=F.TYPE_MESSAGE, type_name=".t.All.TagsEntry",
                  label=F.LABEL_REPEATED)  # fmt: skip
    service = file.service.add(name="S")
    service.method.add(name="Go", input_type=".t.All", output_type=".t.All")
    return descriptor_pb2.FileDescriptorSet(file=[file])


ALL = Descriptors(everything().SerializeToString()).message("t.All")
assert ALL is not None
MEMORY = Descriptors(of_module("quietus.stubs.memory_v1_pb2"))


def listed(kind: MessageType | None = None, **fields: object) -> bytes:
    return encode(fields, kind or ALL)


def test_a_view_has_the_names_and_values_of_the_message() -> None:
    written = memory.RecallResponse(
        results=[memory.Memory(key="a1", value="lives", subject="alice", score=0.5, vector=[0.5] * 3)],
        read_epoch=2**62,
    ).SerializeToString()
    rpc = MEMORY.rpc("/quietus.memory.v1.MemoryService/Recall")
    assert rpc is not None
    view = decode(written, rpc.gives).view
    assert view["read_epoch"] == 2**62
    row = view["results"][0]
    assert (row["key"], row["subject"], row["score"]) == ("a1", "alice", 0.5)
    assert isinstance(row["vector"], Floats)
    assert row["vector"].values() == (0.5, 0.5, 0.5)


def test_vectors_are_not_copied_to_be_read() -> None:
    floats = struct.pack("<100000f", *([0.25] * 100_000))
    data = b"\xb2\x06" + encode_length(len(floats)) + floats  # field 102, r_float
    tracemalloc.start()
    found = decode(data, ALL).view["r_float"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 100_000
    assert found.raw.obj is data
    assert peak < 100_000


def encode_length(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


numbers = {
    "int64": st.integers(-(2**63), 2**63 - 1), "uint64": st.integers(0, 2**64 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1), "uint32": st.integers(0, 2**32 - 1),
    "sint32": st.integers(-(2**31), 2**31 - 1), "sint64": st.integers(-(2**63), 2**63 - 1),
    "fixed32": st.integers(0, 2**32 - 1), "fixed64": st.integers(0, 2**64 - 1),
    "sfixed32": st.integers(-(2**31), 2**31 - 1), "sfixed64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(), "string": st.text(max_size=8), "double": st.floats(allow_nan=False),
}  # fmt: skip
leaves = st.fixed_dictionaries({}, optional={f"a_{name}": made for name, made in numbers.items()})
lists = st.fixed_dictionaries(
    {}, optional={f"r_{name}": st.lists(made, min_size=1, max_size=5)
                  for name, made in numbers.items() if name != "double"}
)  # fmt: skip


@pytest.mark.timeout(240)  # it makes many examples
@given(leaves, lists, st.lists(leaves, max_size=3))
@settings(max_examples=80, deadline=None)
def test_what_is_encoded_is_what_protobuf_itself_reads_and_decodes_again(one, many, rows) -> None:  # type: ignore[no-untyped-def]
    from google.protobuf import message_factory
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    pool.AddSerializedFile(everything().file[0].SerializeToString())
    known = message_factory.GetMessageClass(pool.FindMessageTypeByName("t.All"))
    said = {**one, **many, **({"rows": rows} if rows else {})}
    data = encode(said, ALL)
    theirs = known.FromString(data)
    for name, value in {**one, **many}.items():
        assert getattr(theirs, name) == value
    assert rewrite(decode(theirs.SerializeToString(), ALL), Edits()) == theirs.SerializeToString()
    again = decode(data, ALL).view
    for name, value in many.items():
        assert again[name] == value


@pytest.mark.timeout(240)  # it makes many examples
@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_garbage_is_read_or_refused_and_never_changed(data: bytes) -> None:
    try:
        message = decode(data, ALL)
    except NotMessage:
        return
    assert rewrite(message, Edits()) == data
    scalars(message, Anchors())


AMBIGUOUS = {
    "a single field twice": listed(a_string="a") + listed(a_string="b"),
    "a message twice": listed(inner={"a_string": "a"}) + listed(inner={"a_string": "b"}),
    "two of a choice": listed(this="a") + listed(that="b"),
    "another wire type": b"\x48\x01",  # a_string (9) as a number
    "a map key twice": listed(tags={"a": "1"}) + listed(tags={"a": "2"}),
    "no UTF-8": b"\x4a\x01\xff",
    "cut short": listed(a_string="alice")[:-1],
    "longer than its message": b"\x9a\x03\x02\x4a\x05",
    "field zero": b"\x00\x01",
    "a number of eleven bytes": b"\x18" + b"\x80" * 10 + b"\x01",
    "a group that does not end": b"\xfb\x0f",
    "packed floats cut short": b"\xb2\x06\x03\x00\x00\x00",
    "nested too deeply": b"",
}
deep = b""
for _ in range(100):
    deep = b"\x9a\x03" + encode_length(len(deep)) + deep
AMBIGUOUS["nested too deeply"] = deep


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_what_two_parsers_could_read_in_two_ways_is_refused(what: str) -> None:
    with pytest.raises(NotMessage):
        decode(AMBIGUOUS[what], ALL)


def test_huge_counts_are_refused_before_they_are_held() -> None:
    packed = b"\xba\x06" + encode_length(4_000_000) + b"\x01" * 4_000_000  # field 103, r_int64
    tracemalloc.start()
    with pytest.raises(NotMessage) as refused:
        decode(packed, ALL)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.value.too_large
    assert peak < 10 * 1024 * 1024
    with pytest.raises(NotMessage) as refused:
        decode(b"\xa2\x03\x00" * (NODES_MAX + 1), ALL)
    assert refused.value.too_large
    assert len(decode(b"\xa2\x03\x00" * 1000, ALL).view["rows"]) == 1000


def test_rows_leave_and_every_other_byte_stays_even_of_fields_nobody_knows() -> None:
    unknown = b"\xfa\x07\x05hello"  # field 127
    rows = [listed(a_string=name) + unknown for name in ("a", "b", "c")]
    parts = [b"\xa2\x03" + encode_length(len(row)) + row for row in rows]
    head, tail = listed(a_int64=7), unknown + listed(tags={"k": "v"})
    message = decode(head + b"".join(parts) + tail, ALL)
    edits = Edits()
    edits.drops[id(message.view["rows"])] = (frozenset({1}), 1)
    assert rewrite(message, edits) == head + parts[0] + parts[2] + tail


def test_numbers_longer_than_they_need_be_stay_so() -> None:
    odd = b"\x18\x81\x80\x00"  # a_int64 = 1 in three bytes
    message = decode(odd + listed(r_int64=[1, 2, 300]), ALL)
    edits = Edits()
    edits.drops[id(message.view["r_int64"])] = (frozenset({0, 2}), 1)
    assert rewrite(message, edits) == odd + listed(r_int64=[2])


def test_fields_are_set_where_they_stand_or_at_the_end() -> None:
    unknown = b"\xfa\x07\x05hello"
    message = decode(listed(a_string="x") + unknown + listed(a_int64=4), ALL)
    made = with_fields(message, {("a_int64",): 0, ("inner", "a_string"): "deep", ("mood",): "LOUD"})
    assert made == listed(a_string="x") + unknown + listed(inner={"a_string": "deep"}, mood="LOUD")
    within = decode(listed(inner={"a_string": "a", "a_int32": 3}), ALL)
    assert with_fields(within, {("inner", "a_int32"): 5}) == listed(inner={"a_string": "a", "a_int32": 5})
    with pytest.raises(CannotQuote):
        with_fields(within, {("nope",): 1})


def test_everything_that_may_be_content_is_among_the_scalars() -> None:
    inner = listed(a_string="in the unknown")
    unknown = b"\xfa\x07" + encode_length(len(inner)) + inner + b"\xf8\x07\x2a"
    data = listed(
        a_string="text", a_bytes='{"name": "alice", "n": 5}', a_int64=77, tags={"key1": "value1"},
        mood="LOUD", a_bool=True, inner={"a_string": "deep"}, r_float=[0.5] * 20, r_double=[1.5],
    ) + unknown  # fmt: skip
    found = {text for _, text in scalars(decode(data, ALL), Anchors())}
    assert {"text", "alice", "77", "key1", "value1", "deep", "in the unknown", "42", "1.5", "5"} <= found
    assert not {"LOUD", "0.5", "a_string", "true"} & found


def test_bytes_that_are_no_text_are_looked_at_as_what_they_may_be() -> None:
    raw = b"\xff\xfe" + b"lives at 12 Elm"
    view = decode(listed(a_bytes=raw), ALL).view
    assert isinstance(view["a_bytes"], Opaque)
    assert any("lives at 12 Elm" in text for _, text in scalars(decode(listed(a_bytes=raw), ALL), Anchors()))
    message = memory.Memory(key="a1", value="lives at 12 Elm", subject="alice").SerializeToString()
    assert {"a1", "lives at 12 Elm", "alice"} <= set(guesses(message))


def test_trailing_metadata_is_looked_at_too() -> None:
    import base64

    status = memory.Memory(value="alice lives here").SerializeToString()
    pairs = (("x-note", "plain"), ("grpc-status-details-bin", base64.b64encode(status).decode().rstrip("=")))
    found = set(of_metadata(pairs))
    assert "plain" in found
    assert "alice lives here" in found


@pytest.mark.parametrize(
    ("field", "value"),
    [("a_int32", 2**31), ("a_int64", "12x"), ("a_int64", 1.5), ("a_uint32", -1), ("a_bool", 1),
     ("a_float", "x"), ("a_string", ["a"]), ("inner", "x"), ("mood", "NOPE"), ("nope", 1),
     ("a_float", 1e300), ("tags", [1])],
)  # fmt: skip
def test_what_a_field_cannot_hold_is_refused(field: str, value: object) -> None:
    with pytest.raises(CannotQuote):
        encode({field: value}, ALL)


def test_keys_that_are_kept_as_text_go_back_as_numbers() -> None:
    assert decode(encode({"a_int64": "-12", "a_string": 5}, ALL), ALL).view == {
        "a_int64": -12,
        "a_string": "5",
    }


def test_a_descriptor_set_is_checked_whole() -> None:
    whole = everything()
    for data, said in (
        (b"\xff\xff", "no FileDescriptorSet"),
        (b"", "holds no file"),
        (descriptor_pb2.FileDescriptorSet(
            file=[descriptor_pb2.FileDescriptorProto(name="a.proto", dependency=["b.proto"])]
        ).SerializeToString(), "lacks b.proto"),
    ):  # fmt: skip
        with pytest.raises(NoDescriptors, match=said):
            Descriptors(data)
    broken = descriptor_pb2.FileDescriptorSet.FromString(whole.SerializeToString())
    broken.file[0].message_type[0].field[0].ClearField("type")
    broken.file[0].message_type[0].field[0].type_name = ".t.Nothing"
    with pytest.raises(NoDescriptors):
        Descriptors(broken.SerializeToString())
    with pytest.raises(NoDescriptors, match="no module"):
        of_module("quietus.stubs.nothing_pb2")
    with pytest.raises(NoDescriptors, match="no module made"):
        of_module("quietus.keys")
