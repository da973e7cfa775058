"""What mem0's REST server answered, as it answered it."""

import json
from pathlib import Path
from typing import Any

import pytest

from quietus.core.exchange import Reply
from quietus.core.operations import Operation
from quietus.core.scope import ANY, UNKNOWN
from quietus.profiles.faults import RequestFault, Unreadable
from quietus.profiles.loader import load_profile
from tests.profiles.speech import JSON, asked, replied

RECORDED: list[dict[str, Any]] = json.loads((Path(__file__).parent / "bodies" / "mem0.json").read_text())
MEM0 = load_profile("mem0")


@pytest.mark.parametrize("record", RECORDED, ids=[f"{r['method']} {r['target'][:24]}" for r in RECORDED])
def test_every_recorded_exchange_is_mapped_and_read_whole(record: dict[str, Any]) -> None:
    reading = MEM0.read(asked(record["method"], record["target"], record["request"].encode() or None))
    reply = Reply(record["status"], JSON, record["response"].encode())
    assert reading.mapped and not reading.unreadable
    found = MEM0.answer(reading, reply)
    body = json.loads(reply.body)
    rows = body["results"] if isinstance(body, dict) and "results" in body else body
    if reading.call.operation in (Operation.RECALL, Operation.READ) and record["status"] == 200:
        expected = len(rows) if isinstance(rows, list) else int(rows is not None)
        assert len(found.items) == expected
    if record["method"] == "DELETE":
        assert MEM0.ack(reading, reply).outcome == ("accepted" if record["status"] == 200 else "not_found")


def test_rows_of_a_write_take_the_requests_subject() -> None:
    record = RECORDED[0]
    reading = MEM0.read(asked("POST", "/memories", record["request"].encode()))
    assert reading.call.scope.subject == {"ann"}
    assert reading.call.texts[0].startswith("Ann Brooks lives at 12 Elm Street")
    (item,) = MEM0.answer(reading, replied(record["response"].encode())).items
    assert item.key and item.subject == "ann"


def test_a_missing_record_is_null_and_no_row() -> None:
    reading = MEM0.read(asked("GET", "/memories/k"))
    assert MEM0.answer(reading, replied(None)).items == ()
    record = next(surface for surface in MEM0.surfaces if surface.name == "record")
    assert record.read(replied(None)).clean and record.read(replied({}, 404)).clean
    assert not record.read(replied({"id": "k", "memory": "x", "user_id": "ann"})).clean


def test_history_gives_back_old_texts_and_new_ones() -> None:
    record = [one for one in RECORDED if one["target"].endswith("/history")][-1]
    found = MEM0.answer(MEM0.read(asked("GET", record["target"])), replied(record["response"].encode()))
    assert len(found.items) == 3 and len(found.items[1].texts) == 2 and found.items[1].key
    edited = found.without({0, 2})
    assert edited is not None and [one["event"] for one in json.loads(edited)] == ["UPDATE"]


def test_a_single_row_cannot_be_taken_out() -> None:
    found = MEM0.answer(MEM0.read(asked("GET", "/memories/k")), replied({"id": "k", "memory": "x"}))
    assert found.single and found.without({0}) is None


@pytest.mark.parametrize(
    ("filters", "subject"),
    [
        ({"user_id": "ann"}, {"ann"}),
        ({"user_id": ["ann", "bob"]}, {"ann", "bob"}),
        ({"user_id": {"in": ["ann"]}}, {"ann"}),
        ({"user_id": {"any": ["ann"]}}, {"ann"}),
        ({"user_id": {"eq": "ann"}, "run_id": "r"}, {"ann"}),
        ({"run_id": "r"}, ANY),
        ({"user_id": "*"}, UNKNOWN),
        ({"user_id": {"ne": "ann"}}, UNKNOWN),
        ({"user_id": {"in": ["ann"], "eq": "bob"}}, UNKNOWN),
        ({"AND": [{"user_id": "ann"}]}, UNKNOWN),
        ({"colour": "red"}, UNKNOWN),
        ("user_id=ann", UNKNOWN),
        (None, ANY),
    ],
)
def test_plain_filters(filters: object, subject: object) -> None:
    assert (
        MEM0.read(asked("POST", "/search", {"query": "q", "filters": filters})).call.scope.subject == subject
    )


@pytest.mark.parametrize("target", ["/memories", "/memories?agent_id=a", "/memories?user_id=ann&run_id=r"])
def test_forgets_that_are_wider_or_narrower_than_a_subject_are_refused(target: str) -> None:
    with pytest.raises(RequestFault) as caught:
        MEM0.read(asked("DELETE", target))
    assert caught.value.status == 422


@pytest.mark.case(125)
def test_ids_are_one_segment_whatever_they_hold() -> None:
    request = MEM0.remedy("delete_record", {"key": "a/b?c#d e"})
    assert request is not None and request.target == "/memories/a%2Fb%3Fc%23d%20e"
    listed = next(surface for surface in MEM0.surfaces if surface.name == "list")
    assert listed.request({"subject": "a&user_id=bob"}).target == "/memories?user_id=a%26user_id%3Dbob"


def test_an_answer_without_its_items_is_unreadable_not_empty() -> None:
    reading = MEM0.read(asked("GET", "/memories?user_id=ann"))
    for reply in (
        replied({"memories": []}),
        replied({"results": "none"}),
        replied(b""),
        replied(b"<html>"),
        replied([]),
        replied(b'{"results":[],"results":[]}'),
    ):
        with pytest.raises(Unreadable):
            MEM0.answer(reading, reply)
    assert MEM0.answer(reading, replied({"detail": "no"}, 400)).items == ()
