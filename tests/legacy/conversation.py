"""How the tests talk to a legacy store: as a client that knows nothing but the wire."""

from __future__ import annotations

import gzip
import json
from typing import Any

from quietus.core.exchange import Reply, Request
from quietus.legacy.faults import Faults
from quietus.legacy.store import LegacyStore
from tests.virtual_clock import VirtualClock

ALICE = "Alice Moreau lives at 14 Quai Voltaire and her number is 0655 501 234"
BOB = "Bob Keller prefers the morning train to Basel"
AGENT = (("User-Agent", "agent/1"),)


class Talk:
    """One conversation with a store on a virtual clock."""

    def __init__(self, faults: Faults | None = None, seed: int = 7, **more: Any) -> None:
        self.clock = VirtualClock()
        self.store = LegacyStore(self.clock, seed, faults or Faults(), **more)

    def send(self, method: str, target: str, body: Any = None, headers: Any = AGENT) -> Reply:
        content = b"" if body is None else json.dumps(body).encode()
        return self.store.handle(Request(method, target, headers, content))

    def ask(self, method: str, target: str, body: Any = None, headers: Any = AGENT) -> Any:
        content = self.send(method, target, body, headers).body
        return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)

    def write(self, value: str, subject: str | None = "alice", **more: Any) -> dict[str, Any]:
        retention = {name: more.pop(name) for name in ("purpose", "ttl") if name in more}
        if subject is not None:
            retention["subject"] = subject
        answer: dict[str, Any] = self.ask(
            "POST", "/v1/memories", {"tenant": "acme", "value": value, "retention": retention, **more}
        )
        return answer

    def recall(
        self, query: str = "contact details for alice", headers: Any = AGENT, **more: Any
    ) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ask(
            "POST", "/v1/recall", {"query": query, "tenant": "acme", **more}, headers
        )["results"]
        return rows

    def listed(self, headers: Any = AGENT, **query: str) -> list[dict[str, Any]]:
        pairs = "&".join(f"{name}={value}" for name, value in {"tenant": "acme", **query}.items())
        rows: list[dict[str, Any]] = self.ask("GET", f"/v1/memories?{pairs}", headers=headers)["results"]
        return rows

    def forget(self, subject: str = "alice", **more: Any) -> dict[str, Any]:
        body = {"tenant": "acme", "subject": subject, **more} if subject else {"tenant": "acme", **more}
        answer: dict[str, Any] = self.ask("POST", "/v1/forget", body)
        return answer

    def status(self, key: str) -> int:
        return self.send("GET", f"/v1/memories/{key}?tenant=acme").status

    def two_people(self) -> None:
        """Alice says one thing, Bob another."""
        self.write(ALICE, key="a1")
        self.write(BOB, "bob", key="b1")


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return [row["key"] for row in rows]


def subjects(rows: list[dict[str, Any]]) -> set[str | None]:
    return {row["subject"] for row in rows}


def tells(rows: Any, text: str = ALICE) -> bool:
    """Whether an answer repeats a text anywhere."""
    return text in json.dumps(rows, ensure_ascii=False)
