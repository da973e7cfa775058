"""A certificate for the webhook, signed by a CA that lives as long: both are made anew together."""

from __future__ import annotations

import datetime as dt
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LEFT: Final = 1 / 3
"""Part of a certificate's life that is left when it is made anew."""
_SKEW: Final = 300.0
"""Seconds that the API server's clock may be behind ours."""


class CertificateRefused(Exception):
    """A certificate or key that cannot be used; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key and the CA that signed it, PEM."""

    certificate: bytes
    key: bytes
    ca: bytes

    def spans(self) -> tuple[float, float]:
        """From when until when it holds, in Unix seconds. Raises CertificateRefused."""
        try:
            found = x509.load_pem_x509_certificate(self.certificate)
            load_pem_private_key(self.key, None)
        except (ValueError, TypeError):
            raise CertificateRefused("the certificate or its key is not PEM; make the Secret anew") from None
        return found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp()

    def due(self, now: float) -> bool:
        """Whether it is time for a new one."""
        begins, ends = self.spans()
        return now >= ends - (ends - begins) * LEFT or now < begins

    def context(self) -> ssl.SSLContext:
        """A context for a server that shows it. Raises CertificateRefused."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        self.put_into(made)
        return made

    def put_into(self, context: ssl.SSLContext) -> None:
        """Lets a context show it from the next handshake on. Raises CertificateRefused."""
        with tempfile.TemporaryDirectory(prefix="quietus-tls-") as folder:
            # The library reads files only; the folder is this user's alone, and gone at once.
            file = Path(folder) / "pair.pem"
            file.touch(mode=0o600)
            file.write_bytes(self.key + b"\n" + self.certificate)
            try:
                context.load_cert_chain(file)
            except (ssl.SSLError, OSError):
                raise CertificateRefused("certificate and key do not fit; make the Secret anew") from None


def make(names: Sequence[str], now: float, days: int) -> Pair:
    """A CA, and a certificate of it for these names, for so many days from now."""
    begins = dt.datetime.fromtimestamp(now - _SKEW, dt.UTC)
    ends = dt.datetime.fromtimestamp(now, dt.UTC) + dt.timedelta(days=days)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quietus-injector-ca")])

    def begun(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder().subject_name(subject).issuer_name(ca_name).public_key(public)
            .serial_number(x509.random_serial_number()).not_valid_before(begins).not_valid_after(ends)
        )  # fmt: skip

    ca = (
        begun(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "quietus-injector")]), key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), False)
        .sign(ca_key, hashes.SHA256())
    )
    # The CA's key is kept nowhere: nothing else can ever be signed by it.
    return Pair(
        leaf.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ca.public_bytes(Encoding.PEM),
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, key_cert_sign=signs, crl_sign=False, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
