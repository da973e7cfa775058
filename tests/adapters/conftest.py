"""The wire runs on asyncio's own loop and, where it is installed, on uvloop: it has to hold on both."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories() -> dict[str, LoopFactory]:
    factories: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    if importlib.util.find_spec("uvloop"):
        import uvloop

        factories["uvloop"] = uvloop.new_event_loop
    return factories
