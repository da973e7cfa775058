"""Agents: each makes one call, takes its answer at its own pace, or goes away."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any
from urllib.parse import quote, urlencode

from quietus.answers import Answer
from quietus.core.exchange import Request, header
from quietus.gateway import Gateway
from quietus.ports import UpstreamError
from tests.simulation.calls import Released
from tests.simulation.judge import Judge
from tests.simulation.network import STEP
from tests.simulation.plan import Step, sentence
from tests.simulation.rows import Read, read, tokens_of
from tests.simulation.virtual import Time

NONE: frozenset[str] = frozenset()


def request_of(step: Step) -> Request:
    """The request that a step of the plan makes."""
    do, number = step["do"], step["n"]
    headers: list[tuple[str, str]] = [("Host", "store"), ("User-Agent", "agent/1"), (STEP, str(number))]
    scope = {name: step[name] for name in ("tenant", "subject") if name in step}
    if "path" in step:
        scope["scope"] = step["path"]
    method, target, body = "POST", "", None
    if do == "write":
        retention = {"subject": step["subject"]}
        retention |= {name: step[name] for name in ("purpose", "ttl") if name in step}
        body = {"tenant": step["tenant"], "value": sentence(step), "retention": retention}
        body |= {"key": step["key"]} if "key" in step else {}
        body |= {"scope": step["path"]} if "path" in step else {}
        body |= {"derived_from": [step["derived_from"]]} if "derived_from" in step else {}
        target = "/v1/memories"
    elif do == "recall":
        target, body = "/v1/recall", {"query": step["query"], "top_k": 5, **scope}
        if step.get("sse"):
            headers.append(("Accept", "text/event-stream"))
    elif do == "forget":
        target = "/v1/forget"
        body = scope | ({"keys": step["keys"]} if "keys" in step else {})
        if step.get("wait"):
            headers.append(("Prefer", f"wait={step['wait']}"))
    elif do == "list":
        method, target = "GET", f"/v1/memories?{urlencode(scope | {'limit': '6'})}"
    elif do == "export":
        method, target = "GET", "/v1/export" + (f"?{urlencode(scope)}" if scope else "")
    else:
        method = "DELETE" if do == "delete" else "GET"
        tail = "/history" if do == "history" else ""
        tenant = f"?{urlencode({'tenant': step['tenant']})}" if "tenant" in step else ""
        target = f"/v1/memories/{quote(step['key'])}{tail}{tenant}"
    if body is None:
        return Request(method, target, tuple(headers))
    headers.append(("Content-Type", "application/json"))
    return Request(method, target, tuple(headers), json.dumps(body).encode())


class Client:
    """One call."""

    def __init__(self, time: Time, judge: Judge, gateway: Gateway, step: Step, counts: Counter[str]) -> None:
        self._time = time
        self._judge = judge
        self._gateway = gateway
        self._step = step
        self._counts = counts
        self._call = judge.begins(step)

    async def live(self) -> None:
        """Makes the call and takes the answer, if it waits for it."""
        caller = f"step-{self._step['n']}"
        handling = asyncio.ensure_future(self._gateway.handle(request_of(self._step), caller))
        if "patience" in self._step:
            timer = asyncio.ensure_future(self._time.sleep(self._step["patience"]))
            await asyncio.wait({handling, timer}, return_when=asyncio.FIRST_COMPLETED)
            timer.cancel()
            if not handling.done():
                handling.cancel()
                self._counts["gone away"] += 1
                return
        await self._take(await handling)

    # --- taking an answer ------------------------------------------------------------------------

    async def _take(self, answer: Answer) -> None:
        try:
            if isinstance(answer.body, bytes):
                await self._whole(answer, answer.body)
            else:
                await self._stream(answer, answer.body)
        finally:
            answer.done()

    async def _whole(self, answer: Answer, body: bytes) -> None:
        if answer.overtaken.is_set():
            self._counts["aborted"] += 1
            return
        content = read(answer.headers, body)
        slowly = self._step.get("reads_slowly", 0.0)
        if not slowly:
            self._released(answer, content, _all(content), whole=True)
            return
        half = tokens_of(body[: len(body) // 2].decode("utf-8", "replace"))
        self._released(answer, content, half, whole=False)
        if not await self._goes_on(answer, slowly):
            return
        self._released(answer, content, _all(content) - half, whole=False)
        self._released(answer, content, NONE, whole=True)

    async def _stream(self, answer: Answer, body: Any) -> None:
        slowly = self._step.get("reads_slowly", 0.0) / 4
        taken = b""
        left: set[str] = set()
        try:
            async for piece in body:
                if answer.overtaken.is_set():
                    raise UpstreamError("aborted", sent=True)
                taken += piece
                part = read(answer.headers, piece)
                self._released(answer, part, _all(part), whole=False)
                left |= _all(part)
                if slowly and not await self._goes_on(answer, slowly):
                    return
            content = read(answer.headers, taken)
            self._released(answer, content, _all(content) - left, whole=True)
        except UpstreamError:
            self._counts["broken off"] += 1
        finally:
            await body.aclose()

    async def _goes_on(self, answer: Answer, seconds: float) -> bool:
        """The client takes its time; False when the connection was aborted meanwhile."""
        timer = asyncio.ensure_future(self._time.sleep(seconds))
        overtaken = asyncio.ensure_future(answer.overtaken.wait())
        try:
            await asyncio.wait({timer, overtaken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            overtaken.cancel()
        if answer.overtaken.is_set():
            self._counts["aborted"] += 1
            return False
        return True

    def _released(self, answer: Answer, content: Read, tokens: frozenset[str], *, whole: bool) -> None:
        out = Released(answer.status, answer.headers, content, tokens, _problem(answer))
        self._judge.released(self._call, out, whole=whole)


def _all(content: Read) -> frozenset[str]:
    found = set(content.loose)
    for row in content.rows:
        found |= row.tokens
    return frozenset(found)


def _problem(answer: Answer) -> str:
    kind = header(answer.headers, "content-type") or ""
    if not kind.startswith("application/problem+json") or not isinstance(answer.body, bytes):
        return ""
    return str(json.loads(answer.body).get("type", "")).rpartition(":")[2]
