"""Planted identifiers and texts go down every path that can fail; none is found in what we keep or say."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest

from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, request, shipped
from tests.e2e.stores import Served

SUBJECT = "zq7781-marigold@example.org"
TEXT = "Marigold Quenby keeps the walnut harbour ledger number 99817"
SECRET = "zq-credential-5512-tangerine"
KEY = "zq-record-key-4401"
PLANTED = [SUBJECT, "marigold", "Quenby", "walnut harbour", SECRET, KEY, "99817"]


def _raw(url: str, data: bytes) -> bytes:
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as wire:
        wire.sendall(data)
        wire.settimeout(20)
        received = b""
        with contextlib.suppress(OSError):
            while piece := wire.recv(65536):
                received += piece
        return received


def _hits(data: bytes) -> list[str]:
    lower = data.lower()
    return [word for word in PLANTED if word.lower().encode() in lower]


@pytest.mark.timeout(180)
@pytest.mark.requirement("R205", "R41", "R80", "R198")
def test_nothing_planted_is_found(tmp_path: Path) -> None:
    store = Served(Faults())
    profile = shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="60s")
    settings = {"limits": {"probe_rate_per_second": 200, "request_bytes_max": 20000}}
    sidecar = Quietus(tmp_path, store.url, str(profile), settings).start()
    auth = {"Authorization": f"Bearer {SECRET}"}
    row = {"key": KEY, "value": TEXT, "retention": {"subject": SUBJECT}}
    said: list[bytes] = []

    def call(method: str, path: str, body: object = None) -> int:
        answer = sidecar.call(method, path, body, auth)
        if answer.status >= 400:
            said.append(answer.body + repr(answer.headers).encode())
        return answer.status

    assert call("POST", "/v1/memories", row) == 201
    assert (
        call(
            "POST",
            "/v1/memories",
            {**row, "key": "bob-1", "value": "Bob likes tea", "retention": {"subject": "bob"}},
        )
        == 201
    )  # noqa: E501
    assert call("POST", "/v1/forget", {"subject": SUBJECT}) == 202
    refused = [
        call("POST", "/v1/recall", {"query": TEXT, "subject": SUBJECT}),
        call("GET", f"/v1/memories/{KEY}"),
        call("POST", "/v1/memories", row),
        call("POST", "/v1/memories", {**row, "retention": {"subject": "bob"}}),
        call("POST", "/v1/recall", {"query": TEXT, "subject": [SUBJECT, "x"]}),
        call("POST", "/v1/recall", {"query": TEXT, "subject": {"id": SUBJECT}}),
        call("POST", "/v1/recall", f'{{"subject":"{SUBJECT}","subject":"{TEXT}"}}'.encode()),
        call("POST", "/v1/recall", f'{{"subject": {SUBJECT}'.encode()),
        call("POST", "/v1/recall", {"query": TEXT * 2000}),
        call("POST", "/v1/forget", {"keys": []}),
        call("GET", f"/v1/../{SUBJECT}"),
        call("GET", f"/v1/memories/{SUBJECT}%2F..%2F{KEY}"),
        call("GET", f"/.well-known/quietus/erasures/{SUBJECT}"),
    ]
    assert all(status >= 400 for status in refused), refused
    call("GET", f"/nowhere/{SUBJECT}?q={SECRET}")
    for head in (
        f"GET /{SUBJECT} HTTP/1.1\r\n\r\n",
        f"BREW /{KEY} HTTP/9.9\r\nHost: x\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: x\r\nX-{SECRET}\x00: {TEXT}\r\n\r\n",
        f"POST /v1/recall HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{SUBJECT}",
        f"GET /{TEXT} HTTP/1.1\r\nHost: {SUBJECT}\r\n\r\n",
    ):
        said.append(_raw(sidecar.data, head.encode()))
    for path in (
        f"/v1/erasures/{SUBJECT}",
        f"/v1/erasures?subject={SUBJECT}",
        f"/v1/{TEXT.replace(' ', '+')}",
    ):
        answer = request("GET", sidecar.admin + path, None, {"Authorization": f"Bearer {SECRET}"})
        assert answer.status == 401
        said.append(answer.body)
    sidecar.until("settled")
    found = sidecar.office(f"/v1/erasures?subject={SUBJECT}")
    assert len(found["erasures"]) == 1 and _hits(repr(found).encode()) == []
    sidecar.office("/v1/subjects:readmit", "POST", {"subject": SUBJECT, "reason": "they asked"})
    store.close()
    for method, path, body in (
        ("POST", "/v1/recall", {"query": TEXT}),
        ("POST", "/v1/memories", {**row, "key": f"{KEY}-2", "value": "something new"}),
        ("POST", "/v1/forget", {"subject": SUBJECT}),
    ):
        assert call(method, path, body) >= 500
    metrics = request("GET", f"{sidecar.admin}/metrics")
    status = sidecar.office("/v1/erasures")
    audit = request(
        "GET",
        f"{sidecar.admin}/v1/audit",
        None,
        {"Authorization": f"Bearer {(tmp_path / 'admin.token').read_text().strip()}"},
    )
    unmapped = sidecar.office("/v1/unmapped")
    kept = {
        path.name: path.read_bytes()
        for path in tmp_path.iterdir()
        if path.is_file() and path.name != profile.name
    }
    assert {"ledger.db", "ledger.db-wal", "log.jsonl"} <= set(kept)
    assert b"quietus_operations_total" in metrics.body and len(audit.body) > 500
    places = {
        **kept,
        "metrics": metrics.body,
        "erasures": repr(status).encode(),
        "audit": audit.body,
        "unmapped": repr(unmapped).encode(),
    }
    assert {name: _hits(data) for name, data in places.items() if _hits(data)} == {}
    assert [piece[:200] for piece in said if _hits(piece)] == []
    assert sidecar.stop() == 0
