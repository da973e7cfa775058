"""A trial that is broken off leaves as little behind as one that ends."""

from __future__ import annotations

import asyncio

import pytest

from quietus.ports import UpstreamError
from tests.trial.ground import Ground


@pytest.mark.parametrize("turns", [3, 40, 400, 1200])
async def test_a_trial_that_is_cancelled_removes_its_canaries(turns: int) -> None:
    ground = Ground()
    work = asyncio.ensure_future(ground.run())
    for _ in range(turns):
        await asyncio.sleep(0)
    assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ground.left() == [] and ground.store.holds("green tea")


@pytest.mark.parametrize("after", [1, 5, 40])
async def test_a_store_that_breaks_a_write_off_keeps_no_canary(after: int) -> None:
    ground = Ground()
    handle, seen = ground.store.handle, [0]

    def broken(request: object) -> object:
        reply = handle(request)  # type: ignore[arg-type]
        if getattr(request, "method", "") == "POST" and getattr(request, "path", "") == "/v1/memories":
            seen[0] += 1
            if seen[0] == after:
                raise UpstreamError("the answer was cut short", sent=True)
        return reply

    ground.store.handle = broken  # type: ignore[method-assign, assignment]
    with pytest.raises(UpstreamError):
        await ground.run()
    assert ground.left() == []
