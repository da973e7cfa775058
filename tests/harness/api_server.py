"""An API server of Kubernetes over HTTPS, as far as the two reviews go; it can misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.harness.papers import Paper, paper

OWN = "the-service-accounts-own-token"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ApiServer:
    """Knows tokens and what their users may; keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.account = folder / "account"
        self.account.mkdir()
        self.own = OWN
        self.users: dict[str, dict[str, Any]] = {}
        """The user of each token that is good, and the audiences that it is meant for."""
        self.rules: dict[str, set[str]] = {}
        """The verbs that each user may."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        """A response for a path in place of the true one."""
        self.hold: asyncio.Event | None = None
        """Answers wait for it."""
        self.url = ""
        self._runner: web.AppRunner | None = None
        self.wear(paper("api-server"))

    def wear(self, shown: Paper) -> None:
        """Shows a certificate from the next start on, and puts its CA where the account looks."""
        self._shown = shown
        for name, text in (("token", self.own), ("namespace", "agents"), ("ca.crt", shown.cert.decode())):
            (self.account / name).write_text(text)

    def user(self, token: str, name: str, *verbs: str, audience: str = "quietus") -> None:
        """A token that is good, and what its user may."""
        self.users[token] = {"name": name, "audience": audience}
        self.rules[name] = set(verbs)

    def count(self, path: str) -> int:
        """How often one of the two was asked."""
        return sum(1 for asked, _ in self.asked if asked == path)

    async def start(self, port: int = 0) -> None:
        """Listens."""
        app = web.Application()
        app.router.add_post(TOKENS, self._answer)
        app.router.add_post(ACCESS, self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        context = self._shown.server(self.folder)
        await web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=context).start()
        self.url = f"https://127.0.0.1:{self._runner.addresses[0][1]}"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def stop(self) -> None:
        """Is away."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        document = await request.json()
        self.asked.append((request.path, document))
        if self.hold is not None:
            await self.hold.wait()
        if request.path in self.answers:
            answer = self.answers[request.path]
            return answer() if callable(answer) else web.json_response(answer, status=201)
        if request.headers.get("Authorization") != f"Bearer {self.own}":
            return web.json_response({"kind": "Status", "status": "Failure", "code": 401}, status=401)
        reviewed = self._token(document) if request.path == TOKENS else self._access(document)
        return web.json_response({**document, "status": reviewed}, status=201)

    def _token(self, document: dict[str, Any]) -> dict[str, Any]:
        spec = document["spec"]
        found = self.users.get(spec["token"])
        if found is None or found["audience"] not in spec["audiences"]:
            return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
        user = {"username": found["name"], "uid": "7", "groups": ["system:authenticated"],
                "extra": {"authentication.kubernetes.io/pod-name": ["p"]}}  # fmt: skip
        return {"authenticated": True, "user": user, "audiences": [found["audience"]]}

    def _access(self, document: dict[str, Any]) -> dict[str, Any]:
        spec = document["spec"]
        wanted = spec["resourceAttributes"]
        known = (wanted["group"], wanted["resource"], wanted["namespace"], wanted["name"])
        allowed = known == ("quietus.io", "erasures", "agents", "memories")
        return {"allowed": allowed and wanted["verb"] in self.rules.get(spec["user"], ())}


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[ApiServer]:
    """One that serves until the block ends."""
    made = ApiServer(folder)
    await made.start()
    try:
        yield made
    finally:
        if made.hold is not None:
            made.hold.set()
        await made.stop()
