"""The scripted agent of the demo: a client of the memory tool that knows no sidecar.

It speaks the same words to the store directly and through the sidecar; only the address differs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import ClientSession, ClientTimeout

TENANT: Final = "acme"
PATIENCE: Final = ClientTimeout(total=15)


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer, as the agent got it."""

    status: int
    headers: Mapping[str, str]
    text: str
    code: str = ""
    """Of gRPC: the name of its status code."""

    @property
    def said(self) -> str:
        """The status, as it is told to people."""
        return self.code or f"status {self.status}"

    @property
    def document(self) -> dict[str, Any]:
        """The answer's JSON object; empty where it is none."""
        try:
            document = json.loads(self.text)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The memories in it."""
        results = self.document.get("results")
        return [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []

    def tells(self, marks: tuple[str, ...]) -> bool:
        """Whether any of these words stands anywhere in it."""
        return any(mark in self.text for mark in marks)

    def rows_telling(self, marks: tuple[str, ...]) -> list[dict[str, Any]]:
        """The memories in which any of these words stands."""
        return [row for row in self.rows if any(mark in str(row.get("value")) for mark in marks)]


class Agent:
    """An assistant with a memory somewhere behind `url`."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def remember(self, key: str, text: str, subject: str) -> Heard:
        """Writes a memory about `subject`."""
        retention = {"subject": subject, "purpose": "assistance"}
        return await self._send(
            "POST", "/v1/memories", {"tenant": TENANT, "key": key, "value": text, "retention": retention}
        )

    async def recall(self, query: str, subject: str | None = None) -> Heard:
        """Asks its memory, about one person or across the whole tenant."""
        body = {"query": query, "tenant": TENANT, **({} if subject is None else {"subject": subject})}
        return await self._send("POST", "/v1/recall", body)

    async def read(self, key: str) -> Heard:
        """Reads one memory by its key."""
        return await self._send("GET", f"/v1/memories/{key}?tenant={TENANT}")

    async def forget(self, subject: str) -> Heard:
        """Passes on that somebody wants to be forgotten."""
        return await self._send(
            "POST", "/v1/forget", {"tenant": TENANT, "subject": subject, "basis": "gdpr_art17"}
        )

    async def _send(self, method: str, target: str, body: Any = None) -> Heard:
        async with self._session.request(method, self._url + target, json=body, timeout=PATIENCE) as reply:
            return Heard(reply.status, reply.headers.copy(), await reply.text())


class Office:
    """What a privacy officer asks the sidecar's admin API."""

    def __init__(self, session: ClientSession, url: str, token: str) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}

    async def erasure(self, erasure: str) -> dict[str, Any]:
        """How it stands with an erasure; empty when the admin API does not say."""
        async with self._session.get(
            f"{self._url}/v1/erasures/{erasure}", headers=self._headers, timeout=PATIENCE
        ) as reply:
            return Heard(reply.status, reply.headers.copy(), await reply.text()).document
