"""The clock that tests move."""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual_clock import START, VirtualClock


async def test_sleepers_wake_in_order_and_see_their_own_time() -> None:
    clock = VirtualClock()
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            seen.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 3))
        group.create_task(sleeper("twice", 1, 1.5))
        group.create_task(sleeper("first of two", 2))
        group.create_task(sleeper("second of two", 2))
        await clock.settle()
        assert clock.sleepers == 4 and clock.next_waking == 1
        await clock.advance(2.75)
        assert clock.sleepers == 1 and clock.monotonic() == 2.75
        await clock.advance(0.25)
    assert seen == [
        ("twice", 1), ("first of two", 2), ("second of two", 2), ("twice", 2.5), ("late", 3),
    ]  # fmt: skip


async def test_a_cancelled_sleeper_is_passed_over() -> None:
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(1))
    await clock.settle()
    task.cancel()
    await clock.advance(5)
    assert task.cancelled() and clock.monotonic() == 5 and clock.next_waking is None


def test_wall_clock_jumps_alone() -> None:
    clock = VirtualClock()
    clock.move(10)
    clock.jump(-3600)
    assert clock.monotonic() == 10 and clock.now() == START + 10 - 3600


async def test_moving_past_sleepers_is_refused() -> None:
    clock = VirtualClock()
    task = asyncio.ensure_future(clock.sleep(1))
    await clock.settle()
    with pytest.raises(AssertionError):
        clock.move(2)
    await clock.advance(2)
    await task
