"""The story of one forget: what a store that lies goes on telling, and what a sidecar lets through.

`run` starts the legacy store, has the caller start a sidecar in front of it, and lets a scripted
agent talk to both. Nothing that it prints as held is printed by script: each claim is checked on
the answers that came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from aiohttp import ClientError, ClientSession
from grpc import aio
from rich.console import Console
from rich.text import Text

from quietus.legacy.agent import Agent, Office
from quietus.legacy.faults import Faults
from quietus.legacy.grpc_agent import RpcAgent
from quietus.legacy.grpc_server import ServedGrpc, serve_grpc
from quietus.legacy.loop_clock import LoopClock
from quietus.legacy.server import serve
from quietus.legacy.store import LegacyStore
from quietus.legacy.story import MARKS, Cast, Story
from quietus.legacy.telling import Telling
from quietus.ports import Clock


class Sidecar(NamedTuple):
    """A sidecar that runs: where it listens, its operator's token, and how to stop it."""

    data_url: str
    admin_url: str
    token: str
    close: Callable[[], Awaitable[None]]


class SidecarFactory(Protocol):
    """Starts a sidecar (profile memory-tool, policy default) in front of `upstream`.

    A settling interval of six to ten seconds fits the store's compaction at about five.
    """

    def __call__(
        self, upstream: str
    ) -> Awaitable[Sidecar | tuple[str, str, str, Callable[[], Awaitable[None]]]]:
        """Returns when it is ready."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the store's background works, in seconds."""

    compaction: float = 5.0
    chunk_cache: float = 7.0
    digest: float = 7.0
    acknowledgement: float = 0.04
    poll: float = 0.5
    patience: float = 38.0
    """How long the whole story may wait for the erasure to be settled."""


DEFAULT_PACE = Pace()


async def run(
    console: Console,
    *,
    sidecar_factory: SidecarFactory,
    keep: bool = False,
    clock: Clock | None = None,
    pace: Pace = DEFAULT_PACE,
    grpc: bool = False,
) -> bool:
    """Tells the story; returns whether it held. With `keep`, store and sidecar run on until cancelled.

    With `grpc` everybody speaks gRPC; the factory gets and gives HOST:PORT then.
    """
    clock = clock or LoopClock()
    faults = Faults(
        lazy_index=pace.compaction,
        chunk_cache=pace.chunk_cache,
        service_digest=pace.digest,
        latency=pace.acknowledgement,
    )
    telling = Telling(console, MARKS)
    async with AsyncExitStack() as stack:
        store = LegacyStore(clock, seed=1, faults=faults)
        served = await (serve_grpc("127.0.0.1", 0, store) if grpc else serve("127.0.0.1", 0, store))
        stack.push_async_callback(served.close)
        place = served.address if isinstance(served, ServedGrpc) else served.url
        data_url, admin_url, token, close = await sidecar_factory(place)
        stack.push_async_callback(close)
        session = await stack.enter_async_context(ClientSession())

        async def agent(where: str) -> Agent:
            if not grpc:
                return Agent(session, where)
            return RpcAgent(await stack.enter_async_context(aio.insecure_channel(where)))

        cast = Cast(await agent(place), await agent(data_url), Office(session, admin_url, token))
        story = Story(telling, cast, clock, pace.poll, pace.patience)
        try:
            await story.tell()
        except (ClientError, TimeoutError) as broken:
            telling.check(False, f"everybody answered ({type(broken).__name__})")
        held = telling.closing(
            "The store said “erased” at once and went on telling. Through Quietus nobody heard of Alice "
            "again, nobody else went missing, and the erasure was called settled only when questions had "
            "shown it.",
            "The story did not hold:",
        )
        if keep:
            console.print(
                Text(
                    f"\nStill running. The store: {place}   through Quietus: {data_url}   "
                    f"admin API: {admin_url}\nStop with Ctrl-C."
                )
            )
            await asyncio.Event().wait()
    return held
