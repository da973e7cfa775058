"""Certificate and CA towards the store are renewed from their files; what is withdrawn is withdrawn."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry

from quietus.certificates import EVERY, Certificates
from quietus.config import load
from quietus.core.exchange import Request
from quietus.metrics import Metrics
from quietus.ports import UpstreamError
from quietus.settings import ListenerTls, Settings
from quietus.wires import StoreClient
from tests.adapters.wires import AsClient, Store
from tests.grpc_wire.echo import SERVICE, echoing, line
from tests.harness.papers import Paper, paper
from tests.virtual_clock import VirtualClock

GET = Request("GET", "/", (("Host", "store"),))
UNARY = Request("POST", f"/{SERVICE}/Unary", (), line("bob", "text"), wire="grpc")


class Renewed:
    """The client of a store whose files, `ours` and `theirs`, a test changes; time is the test's."""

    def __init__(self, folder: Path, wire: str, address: str, ours: Paper, theirs: Paper) -> None:
        self.folder = folder
        self.put(ours, theirs)
        tls = {name: str(folder / f"{name}.pem") for name in ("ca", "cert", "key")}
        upstream = f"https://{address}" if wire == "http" else address
        flags: dict[str, Any] = {
            "store.profile": "memory-tool",
            "timeouts.connect": "30s",
            f"store.{wire}.upstream": upstream,
            f"store.{wire}.upstream_tls": tls,
        }
        self.settings: Settings = load(None, flags, {})
        self.client = StoreClient(self.settings.store, self.settings.timeouts)
        self.clock = VirtualClock()
        metrics = Metrics(CollectorRegistry(), "s")
        certificates = Certificates(self.settings, metrics, structlog.get_logger(), self.clock)
        self.watching = asyncio.ensure_future(certificates.run())

    def put(self, ours: Paper, theirs: Paper) -> None:
        ours.put(self.folder)
        (self.folder / "ca.pem").write_bytes(theirs.cert)

    async def renew(self, ours: Paper, theirs: Paper) -> None:
        self.put(ours, theirs)
        await self.clock.advance(EVERY + 1)

    async def close(self) -> None:
        self.watching.cancel()
        await self.client.close()


async def https(store: Store, folder: Path, shown: Paper, clients: Paper) -> asyncio.Server:
    return await asyncio.start_server(store.serve, "127.0.0.1", 0, ssl=shown.server(folder, clients))


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


async def asked(client: StoreClient, request: Request, *, fresh: bool = False) -> bytes:
    reply = await client.open(request, AsClient(), fresh=fresh)
    return (await reply.read(1 << 20)).body


@pytest.mark.requirement("R200")
async def test_http_takes_over_a_new_certificate_and_a_new_authority(tmp_path: Path) -> None:
    old, new, first, second = (paper(name) for name in ("old", "new", "first", "second"))
    store = Store()
    server = await https(store, tmp_path, first, old)
    client = Renewed(tmp_path, "http", f"127.0.0.1:{port_of(server)}", old, first)
    await asked(client.client, GET)
    await asked(client.client, GET)
    assert store.connections == 1
    await client.renew(new, first)
    with pytest.raises(UpstreamError):  # the connection that stood was of the old certificate: it is not used
        await asked(client.client, GET)
    again = Store()
    other = await https(again, tmp_path, first, new)
    address = f"https://127.0.0.1:{port_of(other)}"
    moved = Renewed(tmp_path, "http", address.removeprefix("https://"), old, first)
    with pytest.raises(UpstreamError):
        await asked(moved.client, GET)
    await moved.renew(new, first)
    await asked(moved.client, GET)
    await asked(moved.client, GET, fresh=True)
    await moved.renew(new, second)
    with pytest.raises(UpstreamError):  # whoever vouched for the store until now does so no longer
        await asked(moved.client, GET)
    await moved.renew(new, first)
    await asked(moved.client, GET)
    for each in (client, moved):
        await each.close()
    for each_server, each_store in ((server, store), (other, again)):
        each_server.close()
        each_store.drop_all()


def accepting(shown: Paper, clients: Paper) -> grpc.ServerCredentials:
    return grpc.ssl_server_credentials([(shown.key, shown.cert)], clients.cert, True)


@pytest.mark.requirement("R200")
async def test_grpc_takes_over_a_new_certificate_and_a_new_authority(tmp_path: Path) -> None:
    old, new, first, second = (paper(name) for name in ("old", "new", "first", "second"))
    async with echoing(accepting(first, new)) as echo:
        client = Renewed(tmp_path, "grpc", echo.address, old, first)
        with pytest.raises(UpstreamError):
            await asked(client.client, UNARY)
        await client.renew(new, first)
        assert await asked(client.client, UNARY) == UNARY.body
        assert await asked(client.client, UNARY, fresh=True) == UNARY.body
        await client.renew(new, second)
        with pytest.raises(UpstreamError) as error:
            await asked(client.client, UNARY)
        assert not error.value.sent
        await client.renew(new, first)
        assert await asked(client.client, UNARY) == UNARY.body
        await client.close()


@pytest.mark.requirement("R200")
async def test_a_stream_under_way_outlives_the_renewal(tmp_path: Path) -> None:
    old, new, shown = (paper(name) for name in ("old", "new", "shown"))
    both = Paper(old.cert + new.cert, b"")
    async with echoing(accepting(shown, both)) as echo:
        client = Renewed(tmp_path, "grpc", echo.address, old, shown)
        chat = await client.client.converse(
            Request("POST", f"/{SERVICE}/Chat", (), b"", wire="grpc"), AsClient()
        )
        assert await chat.send(line("bob", "before"))
        told = chat.messages()
        assert await anext(told) == line("bob", "before")
        await client.renew(new, shown)
        assert await asked(client.client, UNARY) == UNARY.body
        assert await chat.send(line("bob", "after"))
        assert await anext(told) == line("bob", "after")
        await chat.finish_sending()
        assert [message async for message in told] == []
        assert (await chat.end()).code == "OK"
        assert len(echo.peers) == 2, "the new call went on a connection of its own"
        await client.close()


@pytest.mark.requirement("R200")
async def test_half_of_a_pair_changes_nothing(tmp_path: Path) -> None:
    old, new, shown = (paper(name) for name in ("old", "new", "shown"))
    async with echoing(accepting(shown, old)) as echo:
        client = Renewed(tmp_path, "grpc", echo.address, old, shown)
        (tmp_path / "cert.pem").write_bytes(new.cert)
        await client.clock.advance(EVERY + 1)
        assert await asked(client.client, UNARY) == UNARY.body
        (tmp_path / "ca.pem").write_text("no certificate")
        await client.clock.advance(EVERY + 1)
        assert await asked(client.client, UNARY, fresh=True) == UNARY.body
        await client.close()


@pytest.mark.requirement("R200")
async def test_the_listener_lets_in_no_client_of_a_withdrawn_authority(tmp_path: Path) -> None:
    old, new, shown = (paper(name) for name in ("old", "new", "shown"))
    shown.put(tmp_path)
    (tmp_path / "clients.pem").write_bytes(old.cert)
    tls = ListenerTls(
        cert=tmp_path / "cert.pem", key=tmp_path / "key.pem", client_ca=tmp_path / "clients.pem"
    )
    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=tls.context())

    async def let_in(client: Paper, session: ssl.SSLContext) -> bool:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server), ssl=session)
            greeting = await reader.read()
        except (ssl.SSLError, ConnectionError):
            return False
        writer.close()
        return greeting == b"hello"

    def context(client: Paper) -> ssl.SSLContext:
        client.put(tmp_path, "c.pem", "c.key")
        made = ssl.create_default_context(cadata=shown.cert.decode())
        made.load_cert_chain(tmp_path / "c.pem", tmp_path / "c.key")
        return made

    olds, news = context(old), context(new)
    assert (await let_in(old, olds), await let_in(new, news)) == (True, False)
    (tmp_path / "clients.pem").write_bytes(new.cert)
    tls.renew()
    assert (await let_in(old, olds), await let_in(new, news)) == (False, True)
    server.close()
    await server.wait_closed()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await writer.drain()
    writer.close()
