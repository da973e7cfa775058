"""Both ledgers, and a way to close one and open it again as a restart does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from quietus.ledger.memory import MemoryLedger
from quietus.ledger.sqlite import SqliteLedger

AnyLedger = MemoryLedger | SqliteLedger


@pytest.fixture(params=["memory", "sqlite"])
def make_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], AnyLedger]:
    """Gives the same ledger each time it is called, as a new process would."""
    kept = MemoryLedger()

    def make() -> AnyLedger:
        return kept if request.param == "memory" else SqliteLedger(tmp_path / "ledger.db")

    return make


@pytest.fixture
async def ledger(make_ledger: Callable[[], AnyLedger]) -> AsyncIterator[AnyLedger]:
    """An open ledger."""
    made = make_ledger()
    await made.open()
    yield made
    await made.close()
