"""The webhook as the API server meets it: HTTPS and AdmissionReviews."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from typer.testing import CliRunner

from quietus.app import SystemClock
from quietus.cli import app
from quietus.inject.certificates import make
from quietus.inject.pods import patched
from quietus.inject.renewal import Files
from quietus.inject.server import BODY_MAX, InjectorServer, Places
from tests.inject.making import SETTINGS, asked, patch_of, pod

HERE = ("127.0.0.1", 0)


class Webhook:
    """A real server, asked as the API server asks: with its CA, by its name."""

    def __init__(self, server: InjectorServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session
        self.url = f"https://localhost:{server.port}/inject"

    async def ask(self, review: Any) -> dict[str, Any]:
        async with self.session.post(self.url, json=review) as answer:
            assert answer.status == 200
            whole = await answer.json()
        assert (whole["apiVersion"], whole["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = whole["response"]
        return response

    async def page(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.probes_port}{path}"
        async with self.session.get(url) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    clock = SystemClock()
    pair = make(["localhost"], clock.now(), 5)
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    server = InjectorServer(SETTINGS, Files(cert, key), Places(HERE, HERE), clock, structlog.get_logger())
    await server.start()
    context = ssl.create_default_context(cadata=pair.ca.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        yield Webhook(server, session)
    await server.stop()


@pytest.mark.requirement("R200")
async def test_a_labelled_pod_is_patched(webhook: Webhook) -> None:
    response = await webhook.ask(asked(pod(), "u-7"))
    assert (response["uid"], response["allowed"]) == ("u-7", True)
    made = patched(pod(), patch_of(response))
    assert made["spec"]["initContainers"][0]["image"] == SETTINGS.image
    again = await webhook.ask(asked(made))
    assert again == {"uid": "u-1", "allowed": True}


async def test_an_unlabelled_pod_is_left_alone(webhook: Webhook) -> None:
    assert await webhook.ask(asked(pod(labelled=False))) == {"uid": "u-1", "allowed": True}
    assert await webhook.ask(asked(pod(), operation="DELETE")) == {"uid": "u-1", "allowed": True}
    assert await webhook.ask(asked({}, kind="Deployment")) == {"uid": "u-1", "allowed": True}


async def test_forgery_and_the_hosts_network_are_refused(webhook: Webhook) -> None:
    forged = pod({**pod()["metadata"]["annotations"], "quietus.io/status": "injected"})
    for found in (
        forged,
        pod(hostNetwork=True),
        {"metadata": {"labels": {"quietus.io/inject": "enabled"}}},
        None,
        7,
    ):
        response = await webhook.ask(asked(found))
        assert response["allowed"] is False
        assert response["status"]["code"] == 403
        assert response["status"]["message"].startswith("quietus: ")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"[" * 100_000, b'{"apiVersion":"admission.k8s.io/v1"}',
     b'{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u"}}',
     b'{"apiVersion":"admission.k8s.io/v1","request":{"uid":7}}', b"\xff\xfe"],
    ids=range(8),
)  # fmt: skip
async def test_what_is_no_review_is_told_so(webhook: Webhook, body: bytes) -> None:
    async with webhook.session.post(webhook.url, data=body) as answer:
        assert answer.status == 400
        assert "Traceback" not in await answer.text()
    assert (await webhook.ask(asked(pod())))["allowed"], "it goes on"


async def test_a_review_beyond_all_bounds_is_not_read(webhook: Webhook) -> None:
    async with webhook.session.post(webhook.url, data=b" " * (BODY_MAX + 1)) as answer:
        assert answer.status == 413


async def test_a_thousand_in_a_row(webhook: Webhook) -> None:
    first = patch_of(await webhook.ask(asked(pod())))
    for number in range(10):
        answers = await asyncio.gather(*(webhook.ask(asked(pod(), f"u-{number}-{n}")) for n in range(100)))
        assert [each["uid"] for each in answers] == [f"u-{number}-{n}" for n in range(100)]
        assert all(patch_of(each) == first for each in answers)
    _, text = await webhook.page("/metrics")
    assert 'quietus_injections_total{outcome="injected"} 1001.0' in text
    assert 'quietus_injections_total{outcome="refused"} 0.0' in text
    assert "quietus_injector_certificate_expiry_timestamp_seconds 1." in text


async def test_probes_say_how_it_is(webhook: Webhook) -> None:
    for path in ("/healthz", "/startupz", "/readyz"):
        assert (await webhook.page(path))[0] == 200


async def test_offline_prints_what_the_webhook_makes(webhook: Webhook, tmp_path: Path) -> None:
    file, config = tmp_path / "pod.yaml", tmp_path / "injector.yaml"
    file.write_text(json.dumps(pod()))
    config.write_text(SETTINGS.model_dump_json(by_alias=True))
    told = CliRunner().invoke(app, ["inject", "-f", str(file), "--config", str(config)])
    assert told.exit_code == 0, told.output
    import yaml

    assert yaml.safe_load(told.stdout) == patched(pod(), patch_of(await webhook.ask(asked(pod()))))
