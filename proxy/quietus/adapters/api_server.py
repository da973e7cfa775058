"""The API server of a Kubernetes cluster, asked to create the objects by which it answers questions.

The account's token and the CA are read anew when their files change: both rotate. Nothing of an answer is
believed beyond its form, and neither the token nor the answer's words go into an error.
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any, Final

import aiohttp

ANSWER_MAX: Final = 256 * 1024
CONNECTIONS_MAX: Final = 8


class ApiServerAway(Exception):
    """The API server gave no answer that can be used; `cause` says why in one word that is safe to log."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the API server gave no answer that can be used: {cause}")
        self.cause = cause


class AccountMissing(OSError):
    """The files of a service account are not there; the message says what to do."""


class ApiServer:
    """Speaks with the service account's own token."""

    def __init__(self, url: str, account: Path, timeout: float) -> None:
        """`url` is `https://HOST:PORT`; `timeout` is in seconds. Raises AccountMissing."""
        self._url = url.rstrip("/")
        self._token = account / "token"
        self._authority = account / "ca.crt"
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._trusted: tuple[bytes, ssl.SSLContext] | None = None
        self._session: aiohttp.ClientSession | None = None
        try:
            self._bearer()
            self._context()
        except (OSError, ValueError):
            raise AccountMissing(
                f"a service account's token and CA are not in {account}: mount them, or drop admin.reviews"
            ) from None

    async def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Creates an object and returns what came back. Raises ApiServerAway."""
        try:
            headers = {"Authorization": self._bearer(), "Accept": "application/json"}
            context = self._context()
        except (OSError, ValueError):
            raise ApiServerAway("account_unreadable") from None
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        try:
            async with self._session.post(
                self._url + path, json=document, headers=headers, ssl=context, allow_redirects=False
            ) as answer:
                if answer.status not in (200, 201):
                    raise ApiServerAway(f"status_{answer.status}")
                raw = await answer.content.read(ANSWER_MAX + 1)
                while len(raw) <= ANSWER_MAX and (more := await answer.content.read(ANSWER_MAX)):
                    raw += more
        except TimeoutError:
            raise ApiServerAway("no_answer_in_time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ApiServerAway(type(error).__name__) from None
        return _read(raw)

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()

    def _bearer(self) -> str:
        token = self._token.read_text(encoding="ascii").strip()
        if not token or len(token.split()) != 1:
            raise ValueError("no token")
        return f"Bearer {token}"

    def _context(self) -> ssl.SSLContext:
        authority = self._authority.read_bytes()
        if self._trusted is None or self._trusted[0] != authority:
            made = ssl.create_default_context(cadata=authority.decode("ascii"))
            self._trusted = (authority, made)
        return self._trusted[1]


def _read(raw: bytes) -> dict[str, Any]:
    if len(raw) > ANSWER_MAX:
        raise ApiServerAway("answer_too_large")
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise ApiServerAway("answer_unreadable") from None
    if not isinstance(found, dict):
        raise ApiServerAway("answer_unreadable")
    return found
