"""Plays a transcript against a real sidecar process: what an agent says, what the store does, what comes.

A file is a list of transcripts: `name`, `title`, `cases` (numbers of failures from the field), `kinds`,
`faults` (switches of the legacy store), `sidecar` (what its process is started with; those that agree share
one), `only_http` (why it is not played over gRPC), and `play`, a list of steps. A step has one verb:

  write     {key: [subject, text, {more}]}: written through the sidecar
  call      "METHOD /path" through the sidecar; the tenant is added by the player
  direct    the same to the store itself, past the sidecar
  erasure   waits until the newest forget's erasure is in that state
  store     {advance: SECONDS} moves the store's clock, {restart: true} restarts it
  script    {"METHOD /path": [{status, headers, body}]}: the store's next answers there; it does nothing then
  operator  {act: release|retry|verify|escalate} on the erasure, {readmit: SUBJECT}, {signal: EPOCH}
  received  what the store got: counts by "METHOD /path" (`at most N` too), or `targets` verbatim
  metrics   {name: {labels: {…}, least: N}}: the process is shared, so only a least can be said

`racing` says that a probe may change what is decided of the call meanwhile: the wires are not compared there.
A text `+N` in a body stands for a text of N words. Beside the verb stand
expectations beside it: status, headers (a part of each, or null), keys (of the rows, in order), json (a
subset), has and lacks (texts in head or body), length (the body is as long as its head says).
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from quietus.core.exchange import Reply
from quietus.legacy.faults import Faults
from tests.e2e.process import Quietus, Response, request
from tests.transcripts.town import House, Town

FOLDER = Path(__file__).parent
VERBS = ("write", "call", "direct", "erasure", "store", "script", "operator", "received",
         "metrics")  # fmt: skip


@dataclass(frozen=True)
class Transcript:
    """One file."""

    name: str
    title: str
    cases: tuple[int, ...]
    kinds: tuple[str, ...]
    faults: dict[str, Any]
    sidecar: dict[str, Any]
    play: tuple[dict[str, Any], ...]
    rows: tuple[str, ...]
    """Requirements that would fail without what it shows."""
    only_http: str = ""
    """Why it cannot be played over gRPC; empty where it can."""

    @property
    def group(self) -> str:
        """Transcripts of one group share a process."""
        return json.dumps(self.sidecar, sort_keys=True)


def load() -> list[Transcript]:
    """Every transcript of this folder."""
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        for document in yaml.safe_load(path.read_text()):
            name = f"{path.stem}-{document['name']}"
            found.append(
                Transcript(name, document["title"], tuple(document["cases"]), tuple(document["kinds"]),
                           document.get("faults", {}), document.get("sidecar", {}), tuple(document["play"]),
                           tuple(document.get("rows", ())), document.get("only_http", ""))
            )  # fmt: skip
    return found


class Played:
    """One transcript being played."""

    def __init__(
        self, transcript: Transcript, sidecar: Quietus | None, town: Town, rpc: Any = None
    ) -> None:
        self.transcript = transcript
        self._sidecar = sidecar
        self.data = town.url if sidecar is None else sidecar.data
        self.town = town
        self.tenant = transcript.name
        self.house: House = town.settle(self.tenant, Faults(**transcript.faults))
        self.erasure_id = ""
        self.told: list[tuple[str, str]] = []
        """What came of each call through the sidecar: its line, and what was decided."""

    @property
    def sidecar(self) -> Quietus:
        assert self._sidecar is not None
        return self._sidecar

    def close(self) -> None:
        """Nothing is open between two calls over HTTP."""

    def play(self) -> None:
        """Every step. Raises AssertionError that names the step."""
        for number, step in enumerate(self.transcript.play, 1):
            verb = next((verb for verb in VERBS if verb in step), None)
            assert verb is not None, f"step {number}: no verb in {step}"
            try:
                getattr(self, f"_{verb}")(step[verb], step)
            except AssertionError as error:
                raise AssertionError(f"{self.transcript.name}, step {number} ({verb}): {error}") from error

    def leaks(self) -> list[str]:
        """The same without a sidecar: the steps whose answer tells what it must lack."""
        told = []
        for step in self.transcript.play:
            if "write" in step:
                self._write(step["write"], {"status": [200, 201]})
            elif "call" in step:
                answer = self._ask(self.town.url, step["call"], step)
                body = answer.body
                if answer.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                told += [step["call"] for text in step.get("lacks", ()) if text.encode() in body]
            elif "direct" in step:
                self._ask(self.town.url, step["direct"], step)
            elif "store" in step or "script" in step:
                verb = "store" if "store" in step else "script"
                getattr(self, f"_{verb}")(step[verb], step)
        return told

    # --- verbs -----------------------------------------------------------------------------------

    def _write(self, records: dict[str, Any], step: dict[str, Any]) -> None:
        for key, (subject, text, *more) in records.items():
            body = {"key": key, "value": self._grown(text), "retention": {"subject": subject}}
            body |= more[0] if more else {}
            answer = self._ask(self.data, "POST /v1/memories", {"body": body})
            assert answer.status in step.get("status", [201]), (key, answer)

    def _call(self, line: str, step: dict[str, Any]) -> None:
        for _ in range(step.get("times", 1)):
            answer = self._ask(self.data, line, step)
            if not step.get("racing"):
                self.told.append((line.partition("?")[0], _decided(answer)))
            named = answer.headers.get("quietus-erasure")
            if named:
                self.erasure_id = named.split(";")[0].strip('"')
            self._expect(answer, step)

    def _direct(self, line: str, step: dict[str, Any]) -> None:
        self._expect(self._ask(self.town.url, line, step), step)

    def _erasure(self, state: str, step: dict[str, Any]) -> None:
        view = self.sidecar.until(state, self.erasure_id, seconds=step.get("seconds", 120.0))
        for name, wanted in step.get("view", {}).items():
            assert _within(wanted, view.get(name)), f"{name} is {view.get(name)!r}"
        for name, outcome in step.get("surfaces", {}).items():
            found = {s["name"]: s["outcome"] for s in view["surfaces"]}
            assert found.get(name) == outcome, f"{name} is {found.get(name)}"

    def _store(self, what: dict[str, Any], _: dict[str, Any]) -> None:
        def act() -> None:
            self.house.clock.offset += float(what.get("advance", 0))
            self.house.store.tick()
            if what.get("restart"):
                self.house.store.restart()

        self.town.do(act)

    def _script(self, answers: dict[str, list[dict[str, Any]]], _: dict[str, Any]) -> None:
        replies = {line: deque(map(_reply, given)) for line, given in answers.items()}
        self.town.do(lambda: self.house.script.update(replies))

    def _operator(self, what: dict[str, Any], step: dict[str, Any]) -> None:
        if "act" in what:
            path, body = f"/v1/erasures/{self.erasure_id}:{what['act']}", {"reason": "a transcript"}
            if what["act"] == "verify":
                body = {}
        elif "readmit" in what:
            path = "/v1/subjects:readmit"
            body = {"subject": what["readmit"], "tenant": self.tenant, "reason": "asked to come back"}
        else:
            path, body = "/v1/signals", {"kind": "compaction_complete", "epoch": what["signal"]}
        self.sidecar.office(path, "POST", body)

    def _received(self, counts: dict[str, Any], step: dict[str, Any]) -> None:
        got = self.town.do(lambda: list(self.house.received))
        for line, wanted in counts.items():
            seen = sum(1 for r in got if f"{r.method} {r.path}" == line)
            most = str(wanted).removeprefix("at most ")
            held = seen <= int(most) if most != str(wanted) else seen == int(wanted)
            assert held, f"{line}: {seen} times"
        for target in step.get("targets", ()):
            whole = target.replace("TENANT", self.tenant)
            assert any(r.target == whole for r in got), [r.target for r in got][-5:]

    def _metrics(self, wanted: dict[str, Any], _: dict[str, Any]) -> None:
        text = request("GET", f"{self.sidecar.admin}/metrics").body.decode()
        for name, what in wanted.items():
            labels = [f'{label}="{value}"' for label, value in what["labels"].items()]
            lines = [line for line in text.splitlines() if line.startswith(f"{name}{{")]
            found = [float(line.split()[-1]) for line in lines if all(label in line for label in labels)]
            assert sum(found) >= what["least"], (name, found)

    @staticmethod
    def _grown(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("+"):
            return " ".join(f"word{number}" for number in range(int(value)))
        return value

    # --- asking and looking ----------------------------------------------------------------------

    def _ask(self, base: str, line: str, step: dict[str, Any]) -> Response:
        method, _, path = line.partition(" ")
        body = step.get("body")
        if isinstance(body, str):
            body = body.replace("TENANT", self.tenant).encode()
        elif isinstance(body, dict):
            body = {"tenant": self.tenant, **{name: self._grown(value) for name, value in body.items()}}
        if body is None and path.startswith("/v1/memories") and "tenant=" not in path:
            path += f"{'&' if '?' in path else '?'}tenant={self.tenant}"
        return request(method, base + path.replace("TENANT", self.tenant), body, step.get("send", {}))

    def _expect(self, answer: Response, step: dict[str, Any]) -> None:
        body = answer.body
        if answer.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        shown = (answer.status, answer.headers, body[:400])
        wanted = step.get("status", 200)
        assert answer.status in (wanted if isinstance(wanted, list) else [wanted]), shown
        for name, part in step.get("headers", {}).items():
            value = answer.headers.get(name.lower())
            assert value is None if part is None else part in (value or ""), (name, shown)
        if "keys" in step:
            assert [row["key"] for row in json.loads(body)["results"]] == step["keys"], shown
        if "json" in step:
            assert _within(step["json"], json.loads(body)), shown
        everything = body.decode("utf-8", "replace") + json.dumps(answer.headers)
        assert all(text in everything for text in step.get("has", ())), shown
        assert not any(text in everything for text in step.get("lacks", ())), shown
        if step.get("length") and "content-length" in answer.headers:
            assert int(answer.headers["content-length"]) == len(answer.body), shown


def _decided(answer: Response) -> str:
    """What was decided of a call, in words that both wires have."""
    marks = [answer.headers.get("quietus-decision", ""), answer.headers.get("quietus-candidate-set", "")]
    if "quietus-erasure" in answer.headers:
        marks.append("erasure " + ";".join(answer.headers["quietus-erasure"].split(";")[4:]))
    reason = ""
    if answer.status >= 300 and b"urn:quietus:problem:" in answer.body:
        told = answer.json
        reason = f"{told['type'].rpartition(':')[2]} {told.get('reason', '')}".strip()
    return "; ".join(mark for mark in (reason, *marks) if mark)


def _within(wanted: Any, found: Any) -> bool:
    """Whether `found` holds all of `wanted`: members of objects, elements of lists."""
    if wanted == "present":
        return found is not None
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_within(v, found.get(k)) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and all(any(_within(w, f) for f in found) for w in wanted)
    return bool(wanted == found)


def _reply(given: dict[str, Any]) -> Reply:
    body = given.get("body", "")
    kind = "text/plain" if isinstance(body, str) and "body" in given else "application/json"
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"Content-Type": kind, **given.get("headers", {})}
    return Reply(given.get("status", 200), tuple(headers.items()), data)
