"""A replica that stood still: what it says first when it goes on is refused, or current."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.process import Quietus, Response
from tests.harness.servers import Server
from tests.replicas.cluster import BAY, Cluster, Pair, cluster
from tests.replicas.lying_store import LyingStore
from tests.replicas.test_barrier import PATIENCE, acknowledged, answered, recall, tells, written

pytestmark = pytest.mark.timeout(120)
AT_ONCE = 5
"""People in one freeze: each has a recall in flight, and a recall and a write that wait at the door."""


def frozen(made: Cluster, store: LyingStore, names: list[str]) -> dict[str, list[Response]]:
    """Freezes replica two in the middle of recalls, forgets through one, and lets two go on.

    Returns the first answers of the second: by the kind of call, one for each name.
    """
    one, two = made.replicas
    door = f"mid-recall-of-{names[0]}"
    with ThreadPoolExecutor(3 * len(names)) as threads:
        asked: dict[str, list[Future[Response]]] = {
            "in flight": [threads.submit(_let_in, two, name, door) for name in names]
        }
        store.until(lambda: store.waiting(door) == len(names), "every recall is on its way")
        made.freeze(1)
        try:
            waiting = threading.Barrier(2 * len(names) + 1)
            asked["recall"] = [threads.submit(_after, waiting, recall, two, name) for name in names]
            asked["write"] = [
                threads.submit(_after, waiting, two.call, "POST", "/v1/memories", written(name, "something"))
                for name in names
            ]
            waiting.wait(PATIENCE)
            for name in names:
                assert acknowledged(one, name).status == 202
        finally:
            made.thaw(1)
        store.open(door)
        return {kind: [each.result(PATIENCE) for each in its] for kind, its in asked.items()}


def _let_in(replica: Quietus, name: str, door: str) -> Response:
    """A recall that gets as far as the door."""
    assert answered(replica, name).status == 200
    return recall(replica, name, X_Door=door)


def _after(waiting: threading.Barrier, call: object, *arguments: object) -> Response:
    waiting.wait(PATIENCE)
    answer: Response = call(*arguments)  # type: ignore[operator]
    return answer


@pytest.mark.requirement("R208", "R183")
def test_a_frozen_replica_answers_nothing_that_was_forgotten_meanwhile(pair: Pair) -> None:
    names = [pair.person() for _ in range(AT_ONCE)]
    answers = frozen(pair.cluster, pair.store, names)
    for kind, its in answers.items():
        for name, answer in zip(names, its, strict=True):
            assert answer.status in (409, 502, 503), (kind, answer)
            assert not tells(answer, name)
    for name in names:
        assert not pair.store.arrived("write", name), "what waited at the door was not let in"
        assert len(pair.store.arrived("forget", name)) == 1
    caught_up(pair, names)


def caught_up(pair: Pair, names: list[str]) -> None:
    """Afterwards it works as before, and knows."""
    for name in names:
        assert answered(pair.two, name).status == 409
    assert answered(pair.two, pair.person()).status == 200


@pytest.mark.parametrize("server", ["valkey"], indirect=True)
def test_without_its_lease_a_frozen_replica_goes_on_telling(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="1s", arm="unsafe:lease") as made:
        lying.person("ada")
        made.cables[1].pull()  # so that it cannot catch up before it speaks
        answers = frozen(made, lying, ["ada"])
        assert any(tells(answer, "ada") for answer in answers["in flight"] + answers["recall"])


@pytest.mark.requirement("R189", "R208")
def test_work_of_a_replica_that_is_killed_goes_on_elsewhere(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    """It is killed in its snapshot, with the intent written; and another one while it holds the probes."""
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


def _broken_off(replica: object, name: str) -> None:
    try:
        replica.call("POST", "/v1/forget", {"subject": name, "tenant": BAY})  # type: ignore[attr-defined]
    except OSError:
        return
