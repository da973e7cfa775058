"""`quietus explain`: what a request would get, and why, without sending it anywhere."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from prometheus_client import CollectorRegistry
from rich.table import Table

from quietus.app import SystemClock
from quietus.assembly import Active, Parts, Surroundings, assemble
from quietus.cli.replay import replay
from quietus.cli.root import fail, guarded, say, screen
from quietus.core.decision import Decision
from quietus.core.exchange import Request
from quietus.core.problems import PROBLEMS
from quietus.core.scope import DIMENSIONS, Scope, Wild
from quietus.keys import Keyring
from quietus.ledger.memory import MemoryLedger
from quietus.metrics import Metrics
from quietus.policies import load_policy
from quietus.ports import OpenReply, Permit, UpstreamError
from quietus.profiles.faults import RequestFault
from quietus.profiles.loader import load_profile
from quietus.profiles.profile import Reading
from quietus.settings import Settings
from quietus.views import status_view
from quietus.whys import why


class _Nowhere:
    """An upstream that nothing reaches."""

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        raise UpstreamError("explain forwards nothing", sent=False)

    async def close(self) -> None:
        """Nothing is open."""


class Mute:
    """A log that keeps nothing."""

    def info(self, event: str, **facts: Any) -> None:
        """Says nothing."""

    def error(self, event: str, **facts: Any) -> None:
        """Says nothing."""


async def parts_of(settings: Settings) -> Parts:
    """The parts of a sidecar with these settings, its gate folded from its ledger, which is only read."""
    path, keys = settings.ledger.path, settings.keys_path
    kept = path is not None and path.is_file() and keys is not None
    keyring = Keyring.load_or_make(keys, ledger_is_new=False) if kept and keys else Keyring.fresh()
    active = Active(load_profile(settings.store.profile, settings.store.wires), load_policy(settings.policy))
    parts = assemble(Surroundings(
        active,
        MemoryLedger(),
        keyring,
        SystemClock(),
        _Nowhere(),
        settings.store.name,
        Metrics(CollectorRegistry(), settings.store.name),
        Mute(),
        no_id,
        random.Random(0),
        lambda erasure, verdict: status_view(erasure, verdict=verdict),
    ))
    await parts.erasures.load()
    if kept and path is not None:
        replay(path, keyring, parts.erasures.gate)
    return parts


def no_id() -> NoReturn:
    """Where no erasure is begun, none needs an id."""
    raise AssertionError("this command begins no erasure")


def explained(parts: Parts, request: Request) -> dict[str, Any]:
    """Route, operation, scope and decision of a request, and why."""
    try:
        reading = parts.active.profile.read(request)
    except RequestFault as fault:
        return {"problem": fault.problem, "status": fault.status, "why": fault.detail, "forwarded": False}
    gateway = parts.gateway
    decision = gateway.decide(gateway.question(reading.call, "anonymous"))
    return _told(parts, reading, decision)


def _told(parts: Parts, reading: Reading, decision: Decision) -> dict[str, Any]:
    call = reading.call
    problem = PROBLEMS.get(decision.problem) if decision.refuses else None
    return {
        "route": call.route,
        "operation": call.operation.value,
        "scope": _scope(call.scope),
        "unreadable": list(reading.unreadable),
        "effect": decision.effect.value,
        "rule": decision.rule,
        "mode": decision.mode.value,
        "policy": parts.active.policy.name,
        "problem": problem.name if problem else None,
        "status": problem.status if problem else None,
        "reason": problem.reason.value if problem else None,
        "relation": decision.relation.value,
        "marked": decision.overlaps,
        "erasures": [
            {"id": e.id, "state": e.state.value, "why": why(e, parts.verdict(e))} for e in decision.erasures
        ],
        "gate_epoch": parts.erasures.gate.epoch,
        "why": sentence(decision),
    }


def _scope(scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in DIMENSIONS:
        values = getattr(scope, name)
        if isinstance(values, Wild):
            found[name] = values.value
        else:
            found[name] = sorted("/".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)
    return found


def sentence(decision: Decision) -> str:
    """The decision in words."""
    lies = {
        "inside": "it lies inside an erasure that is not settled, or cannot be read well enough to tell",
        "wider": "it reaches over an erasure that is not settled",
        "none": "no unsettled erasure touches it",
    }[decision.relation.value]
    if decision.vectors:
        lies = f"what it writes would bring the erased back ({', '.join(sorted(decision.vectors))})"
    seen = " It is only observed: nothing is changed." if decision.mode.value == "observe" else ""
    return f"Rule {decision.rule} says {decision.effect.value}: {lies}.{seen}"


def explain(
    method: Annotated[str, typer.Argument(help="GET, POST, …; GRPC for a method of gRPC.")],
    path: Annotated[str, typer.Argument(help="Path and query, as sent; /package.Service/Method of gRPC.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Of the sidecar.")] = None,
    profile: Annotated[str | None, typer.Option(help="In place of the configuration's.")] = None,
    policy: Annotated[str | None, typer.Option(help="In place of the configuration's.")] = None,
    ledger: Annotated[str | None, typer.Option(help="In place of the configuration's.")] = None,
    body: Annotated[Path | None, typer.Option(help="File with the body; - for standard input.")] = None,
    headers: Annotated[list[str] | None, typer.Option("--header", "-H", help="NAME: VALUE")] = None,
    json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say which route, operation, scope and decision a request would get, and why. Nothing is sent.

    Example:

      quietus explain --config quietus.yaml POST /v1/recall --body query.json

      quietus explain --profile milvus GRPC /milvus.proto.milvus.MilvusService/Query --body message.bin
    """
    from quietus.cli.running import settings_of

    flags: dict[str, Any] = {"store.profile": profile, "policy": policy, "ledger.url": ledger}
    rpc = method.upper() == "GRPC"
    if config is None:
        flags |= {"store.grpc.upstream": "localhost:1"} if rpc else {"store.http.upstream": "http://localhost"}
    settings = settings_of(config, flags)
    pairs = _headers(headers or [], body is not None and not rpc)
    request = Request("POST" if rpc else method.upper(), path, pairs, _body(body), "grpc" if rpc else "http")
    found = explained(guarded(lambda: asyncio.run(parts_of(settings))), request)
    if json:
        say(found)
        return
    table = Table(box=None, show_header=False)
    for name, value in found.items():
        if value not in (None, [], {}):
            table.add_row(name, _line(value))
    screen().print(table)


def _line(value: Any) -> str:
    if isinstance(value, dict):
        return "  ".join(f"{k}={_line(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(_line(v) for v in value)
    return str(value)


def _headers(given: list[str], body: bool) -> tuple[tuple[str, str], ...]:
    found = [("Content-Type", "application/json")] if body else []
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            fail("a header is written NAME: VALUE")
        found = [pair for pair in found if pair[0].lower() != name.strip().lower()]
        found.append((name.strip(), value.strip()))
    return tuple(found)


def _body(path: Path | None) -> bytes:
    if path is None:
        return b""
    if str(path) == "-":
        return typer.get_binary_stream("stdin").read()
    data: bytes = guarded(path.read_bytes)
    return data


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(explain)
