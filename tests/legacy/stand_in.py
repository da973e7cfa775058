"""A stand-in for the sidecar, just enough for the demo's story; it can be told to fail in one way.

It shows that the story judges answers: the real sidecar is held to the same story elsewhere.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

from aiohttp import ClientSession, web

from quietus.legacy.demo import Sidecar
from quietus.legacy.story import MARKS

ERASURE = '"er_01";state=settling;verdict=unconfirmed;epoch=1;assurance=policy_only'


class StandIn:
    """Passes requests on; after a forget it refuses, screens, and settles when the store is clean."""

    def __init__(self, *, fails: str = "") -> None:
        self._fails = fails
        self._upstream = ""
        self._forgotten = False
        self._settled = False
        self._stack = AsyncExitStack()

    async def __call__(self, upstream: str) -> Sidecar:
        self._upstream = upstream
        self._session = await self._stack.enter_async_context(ClientSession())
        runner = web.ServerRunner(web.Server(self._answer))
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        url = f"http://{host}:{port}"
        return Sidecar(url, url, "token", self._stack.aclose)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.startswith("/v1/erasures/"):
            return web.json_response(await self._erasure())
        body = await request.read()
        document = json.loads(body) if body else {}
        subject = document.get("subject") or (document.get("retention") or {}).get("subject")
        if self._forgotten and not self._settled and subject == "alice" and request.path != "/v1/forget":
            return self._refusal(request.path)
        async with self._session.request(
            request.method, self._upstream + request.raw_path, data=body, headers={"User-Agent": "agent"}
        ) as reply:
            text, status, headers = await reply.text(), reply.status, {}
        if request.path == "/v1/forget":
            self._forgotten = True
            status, headers = 202, {"Quietus-Erasure": ERASURE}
        elif self._forgotten and request.path == "/v1/recall":
            text, headers = self._screened(text), {"Quietus-Candidate-Set": "contaminated"}
        return web.Response(text=text, status=status, headers=headers, content_type="application/json")

    def _refusal(self, path: str) -> web.Response:
        if path == "/v1/recall" and self._fails == "answers inside":
            return web.json_response({"results": []})
        return web.json_response({"reason": "ERASURE_EPOCH_NOT_SETTLED", "detail": "not settled"}, status=409)

    def _screened(self, text: str) -> str:
        rows = json.loads(text)["results"]
        if self._fails != "leaks when wide":
            rows = [row for row in rows if not any(mark in row["value"] for mark in MARKS)]
        if self._fails == "drops bystanders":
            rows = []
        return json.dumps({"results": rows})

    async def _erasure(self) -> dict[str, object]:
        ask = {"query": "contact details", "tenant": "acme"}
        async with self._session.post(f"{self._upstream}/v1/recall", json=ask) as reply:
            text = await reply.text()
        clean = not any(mark in text for mark in MARKS)
        self._settled = self._settled or (clean and self._fails != "never settles")
        return {
            "state": "settled" if self._settled else "leaking",
            "verdict": "partial",
            "may_assert_non_recallability": self._settled,
            "through": ["record", "list", "search"] if self._settled else [],
            "surfaces": [{"name": "backups", "outcome": "OUT_OF_SCOPE"}],
        }
