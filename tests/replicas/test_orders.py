"""What people order through one replica holds at every other one before they are answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Quietus, Response
from tests.harness.servers import Server
from tests.replicas.calls import PATIENCE, answered, forget, recall, tells, written
from tests.replicas.cluster import BAY, Pair, cluster
from tests.replicas.lying_store import LyingStore

pytestmark = pytest.mark.timeout(180)
UNREACHED = "urn:quietus:problem:barrier-unreachable"
OVERRIDE = {"effect": "annotate", "for": "60m", "reason": "incident 12"}


def ordered(replica: Quietus, method: str, path: str, body: Any) -> tuple[Response, list[Response]]:
    """Orders, and again as long as not every replica is known to hold to it; what was refused before."""
    refused: list[Response] = []
    end = time.monotonic() + PATIENCE
    while (answer := replica.ask(method, path, body)).status == 503:
        assert time.monotonic() < end, answer
        assert answer.json["type"] == UNREACHED, answer
        refused.append(answer)
    return answer, refused


def shut(name: str) -> dict[str, str]:
    return {"subject": name, "tenant": BAY, "reason": "under review"}


def held(name: str) -> dict[str, str]:
    return {"subject": name, "tenant": BAY, "exception": "gdpr_art17_3_e",
            "until": "2127-06-01T00:00:00Z", "reason": "case 12"}  # fmt: skip


@contextmanager
def cut_off(pair: Pair, name: str) -> Iterator[None]:
    """Replica two answers, has just been cut off from its ledger, and still holds its lease."""
    assert tells(answered(pair.two, name), name)
    pair.cluster.cables[1].pull()
    try:
        yield
    finally:
        pair.cluster.cables[1].plug()


# --- quarantines ---------------------------------------------------------------------------------


@pytest.mark.requirement("R195", "R208")
def test_a_quarantine_is_known_to_all_before_it_is_acknowledged(pair: Pair) -> None:
    ada = pair.person()
    with cut_off(pair, ada):
        placed, refused = ordered(pair.one, "POST", "/v1/quarantines", shut(ada))
        assert placed.status == 201
        assert recall(pair.two, ada).status == 503, "its lease has lapsed before the answer"
        assert refused, "while it held its lease nothing was claimed"
        name = placed.json["id"]
        assert all(name in each.json["detail"] for each in refused), "the same again is the one that stands"
        standing = pair.one.office("/v1/quarantines")["quarantines"]
        assert [each["id"] for each in standing].count(name) == 1
        assert recall(pair.one, ada).status == 409
    assert answered(pair.two, ada).status == 409
    assert pair.one.ask("DELETE", f"/v1/quarantines/{name}", {"reason": "reviewed"}).status == 204
    until(pair.two, ada, 200)


def until(replica: Quietus, name: str, status: int) -> None:
    """What opens may come a little later."""
    end = time.monotonic() + PATIENCE
    while answered(replica, name).status != status:
        assert time.monotonic() < end, replica.log()[-2000:]


@pytest.mark.requirement("R195", "R183", "R208")
def test_a_quarantine_waits_for_what_others_have_in_flight_there(pair: Pair) -> None:
    ada = pair.person()
    with ThreadPoolExecutor(1) as threads:
        # A text of its own: what others were forgotten with would be refused.
        body, headers = written(ada, f"a note that is on its way for {ada}"), {"X-Door": ada}
        write = threads.submit(pair.two.call, "POST", "/v1/memories", body, headers)
        pair.store.until(lambda: pair.store.waiting(ada) > 0, "the write is on its way")
        answer = pair.one.ask("POST", "/v1/quarantines", shut(ada))
        assert (answer.status, answer.json["type"]) == (503, UNREACHED)
        pair.store.open(ada)
        write.result(PATIENCE)
    placed, _ = ordered(pair.one, "POST", "/v1/quarantines", shut(ada))
    assert placed.json["id"] in answer.json["detail"]
    assert answered(pair.two, ada).status == 409


# --- holds ---------------------------------------------------------------------------------------


@pytest.mark.requirement("R207", "R208")
def test_a_hold_is_known_to_all_before_it_is_acknowledged(pair: Pair) -> None:
    ada = pair.person()
    with cut_off(pair, ada):
        placed, refused = ordered(pair.one, "POST", "/v1/holds", held(ada))
        assert placed.status == 201 and refused
        assert forget(pair.two, ada).status == 503, "it can open no forget any more"
    assert answered(pair.two, ada).status == 200, "a hold shuts no recall"
    answer = forget(pair.two, ada)
    assert (answer.status, answer.json["reason"]) == (409, "LEGAL_HOLD")
    assert not pair.store.arrived("forget", ada)
    name = placed.json["id"]
    assert [each["id"] for each in pair.two.office("/v1/holds")["holds"]].count(name) == 1
    assert pair.one.ask("DELETE", f"/v1/holds/{name}", {"reason": "over"}).status == 204
    pair.store.until(lambda: len(pair.store.arrived("forget", ada)) == 1, "what waited is sent")


@pytest.mark.requirement("R207", "R208")
def test_a_hold_stops_a_forget_that_another_replica_is_about_to_send(pair: Pair) -> None:
    ada = pair.person()
    door = pair.store.shut(ada)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(forget, pair.two, ada)
        pair.store.until(lambda: pair.store.waiting(door) > 0, "the snapshot lists")
        placed, _ = ordered(pair.one, "POST", "/v1/holds", held(ada))
        pair.store.open(door)
        assert asked.result(PATIENCE).json["reason"] == "LEGAL_HOLD"
    assert not pair.store.arrived("forget", ada)
    assert pair.one.ask("DELETE", f"/v1/holds/{placed.json['id']}", {"reason": "over"}).status == 204
    pair.store.until(lambda: len(pair.store.arrived("forget", ada)) == 1, "it goes on")


# --- overrides -----------------------------------------------------------------------------------


@pytest.mark.requirement("R208")
def test_an_override_is_over_everywhere_before_its_end_is_acknowledged(pair: Pair) -> None:
    ada = pair.person()
    ordered(pair.one, "POST", "/v1/quarantines", shut(ada))
    begun = pair.one.office("/v1/overrides", "POST", OVERRIDE)["id"]
    until(pair.two, ada, 200)
    end = {"reason": "over"}
    with cut_off(pair, ada):
        ended, refused = ordered(pair.one, "DELETE", f"/v1/overrides/{begun}", end)
        assert ended.status == 204 and refused
        assert recall(pair.two, ada).status == 503
        assert recall(pair.one, ada).status == 409
    assert answered(pair.two, ada).status == 409
    assert pair.one.ask("DELETE", f"/v1/overrides/{begun}", end).status == 404


@pytest.mark.requirement("R209", "R208")
def test_an_override_ends_where_the_wall_clock_is_ten_minutes_behind(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    """By that clock it would have begun in ten minutes, and ended ten minutes late."""
    arms = {1: "clock:-600", 2: "clock:wild"}
    with cluster(server, tmp_path, 3, upstream=lying.url, lease="2s", arms=arms) as made:
        lying.person("ada")
        ordered(made.replicas[0], "POST", "/v1/quarantines", shut("ada"))
        lasts = {**OVERRIDE, "for": "3s"}
        assert made.replicas[0].ask("POST", "/v1/overrides", lasts).status == 201
        for replica in made.replicas:
            until(replica, "ada", 200)
        for replica in made.replicas:
            until(replica, "ada", 409)


# --- without the barrier -------------------------------------------------------------------------


@pytest.mark.parametrize("server", ["valkey"], indirect=True)
def test_without_the_barrier_others_go_on_after_the_answer(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="20s", arm="unsafe:orders") as made:
        one, two = made.replicas
        for name in ("ada", "bob"):
            lying.person(name)
        ordered(one, "POST", "/v1/quarantines", shut("bob"))
        begun = one.office("/v1/overrides", "POST", OVERRIDE)["id"]
        until(two, "bob", 200)
        made.cables[1].pull()
        assert one.ask("POST", "/v1/quarantines", shut("ada")).status == 201
        assert tells(recall(two, "ada"), "ada")
        assert one.ask("DELETE", f"/v1/overrides/{begun}", {"reason": "over"}).status == 204
        assert tells(recall(two, "bob"), "bob")
