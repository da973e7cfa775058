"""The same wire under TLS, on either side."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quietus.adapters.http import HttpListener
from quietus.adapters.http_client import HttpUpstream, UpstreamLimits
from quietus.core.exchange import Request
from quietus.ports import UpstreamError
from tests.adapters.wires import AsClient, Line, PassThrough, Store, Told, digest, get, post


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's, the one trusted by the other."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "store")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin - datetime.timedelta(days=7300))
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))


async def test_both_sides_speak_tls(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    server_side, client_side = contexts
    store = Store()
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0, ssl=server_side)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    upstream = HttpUpstream(url, tls=client_side)
    handler = PassThrough(upstream)
    listener = HttpListener(handler, digest, tls=server_side)
    await listener.start("127.0.0.1", 0)
    line = Line(*await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_side))
    for _ in range(3):
        await line.send(post(b"{}" * 100_000))
        assert (await line.answer())[0] == 200
    assert store.connections == 1 and store.received[0].body == b"{}" * 100_000

    async def large(request: Request) -> Told:
        return Told(200, (), b"x" * 20_000_000)

    handler.answer = large
    await line.send(get())
    assert len((await line.answer())[2]) == 20_000_000
    line.close()
    await listener.close()
    await upstream.close()
    server.close()
    store.drop_all()


async def test_a_store_that_nobody_vouches_for_is_not_spoken_to(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    store = Store()
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0, ssl=contexts[0])
    upstream = HttpUpstream(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(UpstreamError) as caught:
        await upstream.open(Request("GET", "/"), AsClient())
    assert not caught.value.sent and not store.received
    server.close()


async def test_a_client_that_does_not_shake_hands_holds_no_place(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    listener = HttpListener(PassThrough(), digest, tls=contexts[0])
    await listener.start("127.0.0.1", 0)
    line = Line(*await asyncio.open_connection("127.0.0.1", listener.port))
    await line.send(get())
    assert b"HTTP" not in await asyncio.wait_for(line.rest(), 10)
    assert not listener.connections
    line.close()
    await listener.close()


async def test_a_server_without_tls_is_not_taken_for_one() -> None:
    store = Store()
    server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
    upstream = HttpUpstream(
        f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", limits=UpstreamLimits(connect=0.3)
    )
    with pytest.raises(UpstreamError) as caught:
        await upstream.open(Request("GET", "/"), AsClient())
    assert not caught.value.sent
    server.close()
    store.drop_all()
