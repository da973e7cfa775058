"""One server of each kind for all tests here; every cluster has a ledger of its own on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.servers import Postgresql, Server, Valkey
from tests.replicas.cluster import Pair, cluster
from tests.replicas.lying_store import LyingStore

KINDS = {"valkey": Valkey, "postgresql": Postgresql}


@pytest.fixture(scope="session", params=list(KINDS))
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Both, one after the other."""
    made: Server = KINDS[request.param]()
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def pair(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two replicas that are kept for all tests of one server; each test leaves them as it found them."""
    store = LyingStore(lag=600.0)
    settings = {"timeouts": {"barrier": "1s", "wait": "30s"}}
    folder = tmp_path_factory.mktemp("pair")
    try:
        with cluster(server, folder, 2, upstream=store.url, lease="3s", settings=settings) as made:
            yield Pair(made, store)
    finally:
        store.close()


@pytest.fixture
def lying() -> Iterator[LyingStore]:
    """A store that goes on telling of whom it has forgotten."""
    made = LyingStore(lag=600.0)
    yield made
    made.close()
