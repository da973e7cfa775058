"""Messages of gRPC, masked: nothing in clear is left, and what a profile reads of them is what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quietus.core.exchange import Reply, Request
from quietus.describing.masking import Masker
from quietus.describing.masks import Masks
from quietus.describing.message_masks import legible, masked_message, same_but_for_rows
from quietus.describing.pairs import Pair, pairs_of, written
from quietus.describing.rehearsing import rehearse
from quietus.documents import read
from quietus.profiles.descriptors import Descriptors, MessageType, of_module
from quietus.profiles.loader import find_profile, load_profile
from quietus.profiles.messages import encode, write_varint
from quietus.profiles.protobuf import NotMessage, decode
from quietus.stubs import memory_v1_pb2 as pb

MEMORY = Descriptors(of_module("quietus.stubs.memory_v1_pb2"))
MILVUS = Descriptors((Path(__file__).resolve().parents[2] / "policies/profiles/milvus.pb").read_bytes())
SERVICE = "/quietus.memory.v1.MemoryService"
PROFILE = load_profile("memory-tool", frozenset({"grpc"}))
WORDS = (b"Alice", b"Quai", b"alice", b"bob", b"train", b"acme", b"1794")


def kind(name: str, known: Descriptors = MEMORY) -> MessageType:
    found = known.message(name)
    assert found is not None
    return found


def masks(*names: str) -> Masks:
    return Masks(b"k" * 32, names)


def masker() -> Masker:
    return Masker(PROFILE, read(find_profile("memory-tool")).value, b"k" * 32)


def recalled() -> pb.RecallResponse:
    rows = [
        pb.Memory(key="a1", value="Alice Moreau lives at 14 Quai Voltaire", created_at=1794000000.5,
                  subject="alice", salience=0.25, vector=[0.75, -2.5]),
        pb.Memory(key="b1", value="Bob takes the early train", subject="bob"),
    ]  # fmt: skip
    return pb.RecallResponse(results=rows)


def test_no_value_is_left_and_equal_ones_stay_equal() -> None:
    data = recalled().SerializeToString()
    masked = masked_message(data, kind("quietus.memory.v1.RecallResponse"), masks())
    assert not [word for word in WORDS if word in masked]
    one, other = pb.RecallResponse.FromString(masked).results
    assert one.value != other.value and one.key != other.key
    assert one.salience not in (0.0, 0.25) and not other.HasField("salience") and len(one.vector) == 2
    assert one.subject != other.subject
    assert [field.name for field, _ in one.ListFields()] == [
        field.name for field, _ in recalled().results[0].ListFields()]  # fmt: skip
    again = masks()
    twice = [masked_message(data, kind("quietus.memory.v1.RecallResponse"), again) for _ in range(2)]
    assert twice[0] == twice[1] == masked


def test_vectors_numbers_and_bytes_keep_their_types_and_lengths() -> None:
    of = kind("milvus.proto.schema.FieldData", MILVUS)
    vector = {"dim": 3, "float_vector": {"data": [0.25, -1.5, 3.0] * 2}}
    data = encode({"field_name": "embedding", "vectors": vector}, of)
    masked = decode(masked_message(data, of, masks()), of).view
    assert masked["field_name"] == "v0"
    floats = masked["vectors"]["float_vector"]["data"]
    assert len(floats) == 6 and 0.25 not in floats.values() and -1.5 not in floats.values()
    assert legible(masked)["vectors"]["float_vector"]["data"] == "6 floats"
    longs = {"scalars": {"long_data": {"data": [17, -4, 1 << 62, 1, 0]}}, "field_id": 5}
    seen = decode(masked_message(encode(longs, of), of, masks()), of).view["scalars"]["long_data"]["data"]
    assert [len(str(abs(each))) for each in seen] == [2, 1, 19, 1, 1] and seen[3:] == [1, 0] and seen[1] < 0
    assert 17 not in seen and 1 << 62 not in seen
    packed = {"vectors": {"dim": 8, "binary_vector": b"\xff\xfe\x00\x01\x02\x03\x04"}}
    found = decode(masked_message(encode(packed, of), of, masks()), of).view["vectors"]["binary_vector"]
    assert len(found.raw) == 7 and bytes(found.raw) != packed["vectors"]["binary_vector"]  # type: ignore[index]


def test_fields_that_no_descriptor_knows_are_left_out() -> None:
    of = kind("quietus.memory.v1.Retention")
    hidden = write_varint(900 << 3 | 2) + write_varint(5) + b"Alice"
    data = hidden + pb.Retention(subject="alice").SerializeToString() + hidden
    masked = masked_message(data, of, masks())
    assert b"Alice" not in masked and pb.Retention.FromString(masked).subject == "v0"


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\x03a", b"\x0a\x01a\x0a\x01b", b"\x09" + b"\0" * 8])
def test_what_does_not_decode_in_one_way_is_not_masked(data: bytes) -> None:
    with pytest.raises(NotMessage):
        masked_message(data, kind("quietus.memory.v1.Retention"), masks())


def call(method: str, asked: Any, told: Any, code: str = "OK", **more: Any) -> Pair:
    status = {"OK": 200, "NOT_FOUND": 404}[code]
    metadata = (("authorization", "Bearer secret"), ("x-who", "alice"))
    reply = Reply(status, (("x-who", "alice"),), told.SerializeToString(), more.get("details", ""), code)
    return Pair(Request("POST", f"{SERVICE}/{method}", metadata, asked.SerializeToString(), "grpc"), reply)


def pairs() -> list[Pair]:
    asked = pb.RecallRequest(query="where does alice live", tenant="acme", subject="alice", top_k=5)
    wrote = pb.WriteRequest(tenant="acme", key="a1", value="Alice Moreau lives at 14 Quai Voltaire",
                            retention=pb.Retention(subject="alice"))  # fmt: skip
    return [
        call("Write", wrote, pb.WriteResponse(key="a1", status="stored")),
        call("Recall", asked, recalled()),
        call("Read", pb.ReadRequest(tenant="acme", key="a1"), pb.Memory(), "NOT_FOUND", details="of alice"),
        call("Forget", pb.ForgetRequest(tenant="acme", subject="alice"),
             pb.ForgetResponse(status="erased", keys=1)),
    ]  # fmt: skip


def test_a_masked_call_is_written_read_and_means_what_it_meant() -> None:
    one = masker()
    lines = [written(one.masked(pair)) for pair in pairs()]
    assert not [word for word in (*WORDS, b"secret") if word.decode() in "\n".join(lines)]
    assert json.loads(lines[1])["shows"]["response"]["results"][0]["value"].startswith("text")
    seen = rehearse(PROFILE, pairs_of(lines))
    assert [each.faults for each in seen] == [[], [], [], []]
    write, recall, absent, forget = (each.found for each in seen)
    assert (write["operation"], recall["operation"], forget["operation"]) == ("write", "recall", "forget")
    assert write["scope"]["subject"] == recall["scope"]["subject"] == forget["scope"]["subject"]
    assert (recall["items"], seen[1].dropped, absent["route"]) == (2, 2, "read")
    assert forget["ack"] == "accepted"


def test_a_call_that_cannot_be_masked_keeps_nothing_of_its_messages() -> None:
    reply = Reply(200, (), b"alice", "", "OK")
    for method, body in (("/other.Service/Alice", b"alice"), (f"{SERVICE}/Recall", b"\x0aalice")):
        masked = masker().masked(Pair(Request("POST", method, (), body, "grpc"), reply))
        assert masked.left_out and masked.request.body == masked.reply.body == b""
        assert "lice" not in written(masked)


def test_less_is_told_from_otherwise() -> None:
    of = kind("quietus.memory.v1.RecallResponse")
    before = decode(recalled().SerializeToString(), of).view
    message = recalled()
    del message.results[0]
    assert same_but_for_rows(before, decode(message.SerializeToString(), of).view, 1, None, columns=False)
    assert not same_but_for_rows(before, {}, 1, None, columns=False), "two rows are gone"
    assert same_but_for_rows(before, {}, 2, None, columns=False)
    message.results[0].value = "changed"
    assert not same_but_for_rows(before, decode(message.SerializeToString(), of).view, 1, None, columns=False)
    counted = {"results": [1, 2], "total": 2}
    assert same_but_for_rows(counted, {"results": [2], "total": 1}, 1, "total", columns=False)
    assert not same_but_for_rows(counted, {"results": [2], "total": 1}, 1, None, columns=False)
