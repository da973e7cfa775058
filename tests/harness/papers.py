"""Certificates for tests: each vouches for itself, and is good for a server on 127.0.0.1 and for a client."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class Paper:
    """A certificate and its key, PEM. The certificate is its own CA."""

    cert: bytes
    key: bytes

    def put(self, folder: Path, cert: str = "cert.pem", key: str = "key.pem") -> None:
        """Writes both into a folder."""
        (folder / cert).write_bytes(self.cert)
        (folder / key).write_bytes(self.key)

    def server(self, folder: Path, clients: Paper | None = None) -> ssl.SSLContext:
        """A server's context; with `clients` it asks for a certificate that this one vouches for."""
        self.put(folder, "server.pem", "server.key")
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(folder / "server.pem", folder / "server.key")
        if clients is not None:
            made.load_verify_locations(cadata=clients.cert.decode())
            made.verify_mode = ssl.CERT_REQUIRED
        return made


def paper(name: str) -> Paper:
    """A new one, under a name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - datetime.timedelta(days=7300))
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(addresses, critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return Paper(
        made.public_bytes(pem), key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    )
