"""etcd's messages as recorded from the real server: what is asked for, what comes back, what is left."""

from __future__ import annotations

import pytest
from aetcd.rpc import rpc_pb2 as rpc

from quietus.core.operations import Operation
from quietus.core.scope import ANY, Scope
from quietus.profiles.faults import CannotQuote, RequestFault
from quietus.profiles.loader import load_profile
from tests.profiles.messages import asked, recorded, told

ETCD = load_profile("etcd")
SAID = recorded("etcd")
KV = "/etcdserverpb.KV/"
ALICE = Scope(subject=frozenset({"alice"}), path=frozenset({("mem", "alice")}))


def scope_of(name: str) -> Scope:
    return ETCD.read(SAID[name].request).call.scope


def test_a_key_names_its_owner_its_directory_and_itself() -> None:
    reading = ETCD.read(SAID["get-alice"].request)
    assert reading.call.operation is Operation.READ
    assert reading.call.route == "get"
    assert reading.call.scope == Scope(
        subject=frozenset({"alice"}), path=frozenset({("mem", "alice")}), key=frozenset({"mem/alice/1"})
    )


def test_a_prefix_is_a_directory() -> None:
    assert scope_of("range-alice") == ALICE
    assert scope_of("range-all") == Scope(path=frozenset({("mem",)}))
    assert scope_of("count-everything") == Scope()
    assert scope_of("history").subject == frozenset({"alice"})


@pytest.mark.parametrize(
    ("key", "end", "path", "subject"),
    [
        (b"mem/al", b"mem/am", ("mem",), ANY),
        (b"mem/alice/1", b"mem/alice/5", ("mem", "alice"), frozenset({"alice"})),
        (b"mem/alice/", b"\0", ANY, ANY),
        (b"mem/alice/", b"mem/b", ("mem",), ANY),
        (b"mem/alice/x/", b"mem/alice/x0", ("mem", "alice", "x"), frozenset({"alice"})),
        (b"mem/alice/", b"mem/alice1", ("mem",), ANY),
        (b"other", b"", ANY, ANY),
        (b"config/db", b"", ("config",), ANY),
    ],
)
def test_a_range_is_never_read_as_narrower_than_it_is(
    key: bytes, end: bytes, path: object, subject: object
) -> None:
    call = ETCD.read(asked(KV + "Range", rpc.RangeRequest(key=key, range_end=end).SerializeToString())).call
    assert call.scope.path == (path if path is ANY else frozenset({path}))
    assert call.scope.subject == subject


@pytest.mark.parametrize(
    ("key", "end"),
    [(b"mem/al", b"mem/am"), (b"\0", b"\0"), (b"mem/a/1", b"mem/a/5"), (b"", b""), (b"m", b"\0")],
)
def test_a_delete_that_nobody_could_verify_is_refused(key: bytes, end: bytes) -> None:
    message = rpc.DeleteRangeRequest(key=key, range_end=end).SerializeToString()
    with pytest.raises(RequestFault) as refused:
        ETCD.read(asked(KV + "DeleteRange", message))
    assert refused.value.problem == "unverifiable-forget"


def test_deletes_and_what_they_claim() -> None:
    reading = ETCD.read(SAID["delete-alice"].request)
    assert reading.call.operation is Operation.FORGET
    assert reading.call.scope == ALICE
    ack = ETCD.ack(reading, SAID["delete-alice"].reply)
    assert (ack.outcome, ack.count, ack.epoch) == ("accepted", 2, 8)
    assert {item.key for item in ETCD.answer(reading, SAID["delete-alice"].reply).items} == {
        "mem/alice/1", "mem/alice/2",
    }  # fmt: skip
    nobody = SAID["delete-nobody"]
    assert ETCD.ack(ETCD.read(nobody.request), nobody.reply).outcome == "not_found"
    codes = {"UNAVAILABLE": "unclear", "PERMISSION_DENIED": "refused", "NOT_FOUND": "not_found"}
    for code, outcome in {**codes, "DEADLINE_EXCEEDED": "unclear"}.items():
        assert ETCD.ack(reading, told(code=code)).outcome == outcome


def test_rows_and_what_is_left_without_one() -> None:
    one = SAID["range-all"]
    answered = ETCD.answer(ETCD.read(one.request), one.reply)
    assert [(item.key, item.subject, item.path) for item in answered.items] == [
        ("mem/alice/1", "alice", ("mem", "alice")),
        ("mem/alice/2", "alice", ("mem", "alice")),
        ("mem/bob/1", "bob", ("mem", "bob")),
    ]
    assert answered.items[0].texts == ("alice lives at 12 Elm Street",)
    left = answered.without({0, 1})
    assert left is not None
    message = rpc.RangeResponse.FromString(left)
    assert [(kv.key, kv.value) for kv in message.kvs] == [(b"mem/bob/1", b"likes green tea")]
    assert message.count == 1
    assert message.header.revision == rpc.RangeResponse.FromString(one.reply.body).header.revision
    assert answered.without(set()) == one.reply.body


def test_scalars_say_whose_row_they_are_and_look_into_json() -> None:
    one = SAID["range-all"]
    said = set(ETCD.answer(ETCD.read(one.request), one.reply).scalars())
    assert (1, "alice") in said  # within the JSON of a value
    assert (2, "likes green tea") in said
    raw = SAID["get-raw"]
    assert ETCD.answer(ETCD.read(raw.request), raw.reply).items[0].texts == ()


def test_writes_say_what_they_write() -> None:
    call = ETCD.read(SAID["put-alice"].request).call
    assert (call.operation, call.route) == (Operation.WRITE, "put")
    assert call.texts == ("alice lives at 12 Elm Street",)
    assert call.scope.subject == frozenset({"alice"})
    again = SAID["put-bob-again"]
    answered = ETCD.answer(ETCD.read(again.request), again.reply)
    assert [item.subject for item in answered.items] == ["bob"]
    assert ETCD.read(SAID["put-raw"].request).call.scope.path == frozenset({("config",)})


def test_transactions_are_what_they_do() -> None:
    reads = ETCD.read(SAID["txn-read"].request).call
    assert (reads.operation, reads.scope.subject) == (Operation.RECALL, frozenset({"alice", "bob"}))
    one = SAID["txn-read"]
    answered = ETCD.answer(ETCD.read(one.request), one.reply)
    assert [item.subject for item in answered.items] == ["alice", "bob"]
    left = answered.without({0})
    assert left is not None
    responses = rpc.TxnResponse.FromString(left).responses
    assert [len(response.response_range.kvs) for response in responses] == [0, 1]
    assert [response.response_range.count for response in responses] == [0, 1]
    writes = ETCD.read(SAID["txn-put"].request).call
    assert (writes.operation, writes.texts) == (Operation.WRITE, ("plays chess",))


def txn(**parts: object) -> bytes:
    return rpc.TxnRequest(**parts).SerializeToString()  # type: ignore[no-any-return]


def test_a_transaction_that_deletes_is_a_forget_or_is_refused() -> None:
    drop = rpc.RequestOp(
        request_delete_range=rpc.DeleteRangeRequest(key=b"mem/alice/", range_end=b"mem/alice0")
    )
    put = rpc.RequestOp(request_put=rpc.PutRequest(key=b"mem/bob/1", value=b"x"))
    reading = ETCD.read(asked(KV + "Txn", txn(success=[drop])))
    assert (reading.call.operation, reading.call.scope) == (Operation.FORGET, ALICE)
    nested = rpc.RequestOp(request_txn=rpc.TxnRequest(success=[drop, put]))
    for parts in (
        {"success": [drop], "compare": [rpc.Compare(key=b"mem/bob/1")]}, {"success": [drop, put]},
        {"failure": [drop]}, {"success": [nested]},
    ):  # fmt: skip
        with pytest.raises(RequestFault) as refused:
            ETCD.read(asked(KV + "Txn", txn(**parts)))
        assert refused.value.problem == "unverifiable-forget"


def test_what_is_no_memory_is_deleted_like_any_other_key() -> None:
    def call(method: str, message: bytes) -> tuple[str, Operation]:
        found = ETCD.read(asked(KV + method, message)).call
        return found.route, found.operation

    one = rpc.DeleteRangeRequest(key=b"locks/job/7f")
    assert call("DeleteRange", one.SerializeToString()) == ("delete-other", Operation.WRITE)
    held = rpc.Compare(key=b"locks/job/7f", value=b"me", target=3)
    unlock = txn(compare=[held], success=[rpc.RequestOp(request_delete_range=one)])
    assert call("Txn", unlock) == ("txn-other", Operation.WRITE)
    for key, end in ((b"mem/alice/1", b""), (b"locks/", b"locks0"), (b"mem/", b"mem0")):
        whole = rpc.DeleteRangeRequest(key=key, range_end=end).SerializeToString()
        assert call("DeleteRange", whole)[1] is Operation.FORGET
    for key, end in ((b"mem/alice/1", b""), (b"locks/", b"locks0"), (b"l", b"n")):
        part = rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=key, range_end=end))
        with pytest.raises(RequestFault):
            call("Txn", txn(compare=[held], success=[part, rpc.RequestOp(request_delete_range=one)]))


def test_watches_are_recalls_and_their_events_rows() -> None:
    one = SAID["watch"]
    reading = ETCD.read(one.request)
    assert (reading.call.operation, reading.call.route) == (Operation.RECALL, "watch")
    assert reading.call.scope.path == frozenset({("mem",)})
    answered = ETCD.event(reading, one.reply.body)
    assert [(item.key, item.subject) for item in answered.items] == [("mem/bob/1", "bob")]
    assert answered.items[0].texts == ("likes coffee", "likes green tea")
    left = answered.without({0})
    assert left is not None
    assert not rpc.WatchResponse.FromString(left).events
    cancel = rpc.WatchRequest(cancel_request=rpc.WatchCancelRequest(watch_id=1)).SerializeToString()
    assert ETCD.read(asked("/etcdserverpb.Watch/Watch", cancel)).call.scope == Scope()


@pytest.mark.parametrize(
    "method", ["KV/Compact", "Lease/LeaseGrant", "Lease/LeaseKeepAlive", "Maintenance/Status"]
)
def test_what_is_free_of_memories_is_not_read(method: str) -> None:
    assert ETCD.read(asked(f"/etcdserverpb.{method}", b"\xff\xff")).call.operation is Operation.IGNORE


@pytest.mark.parametrize(
    "method", ["KV/range", "KV/Range/", "kv/Range", "KV/Nothing", "Maintenance/Snapshot"]
)
def test_methods_are_matched_exactly(method: str) -> None:
    assert not ETCD.read(asked(f"/etcdserverpb.{method}", b"x")).mapped


@pytest.mark.parametrize("message", [b"\xff", b"\x0a\x05ab", b"\x08\x01", b"\x0a\x01a\x0a\x01b"])
def test_a_message_that_does_not_decode_is_refused(message: bytes) -> None:
    with pytest.raises(RequestFault) as refused:
        ETCD.read(asked(KV + "Range", message))
    assert refused.value.problem == "malformed-request"


def surface(name: str):  # type: ignore[no-untyped-def]
    return next(one for one in ETCD.surfaces if one.name == name)


def test_surfaces_ask_what_a_client_would() -> None:
    listing = surface("list").request({"subject": "alice"})
    assert (listing.wire, listing.target) == ("grpc", KV + "Range")
    message = rpc.RangeRequest.FromString(listing.body)
    assert (message.key, message.range_end) == (b"mem/alice/", b"mem/alice0")
    found = surface("list").read(SAID["range-alice"].reply)
    assert [item.key for item in found.items] == ["mem/alice/1", "mem/alice/2"]
    assert found.items[0].capture == {"epoch_before": "6"}
    with pytest.raises(CannotQuote):
        surface("list").request({"subject": "alice/1"})


def test_the_history_is_clean_only_once_it_was_compacted() -> None:
    history = surface("history")
    message = rpc.RangeRequest.FromString(history.request({"key": "mem/alice/1", "epoch_before": "7"}).body)
    assert (message.key, message.revision) == (b"mem/alice/1", 7)
    before = history.read(SAID["history"].reply)
    assert not before.clean
    assert [item.subject for item in before.items] == ["alice"]
    assert history.read(SAID["history-compacted"].reply).clean
    with pytest.raises(Exception, match="OUT_OF_RANGE"):
        history.read(SAID["history-future"].reply)


def test_remedies_and_forgets_of_our_own() -> None:
    remedy = ETCD.remedy("delete_record", {"key": "mem/alice/1"})
    assert remedy is not None
    assert ETCD.read(remedy).call.scope.key == frozenset({"mem/alice/1"})
    forget = ETCD.forget("subject", {"subject": "alice"})
    assert forget is not None
    assert ETCD.read(forget).call.scope == ALICE
    assert ETCD.epoch_value(SAID["range-all"].reply) == 6
    assert ETCD.forget("keys", {"keys": ["a"]}) is None
