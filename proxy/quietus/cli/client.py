"""A small client of the admin API: one request a connection, nothing read from the environment."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from quietus.admin.tokens import TokenRefused, read_token
from quietus.settings import address

ANSWER_MAX: Final = 64 << 20


class Answered(Exception):
    """The admin API said no: a problem, in its own words."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        text = problem.get("detail") or problem.get("title") or f"it answered {status}"
        super().__init__(str(text))
        self.status = status


class Unreached(Exception):
    """Nobody answered; the message says what to look at."""


class Client:
    """Asks the admin API."""

    def __init__(self, listen: str, token_file: Path | None) -> None:
        self._host, self._port = address(listen)
        if token_file is None:
            raise TokenRefused("a ledger in memory keeps no token; give --token-file, or admin.token_file")
        self._token = read_token(token_file)

    def get(
        self, path: str, query: Mapping[str, str | None] | None = None, timeout: float = 15.0
    ) -> Any:
        """The JSON of a GET. Raises Answered, Unreached."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        return self._ask("GET", path + (f"?{urlencode(given)}" if given else ""), None, timeout)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """The JSON of a POST. Raises Answered, Unreached."""
        return self._ask("POST", path, json.dumps(body).encode(), 15.0)

    def delete(self, path: str, body: dict[str, Any]) -> None:
        """A DELETE with its reason. Raises Answered, Unreached."""
        self._ask("DELETE", path, json.dumps(body).encode(), 15.0)

    def page(self, path: str) -> str:
        """What a GET gives for people to read. Raises Answered, Unreached."""
        return str(self._ask("GET", path, None, 15.0, "text/html"))

    def _ask(
        self, method: str, target: str, body: bytes | None, timeout: float, accept: str = "application/json"
    ) -> Any:
        headers = {
            "Authorization": f"Bearer {self._token}", "Content-Type": "application/json", "Accept": accept,
        }  # fmt: skip
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            status, raw = answer.status, answer.read(ANSWER_MAX)
        except (OSError, http.client.HTTPException):
            where = f"{self._host}:{self._port}"
            raise Unreached(f"no sidecar answers on {where}; is it running? See --admin, --config") from None
        finally:
            connection.close()
        if status < 400 and accept != "application/json":
            return raw.decode()
        if status == 204:
            return None
        try:
            found = json.loads(raw)
        except ValueError:
            raise Unreached("what answered there is not the admin API of a sidecar; see --admin") from None
        if status >= 400:
            raise Answered(status, found if isinstance(found, dict) else {})
        return found


def erasure_path(erasure: str, act: str = "") -> str:
    """The path of an erasure, or of an act on it."""
    return f"/v1/erasures/{quote(erasure, safe='')}{act}"
