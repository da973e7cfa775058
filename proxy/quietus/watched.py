"""The store as a replica may speak to it: what was admitted is asked once more just before it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quietus.conversation_ports import OpenStream, Streams
from quietus.core.exchange import Request
from quietus.ports import OpenReply, Permit, Upstream


@dataclass(frozen=True, slots=True)
class _Standing:
    """A permit that stands for as long as the lease does under which it was given."""

    given: Permit
    still: Callable[[], bool]

    @property
    def purpose(self) -> str:
        """What the forward is for."""
        return self.given.purpose

    @property
    def holds(self) -> bool:
        """Whether this replica may still speak."""
        return self.given.holds and self.still()


class WatchedUpstream:
    """`ports.Upstream` that tells the wire whether it may still send."""

    def __init__(self, upstream: Upstream, still: Callable[[], bool]) -> None:
        self._upstream = upstream
        self._still = still

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        """Sends the bytes once. Raises UpstreamError."""
        return await self._upstream.open(request, _Standing(permit, self._still), fresh=fresh)

    async def close(self) -> None:
        """Closes idle connections."""
        await self._upstream.close()


class WatchedStreams:
    """`conversation_ports.Streams`, likewise."""

    def __init__(self, streams: Streams, still: Callable[[], bool]) -> None:
        self._streams = streams
        self._still = still

    async def converse(self, request: Request, permit: Permit) -> OpenStream:
        """Begins a call with the head of `request`. Raises UpstreamError."""
        return await self._streams.converse(request, _Standing(permit, self._still))
