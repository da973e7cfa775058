"""TLS of our listeners and towards the store: files that are renewed while the sidecar runs.

What holds is the last set of files that fits together. A renewal makes a context of its own rather than adding
to the one in use: an authority or a certificate that is withdrawn is then withdrawn here too.
"""

# ruff: noqa: E501 -- one setting a line, as in `settings`
from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr


@dataclass(frozen=True, slots=True)
class Pems:
    """What the files held, byte for byte, when they were taken over; None where no file is named or it is gone."""

    cert: bytes | None
    key: bytes | None
    authority: bytes | None


class _Changed(OSError):
    """The files changed while they were read; what was read may be half of each."""


class _Tls(BaseModel, ABC):
    model_config = ConfigDict(extra="forbid", frozen=True)

    _listening: list[Callable[[], None]] = PrivateAttr(default_factory=list)
    _held: list[tuple[Pems, ssl.SSLContext]] = PrivateAttr(default_factory=list)

    @abstractmethod
    def _files(self) -> tuple[Path | None, Path | None, Path | None]:
        """Certificate, key and authority."""

    @abstractmethod
    def _make(self) -> ssl.SSLContext:
        """A context of what the files hold now. Raises OSError, ssl.SSLError."""

    def on_disk(self) -> Pems:
        """What the files hold now."""
        return Pems(*map(_bytes, self._files()))

    def held(self) -> tuple[Pems, ssl.SSLContext]:
        """What is in use; read now where nothing is yet. Raises OSError, ssl.SSLError."""
        if not self._held:
            self._held.append(self._read())
        return self._held[-1]

    def renew(self) -> None:
        """Takes over what the files hold now, and tells whoever listens. Raises OSError, ssl.SSLError."""
        self._held[:] = [self._read()]  # what does not fit must not spoil what is in use
        for each in self._listening:
            each()

    def listen(self, told: Callable[[], None]) -> None:
        """Calls `told` after each renewal."""
        self._listening.append(told)

    def _read(self) -> tuple[Pems, ssl.SSLContext]:
        before = self.on_disk()
        made = self._make()
        if self.on_disk() != before:
            raise _Changed("the files changed while they were read")
        return before, made


class ListenerTls(_Tls):
    """TLS of our own listener."""

    cert: Path = Field(description="certificate chain that the listener shows, PEM")
    key: Path = Field(description="its key, PEM")
    client_ca: Path | None = Field(default=None, description="CA that clients' certificates must come from")

    def context(self, protocols: Iterable[str] = ()) -> ssl.SSLContext:
        """A context for a server, which shows and trusts what holds at each handshake.

        `protocols` are offered by ALPN. Raises OSError, ssl.SSLError.
        """
        offered = list(protocols)
        door = self._make()
        self.held()

        def at_handshake(connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
            connection.context = self.held()[1]

        door.sni_callback = at_handshake  # called without a name too
        if offered:
            door.set_alpn_protocols(offered)
            self.held()[1].set_alpn_protocols(offered)
            self.listen(lambda: self.held()[1].set_alpn_protocols(offered))
        return door

    def _files(self) -> tuple[Path | None, Path | None, Path | None]:
        return self.cert, self.key, self.client_ca

    def _make(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        made.load_cert_chain(self.cert, self.key)
        if self.client_ca is not None:
            made.load_verify_locations(self.client_ca)
            made.verify_mode = ssl.CERT_REQUIRED
            # A session that is resumed shows no certificate: one that is withdrawn would go on being let in.
            made.num_tickets = 0
            made.options |= ssl.OP_NO_TICKET
        return made


class UpstreamTls(_Tls):
    """TLS towards the store."""

    ca: Path | None = Field(default=None, description="CA of the store's certificate; the system's when not given")
    cert: Path | None = Field(default=None, description="our certificate, where the store asks for one")
    key: Path | None = Field(default=None, description="its key; `cert` holds it when not given")

    def context(self) -> ssl.SSLContext:
        """The context for a client that holds now. Raises OSError, ssl.SSLError."""
        return self.held()[1]

    def _files(self) -> tuple[Path | None, Path | None, Path | None]:
        return self.cert, self.key, self.ca

    def _make(self) -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
        if self.cert is not None:
            made.load_cert_chain(self.cert, self.key)
        return made


def _bytes(path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError:
        return None
