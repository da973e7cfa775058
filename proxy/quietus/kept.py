"""A forget's request and the store's answer to it, as they are kept under the erasure's own key."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from quietus.core.exchange import Headers, Reply, Request

CREDENTIAL: Final = re.compile(
    r"authorization|cookie|token|secret|credential|password|session|signature|api-?key|access-?key",
    re.IGNORECASE,
)
"""Names of a client's headers that are not kept with its forget: a re-send carries the sidecar's own.
What makes a repeat recognisable to the store (an idempotency key, say) is kept."""


def kept_requests(requests: Sequence[Request]) -> bytes:
    """The requests without the client's credentials, as bytes to be sealed."""
    return json.dumps([_kept(request) for request in requests]).encode()


def _kept(request: Request) -> dict[str, Any]:
    headers = [pair for pair in request.headers if not CREDENTIAL.search(pair[0])]
    kept = {"method": request.method, "target": request.target, "headers": headers, "wire": request.wire}
    return {**kept, "body": request.body.hex()}


def requests_of(plain: bytes) -> list[Request]:
    """The inverse of `kept_requests`; a ledger of before holds a single one."""
    found = json.loads(plain)
    return [
        Request(
            raw["method"], raw["target"], _headers(raw["headers"]), bytes.fromhex(raw["body"]),
            raw.get("wire", "http"),
        )
        for raw in (found if isinstance(found, list) else [found])
    ]


def kept_reply(reply: Reply) -> bytes:
    """The answer, as bytes to be sealed."""
    kept = {"status": reply.status, "headers": reply.headers, "body": reply.body.hex()}
    if reply.code is not None:
        kept |= {"code": reply.code, "trailers": reply.trailers, "reason": reply.reason}
    return json.dumps(kept).encode()


def reply_of(plain: bytes) -> Reply:
    """The inverse of `kept_reply`."""
    raw = json.loads(plain)
    return Reply(
        raw["status"], _headers(raw["headers"]), bytes.fromhex(raw["body"]), raw.get("reason", ""),
        raw.get("code"), _headers(raw.get("trailers", [])),
    )  # fmt: skip


def _headers(raw: list[list[str]]) -> Headers:
    return tuple((str(name), str(value)) for name, value in raw)
