"""`quietus explain` and a running sidecar give one answer: for every policy case that a request can say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from quietus.cli.explaining import explained, parts_of
from quietus.config import load
from quietus.core.events import Draft, EventType, scope_to_facts
from quietus.core.exchange import Request
from quietus.core.operations import UNMAPPED, Operation
from quietus.documents import read, validate
from quietus.erasures import Erasures
from quietus.keys import Keyring
from quietus.ledger.sqlite import SqliteLedger
from quietus.policy_cases import PATHS_TO, Case, Cases, GivenCall, shipped_cases
from quietus.profiles.loader import load_profile
from tests.virtual_clock import VirtualClock
from tests.world import World

PROFILE = load_profile("memory-tool")
JSON = (("Host", "store"), ("Content-Type", "application/json"))


class Told(NamedTuple):
    policy: str
    case: Case


def request_of(call: GivenCall) -> Request | None:
    """The call as a request to the canonical memory tool; None where only the core can be asked so."""
    if call.write or call.failure or call.unreadable or (call.subject and len(call.subject) > 1):
        return None
    said = {name: values[0] for name in ("tenant", "subject", "purpose") if (values := getattr(call, name))}
    if call.path:
        said["scope"] = call.path[0]
    if call.route == UNMAPPED:
        return Request("GET", "/nowhere", JSON)
    if call.operation is Operation.IGNORE:
        return Request("GET", "/healthz", JSON)
    if call.operation is Operation.READ:
        return Request("GET", f"/v1/memories/{quote((call.key or ['k'])[0])}", JSON)
    if call.operation is Operation.RECALL:
        return _post("/v1/recall", {"query": "q", **said})
    if call.operation is Operation.FORGET:
        return _post("/v1/forget", said)
    retention = {name: said.pop(name) for name in ("subject", "purpose") if name in said}
    key = {"key": call.key[0]} if call.key else {}
    return _post("/v1/memories", {"value": "v", "retention": retention, **said, **key})


def _post(path: str, body: dict[str, Any]) -> Request:
    return Request("POST", path, JSON, json.dumps(body).encode())


TOLD = [
    Told(document.policy, case)
    for path in shipped_cases()
    for document in [validate(read(path), Cases)]
    for case in document.cases
    if request_of(case.call) is not None and not any(e.touched for e in case.erasures)
]


def test_most_cases_can_be_said() -> None:
    assert len(TOLD) >= 40


@pytest.mark.parametrize("told", TOLD, ids=lambda t: f"{t.policy}: {t.case.name}")
async def test_explain_is_what_the_sidecar_decides(told: Told, tmp_path: Path) -> None:
    flags = {
        "store.profile": "memory-tool",
        "store.http.upstream": "http://127.0.0.1:1",
        "ledger.url": f"sqlite:///{tmp_path}/ledger.db",
        "policy": told.policy,
    }
    settings = load(None, flags, {})
    assert settings.ledger.path is not None
    assert settings.keys_path is not None
    keyring = Keyring.load_or_make(settings.keys_path, ledger_is_new=True)
    await _fill(SqliteLedger(settings.ledger.path), keyring, told.case)
    request = request_of(told.case.call)
    assert request is not None

    said = explained(await parts_of(settings), request)

    ledger = SqliteLedger(settings.ledger.path)
    running = World(policy=told.policy, profile=PROFILE, ledger=ledger, keyring=keyring)
    await running.parts.erasures.load()
    gateway = running.parts.gateway
    reading = running.parts.active.profile.read(request)
    decided = gateway.decide(gateway.question(reading.call, "anonymous"))
    await running.ledger.close()

    assert (said["effect"], said["rule"], said["mode"]) == (decided.effect, decided.rule, decided.mode)
    assert said["marked"] == decided.overlaps
    assert (said["effect"], said["rule"]) == (told.case.expect.effect, told.case.expect.rule)
    if told.case.expect.reason is not None:
        assert (said["reason"] or "") == told.case.expect.reason


async def _fill(ledger: SqliteLedger, keyring: Keyring, case: Case) -> None:
    erasures = Erasures(ledger, keyring, VirtualClock(), "memories")
    await erasures.load()
    for number, given in enumerate(case.erasures):
        predicate = scope_to_facts(keyring.pseudonymise(given.scope()))
        terms = {"settling_interval": 900.0, "effectuation_bound": 1800.0, "clean_rounds": 3}
        types = list(PATHS_TO[given.state])
        if given.readmitted:
            types.insert(len(types) - (given.state == "relapsed"), EventType.READMITTED)
        facts = {"store": "memories", "predicate": predicate, "terms": terms}
        drafts = [Draft(EventType.REQUESTED, f"er_{number}", 1.0, facts=facts, gate=True)]
        drafts += [Draft(type_, f"er_{number}", 2.0, gate=True) for type_ in types]
        await erasures.append(drafts)
    await ledger.close()


def test_a_method_of_grpc_is_explained(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from quietus.cli import app
    from quietus.stubs import memory_v1_pb2 as pb

    message = tmp_path / "message.bin"
    message.write_bytes(pb.RecallRequest(query="tea", subject="alice", tenant="acme").SerializeToString())
    words = ["explain", "--profile", "memory-tool", "--json", "--body", str(message), "GRPC"]
    told = CliRunner().invoke(app, [*words, "/quietus.memory.v1.MemoryService/Recall"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.output)
    assert (found["route"], found["operation"], found["scope"]["subject"]) == ("recall", "recall", ["alice"])
    unknown = CliRunner().invoke(app, [*words, "/quietus.memory.v1.MemoryService/recall"])
    assert json.loads(unknown.output)["route"] == "unmapped"
