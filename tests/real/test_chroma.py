"""Chroma, unmodified, with its own Python client, behind the real process."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest

from tests.e2e.process import Quietus, shipped

ALICE = ["Alice lives at 12 Elm Street in Lisbon", "Alice has a peanut allergy and carries a pen"]
BOB = "Bob likes green tea in the morning"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = _free_port()
    folder = tmp_path_factory.mktemp("chroma")
    command = [
        str(Path(sys.executable).with_name("chroma")),
        "run",
        "--path",
        str(folder),
        "--port",
        str(port),
    ]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{url}/api/v2/heartbeat", timeout=5).read()
            break
        except (urllib.error.URLError, ConnectionError):
            assert server.poll() is None and time.monotonic() < end, "Chroma did not start"
    yield url
    server.terminate()
    server.wait(20)


@pytest.fixture
def sidecar(chroma: str, tmp_path: Path) -> Iterator[Quietus]:
    profile = shipped("chroma", tmp_path, settling_interval="2s", effectuation_bound="60s")
    running = Quietus(tmp_path, chroma, str(profile), {"limits": {"probe_rate_per_second": 100}}).start()
    yield running
    assert running.stop() == 0


def _client(url: str) -> Any:
    host, _, port = url.removeprefix("http://").partition(":")
    return chromadb.HttpClient(host=host, port=int(port))


def _filled(client: Any, name: str) -> Any:
    collection = client.create_collection(name, embedding_function=None)
    collection.add(
        ids=["a1", "a2", "b1"],
        documents=[*ALICE, BOB],
        metadatas=[{"user_id": "alice"}, {"user_id": "alice"}, {"user_id": "bob"}],
        embeddings=[[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0]],
    )
    return collection


def _refused(work: Any) -> str:
    with pytest.raises(Exception) as refused:
        work()
    return str(refused.value)


@pytest.mark.timeout(180)
@pytest.mark.requirement("R193", "R14", "R17", "R36", "R61")
def test_a_subject_is_forgotten(chroma: str, sidecar: Quietus) -> None:
    collection = _filled(_client(sidecar.data), "forgotten")
    near = [[1.0, 0.0, 0.0]]
    assert collection.query(query_embeddings=near, n_results=3)["ids"] == [["a1", "a2", "b1"]]

    assert collection.delete(where={"user_id": "alice"}) == {"deleted": 2}

    inside = [
        lambda: collection.get(where={"user_id": "alice"}),
        lambda: collection.query(query_embeddings=near, where={"user_id": "alice"}),
        lambda: collection.get(ids=["a1"]),
        lambda: collection.get(where={"user_id": {"$in": ["alice"]}}, include=["embeddings"]),
    ]
    for recall in inside:
        assert "ERASURE_EPOCH_NOT_SETTLED" in _refused(recall)

    wide = [
        collection.query(query_embeddings=near, n_results=3)["ids"][0],
        collection.query(query_embeddings=near, n_results=3, include=["embeddings"])["ids"][0],
        collection.get()["ids"],
        collection.get(include=["embeddings"])["ids"],
        collection.get(where={"$or": [{"user_id": "bob"}, {"user_id": "alice"}]})["ids"],
        collection.get(where={"user_id": "bob"})["ids"],
        collection.get(ids=["b1"])["ids"],
    ]
    assert wide == [["b1"]] * 7
    assert "ERASURE_ORDERING_VIOLATION" in _refused(
        lambda: collection.add(
            ids=["a3"], documents=["x"], metadatas=[{"user_id": "alice"}], embeddings=[[1.0, 0.0, 0.0]]
        )
    )

    view = sidecar.until("settled")
    assert view["verdict"] == "partial"
    outcomes = {s["name"]: (s["outcome"], s["control"]) for s in view["surfaces"]}
    assert outcomes["record"] == outcomes["list"] == outcomes["near"] == ("CLEAN", "live")
    assert outcomes["files"][0] == outcomes["backups"][0] == "OUT_OF_SCOPE"
    assert set(view["through"]) >= {"record", "list", "near"}
    assert view["upstream_calls"] == 1
    assert view["claim"]["count"] == 2

    assert collection.get(where={"user_id": "alice"})["ids"] == []
    assert collection.query(query_embeddings=near, n_results=3)["ids"] == [["b1"]]
    direct = _client(chroma).get_collection("forgotten", embedding_function=None)
    assert direct.get()["ids"] == ["b1"]


@pytest.mark.timeout(180)
@pytest.mark.requirement("R124")
def test_a_record_of_the_erased_is_not_given_to_somebody_else(chroma: str, sidecar: Quietus) -> None:
    collection = _filled(_client(sidecar.data), "moved")
    direct = _client(chroma).get_collection("moved", embedding_function=None)
    unseen = {"ids": ["a9"], "documents": ["Alice sails"], "metadatas": [{"user_id": "alice"}]}
    direct.add(**unseen, embeddings=[[1, 0, 0]])
    collection.update(ids=["b1"], metadatas=[{"user_id": "carol"}])
    collection.delete(where={"user_id": "alice"})
    for keys in (["a1"], ["b1", "a2"], ["a9"]):
        moves = [{"user_id": "bob"}] * len(keys)
        assert "SCOPE_LAUNDERING" in _refused(lambda k=keys, m=moves: collection.update(ids=k, metadatas=m))
    collection.update(ids=["b1"], metadatas=[{"user_id": "bob"}])
    collection.upsert(
        ids=["a1"], documents=["Bob rows on Sundays"], metadatas=[{"user_id": "bob"}], embeddings=[[0, 0, 1]]
    )
    sidecar.until("settled")
    assert set(collection.get(where={"user_id": "bob"})["ids"]) == {"b1", "a1"}


@pytest.mark.timeout(180)
def test_rows_of_others_are_known_after_a_restart(sidecar: Quietus) -> None:
    collection = _filled(_client(sidecar.data), "restarted")
    collection.delete(where={"user_id": "alice"})
    sidecar.kill()
    sidecar.start()
    again = _client(sidecar.data).get_collection("restarted", embedding_function=None)
    assert again.get(include=["embeddings"])["ids"] == ["b1"]
    sidecar.until("settled")


@pytest.mark.timeout(180)
@pytest.mark.requirement("R11")
def test_a_forget_by_key_never_makes_its_subject_erased(sidecar: Quietus) -> None:
    collection = _filled(_client(sidecar.data), "by-key")
    collection.delete(ids=["a1"])
    assert collection.get(where={"user_id": "alice"})["ids"] == ["a2"]
    collection.add(
        ids=["a4"],
        documents=["Alice moved"],
        metadatas=[{"user_id": "alice"}],
        embeddings=[[0.5, 0.5, 0.0]],
    )
    assert "a4" in collection.get(where={"user_id": "alice"})["ids"]


@pytest.mark.timeout(180)
@pytest.mark.case(88)
def test_a_forget_of_everything_is_refused(sidecar: Quietus) -> None:
    collection = _filled(_client(sidecar.data), "everything")
    path = f"/api/v2/tenants/default_tenant/databases/default_database/collections/{collection.id}/delete"
    for body in (
        {"ids": []},
        {},
        {"where": {}},
        {"ids": None, "where": None},
        {"where": {"colour": "red"}},
    ):
        refused = sidecar.call("POST", path, body)
        assert refused.status == 422, (body, refused)
        assert refused.json["reason"] == "ERASURE_AUDIT"
    assert len(collection.get()["ids"]) == 3
