"""Recorded messages of real stores, and calls made of them as the wire would make them."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quietus.core.exchange import GRPC_STATUS, Reply, Request

BODIES = Path(__file__).parent / "bodies"


@dataclass(frozen=True)
class Exchange:
    """One call as it was recorded."""

    request: Request
    reply: Reply


@cache
def recorded(store: str) -> dict[str, Exchange]:
    """Every exchange with a store, by name."""
    return {
        one["name"]: Exchange(
            asked(one["method"], base64.b64decode(one["request"])),
            told(base64.b64decode(one["answer"]), one["code"], one["message"]),
        )
        for one in json.loads((BODIES / f"{store}.json").read_text(encoding="utf-8"))
    }


def asked(method: str, message: bytes = b"", **metadata: str) -> Request:
    return Request("POST", method, tuple(metadata.items()), message, "grpc")


def told(message: bytes = b"", code: str = "OK", said: str = "") -> Reply:
    return Reply(GRPC_STATUS[code], (), message, said, code)
