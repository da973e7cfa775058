"""Traces: a receiver gets the spans, nothing in them is about a person, and without them nothing is there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from quietus.app import Sidecar
from quietus.config import load, traces_protocol
from quietus.gateway import Gateway
from quietus.legacy.faults import Faults
from quietus.tracing.opening import open_traces
from tests.adapters.wires import Store
from tests.e2e.stores import Served
from tests.grpc_wire.echo import SERVICE, echoing, line, profile
from tests.grpc_wire.standing import sidecar as over_grpc
from tests.harness.otlp import Receiver, Span, receiving

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
PLANTED = ("alice", "Moreau", "lighthouse", "what-is-known", "secret-credential", "rojo=00f0", "/v1/")
HEADERS = {"traceparent": PARENT, "tracestate": "rojo=00f0", "Authorization": "Bearer secret-credential"}


def ask(monkeypatch: pytest.MonkeyPatch, receiver: Receiver, **more: str) -> None:
    """Sets the standard variables."""
    values = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "100", **more}
    for name, value in values.items():
        monkeypatch.setenv(name, value)


@asynccontextmanager
async def traced(upstream: str = "") -> AsyncIterator[Sidecar]:
    store = None if upstream else Served(Faults())
    url = upstream if store is None else store.url
    flags: dict[str, Any] = {
        "store.profile": "memory-tool", "store.http.upstream": url, "store.http.listen": "127.0.0.1:0",
        "admin.listen": "127.0.0.1:0", "ledger.url": "memory:", "limits.probe_rate_per_second": 200,
    }  # fmt: skip
    made = Sidecar(load(None, flags, {}))
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
        if store is not None:
            store.close()


async def evening(sidecar: Sidecar, headers: dict[str, str]) -> list[int]:
    """A write, a recall, a forget, and a recall that is refused; the statuses."""
    memory = {"tenant": "bay", "key": "alice-00001", "value": "Alice Moreau moved to the lighthouse",
              "retention": {"subject": "alice"}}  # fmt: skip
    recall = {"query": "what-is-known", "tenant": "bay", "subject": "alice"}
    calls = [("memories", memory), ("recall", recall), ("forget", {"tenant": "bay", "subject": "alice"}),
             ("recall", recall)]  # fmt: skip
    statuses = []
    async with aiohttp.ClientSession(headers=headers) as session:
        for path, body in calls:
            async with session.post(f"{sidecar.data_url}/v1/{path}?q=alice", json=body) as answer:
                await answer.read()
                statuses.append(answer.status)
    return statuses


def named(spans: list[Span], name: str, **attributes: Any) -> list[Span]:
    return [s for s in spans if s.name == name and attributes.items() <= s.attributes.items()]


def calls(spans: list[Span]) -> int:
    return sum(span.kind == "server" for span in spans)


def all_there(spans: list[Span]) -> bool:
    """Whether every span of an evening has come: they leave a tenth of a second after they end."""
    wanted = {"quietus write", "quietus forget", "upsert_memory", "search_memory", "delete_memory", "probe"}
    return wanted <= {span.name for span in spans} and len(named(spans, "quietus recall")) == 2


@pytest.mark.requirement("R198")
async def test_a_receiver_gets_the_spans_and_nothing_about_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        ask(monkeypatch, receiver)
        async with traced() as sidecar:
            assert await evening(sidecar, HEADERS) == [201, 200, 202, 409]
            spans = await receiver.until(all_there)
    told = [named(spans, f"quietus {name}") for name in ("write", "recall", "forget")]
    assert [len(found) for found in told] == [1, 2, 1]
    for call in (each for found in told for each in found):
        assert (call.kind, call.trace, call.parent) == ("server", PARENT[3:35], PARENT[36:52])
        assert call.attributes["quietus.store"] == "memories" and call.attributes["quietus.mode"] == "enforce"
    [refused] = [call for call in told[1] if call.error]
    assert refused.attributes["error.type"] == "erasure-not-settled"
    assert refused.attributes["quietus.rule"] == "recall-in-erased-scope"
    asked = ("upsert_memory", "search_memory", "delete_memory")
    for name, parent in zip(asked, (found[0] for found in told), strict=True):
        [span] = named(spans, name, **{"quietus.purpose": "client"})
        assert span.kind == "client" and span.attributes["gen_ai.operation.name"] == name
        assert span.attributes["gen_ai.memory.store.id"] == "memories"
        assert (span.trace, span.parent) == (parent.trace, parent.id), name
    probes = named(spans, "probe", **{"quietus.purpose": "probe"})
    assert probes and not any("gen_ai.operation.name" in span.attributes for span in probes)
    assert {span.resource["service.name"] for span in spans} == {"quietus"}
    assert {span.state for span in spans} == {""}
    for planted in PLANTED:
        assert planted.encode() not in receiver.raw, planted


async def test_what_is_not_sampled_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        named_so = {"OTEL_SERVICE_NAME": "my-sidecar", "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=p-1"}
        ask(monkeypatch, receiver, **named_so)
        async with traced() as sidecar:
            await evening(sidecar, {"traceparent": UNSAMPLED})
            await evening(sidecar, {"traceparent": "00-zz-zz-01"})
            await receiver.until(lambda found: calls(found) >= 4)
        came = [span for span in receiver.spans if span.kind == "server"]
    assert len(came) == 4 and {span.parent for span in came} == {""}
    assert PARENT[3:35] not in {span.trace for span in receiver.spans}
    resource = receiver.spans[0].resource
    assert (resource["service.name"], resource["k8s.pod.name"]) == ("my-sidecar", "p-1")


async def test_grpc_is_traced_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from grpc import aio

    async with receiving() as receiver, echoing() as echo:
        ask(monkeypatch, receiver)
        async with over_grpc(tmp_path, echo.address, profile(tmp_path)) as sidecar:
            async with aio.insecure_channel(sidecar.grpc_address) as channel:
                metadata = (("traceparent", PARENT), ("tracestate", "rojo=00f0"), ("baggage", "who=alice"))
                one: Any = channel.unary_unary(f"/{SERVICE}/Unary")
                assert await one(line("alice", "text"), metadata=metadata) == line("alice", "text")
                many: Any = channel.stream_stream(f"/{SERVICE}/Chat")
                talk = many(metadata=metadata)
                await talk.write(line("alice", "text"))
                assert await talk.read() == line("alice", "text")
                await talk.done_writing()
                assert await talk.read() is aio.EOF
            spans = await receiver.until(
                lambda found: calls(found) >= 2 and bool(named(found, "search_memory"))
            )
    assert len([s for s in spans if s.kind == "server" and s.trace == PARENT[3:35]]) == 2
    assert len(named(spans, "search_memory", **{"quietus.wire": "grpc"})) >= 1
    assert b"alice" not in receiver.raw and b"baggage" not in receiver.raw
    for name, received, _ in echo.received:
        given = dict(received)
        assert [given[key] for key, _ in metadata] == [value for _, value in metadata], name


@pytest.mark.parametrize("tracing", [False, True])
async def test_the_callers_headers_go_on_untouched(monkeypatch: pytest.MonkeyPatch, tracing: bool) -> None:
    """Whoever traces: the store hears of the caller's span, and of nothing that was added."""
    given = {"traceparent": PARENT, "tracestate": "rojo=00f0, congo=t61", "baggage": "who=alice;p=1, x=%20y"}
    async with receiving() as receiver:
        if tracing:
            ask(monkeypatch, receiver)
        store = Store()
        server = await asyncio.start_server(store.serve, "127.0.0.1", 0)
        async with traced(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as sidecar:
            async with aiohttp.ClientSession() as session:
                url = f"{sidecar.data_url}/v1/memories/nobody-001?tenant=bay"
                for headers in (given, {}):
                    async with session.get(url, headers=headers) as answer:
                        await answer.read()
        server.close()
        store.drop_all()
    lowered = [{key.lower(): value for key, value in each.headers} for each in store.received]
    assert [{key: each.get(key) for key in given} for each in lowered] == [given, dict.fromkeys(given)]


async def test_a_receiver_that_is_away_costs_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        receiver.status = 503
        ask(monkeypatch, receiver, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT="1")
        async with traced() as sidecar:
            assert await evening(sidecar, HEADERS) == [201, 200, 202, 409]
            assert sidecar.metrics.render()


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, None),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, "http/protobuf"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None),
        ({"OTEL_TRACES_EXPORTER": "console"}, None),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, "http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, "http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, "http/protobuf"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, None),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
          "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, "http/protobuf"),
    ],
)  # fmt: skip
def test_the_standard_variables_say_whether(environ: dict[str, str], protocol: str | None) -> None:
    assert traces_protocol(environ) == protocol


def test_what_cannot_be_sent_keeps_no_sidecar_from_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    from quietus.app import Sidecar

    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
    upstream = "http://127.0.0.1:1"
    flags = {"store.profile": "memory-tool", "store.http.upstream": upstream, "ledger.url": "memory:"}
    with capture_logs() as logs:
        assert Sidecar(load(None, flags, {})).traces is None
    assert [(each["event"], each["cause"]) for each in logs] == [("traces_off", "settings_of_the_exporter")]


async def test_without_the_variables_nothing_is_wrapped() -> None:
    async with traced() as sidecar:
        assert sidecar.traces is None
        http = sidecar.listeners().http
        assert http is not None and type(http.handler) is Gateway


WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import structlog
from quietus.app import Sidecar
from quietus.config import load
flags = {"store.profile": "memory-tool", "store.http.upstream": "http://127.0.0.1:1", "ledger.url": "memory:"}
assert Sidecar(load(None, flags, {})).traces is None
assert not any(name.startswith("opentelemetry") for name in sys.modules)
print("starts")
"""


@pytest.mark.parametrize("variables", [{}, {"OTEL_TRACES_EXPORTER": "otlp"}])
def test_without_the_extra_it_starts_all_the_same(variables: dict[str, str]) -> None:
    import os

    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=50, check=False,
        env={**os.environ, **paths, **variables},
    )  # fmt: skip
    assert told.stdout.endswith("starts\n"), told.stderr
    assert ("traces_off" in told.stdout + told.stderr) == bool(variables)


def test_nothing_is_opened_where_nothing_is_asked() -> None:
    with capture_logs() as logs:
        assert open_traces(None, "memories", "0", None) is None  # type: ignore[arg-type]
    assert not logs
