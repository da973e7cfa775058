"""What waits at one replica is let go by what another one finds out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.policies import BOTH_WAIT, written
from tests.harness.servers import Server
from tests.replicas.cluster import BAY, cluster


@pytest.mark.timeout(180)
@pytest.mark.requirement("R167", "R208")
def test_calls_wait_at_one_replica_for_a_forget_through_another(server: Server, tmp_path: Path) -> None:
    settings = {"policy": written(BOTH_WAIT, tmp_path), "timeouts": {"barrier": "5s", "wait": "60s"}}
    with cluster(server, tmp_path, 2, settings=settings) as made, ThreadPoolExecutor(2) as at_once:
        one, two = made.replicas
        name = made.subject()
        text = f"The {name} owns painting number {made.subjects}a of the bay"
        assert one.call("POST", "/v1/forget", {"subject": name, "tenant": BAY}).status == 202
        recall = {"query": "painting", "tenant": BAY, "subject": name}
        write = {"key": "of-bob", "value": text, "tenant": BAY, "retention": {"subject": "bob"}}
        recalled = at_once.submit(two.call, "POST", "/v1/recall", recall)
        wrote = at_once.submit(two.call, "POST", "/v1/memories", write)
        assert wrote.result().status == 201 and recalled.result().status == 200
        assert name.encode() not in recalled.result().body
        assert one.erasures()[-1]["state"] == "settled"
