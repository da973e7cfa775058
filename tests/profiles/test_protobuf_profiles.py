"""Profiles that name messages: held to their descriptor set; the memory tool is alike on both wires."""

from __future__ import annotations

from pathlib import Path

import pytest
from aetcd.rpc import rpc_pb2

from quietus.core.operations import Operation
from quietus.core.scope import Scope
from quietus.profiles.descriptors import of_module
from quietus.profiles.faults import ProfileError, RequestFault
from quietus.profiles.loader import load_profile, parse_profile, shipped_directory
from quietus.restating import strings
from quietus.stubs import memory_v1_pb2 as memory
from scripts.descriptors import WANTED, pruned
from tests.profiles.messages import asked, told
from tests.profiles.speech import asked as http

TOOL = load_profile("memory-tool")
ETCD = load_profile("etcd")
SERVICE = "/quietus.memory.v1.MemoryService/"
GOOD = """\
apiVersion: quietus/v1
kind: Profile
name: tried
descriptors: {module: quietus.stubs.memory_v1_pb2}
routes:
  - name: recall
    operation: recall
    grpc: {method: /quietus.memory.v1.MemoryService/Recall}
    request: {subject: $.body.subject, query: $.body.query}
    response: {items: $.body.results, item: {key: $.key, content: $.value}}
surfaces:
  - name: record
    kind: primary
    each: key
    grpc: {method: /quietus.memory.v1.MemoryService/Read, message: {key: "{key}"}}
    clean: [{status: NOT_FOUND}]
    items: $.body
    item: {key: $.key}
  - {name: backups, kind: unprobeable}
"""


def faults(text: str, **how: object) -> list[tuple[int, str]]:
    with pytest.raises(ProfileError) as refused:
        parse_profile(text, "tried.yaml", **how)  # type: ignore[arg-type]
    return [(fault.line, f"{fault.message} {fault.hint}") for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("MemoryService/Recall", "MemoryService/Recal", 8, "descriptor set lacks the method"),
        ("MemoryService/Read", "MemoryService/Fetch", 15, "descriptor set lacks the method"),
        ("memory_v1_pb2", "nothing_pb2", 4, "no module quietus.stubs.nothing_pb2 is installed"),
        ("{module: quietus.stubs.memory_v1_pb2}", "{file: nothing.pb}", 4, "cannot be read"),
        ("{module: quietus.stubs.memory_v1_pb2}", "{}", 4, "a file or a module"),
        ("descriptors: {module: quietus.stubs.memory_v1_pb2}\n", "", 7, "nothing describes the messages"),
        ("$.body.subject", "$.body.subjekt", 9, "has no field subjekt"),
        ("$.body.results", "$.body.rows", 10, "has no field rows"),
        ("content: $.value", "content: $.text", 10, "has no field text"),
        ('message: {key: "{key}"}', 'message: {id: "{key}"}', 15, "has no field id"),
        ("/quietus.memory.v1.MemoryService/Recall", "quietus.memory.v1.MemoryService/Recall", 8, "pattern"),
        ("clean: [{status: NOT_FOUND}]", "clean: [{$.body.gone: true}]", 16, "has no field gone"),
        ("$.body.query", "$.body.query.text", 9, "which is no message"),
    ],
)
def test_what_the_messages_do_not_hold_is_refused_with_its_line(
    old: str, new: str, line: int, said: str
) -> None:
    assert old in GOOD
    found = faults(GOOD.replace(old, new, 1))
    assert any(at == line and said in message for at, message in found), found


def test_a_set_that_the_store_itself_has_told_will_do() -> None:
    without = GOOD.replace("descriptors: {module: quietus.stubs.memory_v1_pb2}\n", "")
    told_set = of_module("quietus.stubs.memory_v1_pb2")
    assert parse_profile(without, descriptors=told_set).routes
    assert any("no FileDescriptorSet" in said for _, said in faults(without, descriptors=b"\xff"))


def test_a_set_beside_the_profile_is_found_from_anywhere(tmp_path: Path) -> None:
    (tmp_path / "notes.pb").write_bytes(of_module("quietus.stubs.memory_v1_pb2"))
    file = tmp_path / "notes.yaml"
    file.write_text(GOOD.replace("{module: quietus.stubs.memory_v1_pb2}", "{file: notes.pb}"))
    assert load_profile(file).routes
    (tmp_path / "notes.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ProfileError, match=r"notes.yaml:4: the descriptor set cannot be used"):
        load_profile(file)


def test_what_cannot_be_asked_on_the_wires_there_are_is_refused() -> None:
    assert any("only be asked over grpc" in said for _, said in faults(GOOD, wires=["http"]))
    both = [one.template for one in TOOL.surfaces if one.template is not None]
    only = [
        one.template for one in load_profile("memory-tool", ["grpc"]).surfaces if one.template is not None
    ]
    assert {one.path.count("MemoryService") for one in both} == {0}
    assert {one.path.count("MemoryService") for one in only} == {1}


@pytest.mark.parametrize("name", WANTED)
def test_the_descriptor_sets_that_ship_are_those_that_are_published(name: str) -> None:
    shipped = (shipped_directory() / name).read_bytes()
    assert shipped == pruned(*WANTED[name]), "run: python scripts/descriptors.py"
    assert len(shipped) < 32 * 1024


# The same call on both wires

CALLS = {
    "write": ({"method": "POST", "target": "/v1/memories"}, "Write", {
        "tenant": "acme", "key": "a1", "value": "Alice lives at 12 Elm", "scope": "acme/s1",
        "retention": {"subject": "alice", "purpose": "assistance", "ttl": 60.0}, "derived_from": ["x1"],
    }),
    "batch": ({"method": "POST", "target": "/v1/memories"}, "Write", {"memories": [
        {"value": "one", "retention": {"subject": "alice"}},
        {"value": "two", "retention": {"subject": "bob"}},
    ]}),
    "recall": ({"method": "POST", "target": "/v1/recall"}, "Recall", {
        "tenant": "acme", "subject": "alice", "query": "contact details", "scope": "acme/s1",
    }),
    "forget": ({"method": "POST", "target": "/v1/forget"}, "Forget", {
        "tenant": "acme", "subject": "alice", "purposes": ["assistance"], "basis": "gdpr_art17",
    }),
    "forget keys": ({"method": "POST", "target": "/v1/forget"}, "Forget", {"keys": ["a1", "a2"]}),
}  # fmt: skip


@pytest.mark.requirement("R13")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_the_same_on_either_wire(name: str) -> None:
    place, method, said = CALLS[name]
    message = getattr(memory, f"{method}Request")(**said).SerializeToString()
    over_http = TOOL.read(http(place["method"], place["target"], said))
    over_grpc = TOOL.read(asked(SERVICE + method, message))
    assert over_grpc.call == over_http.call
    assert (over_grpc.ttl, over_grpc.salience) == (over_http.ttl, over_http.salience)


def test_a_write_says_all_that_its_message_holds_also_in_fields_that_nobody_knows() -> None:
    hidden = memory.Memory(value="hidden here").SerializeToString()
    unknown = b"\xfa\x07" + bytes([len(hidden)]) + hidden  # field 127
    bob = memory.Retention(subject="bob")
    written = memory.WriteRequest(value="plain", retention=bob).SerializeToString()
    reading = TOOL.read(asked(SERVICE + "Write", written + unknown))
    assert reading.call.texts == ("plain",)
    assert {"plain", "hidden here"} <= set(strings(reading.document))
    assert set(strings(TOOL.read(asked(SERVICE + "Write", written)).document)) >= {"plain", "bob"}
    put = rpc_pb2.PutRequest(key=b"mem/bob/1", value=b"\xff\x00\x01hidden words\xfe").SerializeToString()
    assert "hidden words" in set(strings(ETCD.read(asked("/etcdserverpb.KV/Put", put)).document))


def test_reads_lists_and_deletes_name_what_they_are_about() -> None:
    read = TOOL.read(asked(SERVICE + "Read", memory.ReadRequest(key="a1", tenant="t").SerializeToString()))
    assert (read.call.operation, read.call.scope) == (
        Operation.READ, Scope(tenant=frozenset({"t"}), key=frozenset({"a1"})),
    )  # fmt: skip
    listed = TOOL.read(asked(SERVICE + "List", memory.ListRequest(subject="alice").SerializeToString()))
    assert listed.call.scope == Scope(subject=frozenset({"alice"}))
    gone = TOOL.read(asked(SERVICE + "Delete", memory.DeleteRequest(key="a1").SerializeToString()))
    assert gone.call.operation is Operation.FORGET


@pytest.mark.parametrize(
    "message",
    [
        b"",
        memory.ForgetRequest(subject="").SerializeToString(),
        memory.ForgetRequest(tenant="t").SerializeToString(),
    ],
)
def test_an_empty_predicate_never_means_everything(message: bytes) -> None:
    with pytest.raises(RequestFault):
        TOOL.read(asked(SERVICE + "Forget", message))


ROWS = memory.RecallResponse(
    results=[
        memory.Memory(
            key="a1", value="lives at 12 Elm", subject="alice", score=0.9, provenance_resolved=True
        ),
        memory.Memory(key="b1", value="likes tea", subject="bob", score=0.5),
    ],
    read_epoch=3,
)


def test_answers_are_rows_with_their_epoch_and_lose_a_row_cleanly() -> None:
    reading = TOOL.read(asked(SERVICE + "Recall", memory.RecallRequest(query="x").SerializeToString()))
    answered = TOOL.answer(reading, told(ROWS.SerializeToString()))
    assert answered.epoch == 3
    assert [(item.key, item.provenance_resolved) for item in answered.items] == [("a1", True), ("b1", None)]
    left = memory.RecallResponse.FromString(answered.without({0}) or b"")
    assert list(left.results) == [ROWS.results[1]]
    assert left.read_epoch == 3


def test_a_message_of_a_stream_is_a_row() -> None:
    reading = TOOL.read(asked(SERVICE + "StreamRecall", memory.RecallRequest(query="x").SerializeToString()))
    answered = TOOL.event(reading, ROWS.results[0].SerializeToString())
    assert [item.subject for item in answered.items] == ["alice"]
    assert answered.without({0}) is None


def test_errors_are_looked_at_with_their_status_and_trailers() -> None:
    reading = TOOL.read(asked(SERVICE + "Recall", memory.RecallRequest(query="x").SerializeToString()))
    answered = TOOL.answer(reading, told(code="INTERNAL", said="alice lives at 12 Elm"))
    assert (None, "alice lives at 12 Elm") in set(answered.scalars())
    assert not answered.items


def test_queued_writes_and_counted_forgets() -> None:
    write = TOOL.read(asked(SERVICE + "Write", memory.WriteRequest(value="x").SerializeToString()))
    queued = memory.WriteResponse(key="k", status="queued").SerializeToString()
    assert TOOL.ack(write, told(queued)).outcome == "queued"
    assert [item.key for item in TOOL.answer(write, told(queued)).items] == ["k"]
    batch = memory.WriteResponse(results=[memory.Written(key="k", status="queued")]).SerializeToString()
    assert TOOL.ack(write, told(batch)).outcome == "queued"
    assert TOOL.ack(write, told(memory.WriteResponse(key="k").SerializeToString())).outcome == "accepted"
    forget = TOOL.read(asked(SERVICE + "Forget", memory.ForgetRequest(subject="alice").SerializeToString()))
    said = memory.ForgetResponse(status="erased", keys=412, erasure_epoch=9, token="del_1")
    ack = TOOL.ack(forget, told(said.SerializeToString()))
    assert (ack.outcome, ack.count, ack.epoch, ack.token) == ("accepted", 412, 9, "del_1")


def test_a_method_that_nobody_described_is_screened_by_all_that_its_bytes_may_say() -> None:
    reading = TOOL.read(asked("/other.Service/Get", b"\x0a\x05alice"))
    assert not reading.mapped
    answered = TOOL.answer(reading, told(ROWS.SerializeToString()))
    assert {(None, "alice"), (None, "lives at 12 Elm")} <= set(answered.scalars())
    assert answered.without({0}) is None
    assert TOOL.ack(reading, told(b"")).outcome == "unclear"


def test_the_minimal_epoch_is_metadata() -> None:
    message = memory.RecallRequest(query="x").SerializeToString()
    reading = TOOL.read(asked(SERVICE + "Recall", message, **{"quietus-min-epoch": "7"}))
    assert reading.call.min_epoch == 7
