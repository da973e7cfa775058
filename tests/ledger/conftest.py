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
from tests.harness.servers import Postgresql, Valkey

AnyLedger = MemoryLedger | SqliteLedger | SharedServerLedger


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
def make_shared(request: pytest.FixtureRequest) -> Callable[[], SharedServerLedger]:
    """Gives a ledger of a new name on a server, the same each time, as a new process would."""
    name = f"q{secrets.token_hex(6)}"
    server = request.getfixturevalue(request.param)

    def make() -> SharedServerLedger:
        engine = ValkeyEngine if request.param == "valkey" else PostgresqlEngine
        return SharedServerLedger(engine(server.url, name=name))

    return make


@pytest.fixture(params=["memory", "sqlite", "valkey", "postgresql"])
def make_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AnyLedger]:
    """Gives the same ledger each time it is called, as a new process would."""
    kept = MemoryLedger()
    name = f"q{secrets.token_hex(6)}"
    server = request.getfixturevalue(request.param) if request.param in ("valkey", "postgresql") else None

    def make() -> AnyLedger:
        if request.param == "memory":
            return kept
        if server is None:
            return SqliteLedger(tmp_path / "ledger.db")
        engine = ValkeyEngine if request.param == "valkey" else PostgresqlEngine
        return SharedServerLedger(engine(server.url, name=name))

    return make


@pytest.fixture
async def ledger(make_ledger: Callable[[], AnyLedger]) -> AsyncIterator[AnyLedger]:
    """An open ledger."""
    made = make_ledger()
    await made.open()
    yield made
    await made.close()
