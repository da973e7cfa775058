"""The admin API over gRPC: what it shows and does is what it shows and does over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from quietus.admin.routes import ROUTES
from quietus.admin.rpc import METHODS, SERVICE
from quietus.app import Sidecar
from quietus.legacy.faults import Faults
from quietus.stubs import erasure_v1_pb2 as pb
from tests.grpc_wire.standing import Said, ended, hurried, legacy, sidecar, tool

SECRET = "Alice Moreau keeps her spare key under the third flower pot"


@dataclass
class Office:
    """Somebody with a token."""

    channel: aio.Channel
    token: str

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),)

    async def call(self, name: str, /, **fields: Any) -> Said:
        method = METHODS[name]
        asks = method.takes(**fields).SerializeToString()
        call = self.channel.unary_unary(f"/{SERVICE}/{name}")(asks, metadata=self.metadata)
        try:
            return await ended(call, method.gives.FromString(await call))
        except aio.AioRpcError:
            return await ended(call)


@asynccontextmanager
async def office(tmp_path: Path, **faults: Any) -> AsyncIterator[tuple[Sidecar, Any, Office]]:
    async with (
        legacy(Faults(**faults)) as store,
        sidecar(tmp_path, store.address, hurried(tmp_path)) as quietus,
        tool(quietus.grpc_address) as agent,
        aio.insecure_channel(quietus.admin_url.removeprefix("http://")) as channel,
    ):
        yield quietus, agent, Office(channel, quietus.admin.token)


async def test_every_route_of_the_api_has_its_method() -> None:
    served = {(m.verb, m.path) for m in METHODS.values()}
    served |= {("GET", "/v1/audit")}
    missing = [
        (route.method, route.path) for route in ROUTES
        if route.role is not None and (route.method, route.path) not in served
        and not route.path.endswith("/salt") and (route.method, route.path + "/{id}") not in served
    ]  # fmt: skip
    assert not missing


@pytest.mark.requirement("R192")
async def test_an_erasure_is_shown_watched_and_released(tmp_path: Path) -> None:
    async with office(tmp_path, lazy_index=8.0) as (_, agent, desk):
        await agent.write("a1", SECRET, "alice")
        await agent.call("Forget", subject="alice")
        listed = await desk.call("ListErasures", subject="alice", state="unsettled")
        assert listed.code == "OK" and len(listed.message.erasures) == 1
        erasure = listed.message.erasures[0]
        assert erasure.predicate.subject[0].startswith("hmac:") and "alice" not in str(erasure)
        assert erasure.claim.count == 1 and erasure.requested_at.seconds > 1_700_000_000
        assert {s.name for s in erasure.surfaces} >= {"record", "recall", "backups"}

        watch = desk.channel.unary_stream(f"/{SERVICE}/WatchErasure")(
            pb.WatchErasureRequest(id=erasure.id, until_settled=True).SerializeToString(),
            metadata=desk.metadata,
        )
        seen = [pb.Erasure.FromString(message).state async for message in watch]
        assert seen[-1] == "settled" and "leaking" in seen

        events = (await desk.call("ListEvents", id=erasure.id)).message.events
        assert [event.type for event in events][:3] == ["requested", "snapshotted", "forwarded"]
        assert events[0].gate and events[0].facts["store"] == "memories"
        audit = desk.channel.unary_stream(f"/{SERVICE}/StreamAudit")(b"", metadata=desk.metadata)
        numbers = [pb.Event.FromString(message).number async for message in audit]
        assert numbers == sorted(numbers) and len(numbers) >= len(events)

        receipt = await desk.call("GetReceipt", id=erasure.id)
        assert receipt.code == "OK" and receipt.message.receipt.fields
        readmitted = await desk.call("ReadmitSubject", subject="alice", reason="asked to come back")
        assert readmitted.code == "OK" and len(readmitted.message.erasures) == 1


async def test_demands_holds_overrides_and_quarantines(tmp_path: Path) -> None:
    async with office(tmp_path, lazy_index=900.0) as (_, agent, desk):
        await agent.write("a1", SECRET, "alice")
        made = await desk.call("CreateErasure", subject=["alice"], tenant="acme", basis="gdpr_art17")
        assert made.code == "OK" and made.message.receipt_salt and made.message.basis
        released = await desk.call("ReleaseErasure", id=made.message.id, reason="a test")
        assert released.message.state == "released"
        again = await desk.call("RetryErasure", id=made.message.id, reason="a test")
        assert again.code == "FAILED_PRECONDITION"
        assert again.info.metadata["problem"].endswith("wrong-state")

        until = {"seconds": 4_000_000_000}
        held = await desk.call(
            "CreateHold", subject=["bob"], exception="legal_claims", until=until, reason="a case"
        )
        assert held.code == "OK" and held.message.exception == "legal_claims"
        assert (await desk.call("ListHolds")).message.holds[0].until.seconds == until["seconds"]
        assert (await desk.call("LiftHold", id=held.message.id, reason="over")).code == "OK"
        over = await desk.call("CreateOverride", effect="annotate", lasts={"seconds": 60}, reason="a test")
        assert over.code == "OK" and over.message.active
        assert (await desk.call("ListOverrides")).message.overrides[0].id == over.message.id
        assert (await desk.call("EndOverride", id=over.message.id, reason="over")).code == "OK"
        shut = await desk.call("CreateQuarantine", path=["a/b"], reason="a test")
        assert shut.code == "OK" and shut.message.id
        assert (await desk.call("LiftQuarantine", id=shut.message.id, reason="over")).code == "OK"
        assert not (await desk.call("ListQuarantines")).message.quarantines
        assert (await desk.call("Signal", kind="epoch", epoch=3)).code == "OK"
        assert (await desk.call("ListUnmapped")).code == "OK"


async def test_refusals_are_those_of_http(tmp_path: Path) -> None:
    async with office(tmp_path) as (quietus, _, desk):
        unknown = await desk.call("GetErasure", id="er_nobody")
        assert unknown.code == "NOT_FOUND" and unknown.info.domain == "quietus"
        assert (await desk.call("GetErasure")).code == "NOT_FOUND"
        assert (await desk.call("GetErasure", id="../erasures")).code == "NOT_FOUND"
        assert (await desk.call("ListErasures", state="nonsense")).code == "INVALID_ARGUMENT"
        assert (
            await desk.call("ReadmitSubject", subject="alice", reason="alice again")
        ).code == "INVALID_ARGUMENT"
        stranger = Office(desk.channel, "wrong-token-wrong-token")
        assert (await stranger.call("ListErasures")).code == "UNAUTHENTICATED"
        garbage = desk.channel.unary_unary(f"/{SERVICE}/GetErasure")(b"\xff\xff", metadata=desk.metadata)
        with pytest.raises(aio.AioRpcError) as error:
            await garbage
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        # The refusal stands in the ledger, as over HTTP.
        kinds = [event.type.value async for event in quietus.parts.erasures.events()]
        assert "accessed" in kinds


async def test_health_reflection_and_http_on_the_one_port(tmp_path: Path) -> None:
    async with office(tmp_path) as (quietus, _, desk):
        health = health_pb2_grpc.HealthStub(desk.channel)
        found = await health.Check(health_pb2.HealthCheckRequest())
        assert found.status == health_pb2.HealthCheckResponse.SERVING
        watching = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE))
        assert (await watching.read()).status == health_pb2.HealthCheckResponse.SERVING
        watching.cancel()
        with pytest.raises(aio.AioRpcError):
            await health.Check(health_pb2.HealthCheckRequest(service="no.such.Service"))
        asks = reflection_pb2_grpc.ServerReflectionStub(desk.channel).ServerReflectionInfo()
        await asks.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        named = {service.name for service in (await asks.read()).list_services_response.service}
        assert SERVICE in named
        asks.cancel()
        async with aiohttp.ClientSession(quietus.admin_url) as session, session.get("/readyz") as ready:
            assert ready.status == 200


async def test_the_store_s_own_health_and_reflection_go_through(tmp_path: Path) -> None:
    async with legacy() as store, sidecar(tmp_path, store.address) as quietus:
        async with aio.insecure_channel(quietus.grpc_address) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            found = await health.Check(health_pb2.HealthCheckRequest())
            assert found.status == health_pb2.HealthCheckResponse.SERVING
            asks = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo()
            await asks.write(reflection_pb2.ServerReflectionRequest(list_services=""))
            answer = await asyncio.wait_for(asks.read(), 30)
            named = {service.name for service in answer.list_services_response.service}
            assert "quietus.memory.v1.MemoryService" in named
            asks.cancel()
