"""What fails between the client and the sidecar: slow pieces, cut requests, clients that do not wait."""

from __future__ import annotations

import http.client
import json
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.between import BAY, BOB, FORGET, READ, WRITE, Parts
from tests.e2e.process import request
from tests.harness.chaos import CLEAN, Toxic

GONE = (http.client.HTTPException, OSError)

# --- slow, but sound ------------------------------------------------------------------------------------

SLOW = [Toxic(latency=0.05), Toxic(bandwidth=20000, slice=50), Toxic(slice=1), Toxic(slow_close=0.2), CLEAN]


@pytest.mark.parametrize("side", ["near", "far"])
@pytest.mark.parametrize("toxic", SLOW)
def test_slow_pieces_make_the_same_answer(parts: Parts, side: str, toxic: Toxic) -> None:
    direct = request("GET", parts.store.url + "/v1/memories/bob-00001")
    getattr(parts, side).use(toxic, READ)
    through = request("GET", parts.near.url + "/v1/memories/bob-00001")
    assert (through.status, through.body) == (direct.status, direct.body)
    assert parts.far.count(READ) == 1


# --- the client goes away ----------------------------------------------------------------------------


def _leave(url: str, line: str, body: Any, when: Any) -> None:
    """Sends a request, waits for `when`, and resets the connection."""
    parts = urlsplit(url)
    data = json.dumps(body).encode()
    head = f"{line.strip()} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
    head += f"\r\nContent-Length: {len(data)}"
    with socket.create_connection((parts.hostname or "", parts.port or 80), timeout=20) as wire:
        wire.sendall(f"{head}\r\n\r\n".encode() + data)
        when()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.case(133)
def test_a_forget_whose_client_is_gone_is_carried_through(parts: Parts) -> None:
    subject = parts.subject()
    parts.far.use(Toxic(latency=0.3), FORGET)
    _leave(parts.near.url, FORGET, {"subject": subject, "tenant": BAY}, lambda: parts.far.came(FORGET))
    again = parts.call(FORGET, {"subject": subject, "tenant": BAY})
    assert again.status == 202 and again.json == {"status": "erased", "keys": 1}, "the first one's answer"
    erasure = again.headers["quietus-erasure"].split(";")[0].strip('"')
    assert parts.sidecar.until("settled", erasure)["upstream_calls"] == 1
    assert (parts.far.count(FORGET), parts.receipts(FORGET)) == (1, 1)


def test_a_write_whose_client_is_gone_lands_once_and_is_known(parts: Parts) -> None:
    subject = parts.subject()
    body = {"key": f"{subject}-b", "value": f"A later note of {subject}", "tenant": BAY,
            "retention": {"subject": subject}}  # fmt: skip
    parts.far.use(Toxic(latency=0.3), WRITE)
    _leave(parts.near.url, WRITE, body, lambda: parts.far.came(WRITE))
    forget = parts.call(FORGET, {"subject": subject, "tenant": BAY})
    assert forget.status == 202 and forget.json["keys"] == 2, "it was waited for before the forget went on"
    assert (parts.far.count(WRITE), parts.receipts(WRITE)) == (1, 1)


def test_a_recall_whose_client_is_gone_is_given_up_towards_the_store(parts: Parts) -> None:
    parts.far.use(Toxic(swallow_answer=True), "POST /v1/recall")
    _leave(parts.near.url, "POST /v1/recall", {"query": "x"}, lambda: parts.far.came("POST /v1/recall"))
    parts.far.abandoned()
    assert parts.far.count("POST /v1/recall") == 1


@pytest.mark.parametrize("line", [WRITE, FORGET])
def test_a_request_cut_on_its_way_in_is_none(parts: Parts, line: str) -> None:
    before = len(parts.sidecar.erasures())
    parts.near.use(Toxic(reset_within=170), line)
    body = {"subject": "nobody-at-all", "scope": "x" * 200} if line == FORGET else {**BOB, "key": "cut-00001"}
    with pytest.raises(GONE):
        request("POST", parts.near.url + line.strip().partition(" ")[2], body)
    assert parts.call(READ).status == 200
    assert (parts.far.count(line), parts.receipts(line)) == (0, 0)
    assert len(parts.sidecar.erasures()) == before


def test_a_client_that_half_closes_has_its_forget_done_once(parts: Parts) -> None:
    subject = parts.subject()
    parts.near.use(Toxic(half_close=True), FORGET)
    parts.far.use(CLEAN, FORGET)
    try:
        answer = request("POST", parts.near.url + "/v1/forget", {"subject": subject, "tenant": BAY})
        assert answer.status == 202
    except GONE:
        parts.far.came(FORGET)
    again = parts.call(FORGET, {"subject": subject, "tenant": BAY})
    assert again.status == 202
    assert parts.receipts(FORGET) == 1
