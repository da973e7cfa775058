"""What becomes of the ledger's server, and what each operation answers then: docs/ledger-faults.md.

Replica two meets the fault; what it does is the same whether replica one meets it, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from redis import asyncio as client

from tests.e2e.process import Quietus, request
from tests.harness.servers import Postgresql, Server, Valkey
from tests.replicas.calls import PATIENCE, acknowledged, answered, forget, recall, tells, written
from tests.replicas.cluster import Cluster, Pair, cluster
from tests.replicas.lying_store import LyingStore

pytestmark = pytest.mark.timeout(600)
HOLD = {"subject": "eve", "exception": "law", "until": "2127-06-01T00:00:00Z", "reason": "case 12"}
SHUT_NOW = "urn:quietus:problem:ledger-unavailable"


@dataclass
class Ground:
    """A server of its own, two replicas, and somebody erased before the fault: `ada`; `bob` is not."""

    server: Server
    made: Cluster
    store: LyingStore

    @property
    def one(self) -> Quietus:
        return self.made.replicas[0]

    @property
    def two(self) -> Quietus:
        return self.made.replicas[1]


@contextmanager
def ground(kind: type[Server], folder: Path, **more: Any) -> Iterator[Ground]:
    server: Server = kind()
    store = LyingStore(lag=600.0)
    store.stubborn = True
    try:
        server.start()
        settings = {"timeouts": {"barrier": "1s", "wait": "30s"}}
        with cluster(server, folder, 2, upstream=store.url, lease="2s", settings=settings, **more) as made:
            for name in ("ada", "bob"):
                store.person(name)
            acknowledged(made.replicas[0], "ada")
            assert answered(made.replicas[1], "ada").status == 409
            yield Ground(server, made, store)
    finally:
        store.close()
        server.stop()


def until(holds: Callable[[], bool], what: str) -> None:
    """Asks until it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what


def shut(where: Ground, *replicas: Quietus) -> None:
    """Every operation on replicas without a ledger: no memory leaves, nothing is begun or probed."""
    for replica in replicas:
        until(lambda r=replica: recall(r, "bob").status == 503, "it has not shut")  # type: ignore[misc]
    for replica in replicas:
        every_operation(replica)
    before = len(where.store.log)  # what was on its way when it shut has come by now
    for replica in replicas:
        every_operation(replica)
    everybody = len(replicas) == len(where.made.replicas)
    since = [one for one in where.store.log[before:] if everybody or one.what in ("write", "forget")]
    assert not since, "nothing reached the store, no probe either"


def every_operation(replica: Quietus) -> None:
    refused = {
        "recall": recall(replica, "bob"),
        "recall of the erased": recall(replica, "ada"),
        "read": replica.call("GET", "/v1/memories/bob-1"),
        "write": replica.call("POST", "/v1/memories", written("bob", "anything")),
        "forget": forget(replica, "bob"),
    }
    for what, answer in refused.items():
        assert (answer.status, answer.json["type"]) == (503, SHUT_NOW), (what, answer)
    changed = replica.ask("POST", "/v1/holds", HOLD)
    assert changed.status == 503, changed
    assert replica.ask("GET", "/v1/erasures").status == 200, "what it knows can be read"
    assert request("GET", f"{replica.admin}/healthz").status == 200
    assert request("GET", f"{replica.admin}/readyz").status == 503


def recovered(where: Ground) -> None:
    """It answers again, knows what is erased, and forgets."""
    until(lambda: recall(where.two, "bob").status == 200, "it does not answer again")
    assert answered(where.two, "ada").status == 409
    assert acknowledged(where.two, "bob").status == 202
    assert len(where.store.arrived("forget", "bob")) == 1
    assert answered(where.one, "bob").status == 409


KINDS = pytest.mark.parametrize("kind", [Valkey, Postgresql], ids=["valkey", "postgresql"])


@KINDS
@pytest.mark.requirement("R208")
def test_down_and_back(kind: type[Server], tmp_path: Path) -> None:
    """Killed: closed when the lease lapses; started again: it goes on."""
    with ground(kind, tmp_path) as where:
        where.server.kill()
        assert forget(where.two, "bob").status == 503, "refused before the lease lapses, too"
        shut(where, where.one, where.two)
        assert not where.store.arrived("forget", "bob")
        where.server.start()
        recovered(where)


@KINDS
@pytest.mark.requirement("R208")
def test_frozen_and_slow(kind: type[Server], tmp_path: Path) -> None:
    """A slow server costs time; one that stands still is one that is down."""
    with ground(kind, tmp_path) as where:
        for cable in where.made.cables:
            cable.latency = 0.1
        where.store.person("carol")
        assert acknowledged(where.two, "carol").status == 202
        assert not tells(answered(where.one, "carol"), "carol")
        for cable in where.made.cables:
            cable.pull()
        shut(where, where.one, where.two)
        for cable in where.made.cables:
            cable.latency = 0.0
            cable.plug()
        recovered(where)


@KINDS
@pytest.mark.requirement("R208")
async def test_full(kind: type[Server], tmp_path: Path) -> None:
    """It answers, and takes nothing: not even that a replica lives."""
    with ground(kind, tmp_path) as where:
        await fill(where, full=True)
        assert forget(where.two, "bob").status == 503
        shut(where, where.one, where.two)
        assert not where.store.arrived("forget", "bob")
        await fill(where, full=False)
        recovered(where)


async def fill(where: Ground, *, full: bool) -> None:
    """Valkey's memory is full; PostgreSQL says what it says of a full disk (SQLSTATE 53100) to each write."""
    if isinstance(where.server, Valkey):
        server = client.Redis.from_url(where.server.url)
        await server.config_set("maxmemory", "100kb" if full else "256mb")
        await server.aclose()
        return
    connection = await asyncpg.connect(where.server.url)
    name = where.made.name
    await connection.execute(
        "CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$"
    )
    for table in ("events", "replicas", "ledger"):
        await connection.execute(
            f'CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON "{name}".{table} '
            "FOR EACH STATEMENT EXECUTE FUNCTION no_room()"
            if full
            else f'DROP TRIGGER full_disk ON "{name}".{table}'
        )
    await connection.close()


@KINDS
@pytest.mark.requirement("R208")
async def test_settings_that_may_lose_what_was_acknowledged(kind: type[Server], tmp_path: Path) -> None:
    """It begins to evict, or to acknowledge before the disk has it, while replicas run."""
    with ground(kind, tmp_path, arm="verify:1") as where:
        await spoil(where, spoilt=True)
        shut(where, where.two)
        await spoil(where, spoilt=False)
        recovered(where)


async def spoil(where: Ground, *, spoilt: bool) -> None:
    if isinstance(where.server, Valkey):
        server = client.Redis.from_url(where.server.url)
        await server.config_set("maxmemory-policy", "allkeys-lru" if spoilt else "noeviction")
        await server.aclose()
        return
    connection = await asyncpg.connect(where.server.url)
    await connection.execute(f"ALTER SYSTEM SET fsync = {'off' if spoilt else 'on'}")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


@KINDS
@pytest.mark.requirement("R208")
def test_rolled_back(kind: type[Server], tmp_path: Path) -> None:
    """The server is restored from a copy that is older than what replicas have seen: nobody believes it."""
    with ground(kind, tmp_path) as where:
        where.server.kill()
        older = where.server.copied()
        try:
            where.server.start()
            recovered(where)  # bob is forgotten after the copy was made
            where.server.kill()
            older.port = where.server.port
            older.start()
            shut(where, *where.made.replicas)
            older.kill()
            where.server.start()
            shut(where, where.two)  # not believed again while this process lives
            where.two.kill()
            where.two.start()
            assert answered(where.two, "bob").status == 409
        finally:
            older.stop()


@KINDS
@pytest.mark.requirement("R208")
def test_failed_over_to_a_stale_replica(kind: type[Server], tmp_path: Path) -> None:
    """Another server takes its place that has not what was acknowledged last; then it even grows past it."""
    with ground(kind, tmp_path) as where:
        where.server.kill()
        stale = where.server.copied()
        try:
            where.server.start()
            recovered(where)
            stale.start()
            where.made.cables[1].move(stale.url)
            shut(where, where.two)
            where.made.cables[0].move(stale.url)
            shut(where, *where.made.replicas)
            assert len(where.store.arrived("forget", "bob")) == 1
        finally:
            stale.stop()


@KINDS
@pytest.mark.requirement("R208", "R183")
def test_an_answer_of_the_ledger_is_lost(kind: type[Server], tmp_path: Path) -> None:
    """It writes the intent, and nobody hears of it: 503 now, its gate shut, and one forget in the end."""
    with ground(kind, tmp_path) as where:
        where.made.cables[1].deafen()
        assert forget(where.two, "bob").status in (503, 504)
        assert not tells(recall(where.two, "bob"), "bob")
        where.made.cables[1].plug()
        recovered(where)
        erasures = {each["id"] for each in where.one.office("/v1/erasures")["erasures"]}
        assert len(erasures) == 2, "ada's and bob's, whoever has written the intent"


@pytest.mark.requirement("R209", "R208")
def test_clocks_ten_minutes_apart_and_jumping(pair: Pair, server: Server, tmp_path: Path) -> None:
    """A store that goes on telling is never found clean, and no lease, barrier or bound is misjudged."""
    store = LyingStore(lag=600.0)
    store.stubborn = True
    arms = {0: "clock:600", 1: "clock:-600", 2: "clock:wild"}
    try:
        with cluster(server, tmp_path, 3, upstream=store.url, lease="2s", arms=arms) as made:
            for number, replica in enumerate(made.replicas):
                name = f"person{number}"
                store.person(name)
                assert acknowledged(replica, name).status == 202
                assert [answered(each, name).status for each in made.replicas] == [409] * 3
                assert len(store.arrived("forget", name)) == 1
            rounds = len(store.log)
            until(lambda: len(store.log) > rounds + 30, "probes go on")
            states = {each["state"] for each in made.replicas[0].office("/v1/erasures")["erasures"]}
            assert states <= {"settling", "leaking"}, states
    finally:
        store.close()
