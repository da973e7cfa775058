"""A forget is forwarded only when every replica has shut its gate, or can answer no more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from quietus.app import SystemClock
from quietus.erasures import Erasures
from quietus.key_file import KeysRefused
from quietus.keys import Keyring
from quietus.ledger_server import open_shared
from quietus.ports import LedgerRefused
from quietus.settings import LedgerSettings
from tests.e2e.process import Quietus, Response
from tests.harness.servers import Server
from tests.replicas.calls import PATIENCE, acknowledged, answered, forget, recall, tells, written
from tests.replicas.cluster import Cluster, Pair, cluster
from tests.replicas.lying_store import LyingStore, sentence

pytestmark = pytest.mark.timeout(120)

@pytest.mark.requirement("R208", "R189")
def test_a_forget_through_one_replica_shuts_the_gate_of_all(pair: Pair) -> None:
    ada = pair.person()
    assert tells(answered(pair.two, ada), ada)
    answer = acknowledged(pair.one, ada)
    assert answer.status == 202
    assert answered(pair.two, ada).status == answered(pair.one, ada).status == 409
    again = acknowledged(pair.two, ada)
    assert again.status == 202 and again.body == answer.body, "the same acknowledgement through another"
    assert erasure_of(again) == erasure_of(answer)
    refused = pair.two.call("POST", "/v1/memories", written(ada, "something new"))
    assert refused.status == 409
    assert len(pair.store.arrived("forget", ada)) == 1
    assert not pair.store.arrived("write", ada)


def erasure_of(answer: Response) -> str:
    return answer.headers["quietus-erasure"].partition(";")[0]


@pytest.mark.requirement("R208")
def test_a_replica_without_its_ledger_is_waited_for(pair: Pair) -> None:
    ada = pair.person()
    with pulled(pair.cluster, ada, pair.two):
        assert acknowledged(pair.one, ada).status == 202
        after = recall(pair.two, ada)
        assert after.status == 503, "its lease has lapsed before the forget was acknowledged"


@contextmanager
def pulled(made: Cluster, name: str, replica: Quietus) -> Iterator[None]:
    """Replica two without its ledger; afterwards it answers again, and its first answer refuses this."""
    assert tells(answered(replica, name), name)
    made.cables[1].pull()
    try:
        yield
    finally:
        made.cables[1].plug()
    assert answered(replica, name).status == 409


@pytest.mark.parametrize("server", ["valkey"], indirect=True)
def test_without_the_barrier_a_replica_without_its_ledger_goes_on_telling(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="20s", arm="unsafe:barrier") as made:
        lying.person("ada")
        made.cables[1].pull()
        assert forget(made.replicas[0], "ada").status == 202
        assert tells(recall(made.replicas[1], "ada"), "ada")


def quoted(store: LyingStore, name: str, by: str) -> str:
    """One person quotes another, whose listings wait at the door that is returned."""
    store.put(f"{by}-2", f"it was told at length: {sentence(name)}; and believed", by)
    return store.shut(name)


@pytest.mark.requirement("R208")
def test_what_a_snapshot_found_is_known_everywhere_before_the_store_is_asked(pair: Pair) -> None:
    """Somebody else's memory quotes Ada's. Who has not read the snapshot does not know that."""
    ada, bob = pair.person(), pair.person()
    door = quoted(pair.store, ada, bob)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(forget, pair.one, ada)
        pair.store.until(lambda: pair.store.waiting(door) > 0, "the snapshot lists")
        assert answered(pair.two, ada).status == 409, "the first barrier"
        assert tells(answered(pair.two, bob), ada), "nobody knows yet what Ada's memory says"
        pair.cluster.cables[1].pull()
        pair.store.open(door)
        first = asked.result(PATIENCE)
    try:
        assert first.status == 202 or acknowledged(pair.one, ada).status == 202
        assert recall(pair.two, bob).status == 503
    finally:
        pair.cluster.cables[1].plug()
    assert not tells(answered(pair.two, bob), ada)


@pytest.mark.parametrize("server", ["valkey"], indirect=True)
def test_with_the_first_barrier_only_a_quotation_gets_out(
    server: Server, lying: LyingStore, tmp_path: Path
) -> None:
    with cluster(server, tmp_path, 2, upstream=lying.url, lease="20s", arm="unsafe:second") as made:
        one, two = made.replicas
        lying.person("ada")
        door = quoted(lying, "ada", "bob")
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(forget, one, "ada")
            lying.until(lambda: lying.waiting(door) > 0, "the snapshot lists")
            made.cables[1].pull()
            lying.open(door)
            assert asked.result(PATIENCE).status == 202
        assert tells(recall(two, "bob"), "ada")


@pytest.mark.requirement("R208", "R183")
def test_a_barrier_that_cannot_be_reached_forwards_nothing(pair: Pair) -> None:
    """The other replica lives, and has a write in flight in that scope: it is waited for, and then not."""
    ada = pair.person()
    store = pair.store
    with ThreadPoolExecutor(1) as threads:
        write = threads.submit(
            pair.two.call, "POST", "/v1/memories", written(ada, "in flight"), {"X-Door": ada}
        )
        store.until(lambda: store.waiting(ada) > 0, "the write is on its way")
        answer = forget(pair.one, ada)
        assert (answer.status, answer.json["type"]) == (503, "urn:quietus:problem:barrier-unreachable")
        assert not store.arrived("forget", ada)
        assert answered(pair.one, ada).status == answered(pair.two, ada).status == 409, "its gate is shut"
        store.open(ada)
        refused = write.result(PATIENCE)
        assert refused.status == 409 and refused.json["reason"] == "ERASURE_ORDERING_VIOLATION"
    store.until(lambda: len(store.arrived("forget", ada)) == 1, "it goes on by itself")
    assert store.arrived("write", ada)[0] < store.arrived("forget", ada)[0]


@pytest.mark.requirement("R208")
async def test_a_replica_with_other_keys_or_none_is_refused(
    pair: Pair, server: Server, tmp_path: Path
) -> None:
    settings = LedgerSettings(url=server.url, name=pair.cluster.name)
    with pytest.raises(KeysRefused, match="missing and the ledger is not new"):
        open_shared(settings, tmp_path / "none.json")
    Keyring.load_or_make(tmp_path / "other.json", ledger_is_new=True)
    ledger, keyring = open_shared(settings, tmp_path / "other.json")
    stranger = Erasures(ledger, keyring, SystemClock(), "memories")
    with pytest.raises(LedgerRefused, match="other keys"):
        await stranger.load()
    assert stranger.closed_cause == "ledger"
    await ledger.close()


@pytest.mark.requirement("R40", "R208")
def test_a_recall_may_ask_for_the_epoch_of_a_forget(pair: Pair) -> None:
    ada, bob = pair.person(), pair.person()
    told = acknowledged(pair.one, ada).headers["quietus-erasure"]
    epoch = int(told.partition("epoch=")[2].partition(";")[0])
    assert recall(pair.two, bob, Quietus_Min_Epoch=str(epoch)).status == 200
    ahead = recall(pair.two, bob, Quietus_Min_Epoch=str(epoch + 1000))
    assert (ahead.status, ahead.json["reason"]) == (409, "ERASURE_EPOCH_NOT_SETTLED")
