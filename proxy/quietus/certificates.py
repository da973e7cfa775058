"""Certificates and CAs that are renewed while the sidecar runs: their files are looked at, and used from the
next handshake on; connections to the store that stand are closed when what they carry has ended. A pair that
does not fit is refused, and the one that holds stays.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509

from quietus.ports import Clock
from quietus.settings import ListenerTls, Settings, UpstreamTls

EVERY: Final = 30.0
"""Seconds between two looks at the files."""


class Gauge(Protocol):
    """Where the end of a certificate is told."""

    def set(self, name: str, value: float, **labels: str) -> None:
        """Sets the series of these labels."""


class Log(Protocol):
    """Where a change is told."""

    def info(self, event: str, **fields: object) -> object:
        """Tells that it was taken over."""

    def error(self, event: str, **fields: object) -> object:
        """Tells that it was not."""


def uses(settings: Settings) -> Iterator[tuple[str, ListenerTls | UpstreamTls]]:
    """Every use of TLS that the settings name: `http_listener`, `http_upstream`, and the same of gRPC."""
    for wire, given in (("http", settings.store.http), ("grpc", settings.store.grpc)):
        if given is not None and given.tls is not None:
            yield f"{wire}_listener", given.tls
        if given is not None and given.upstream_tls is not None:
            yield f"{wire}_upstream", given.upstream_tls


class Certificates:
    """Watches the files of all of them. Looks rather than listens: a few files, seldom changed."""

    def __init__(self, settings: Settings, metrics: Gauge, log: Log, clock: Clock) -> None:
        self._uses = list(uses(settings))
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._seen = {use: tls.held()[0] for use, tls in self._uses}
        for use, tls in self._uses:
            self._tell(use, tls.cert)

    async def run(self) -> None:
        """Looks again and again until cancelled."""
        while self._uses:
            await self._clock.sleep(EVERY)
            self.look()

    def look(self) -> int:
        """Takes over what has changed; how many were."""
        taken = 0
        for use, tls in self._uses:
            found = tls.on_disk()
            if found == self._seen[use]:
                continue
            try:
                tls.renew()
            except (OSError, ssl.SSLError) as error:
                # Not remembered: half of a change is whole at the next look.
                self._log.error("certificate_refused", kind=use, error=type(error).__name__)
                continue
            self._seen[use] = found
            self._tell(use, tls.cert)
            self._log.info("certificate_renewed", kind=use)
            taken += 1
        return taken

    def _tell(self, use: str, certificate: Path | None) -> None:
        if certificate is None:
            return
        try:
            ends = min(
                each.not_valid_after_utc.timestamp()
                for each in x509.load_pem_x509_certificates(certificate.read_bytes())
            )
        except (OSError, ValueError):
            return
        self._metrics.set("certificate_expiry_timestamp_seconds", ends, use=use)
