"""The life of erasures as CloudEvents, posted to an address of the operator's, in the order of the ledger.

The ledger is the queue: what has been delivered is one number in a small file, so that nothing piles up in
memory and a restart goes on where it was. Delivery is at least once; the id of an event is always the same.
Signed as Standard Webhooks 1.0 has it. An event refused for `GIVE_UP` is left out, counted and logged.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any, Final, Protocol

import aiohttp

from quietus.core.events import Event, EventType
from quietus.erasures import Erasures
from quietus.key_file import KeysRefused
from quietus.patience import within
from quietus.ports import LedgerError
from quietus.recording import Log, Measures
from quietus.views import stamp

GIVE_UP: Final = 24 * 3600.0
"""Seconds after which an event that nobody takes is left out."""
TIMEOUT: Final = 10.0
SLOWEST: Final = 300.0
"""Seconds between two attempts at most; they begin at one and double."""
SECRET_MIN: Final = 24
"""Characters of a secret at least, as Standard Webhooks asks."""
TOLD: Final = frozenset({
    EventType.REQUESTED, EventType.SNAPSHOTTED, EventType.ACCEPTED, EventType.REFUSED, EventType.UNCLEAR,
    EventType.CLEAN, EventType.LEAKED, EventType.LEAKED_LATE, EventType.OVERDUE, EventType.RETRIED,
    EventType.RELEASED, EventType.READMITTED, EventType.ESCALATED, EventType.EXTENDED, EventType.HELD,
    EventType.HOLD_LIFTED, EventType.DEFERRED, EventType.OVERRIDDEN, EventType.QUARANTINED,
    EventType.QUARANTINE_LIFTED, EventType.WATCH_ENDED,
})  # fmt: skip
"""Kinds of events that are told; rounds and remedies stay in the ledger."""
_DIGESTS: Final = frozenset({"predicate", "scope", "intent", "commitment", "token", "terms"})
"""Facts that are not told: they are long, and nothing to whoever has no key."""


class Post(Protocol):
    """Sends one body. Raises nothing: None when there was no answer."""

    async def __call__(self, body: bytes, headers: dict[str, str]) -> int | None:
        """The status of the answer."""


class Webhook:
    """Tells one address."""

    def __init__(
        self,
        erasures: Erasures,
        post: Post,
        secret: bytes,
        position: Path | None,
        metrics: Measures,
        log: Log,
    ) -> None:
        """`position` is where the number of the newest delivered event is kept; None: in memory."""
        self._erasures = erasures
        self._post = post
        self._secret = secret
        self._position = position
        self._metrics = metrics
        self._log = log
        self._clock = erasures.clock
        self._told = 0
        self._more = asyncio.Event()
        erasures.listen(lambda _erasure, _event: self._more.set())

    async def run(self) -> None:
        """Tells what happens until cancelled. The first time of all it begins at the ledger's head."""
        self._told = self._known()
        while True:
            self._more.clear()
            try:
                async for event in self._erasures.events(after=self._told):
                    if event.type in TOLD:
                        await self._tell(event)
                    self._keep(event.number)
            except LedgerError:
                self._log.error("webhook_ledger")
                await self._clock.sleep(1.0)
                continue
            await self._wait()

    async def _wait(self) -> None:
        # Orders belong to no erasure, and nobody is told of them here: they are looked for.
        await within(self._clock, self._more, 30.0)

    async def _tell(self, event: Event) -> None:
        body = json.dumps(cloud_event(event, self._erasures.store), separators=(",", ":")).encode()
        began, wait = self._clock.monotonic(), 1.0
        while True:
            status = await self._post(body, self._headers(event, body))
            if status is not None and 200 <= status < 300:
                self._metrics.count("webhook_events", outcome="delivered")
                return
            self._metrics.count("webhook_events", outcome="failed")
            if status == 410 or self._clock.monotonic() - began >= GIVE_UP:
                self._metrics.count("webhook_events", outcome="left_out")
                self._log.error("webhook_left_out", number=event.number)
                return
            await self._clock.sleep(wait)
            wait = min(wait * 2, SLOWEST)

    def _headers(self, event: Event, body: bytes) -> dict[str, str]:
        name, at = _id(event), str(int(self._clock.now()))
        signed = f"{name}.{at}.".encode() + body
        value = base64.b64encode(hmac.digest(self._secret, signed, hashlib.sha256)).decode()
        return {
            "Content-Type": "application/cloudevents+json; charset=utf-8", "webhook-id": name,
            "webhook-timestamp": at, "webhook-signature": f"v1,{value}",
        }  # fmt: skip

    def _known(self) -> int:
        if self._position is None:
            return self._erasures.number
        try:
            return int(self._position.read_text(encoding="ascii"))
        except FileNotFoundError:
            self._keep(self._erasures.number)
            return self._erasures.number
        except ValueError:
            self._log.error("webhook_position_damaged")
            return self._erasures.number

    def _keep(self, number: int) -> None:
        self._told = number
        if self._position is None:
            return
        part = self._position.with_name(self._position.name + ".part")
        try:
            part.write_text(str(number), encoding="ascii")
            os.replace(part, self._position)
        except OSError:
            self._log.error("webhook_position_not_kept")


def cloud_event(event: Event, store: str) -> dict[str, Any]:
    """An event of the ledger as a CloudEvent 1.0: no identifier and no text is in it."""
    facts = {name: value for name, value in event.facts.items() if name not in _DIGESTS}
    return {
        "specversion": "1.0",
        "id": _id(event),
        "source": f"/quietus/{store}",
        "type": f"quietus.{'erasure' if event.erasure else 'order'}.{event.type.value}",
        **({"subject": event.erasure} if event.erasure else {}),
        "time": stamp(event.at),
        "datacontenttype": "application/json",
        "data": {"number": event.number, "actor": event.actor, "facts": facts},
    }


def _id(event: Event) -> str:
    # The hash of the chain: the same after a restart, another in another ledger.
    return f"ev_{event.number}_{event.hash[:16]}"


def secret_bytes(text: str) -> bytes:
    """The key in a secret: `whsec_` and base64 as Standard Webhooks has it, or the text itself.

    Raises KeysRefused when it is too short to be a secret, or says that it is base64 and is not.
    """
    if len(text) < SECRET_MIN:
        raise KeysRefused(f"the webhook's secret is shorter than {SECRET_MIN} characters; make a longer one")
    if not text.startswith("whsec_"):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise KeysRefused("the webhook's secret begins with whsec_ and is not base64 after it") from None


async def tell(
    url: str, secret: bytes, position: Path | None, erasures: Erasures, metrics: Measures, log: Log
) -> None:
    """Tells an address of everything from now on, until cancelled. Redirects are not followed."""
    limit = aiohttp.ClientTimeout(total=TIMEOUT)
    async with aiohttp.ClientSession(timeout=limit) as session:

        async def post(body: bytes, headers: dict[str, str]) -> int | None:
            try:
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                    return answer.status
            except (aiohttp.ClientError, TimeoutError, OSError):
                return None

        await Webhook(erasures, post, secret, position, metrics, log).run()
