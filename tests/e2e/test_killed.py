"""kill -9 at every step of a forget: the gate is shut when it comes back, nothing acknowledged is lost."""

from __future__ import annotations

import http.client
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest

from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, shipped
from tests.e2e.stores import Served

LOST = (urllib.error.URLError, http.client.HTTPException, ConnectionError)
POINTS = [
    # (point, the intent is durable, forgets that may reach the store in all)
    ("before:requested", False, (0,)),
    ("after:requested", True, (1,)),
    ("before:snapshotted", True, (1,)),
    ("after:snapshotted", True, (1,)),
    ("before:forwarded", True, (1,)),
    ("after:forwarded", True, (1,)),
    ("sending", True, (1,)),
    ("sent", True, (2,)),
    ("before:accepted", True, (2,)),
    ("after:accepted", True, (1,)),
    ("probing", True, (1,)),
    ("before:round", True, (1,)),
    ("after:round", True, (1,)),
    ("before:clean", True, (1,)),
    ("after:clean", True, (1,)),
]


@pytest.fixture
def store() -> Iterator[Served]:
    served = Served(Faults())
    yield served
    served.close()


@pytest.mark.requirement("R39", "R119", "R157", "R186")
@pytest.mark.parametrize(("point", "durable", "forgets"), POINTS, ids=[p for p, _, _ in POINTS])
def test_killed_at(
    tmp_path: Path, store: Served, point: str, durable: bool, forgets: tuple[int, ...]
) -> None:
    profile = shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="60s")
    limits = {"limits": {"probe_rate_per_second": 200}}
    sidecar = Quietus(tmp_path, store.url, str(profile), limits, arm=point).start()
    for subject, text in (("alice", "Alice lives at 12 Elm Street"), ("bob", "Bob likes green tea")):
        row = {"key": f"{subject}-1", "value": text, "retention": {"subject": subject}}
        assert sidecar.call("POST", "/v1/memories", row).status == 201
    acknowledged = False
    try:
        acknowledged = sidecar.call("POST", "/v1/forget", {"subject": "alice"}).status == 202
    except LOST:
        pass
    sidecar.died()
    sidecar.arm = ""
    sidecar.start()
    try:
        recall = sidecar.call("POST", "/v1/recall", {"query": "elm street", "subject": "alice"})
        if not durable:
            assert not acknowledged
            assert recall.status == 200 and len(recall.json["results"]) == 1
            return
        settled = sidecar.erasures()[-1]["state"] == "settled"
        assert recall.status == 409 or (settled and recall.json["results"] == []), recall
        wide = sidecar.call("POST", "/v1/recall", {"query": "elm street"})
        assert wide.status == 200
        assert [row["key"] for row in wide.json["results"]] == ["bob-1"]
        view = sidecar.until("settled")
        assert view["verdict"] == "partial"
        assert store.forgets() in forgets
        assert store.store.holds("Alice lives at 12 Elm Street") in ([], (), set(), frozenset())
    finally:
        assert sidecar.stop() == 0
