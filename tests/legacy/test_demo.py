"""The demo's story holds in front of something that keeps it, and is seen to fail otherwise."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from quietus.legacy.demo import Pace, Sidecar, run
from tests.legacy.stand_in import StandIn

FAST = Pace(compaction=0.4, chunk_cache=0.7, digest=0.7, acknowledgement=0.0, poll=0.05, patience=5.0)
HASTY = Pace(compaction=0.2, chunk_cache=0.4, digest=0.4, acknowledgement=0.0, poll=0.05, patience=1.0)


def paper() -> Console:
    return Console(file=io.StringIO(), width=120, force_terminal=False)


def read(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def test_story_holds() -> None:
    console = paper()
    assert await run(console, sidecar_factory=StandIn(), pace=FAST), read(console)
    told = read(console)
    assert "did not hold" not in told
    for words in ("service:analytics", "chunk cache", "Settled", "ERASURE_EPOCH_NOT_SETTLED"):
        assert words in told


async def test_story_fails_without_a_sidecar() -> None:
    async def nothing_in_front(upstream: str) -> Sidecar:
        async def close() -> None: ...

        return Sidecar(upstream, upstream, "", close)

    console = paper()
    assert not await run(console, sidecar_factory=nothing_in_front, pace=HASTY)
    assert "through Quietus: nothing of Alice" in read(console)


@pytest.mark.parametrize("fails", ["answers inside", "leaks when wide", "drops bystanders", "never settles"])
async def test_story_fails_with_a_sidecar_that(fails: str) -> None:
    console = paper()
    assert not await run(console, sidecar_factory=StandIn(fails=fails), pace=HASTY), read(console)
    assert "The story did not hold" in read(console)
