"""What audits a forget goes another way than the forget: other credentials, connections, routes, no cache."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.core.exchange import Request, header
from quietus.core.states import State
from quietus.permits import Purpose
from quietus.ports import Permit
from tests.gateway.scenes import settle, short, two


@pytest.mark.requirement("R81")
async def test_probes_share_neither_credentials_nor_connections_nor_caches_with_the_forget() -> None:
    world = short()
    asked: list[tuple[str, bool, Request]] = []
    real = world.upstream.open

    async def open_(request: Request, permit: Permit, *, fresh: bool = False) -> Any:
        asked.append((str(permit.purpose), fresh, request))
        return await real(request, permit, fresh=fresh)

    world.upstream.open = open_
    async with world:
        await two(world)
        credential = ("Authorization", "Bearer of-the-client")
        assert (await world.forget((credential,), subject="alice")).status == 202
        await settle(world)
        assert world.erasure().state is State.SETTLED
    probes = [(fresh, request) for purpose, fresh, request in asked if purpose == Purpose.PROBE]
    (forget,) = [request for purpose, _, request in asked if request.path == "/v1/forget"]
    assert header(forget.headers, "Authorization") == "Bearer of-the-client"
    assert header(forget.headers, "Cache-Control") is None, "the client's bytes are the client's"
    assert len(probes) > 10
    assert all(fresh for fresh, _ in probes)
    assert all(header(request.headers, "Cache-Control") == "no-cache" for _, request in probes)
    assert all(header(request.headers, "Authorization") is None for _, request in probes)
    assert forget.path not in {request.path for _, request in probes}
