"""The few calls to the Kubernetes API that keep the webhook's certificate: a Secret, and the webhook's CA."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import aiohttp

from quietus.inject.certificates import Pair

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT: Final = aiohttp.ClientTimeout(total=20)
_HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


class ClusterRefused(Exception):
    """The API server did not do as it was asked; the message says what, and what to look at."""


class Outrun(Exception):
    """Another replica was faster; what it wrote counts."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The Secret as it was read. `pair` is None while nothing is in it."""

    pair: Pair | None
    document: dict[str, Any]


class Cluster:
    """The API server, spoken to with the pod's own token, which is read anew for each call: it rotates."""

    def __init__(self, url: str, account: Path = ACCOUNT) -> None:
        """`url` is `https://HOST:PORT`. Raises ClusterRefused where the account's files are missing."""
        self._url = url.rstrip("/")
        self._token = account / "token"
        try:
            context = ssl.create_default_context(cafile=str(account / "ca.crt"))
            self._token.read_bytes()
        except (OSError, ssl.SSLError):
            raise ClusterRefused(
                f"no token and CA of a service account lie in {account}: run in a pod that has one, or give "
                "--cert and --key"
            ) from None
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=4), timeout=_TIMEOUT
        )

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def secret(self, namespace: str, name: str) -> Kept:
        """What is kept. Raises ClusterRefused."""
        document = await self._call("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        data = document.get("data") or {}
        try:
            parts = [base64.b64decode(data[key], validate=True) for key in ("tls.crt", "tls.key", "ca.crt")]
        except (KeyError, ValueError, TypeError):
            return Kept(None, document)
        return Kept(Pair(*parts), document)

    async def keep(self, namespace: str, name: str, kept: Kept, pair: Pair) -> None:
        """Puts a new pair where `kept` was read. Raises Outrun, ClusterRefused."""
        parts = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.ca}
        data = {key: base64.b64encode(text).decode() for key, text in parts.items()}
        # With the version that was read: of two replicas one is told that it was outrun.
        document = {**kept.document, "data": data}
        await self._call("PUT", f"/api/v1/namespaces/{namespace}/secrets/{name}", document)

    async def authorities(self, webhook: str) -> bytes:
        """The CAs that the API server accepts for the webhook, PEM. Raises ClusterRefused."""
        document = await self._call("GET", f"{_HOOKS}/{webhook}")
        try:
            return base64.b64decode(document["webhooks"][0]["clientConfig"].get("caBundle") or "")
        except (KeyError, IndexError, TypeError, ValueError):
            raise ClusterRefused(f"the webhook {webhook} has not the form that the chart gives it") from None

    async def accept(self, webhook: str, authorities: bytes) -> None:
        """Lets the API server accept these CAs. Raises ClusterRefused."""
        bundle = base64.b64encode(authorities).decode()
        patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        await self._call("PATCH", f"{_HOOKS}/{webhook}", patch, "application/json-patch+json")

    async def _call(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> dict[str, Any]:
        try:
            bearer = f"Bearer {self._token.read_text().strip()}"
            headers = {"Authorization": bearer, "Accept": "application/json"}
            if body is not None:
                headers["Content-Type"] = kind
            async with self._session.request(method, self._url + path, json=body, headers=headers) as answer:
                if answer.status == 409:
                    raise Outrun
                if answer.status >= 300:
                    raise ClusterRefused(
                        f"the API server answered {answer.status} to {method} {path}: look at the injector's "
                        "Role and ClusterRole"
                    )
                found = await answer.json()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ClusterRefused(f"the API server cannot be asked ({type(error).__name__})") from None
        if not isinstance(found, dict):
            raise ClusterRefused(f"the API server's answer to {method} {path} is no object")
        return found
