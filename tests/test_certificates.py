"""Certificates are renewed from their files, on a listener that serves."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry

from quietus.certificates import EVERY, Certificates, uses
from quietus.config import load
from quietus.inject.certificates import Pair, make
from quietus.metrics import Metrics
from tests.virtual_clock import VirtualClock


def write(folder: Path, pair: Pair) -> None:
    for name, text in (("crt", pair.certificate), ("key", pair.key), ("ca", pair.ca)):
        (folder / name).write_bytes(text)


@pytest.mark.requirement("R200")
async def test_a_renewed_certificate_is_shown_and_half_of_one_is_not(tmp_path: Path) -> None:
    old, new = make(["localhost"], time.time(), 5), make(["localhost"], time.time(), 9)
    write(tmp_path, old)
    files = {"cert": str(tmp_path / "crt"), "key": str(tmp_path / "key")}
    http = {
        "upstream": "https://localhost:1",
        "tls": files,
        "upstream_tls": {**files, "ca": str(tmp_path / "ca")},
    }
    settings = load(None, {"store.profile": "chroma", "store.http": http}, {})
    registry, clock = CollectorRegistry(), VirtualClock()
    certificates = Certificates(settings, Metrics(registry, "s"), structlog.get_logger(), clock)
    assert [use for use, _ in uses(settings)] == ["http_listener", "http_upstream"]
    assert settings.store.http is not None and settings.store.http.tls is not None
    context = settings.store.http.tls.context()
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

    def ends() -> float | None:
        name = "quietus_certificate_expiry_timestamp_seconds"
        return registry.get_sample_value(name, {"use": "http_listener"})

    assert (await trusted(old), certificates.look()) == (True, 0)
    assert ends() == old.spans()[1]
    (tmp_path / "crt").write_bytes(new.certificate)
    assert certificates.look() == 0, "the key is still the old one"
    assert await trusted(old)
    write(tmp_path, new)
    running = asyncio.ensure_future(certificates.run())
    await clock.advance(EVERY + 1)
    assert (await trusted(old), await trusted(new)) == (False, True)
    assert ends() == new.spans()[1]
    running.cancel()
    server.close()
    await server.wait_closed()
