"""A replica that stood still or was killed: it says nothing stale, and its work moves on."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.process import Quietus
from tests.harness.servers import Server
from tests.replicas.calls import PATIENCE, acknowledged, answered, forget, recall, tells
from tests.replicas.cluster import Pair, cluster
from tests.replicas.freezing import Freeze
from tests.replicas.lying_store import LyingStore

pytestmark = pytest.mark.timeout(180)
TIMES = 3
"""`python -m tests.replicas freeze` does it a hundred times, for ten seconds each."""


@pytest.mark.requirement("R208", "R183")
def test_a_frozen_replica_answers_nothing_that_was_forgotten_meanwhile(pair: Pair) -> None:
    """In the middle of a recall, of a write and of a forget."""
    for time in range(TIMES):
        assert Freeze(pair.cluster, pair.store, [1], f"z{time}").run() == []
    assert answered(pair.two, pair.person()).status == 200, "it works as before"


@pytest.mark.parametrize("server", ["valkey"], indirect=True)
def test_without_its_lease_a_frozen_replica_goes_on_telling(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="1s", arm="unsafe:lease") as made:
        one, two = made.replicas
        lying.person("ada")
        assert answered(two, "ada").status == 200
        made.cables[1].pull()  # so that it cannot catch up before it speaks
        made.freeze(1)
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(recall, two, "ada")
            assert acknowledged(one, "ada").status == 202
            made.thaw(1)
            assert tells(first.result(PATIENCE), "ada")


@pytest.mark.requirement("R189", "R208")
def test_work_of_a_replica_that_is_killed_goes_on_elsewhere(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    """It is killed in its snapshot, with the intent written."""
    lying.lag = 1.0
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="1s") as made:
        one, two = made.replicas
        lying.person("ada")
        door = lying.shut("ada")
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(_broken_off, one, "ada")
            lying.until(lambda: lying.waiting(door) > 0, "the snapshot lists")
            assert one.process is not None
            one.process.send_signal(signal.SIGKILL)
            asked.result(PATIENCE)
        lying.open(door)
        lying.until(lambda: len(lying.arrived("forget", "ada")) == 1, "the other replica sends it")
        settled = two.until("settled", seconds=60)
        assert len(lying.arrived("forget", "ada")) == 1
        one.process.wait(PATIENCE)
        one.start()
        assert one.until("settled", settled["id"])["id"] == settled["id"]


@pytest.mark.requirement("R189", "R208")
def test_probes_of_a_replica_that_is_killed_go_on_elsewhere(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    """It is killed as its first probe is about to go: it holds the work on that erasure then."""
    lying.lag = 1.0
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="1s", arms={0: "probing"}) as made:
        one, two = made.replicas
        lying.person("ada")
        assert answered(two, "ada").status == 200
        _broken_off(one, "ada")
        one.died()
        assert two.until("settled", seconds=90)["state"] == "settled"
        assert len(lying.arrived("forget", "ada")) == 1, "nobody asks the store again"
        kinds = [e["type"] for e in two.office(f"/v1/erasures/{two.erasures()[-1]['id']}/events")["events"]]
        assert kinds.count("accepted") == kinds.count("forwarded") == 1


def _broken_off(replica: Quietus, name: str) -> None:
    try:
        forget(replica, name)
    except OSError:
        return
