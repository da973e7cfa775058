"""Waiting for an event on a `Clock`, and not for ever."""

from __future__ import annotations

import asyncio

from quietus.ports import Clock


async def within(clock: Clock, event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event, at most so many seconds; whether it is set by then."""
    timer = asyncio.ensure_future(clock.sleep(seconds))
    waiter = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({timer, waiter}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        timer.cancel()
        waiter.cancel()
