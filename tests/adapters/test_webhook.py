"""The webhook: every event of an erasure's life once and in order, signed, through refusals and restarts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from quietus.adapters.webhook import GIVE_UP, Webhook, secret_bytes, tell
from quietus.core.events import EventType
from quietus.core.states import State
from quietus.key_file import KeysRefused
from tests.admin.desk import Desk, opened
from tests.world import Silent

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdefghijklmn").decode()


class Counted:
    """Counts what was counted."""

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = f"{name}/{labels.get('outcome', '')}"
        self.counts[key] = self.counts.get(key, 0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        raise AssertionError("nothing is observed here")


class Taker:
    """An address that takes events, or refuses them as long as `answers` lasts."""

    def __init__(self) -> None:
        self.answers: list[int | None] = []
        self.got: list[tuple[dict[str, Any], dict[str, str]]] = []

    async def __call__(self, body: bytes, headers: dict[str, str]) -> int | None:
        answer = self.answers.pop(0) if self.answers else 200
        if answer is not None and 200 <= answer < 300:
            self.got.append((json.loads(body), headers))
        return answer

    @property
    def types(self) -> list[str]:
        return [event["type"] for event, _ in self.got]


class Running:
    """A webhook at work on a desk's ledger."""

    def __init__(self, desk: Desk, taker: Taker, position: Path | None = None) -> None:
        self.counted = Counted()
        hook = Webhook(desk.erasures, taker, secret_bytes(SECRET), position, self.counted, Silent())
        self.task = asyncio.ensure_future(hook.run())
        self.desk = desk

    async def settle(self, seconds: float = 0.0) -> None:
        await self.desk.clock.advance(seconds)
        await self.desk.clock.settle()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_an_erasure_is_told_in_order_and_nobody_is_named() -> None:
    desk, taker = await opened(), Taker()
    running = Running(desk, taker)
    await running.settle()
    await desk.erasure(State.SETTLED, subject="alice", tenant="acme")
    await running.settle()
    assert taker.types == ["quietus.erasure.requested", "quietus.erasure.accepted", "quietus.erasure.clean"]
    for event, headers in taker.got:
        body = json.dumps(event, separators=(",", ":")).encode()
        assert b"alice" not in body and b"acme" not in body and b"predicate" not in body
        assert event["specversion"] == "1.0" and event["subject"] == "er_001"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = hmac.digest(secret_bytes(SECRET), signed, hashlib.sha256)
        assert headers["webhook-signature"] == "v1," + base64.b64encode(wanted).decode()
    assert len({headers["webhook-id"] for _, headers in taker.got}) == 3
    await running.stop()


async def test_refusals_are_tried_again_more_and_more_slowly() -> None:
    desk, taker = await opened(), Taker()
    running = Running(desk, taker)
    await running.settle()
    taker.answers = [None, 500, 302]
    await desk.erasure(State.REQUESTED)
    await running.settle(2.9)
    assert taker.got == [] and running.counted.counts["webhook_events/failed"] == 2
    await running.settle(5.0)
    assert taker.types == ["quietus.erasure.requested"]
    assert running.counted.counts == {"webhook_events/failed": 3, "webhook_events/delivered": 1}
    await running.stop()


async def test_what_nobody_takes_for_a_day_is_left_out_and_what_follows_is_told() -> None:
    desk, taker = await opened(), Taker()
    running = Running(desk, taker)
    await running.settle()
    taker.answers = [503] * 10_000
    await desk.erasure(State.SETTLING)
    await running.settle(GIVE_UP + 600.0)
    assert running.counted.counts["webhook_events/left_out"] == 1
    taker.answers = []
    await running.settle(600.0)
    assert taker.types == ["quietus.erasure.accepted"]
    await running.stop()


async def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    desk, taker = await opened(), Taker()
    place = tmp_path / "told"
    running = Running(desk, taker, place)
    await running.settle()
    await desk.erasure(State.SETTLING)
    await running.settle()
    await running.stop()
    await desk.event("er_001", EventType.OVERDUE)
    again = Running(desk, taker, place)
    await again.settle()
    assert taker.types == [
        "quietus.erasure.requested", "quietus.erasure.accepted", "quietus.erasure.overdue",
    ]  # fmt: skip
    await again.stop()


async def test_over_a_real_socket() -> None:
    desk, got = await opened(), asyncio.Event()
    seen: list[Any] = []

    async def take(request: web.Request) -> web.Response:
        seen.append((await request.json(), request.content_type))
        got.set()
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", take)
    async with TestServer(app) as server:
        where, secret = str(server.make_url("/hook")), secret_bytes(SECRET)
        work = tell(where, secret, None, desk.erasures, Counted(), Silent())
        task = asyncio.ensure_future(work)
        await desk.clock.settle()
        await desk.erasure(State.REQUESTED)
        await asyncio.wait_for(got.wait(), 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert seen[0][0]["type"] == "quietus.erasure.requested" and seen[0][1] == "application/cloudevents+json"


@pytest.mark.parametrize("text", ["", "short", "whsec_", "whsec_!!!!notbase64!!!!!!!!!!"])
def test_a_bad_secret_is_refused(text: str) -> None:
    with pytest.raises(KeysRefused, match="secret"):
        secret_bytes(text)
