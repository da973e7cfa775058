"""The webhook of a real sidecar: what happens is told over a socket; a bad secret refuses the start."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, shipped
from tests.e2e.stores import Served

SECRET = "a secret of more than twenty-four characters"  # noqa: S105
PATIENCE = 60.0


class Hook:
    """An address that keeps what it is told, and refuses the first delivery."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, Any], bytes, dict[str, str]]] = []
        self.refused = 0
        self.more = threading.Condition()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook.more:
                    first = not hook.refused
                    hook.refused += first
                    if not first:
                        hook.got.append((json.loads(body), body, dict(self.headers)))
                    hook.more.notify_all()
                self.send_response(503 if first else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"

    def types(self) -> list[str]:
        return [event["type"] for event, _, _ in self.got]

    def wait(self, kind: str) -> None:
        with self.more:
            assert self.more.wait_for(lambda: kind in self.types(), PATIENCE), self.types()


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def store() -> Iterator[Served]:
    served = Served(Faults())
    yield served
    served.close()


def sidecar(folder: Path, store: Served, hook: Hook, secret: str) -> Quietus:
    (folder / "secret").write_text(secret)
    profile = shipped("memory-tool", folder, settling_interval="1s", effectuation_bound="60s")
    settings = {"limits": {"probe_rate_per_second": 200},
                "webhook": {"url": hook.url, "secret": {"file": str(folder / "secret")}}}  # fmt: skip
    return Quietus(folder, store.url, str(profile), settings)


@pytest.mark.timeout(180)
def test_what_happens_is_told_and_goes_on_after_a_kill(tmp_path: Path, store: Served, hook: Hook) -> None:
    running = sidecar(tmp_path, store, hook, SECRET).start()
    texts = {"alice": "keeps the spare key under the third pot", "bob": "takes the early train to the coast"}
    for who, text in texts.items():
        body = {"key": f"m-{who}", "value": text, "retention": {"subject": who}}
        assert running.call("POST", "/v1/memories", body).status == 201
    assert running.call("POST", "/v1/forget", {"subject": "alice"}).status == 202
    hook.wait("quietus.erasure.clean")
    assert hook.refused == 1, "the first was refused, and sent again"
    running.kill()
    running.start()
    assert running.call("POST", "/v1/forget", {"subject": "bob"}).status == 202
    with hook.more:
        assert hook.more.wait_for(lambda: hook.types().count("quietus.erasure.clean") >= 2, PATIENCE)
    numbers = [event["data"]["number"] for event, _, _ in hook.got]
    assert numbers == sorted(numbers), "in the order of the ledger"
    for _, raw, headers in hook.got:
        assert b"alice" not in raw and b"third pot" not in raw
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
        wanted = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{wanted}"
    assert running.stop() == 0


def test_a_bad_secret_refuses_the_start(tmp_path: Path, store: Served, hook: Hook) -> None:
    with pytest.raises(AssertionError, match="secret is shorter"):
        sidecar(tmp_path, store, hook, "short").start()
