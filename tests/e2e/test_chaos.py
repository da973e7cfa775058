"""What fails between the sidecar and the store: down, reset, cut, silent. Nothing is sent twice."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.e2e.between import BAY, BOB, FORGET, LONG, READ, WRITE, Parts
from tests.e2e.process import Quietus, request, shipped
from tests.harness.chaos import Toxic

# --- the store is down, or goes away ---------------------------------------------------------------

TOXICS = {
    "reset before": (Toxic(reset_before=True), 0),
    "reset within": (Toxic(reset_within=30), 0),
    "dropped answer": (Toxic(drop_answer=True), 1),
    "no answer": (Toxic(swallow_answer=True), 1),
    "cut head": (Toxic(cut_after=20), 1),
    "cut body": (Toxic(cut_after=190), 1),
    "closed within the body": (Toxic(close_after=190), 1),
}


@pytest.mark.case(100)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST"])
@pytest.mark.parametrize("name", [n for n in TOXICS if n not in ("cut body", "closed within the body")])
def test_one_attempt_whatever_the_method(parts: Parts, name: str, method: str) -> None:
    toxic, arrives = TOXICS[name]
    line = f"{method} /v1/memories/bob-00001"
    parts.far.use(toxic, line)
    answer = parts.call(line, BOB if method in ("PUT", "PATCH", "POST") else None)
    # Once bytes have gone, a method that may change something is not said to have done nothing.
    expected = 504 if method in ("PUT", "PATCH", "POST") else 502
    assert answer.status == expected and b"Basel" not in answer.body
    assert parts.far.count(line) == 1, "sent once"
    assert parts.receipts(line) == arrives


async def test_the_proxy_sees_who_sends_twice(parts: Parts) -> None:
    """The control: a client library that sends idempotent requests again is counted twice."""
    async with aiohttp.ClientSession() as session:
        url = parts.far.url + "/v1/memories/bob-00001"
        async with session.get(url) as answer:
            await answer.read()
        parts.far.use(Toxic(drop_answer=True), READ)
        with pytest.raises(aiohttp.ClientError):
            await session.get(url)
    assert (parts.far.count(READ), parts.receipts(READ)) == (2, 3)


@pytest.mark.parametrize("name", TOXICS)
def test_a_recall_gives_nothing_away_in_part(parts: Parts, name: str) -> None:
    toxic, arrives = TOXICS[name]
    parts.far.use(toxic, READ)
    answer = parts.call(READ)
    assert answer.status == 502 and answer.json["type"].endswith("upstream-unavailable")
    assert answer.headers["retry-after"] and b"Basel" not in answer.body
    assert (parts.far.count(READ), parts.receipts(READ)) == (1, arrives)
    parts.far.use()
    assert parts.call(READ).json["value"] == BOB["value"]


@pytest.mark.parametrize("name", [n for n in TOXICS if n not in ("cut body", "closed within the body")])
def test_the_outcome_of_a_write_is_unknown_and_it_is_not_sent_again(parts: Parts, name: str) -> None:
    toxic, arrives = TOXICS[name]
    subject = parts.subject()
    parts.far.use(toxic, WRITE)
    body = {"key": f"{subject}-b", "value": f"A second one of {subject}", "tenant": BAY,
            "retention": {"subject": subject}}  # fmt: skip
    answer = parts.call(WRITE, body)
    assert answer.status == 504 and answer.json["type"].endswith("outcome-unknown")
    assert (parts.far.count(WRITE), parts.receipts(WRITE)) == (1, arrives)


@pytest.mark.case(100, 104)
@pytest.mark.requirement("R43", "R144")
@pytest.mark.parametrize("name", [n for n in TOXICS if n not in ("cut body", "closed within the body")])
@pytest.mark.parametrize("line", [FORGET, "DELETE /v1/memories/"])
def test_a_forget_without_an_answer_is_taken_up_again(parts: Parts, name: str, line: str) -> None:
    toxic, _ = TOXICS[name]
    subject = parts.subject()
    if line != FORGET:
        line += f"{subject}-a?tenant={BAY}"
    parts.far.use(toxic, line)
    answer = parts.call(line, {"subject": subject, "tenant": BAY} if line == FORGET else None)
    assert answer.status == 504 and answer.json["type"].endswith("outcome-unknown")
    erasure = answer.headers["quietus-erasure"].split(";")[0].strip('"')
    assert "state=requested" in answer.headers["quietus-erasure"] and answer.headers["retry-after"]
    read = parts.call(f"GET /v1/memories/{subject}-a?tenant={BAY}")
    assert read.status in (404, 409) and b"painting" not in read.body
    sent = parts.far.count(line)
    view = parts.sidecar.office(f"/v1/erasures/{erasure}")
    assert view["policy_phase"] == "none" and not view["may_assert_erasure"]
    assert 1 <= sent <= view["upstream_calls"], "every attempt stands in the ledger before it is made"
    parts.far.use()
    settled = parts.sidecar.until("settled", erasure)
    assert parts.far.count(line) >= 1, "taken up again under the same erasure"
    assert settled["upstream_calls"] >= 2 and settled["client_calls"] == 1
    assert parts.store.store.holds(f"{subject} owns") == frozenset()


def test_the_store_is_down(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    profile = shipped("memory-tool", tmp_path, settling_interval="1s", effectuation_bound="60s")
    sidecar = Quietus(tmp_path, f"http://127.0.0.1:{port}", str(profile)).start()
    try:
        for line, body in ((READ, None), ("POST /v1/recall", {"query": "x"}), (WRITE, BOB)):
            method, _, path = line.strip().partition(" ")
            answer = sidecar.call(method, path, body)
            assert answer.status == 502 and answer.headers["retry-after"], "nothing was sent"
        forget = sidecar.call("POST", "/v1/forget", {"subject": "alice"})
        assert forget.status == 504 and "state=requested" in forget.headers["quietus-erasure"]
        assert sidecar.call("POST", "/v1/recall", {"query": "x", "subject": "alice"}).status == 409
        assert request("GET", sidecar.admin + "/readyz").status == 200
    finally:
        assert sidecar.stop() == 0


# --- a cut answer never looks complete ---------------------------------------------------------------


def _ask(url: str, body: Any, accept: str) -> tuple[int, bytes, bool]:
    """(status, body so far, whether it came to its proper end)"""
    parts = urlsplit(url)
    wire = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    try:
        headers = {"Content-Type": "application/json", "Accept": accept}
        wire.request("POST", "/v1/recall", json.dumps(body), headers)
        answer = wire.getresponse()
        try:
            return answer.status, answer.read(), True
        except http.client.IncompleteRead as cut:
            return answer.status, cut.partial, False
        except OSError:
            return answer.status, b"", False
    finally:
        wire.close()


CUTS = [Toxic(cut_after=2000), Toxic(close_after=2000), Toxic(cut_after=2000, slice=7)]


@pytest.mark.parametrize("toxic", CUTS)
@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_a_cut_stream_is_cut_for_the_client_too(parts: Parts, toxic: Toxic, accept: str) -> None:
    parts.store.store.put(LONG, key="long-0001", tenant="long", subject="zoe")
    body = {"query": "word1", "tenant": "long"}
    whole = _ask(parts.sidecar.data, body, accept)
    assert whole[0] == 200 and whole[2] and b"word3999" in whole[1]
    parts.far.use(toxic, "POST /v1/recall")
    status, received, complete = _ask(parts.sidecar.data, body, accept)
    assert b"word3999" not in received
    assert status != 200 or not complete
    assert parts.far.count("POST /v1/recall") == 1
