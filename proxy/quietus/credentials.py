"""Whose credentials go along with a forward: the client's with a client's call, ours with our own."""

from __future__ import annotations

from quietus.core.exchange import Headers, Request, without
from quietus.permits import Purpose
from quietus.ports import OpenReply, Permit, Upstream


class Credentialed:
    """An upstream that puts headers on what is forwarded.

    `own` are sent with what the sidecar itself asks (probes, remedies, re-sent forgets); `injected` with
    everything, replacing what a client sent under those names, so that only the sidecar holds them.
    """

    def __init__(self, upstream: Upstream, own: Headers = (), injected: Headers = ()) -> None:
        self._upstream = upstream
        self._own = own
        self._injected = injected

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        """As the upstream behind it. Raises UpstreamError."""
        more = self._injected
        if permit.purpose != Purpose.CLIENT.value:
            more = (*self._own, *self._injected)
        if more:
            names = frozenset(name.lower() for name, _ in more)
            headers = (*without(request.headers, names), *more)
            request = Request(request.method, request.target, headers, request.body)
        return await self._upstream.open(request, permit, fresh=fresh)

    async def close(self) -> None:
        """Closes the upstream behind it."""
        await self._upstream.close()
