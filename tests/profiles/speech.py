"""What the profile tests say over and over: requests and replies in few words."""

from __future__ import annotations

import json
from typing import Any

from quietus.core.exchange import Reply, Request
from quietus.profiles.loader import parse_profile
from quietus.profiles.profile import Profile

JSON = (("Content-Type", "application/json"),)


def asked(method: str, target: str, body: Any = None, headers: tuple[tuple[str, str], ...] = JSON) -> Request:
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, target, headers, data)


def replied(body: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = JSON) -> Reply:
    return Reply(status, headers, body if isinstance(body, bytes) else json.dumps(body).encode())


def profile(routes: str, rest: str = "", store: str = "{}") -> Profile:
    """A profile of these routes (YAML, a flow or an indented block), with the least that it needs."""
    return parse_profile(f"""
apiVersion: quietus/v1
kind: Profile
name: tried
store: {store}
routes:
{routes}
surfaces:
  - {{name: record, kind: primary, each: key, http: {{method: GET, path: "/m/{{key}}"}}}}
  - {{name: backups, kind: unprobeable}}
{rest}
""")


def texts(answered: Any) -> set[tuple[int | None, str]]:
    return set(answered.scalars())
