"""The webhook's certificate: made, shared by replicas, renewed while it serves."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web

from quietus.inject.certificates import CertificateRefused, Pair, make
from quietus.inject.cluster import Cluster, ClusterRefused
from quietus.inject.renewal import EVERY, Files, Kept, Renewal
from tests.virtual_clock import VirtualClock

DAY = 86400.0
NAMES = ("quietus-injector.quietus.svc",)
HOOK = "quietus-injector.quietus"


class ApiServer:
    """As much of the API server as the injector speaks to: one Secret, one webhook, real HTTPS and tokens."""

    def __init__(self, folder: Path) -> None:
        self.secret: dict[str, Any] = {"kind": "Secret", "metadata": {"name": "tls", "resourceVersion": "1"}}
        self.hook: dict[str, Any] = {"webhooks": [{"clientConfig": {}}]}
        self.token = "first"
        self.broken = False
        self.writes: list[str] = []
        self.account = folder
        self.url = ""

    async def start(self, now: float) -> web.AppRunner:
        pair = make(["localhost"], now, 5)
        (self.account / "ca.crt").write_bytes(pair.ca)
        self.rotate("first")
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=pair.context()).start()
        self.url = f"https://localhost:{runner.addresses[0][1]}"
        return runner

    def rotate(self, token: str) -> None:
        self.token = token
        (self.account / "token").write_text(token + "\n")

    @property
    def bundle(self) -> bytes:
        return base64.b64decode(self.hook["webhooks"][0]["clientConfig"].get("caBundle", ""))

    async def _answer(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"kind": "Status"}, status=401)
        if self.broken:
            return web.Response(status=500, text="x")
        if request.method == "GET":
            return web.json_response(self.secret if "/secrets/" in request.path else self.hook)
        body = await request.json()
        self.writes.append(request.method)
        if request.method == "PATCH":
            assert request.content_type == "application/json-patch+json"
            assert request.path.endswith(f"/mutatingwebhookconfigurations/{HOOK}")
            self.hook["webhooks"][0]["clientConfig"]["caBundle"] = body[0]["value"]
            return web.json_response(self.hook)
        if body["metadata"]["resourceVersion"] != self.secret["metadata"]["resourceVersion"]:
            return web.json_response({"kind": "Status"}, status=409)
        body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        self.secret = body
        return web.json_response(body)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def api(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[ApiServer]:
    server = ApiServer(tmp_path)
    # TLS tells the time by the machine; only the certificates under test live in the virtual one.
    runner = await server.start(time.time())
    yield server
    await runner.cleanup()


def kept(cluster: Cluster) -> Kept:
    return Kept(cluster, "quietus", "tls", HOOK, NAMES, 90)


async def test_it_is_made_once_and_kept(api: ApiServer, clock: VirtualClock) -> None:
    async with Cluster(api.url, api.account) as cluster:
        first = await kept(cluster).current(clock.now())
        assert first.ca in api.bundle
        assert api.writes == ["PATCH", "PUT"], "the API server trusts it before it is shown"
        assert await kept(cluster).current(clock.now() + 50 * DAY) == first
        assert api.writes == ["PATCH", "PUT"]


async def test_it_is_renewed_when_a_third_is_left_and_both_are_trusted(
    api: ApiServer, clock: VirtualClock
) -> None:
    async with Cluster(api.url, api.account) as cluster:
        first = await kept(cluster).current(clock.now())
        second = await kept(cluster).current(clock.now() + 61 * DAY)
        assert second.ca != first.ca
        assert second.ca in api.bundle
        assert first.ca in api.bundle, "another replica still shows the old one"


async def test_replicas_agree_on_one(api: ApiServer, clock: VirtualClock) -> None:
    async with Cluster(api.url, api.account) as one, Cluster(api.url, api.account) as two:
        found = await asyncio.gather(*(kept(each).current(clock.now()) for each in (one, two, one, two)))
        assert len(set(found)) == 1
        assert found[0].ca in api.bundle


async def test_a_ca_that_an_upgrade_took_away_is_put_back(api: ApiServer, clock: VirtualClock) -> None:
    async with Cluster(api.url, api.account) as cluster:
        pair = await kept(cluster).current(clock.now())
        api.hook["webhooks"][0]["clientConfig"] = {}
        assert await kept(cluster).current(clock.now()) == pair
        assert pair.ca in api.bundle


async def test_a_damaged_secret_is_made_anew(api: ApiServer, clock: VirtualClock) -> None:
    api.secret["data"] = dict.fromkeys(("tls.crt", "tls.key", "ca.crt"), base64.b64encode(b"x").decode())
    async with Cluster(api.url, api.account) as cluster:
        pair = await kept(cluster).current(clock.now())
        assert base64.b64decode(api.secret["data"]["tls.crt"]) == pair.certificate


async def test_the_token_rotates(api: ApiServer, clock: VirtualClock) -> None:
    async with Cluster(api.url, api.account) as cluster:
        await kept(cluster).current(clock.now())
        api.rotate("second")
        await kept(cluster).current(clock.now())
        api.token = "third"
        with pytest.raises(ClusterRefused, match="401"):
            await kept(cluster).current(clock.now())


async def test_what_holds_stays_while_the_api_server_is_away(api: ApiServer, clock: VirtualClock) -> None:
    ends: list[float] = []
    async with Cluster(api.url, api.account) as cluster:
        renewal = Renewal(kept(cluster), clock, structlog.get_logger(), ends.append)
        await renewal.begin()
        api.broken = True
        await clock.advance(70 * DAY)
        assert await renewal.look() is False
        assert len(ends) == 1
        api.broken = False


async def test_a_new_file_is_shown_without_a_restart(tmp_path: Path, clock: VirtualClock) -> None:
    def write(pair: Pair) -> None:
        (tmp_path / "c").write_bytes(pair.certificate)
        (tmp_path / "k").write_bytes(pair.key)

    old, new = make(["localhost"], time.time(), 5), make(["localhost"], time.time(), 6)
    write(old)
    renewal = Renewal(Files(tmp_path / "c", tmp_path / "k"), clock, structlog.get_logger())
    context = await renewal.begin()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    async def trusted(pair: Pair) -> bool:
        own = ssl.create_default_context(cadata=pair.ca.decode())
        try:
            _, writer = await asyncio.open_connection("localhost", port, ssl=own)
        except ssl.SSLError:
            return False
        writer.close()
        return True

    assert (await trusted(old), await trusted(new)) == (True, False)
    (tmp_path / "c").write_bytes(new.certificate)  # half of a change: the key is still the old one
    assert await renewal.look() is False
    assert await trusted(old)
    write(new)
    assert await renewal.look() is True
    assert (await trusted(old), await trusted(new)) == (False, True)
    server.close()
    await server.wait_closed()
    assert EVERY <= 60


def test_a_pair_that_does_not_fit_is_refused(clock: VirtualClock) -> None:
    one, two = make(NAMES, clock.now(), 5), make(NAMES, clock.now(), 5)
    with pytest.raises(CertificateRefused, match="do not fit"):
        Pair(one.certificate, two.key, one.ca).context()
    with pytest.raises(CertificateRefused, match="PEM"):
        Pair(b"x", b"y", b"z").spans()
    assert json.dumps(one.spans())
