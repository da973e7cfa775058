"""The gate is shut before an intent can be durable, and opens again when it could not be written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quietus.ledger.memory import MemoryLedger
from quietus.ports import LedgerUnavailable
from tests.gateway.scenes import ALICE, short, two


class Slow(MemoryLedger):
    """Commits at once and says so late, as a thread that was not scheduled; or fails instead."""

    fails = False

    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()
        self.written = asyncio.Event()

    async def append(self, drafts: Any, **more: Any) -> Any:
        if self.fails:
            self.written.set()
            await self.told.wait()
            raise LedgerUnavailable("the disk is full: free some")
        events = await super().append(drafts, **more)
        self.written.set()
        await self.told.wait()
        return events


@pytest.mark.requirement("R126", "R186")
async def test_nothing_is_released_between_the_commit_and_our_hearing_of_it() -> None:
    ledger = Slow()
    async with short(ledger=ledger) as world:
        await two(world)
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await ledger.written.wait()
        refused = await world.recall("flower pot", subject="alice")
        wide = await world.recall("flower pot")
        ledger.told.set()
        assert refused.status == 409 and refused.json["reason"] == "ERASURE_EPOCH_NOT_SETTLED"
        assert ALICE.encode() not in wide.body and wide.keys == ["bobs-key-1"]
        assert (await world.finish(forget)).status == 202


@pytest.mark.requirement("R43")
async def test_an_intent_that_could_not_be_written_leaves_the_gate_as_it_was() -> None:
    ledger = Slow()
    async with short(ledger=ledger) as world:
        await two(world)
        ledger.fails = True
        forget = world.start("POST", "/v1/forget", {"subject": "alice"})
        await ledger.written.wait()
        assert (await world.recall("flower pot", subject="alice")).status == 409
        ledger.told.set()
        assert (await world.finish(forget)).status == 503
        assert (await world.recall("flower pot", subject="alice")).status == 200
        assert list(world.parts.erasures.all()) == []
        assert world.upstream.calls("POST", "/v1/forget") == 0
