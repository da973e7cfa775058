"""gRPC under TLS: the listener, a client certificate, the store's side, and one port for both wires."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from grpc import aio

from tests.grpc_wire.echo import SERVICE, echoing, line, profile
from tests.grpc_wire.standing import sidecar


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """cert.pem and key.pem: self-signed, for 127.0.0.1, good for a server and a client."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin - datetime.timedelta(days=7300))
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    return folder


def credentials(pems: Path, own: bool = False) -> grpc.ChannelCredentials:
    cert, key = (pems / "cert.pem").read_bytes(), (pems / "key.pem").read_bytes()
    return grpc.ssl_channel_credentials(cert, key if own else None, cert if own else None)


async def ask(channel: aio.Channel) -> bytes:
    call: Any = channel.unary_unary(f"/{SERVICE}/Unary")
    answer: bytes = await call(line("bob", "text"), timeout=20)
    return answer


async def test_the_listener_wants_a_certificate_of_its_clients(tmp_path: Path, pems: Path) -> None:
    tls = {"cert": str(pems / "cert.pem"), "key": str(pems / "key.pem"), "client_ca": str(pems / "cert.pem")}
    async with (
        echoing() as echo,
        sidecar(tmp_path, echo.address, profile(tmp_path), store__grpc__tls=tls) as quietus,
    ):
        async with aio.secure_channel(quietus.grpc_address, credentials(pems, own=True)) as known:
            assert await ask(known) == line("bob", "text")
        for stranger in (
            aio.secure_channel(quietus.grpc_address, credentials(pems)),
            aio.insecure_channel(quietus.grpc_address),
        ):
            async with stranger as channel:
                with pytest.raises(aio.AioRpcError) as error:
                    await ask(channel)
                assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert len(echo.received) == 1


async def test_the_store_is_asked_under_tls(tmp_path: Path, pems: Path) -> None:
    pair = ((pems / "key.pem").read_bytes(), (pems / "cert.pem").read_bytes())
    server_side = grpc.ssl_server_credentials([pair], pair[1], True)
    upstream = {
        name: str(pems / f"{file}.pem") for name, file in (("ca", "cert"), ("cert", "cert"), ("key", "key"))
    }
    async with echoing(server_side) as echo:
        async with sidecar(
            tmp_path, echo.address, profile(tmp_path), store__grpc__upstream_tls=upstream
        ) as quietus:
            async with aio.insecure_channel(quietus.grpc_address) as channel:
                assert await ask(channel) == line("bob", "text")
        (tmp_path / "ledger.db").unlink()
        (tmp_path / "ledger.keys.json").unlink()
        async with sidecar(tmp_path, echo.address, profile(tmp_path)) as plain:
            async with aio.insecure_channel(plain.grpc_address) as channel:
                with pytest.raises(aio.AioRpcError):
                    await ask(channel)


async def test_one_port_under_tls_takes_both(tmp_path: Path, pems: Path) -> None:
    tls = {"cert": str(pems / "cert.pem"), "key": str(pems / "key.pem")}
    more: dict[str, Any] = {
        "store__grpc__tls": tls,
        "store__http__tls": tls,
        "store__http__listen": "127.0.0.1:0",
        "store__http__upstream": "http://127.0.0.1:1",
    }
    async with echoing() as echo, sidecar(tmp_path, echo.address, profile(tmp_path), **more) as quietus:
        async with aio.secure_channel(quietus.grpc_address, credentials(pems)) as channel:
            assert await ask(channel) == line("bob", "text")
        trust = ssl.create_default_context(cafile=str(pems / "cert.pem"))
        async with aiohttp.ClientSession() as session:
            async with session.get(f"https://{quietus.grpc_address}/healthz", ssl=trust) as answer:
                assert answer.status in (403, 502)  # HTTP was spoken; its store is not there
