"""Every ledger, and a way to close one and open it again as a restart does."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from quietus.ledger.memory import MemoryLedger
from quietus.ledger.postgresql import PostgresqlEngine
from quietus.ledger.shared import SharedServerLedger
from quietus.ledger.sqlite import SqliteLedger
from quietus.ledger.valkey import ValkeyEngine
from quietus.workers.hub import Hub
from quietus.workers.hub_ledger import HubLedger
from tests.harness.servers import Postgresql, Valkey
from tests.ledger.lined import LinedLedger
from tests.simulation.served import ServedEngine, Wireless
from tests.simulation.server import LedgerServer

AnyShared = SharedServerLedger | HubLedger | LinedLedger
AnyLedger = MemoryLedger | SqliteLedger | AnyShared


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    server = Valkey()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    server = Postgresql()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(params=["valkey", "postgresql"])
def make_served(request: pytest.FixtureRequest) -> Callable[[], SharedServerLedger]:
    """Gives a ledger of a new name on a server, the same each time, as a new process would."""
    return _on(request.param, request.getfixturevalue(request.param).url)


def _on(kind: str, url: str) -> Callable[[], SharedServerLedger]:
    name = f"q{secrets.token_hex(6)}"
    engine = ValkeyEngine if kind == "valkey" else PostgresqlEngine
    return lambda: SharedServerLedger(engine(url, name=name))


@pytest.fixture(params=["valkey", "postgresql", "simulated", "hub", "line"])
def make_shared(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AnyShared]:
    """The same; on the simulator's server, which is held to what the real ones promise; and as workers have
    it, in their supervisor's process and at the other end of a line.
    """
    if request.param == "simulated":
        return _simulated()
    if request.param in ("hub", "line"):
        return _of_workers(request.param, tmp_path)
    return _on(request.param, request.getfixturevalue(request.param).url)


def _simulated() -> Callable[[], SharedServerLedger]:
    server = LedgerServer(secrets.token_hex(16))
    return lambda: SharedServerLedger(ServedEngine(server, Wireless()))


def _of_workers(kind: str, folder: Path) -> Callable[[], AnyShared]:
    hub = Hub(SqliteLedger(folder / "ledger.db"))
    return (lambda: HubLedger(hub)) if kind == "hub" else lambda: LinedLedger(hub)


@pytest.fixture(params=["memory", "sqlite", "valkey", "postgresql", "simulated", "hub", "line"])
def make_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AnyLedger]:
    """Gives the same ledger each time it is called, as a new process would."""
    if request.param == "memory":
        kept = MemoryLedger()
        return lambda: kept
    if request.param == "sqlite":
        return lambda: SqliteLedger(tmp_path / "ledger.db")
    if request.param == "simulated":
        return _simulated()
    if request.param in ("hub", "line"):
        return _of_workers(request.param, tmp_path)
    return _on(request.param, request.getfixturevalue(request.param).url)


@pytest.fixture
async def ledger(make_ledger: Callable[[], AnyLedger]) -> AsyncIterator[AnyLedger]:
    """An open ledger."""
    made = make_ledger()
    await made.open()
    yield made
    await made.close()
