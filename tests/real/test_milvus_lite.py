"""milvus-lite, unmodified, with pymilvus, unmodified, behind the real process."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from tests.e2e.process import Quietus, request, shipped
from tests.real.servers import milvus_lite

ROWS = [
    {"id": 1, "vector": [1.0, 0.0, 0.0, 0.0], "user_id": "alice", "text": "Alice lives at 12 Elm Street"},
    {"id": 2, "vector": [0.9, 0.1, 0.0, 0.0], "user_id": "alice", "text": "Alice is allergic to peanuts"},
    {"id": 3, "vector": [0.0, 1.0, 0.0, 0.0], "user_id": "bob", "text": "Bob likes green tea in the morning"},
    {"id": 4, "vector": [0.0, 0.0, 1.0, 0.0], "user_id": "carol", "text": "Carol plays chess on Fridays"},
]  # fmt: skip
NEAR_ALICE = [[1.0, 0.0, 0.0, 0.0]]
FIELDS = ["user_id", "text"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with milvus_lite(tmp_path_factory.mktemp("milvus")) as address:
        yield address


@pytest.fixture
def sidecar(store: str, tmp_path: Path) -> Iterator[Quietus]:
    profile = shipped("milvus", tmp_path, settling_interval="2s", effectuation_bound="120s")
    beside = Path(__file__).resolve().parents[2] / "policies" / "profiles" / "milvus.pb"
    (tmp_path / "milvus.pb").write_bytes(beside.read_bytes())
    settings = {
        "store": {"profile": str(profile), "grpc": {"listen": "127.0.0.1:0", "upstream": store}},
        "limits": {"probe_rate_per_second": 100},
    }
    running = Quietus(tmp_path, "", str(profile), settings).start()
    yield running
    assert running.stop() == 0


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """pymilvus logs every refused call with its stack."""
    log = logging.getLogger("pymilvus")
    before, log.disabled = log.disabled, True
    yield
    log.disabled = before


def client(address: str) -> MilvusClient:
    return MilvusClient(f"http://{address}", timeout=30)


def filled(agent: MilvusClient, name: str) -> None:
    agent.create_collection(name, dimension=4, metric_type="COSINE", auto_id=False)
    agent.insert(name, ROWS)


def refused(work: Callable[[], Any]) -> Any:
    """The error of a call that was refused, as the wire had it."""
    with pytest.raises((grpc.RpcError, MilvusException)) as raised:
        work()
    error: BaseException | None = raised.value
    while error is not None and not isinstance(error, grpc.RpcError):
        error = error.__cause__ or error.__context__
    assert isinstance(error, grpc.RpcError), raised.value
    return error


def calls(sidecar: Quietus) -> int:
    """How many calls the sidecar has refused or let through, as its metrics count them."""
    text = request("GET", f"{sidecar.admin}/metrics").body.decode()
    return sum(
        int(float(line.rsplit(" ", 1)[1]))
        for line in text.splitlines()
        if line.startswith("quietus_operations_total{")
    )


@pytest.mark.timeout(180)
@pytest.mark.requirement("R192", "R193")
def test_a_subject_is_forgotten_by_expression(store: str, sidecar: Quietus) -> None:
    agent = client(sidecar.grpc)
    filled(agent, "forgotten")
    hits = agent.search("forgotten", NEAR_ALICE, limit=4, output_fields=FIELDS)
    assert [hit["id"] for hit in hits[0]][:2] == [1, 2]

    assert agent.delete("forgotten", filter='user_id == "alice"')

    inside = [
        lambda: agent.query("forgotten", filter='user_id == "alice"', output_fields=FIELDS),
        lambda: agent.search("forgotten", NEAR_ALICE, limit=3, filter='user_id == "alice"'),
        lambda: agent.query("forgotten", filter='user_id == "alice" and text like "%Elm%"'),
        lambda: agent.query("forgotten", filter="user_id == {who}", filter_params={"who": "alice"}),
        lambda: agent.query("forgotten", filter='user_id["x"] == "alice"'),  # nobody can tell
    ]
    for recall in inside:
        before = calls(sidecar)
        error = refused(recall)
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "ERASURE_EPOCH_NOT_SETTLED" in str(error.trailing_metadata())
        assert calls(sidecar) == before + 1  # the client does not ask again

    for filter_ in (
        'user_id == "bob" or user_id == "alice"', 'user_id == "alice" || user_id == "bob"',
        'user_id in ["bob", "alice"]', 'user_id != "carol"', 'not (user_id == "carol")', "id < 4",
    ):  # fmt: skip
        rows = agent.query("forgotten", filter=filter_, output_fields=FIELDS)
        assert [(row["id"], row["user_id"]) for row in rows] == [(3, "bob")], filter_
    hits = agent.search("forgotten", NEAR_ALICE * 2, limit=4, output_fields=["*"])
    assert [[hit["id"] for hit in each] for each in hits] == [[3, 4], [3, 4]]
    again = refused(lambda: agent.insert("forgotten", [{**ROWS[0], "id": 9, "text": "x"}]))
    assert "ERASURE_ORDERING_VIOLATION" in str(again.trailing_metadata())

    view = sidecar.until("settled")
    outcomes = {s["name"]: (s["outcome"], s["control"]) for s in view["surfaces"]}
    assert outcomes["record"] == outcomes["list"] == outcomes["near"] == ("CLEAN", "live")
    assert view["upstream_calls"] == 1
    assert agent.query("forgotten", filter='user_id == "alice"') == []
    assert [row["id"] for row in agent.query("forgotten", filter="id > 0")] == [3, 4]
    direct = client(store)
    assert [row["id"] for row in direct.query("forgotten", filter="id > 0")] == [3, 4]
    for each in (agent, direct):
        each.close()


@pytest.mark.timeout(180)
def test_a_store_that_still_answers_is_screened_and_its_columns_stay_consistent(
    store: str, sidecar: Quietus
) -> None:
    agent, direct = client(sidecar.grpc), client(store)
    filled(agent, "lying")
    agent.delete("lying", filter='user_id == "alice"')
    direct.insert("lying", ROWS[:2])  # what a store that forgets late would still hold

    rows = agent.query("lying", filter="id > 0", output_fields=["*"])
    assert [(row["id"], row["user_id"], row["vector"]) for row in rows] == [
        (3, "bob", [0.0, 1.0, 0.0, 0.0]), (4, "carol", [0.0, 0.0, 1.0, 0.0]),
    ]  # fmt: skip
    hits = agent.search("lying", [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], limit=4, output_fields=["*"])
    assert [sorted(hit["id"] for hit in each) for each in hits] == [[3, 4], [3, 4]]
    for each in hits:
        assert {hit["entity"]["user_id"] for hit in each} == {"bob", "carol"}
    # Without the field that says whose a row is, the sidecar asks for it.
    bare = agent.search("lying", NEAR_ALICE, limit=4, output_fields=["text"])
    assert sorted(hit["id"] for hit in bare[0]) == [3, 4]

    view = sidecar.until("settled")  # its remedies have removed what the store still held
    assert view["state"] == "settled"
    assert [row["id"] for row in direct.query("lying", filter="id > 0")] == [3, 4]
    for each in (agent, direct):
        each.close()


@pytest.mark.timeout(180)
def test_rows_are_forgotten_by_ids_and_a_typed_collection_too(store: str, sidecar: Quietus) -> None:
    agent = client(sidecar.grpc)
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=64)
    schema.add_field("user_id", DataType.VARCHAR, max_length=64)
    schema.add_field("text", DataType.VARCHAR, max_length=200, nullable=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=4)
    index = agent.prepare_index_params()
    index.add_index("vector", index_type="FLAT", metric_type="L2")
    agent.create_collection("typed", schema=schema, index_params=index)
    agent.insert("typed", [{**row, "id": f"m{row['id']}"} for row in ROWS])
    agent.insert("typed", [{"id": "m5", "user_id": "dave", "text": None, "vector": [0.0, 0.0, 0.0, 1.0]}])

    agent.delete("typed", ids=["m1", "m2"])
    error = refused(lambda: agent.get("typed", ids=["m1"], output_fields=FIELDS))
    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    rows = agent.query("typed", filter='id in ["m2", "m3", "m5"]', output_fields=["*"])
    assert [(row["id"], row["text"]) for row in rows] == [("m3", ROWS[2]["text"]), ("m5", None)]

    view = sidecar.until("settled")
    assert {s["name"]: s["outcome"] for s in view["surfaces"]}["record"] == "CLEAN"
    assert sorted(row["id"] for row in agent.query("typed", filter='id != ""')) == ["m3", "m4", "m5"]
    agent.close()


@pytest.mark.timeout(120)
def test_a_delete_that_nobody_could_verify_deletes_nothing(store: str, sidecar: Quietus) -> None:
    agent = client(sidecar.grpc)
    filled(agent, "whole")
    for filter_ in (
        "id > 0",
        'user_id != "bob"',
        'user_id == "alice" and text like "%Elm%"',
        "user_id in []",
    ):
        error = refused(lambda text=filter_: agent.delete("whole", filter=text))  # type: ignore[misc]
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, filter_
    assert len(agent.query("whole", filter="id > 0")) == 4
    agent.close()
