"""The admin API on a real socket: tokens, roles, filters, acts, and that nobody's name leaves it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quietus.admin.openapi import described
from quietus.admin.routes import ROUTES
from quietus.admin.tokens import Role
from quietus.core.events import EventType
from quietus.core.states import State
from tests.admin.desk import TOKENS, bearer, office

OPERATOR = bearer(Role.OPERATOR)
OPEN = {"/healthz", "/readyz", "/metrics", "/version", "/openapi.json"}
READS = ["/v1/erasures", "/v1/erasures/er_001", "/v1/erasures/er_001/events", "/v1/unmapped", "/v1/audit"]
ACTS = [f"/v1/erasures/er_001:{act}" for act in ("verify", "retry", "release", "escalate")]


@pytest.mark.parametrize("path", [*READS, *ACTS, "/v1/subjects:readmit", "/v1/signals", "/v1/nothing"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer "}, {"Authorization": "Bearer wrong"},
     {"Authorization": f"Basic {TOKENS[Role.OPERATOR]}"}, {"Authorization": TOKENS[Role.OPERATOR]}],
)  # fmt: skip
async def test_nothing_without_a_token(path: str, headers: dict[str, str]) -> None:
    async with office() as (desk, client, _):
        await desk.erasure()
        method = "GET" if path in READS else "POST"
        answer = await client.request(method, path, headers=headers)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.content_type == "application/problem+json"
        assert (await answer.json())["type"] == "urn:quietus:problem:unauthenticated"


@pytest.mark.parametrize(
    ("path", "least"),
    [*((path, Role.OPERATOR) for path in ACTS), ("/v1/subjects:readmit", Role.PRIVACY),
     ("/v1/signals", Role.OPERATOR)],
)  # fmt: skip
async def test_roles(path: str, least: Role) -> None:
    body = {"reason": "because", "subject": "alice", "kind": "epoch", "epoch": 1}
    async with office() as (desk, client, _):
        await desk.erasure()
        for role in Role:
            answer = await client.post(path, json=body, headers=bearer(role))
            assert (answer.status == 403) is (role < least), (role, answer.status)
        refused = [e for e in await desk.events() if e.type is EventType.ACCESSED]
        assert len(refused) == sum(role < least for role in Role)
        assert all(e.actor.endswith("@example") and e.facts["refused"] == "forbidden" for e in refused)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("path", READS)
async def test_everybody_with_a_token_reads(path: str, role: Role) -> None:
    async with office() as (desk, client, _):
        await desk.erasure()
        answer = await client.get(path, headers=bearer(role))
        assert answer.status == 200
        assert answer.headers["Cache-Control"] == "no-store"


async def test_refusals_cannot_fill_the_ledger() -> None:
    async with office() as (desk, client, _):
        for _try in range(40):
            await client.get("/v1/erasures")
        assert len(await desk.events()) == 30


@pytest.mark.parametrize("path", sorted(OPEN))
async def test_health_and_metrics_want_no_token(path: str) -> None:
    async with office() as (_, client, _world):
        answer = await client.get(path)
        assert answer.status == 200
        assert answer.headers["Server"] == "quietus"


async def test_ready_only_while_calls_are_decided() -> None:
    async with office() as (desk, client, _):
        desk.erasures.closed_cause = "ledger"
        answer = await client.get("/readyz")
        assert (answer.status, await answer.json()) == (503, {"status": "closed", "cause": "ledger"})
        desk.erasures.closed_cause = None
        assert (await client.get("/readyz")).status == 200


async def test_metrics_are_the_registrys() -> None:
    async with office() as (_, client, world):
        world.metrics.count("forget_calls", side="client")
        text = await (await client.get("/metrics")).text()
        assert 'quietus_forget_calls_total{side="client",store="memories"} 1.0' in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "evil.example"}, 421), ({"Host": "localhost:1"}, 200), ({"Host": "10.0.0.1"}, 200),
     ({"Host": "quietus.svc:8710"}, 200), ({"Origin": "http://evil.example"}, 403)],
)  # fmt: skip
async def test_host_and_origin_are_checked(headers: dict[str, str], status: int) -> None:
    async with office(hosts=("quietus.svc",)) as (_, client, _world):
        answer = await client.get("/healthz", headers=headers)
        assert answer.status == status


async def test_list_is_newest_first_and_pages() -> None:
    async with office() as (desk, client, _):
        made = [(await desk.erasure()).id for _ in range(5)]
        seen: list[str] = []
        cursor = ""
        while True:
            answer = await client.get(f"/v1/erasures?limit=2{cursor}", headers=OPERATOR)
            page = await answer.json()
            seen += [one["id"] for one in page["erasures"]]
            if page["next"] is None:
                break
            cursor = f"&cursor={page['next']}"
        assert seen == made[::-1]


async def test_list_filters() -> None:
    async with office() as (desk, client, _):
        alice = await desk.erasure(State.SETTLED, subject="alice")
        bob = await desk.erasure(State.LEAKING, subject="bob")

        async def ids(query: str) -> list[str]:
            answer = await client.get(f"/v1/erasures?{query}", headers=OPERATOR)
            assert "alice" not in await answer.text()
            return [one["id"] for one in (await answer.json())["erasures"]]

        assert await ids("state=settled") == [alice.id]
        assert await ids("state=unsettled") == [bob.id]
        assert await ids("state=settled,leaking") == [bob.id, alice.id]
        assert await ids("subject=alice") == [alice.id]
        assert await ids("subject=nobody") == []
        assert await ids("verdict=unconfirmed") == [bob.id, alice.id]
        assert await ids("verdict=compliant") == []


@pytest.mark.parametrize(
    "query", ["state=asleep", "verdict=sure", "limit=x", "limit=-1", "cursor=x", "sort=up", "state=a&state=b"]
)
async def test_bad_queries_are_400(query: str) -> None:
    async with office() as (_, client, _world):
        answer = await client.get(f"/v1/erasures?{query}", headers=OPERATOR)
        assert answer.status == 400


async def test_show_waits_for_a_change() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.LEAKING)
        asked = asyncio.ensure_future(client.get(f"/v1/erasures/{erasure.id}?wait=30", headers=OPERATOR))
        await desk.clock.asleep.wait()
        await desk.acts.escalate(erasure.id, "eve", "look")
        view = await (await asked).json()
        assert view["escalated"] is True


async def test_show_answers_after_the_wait_all_the_same() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure()
        asked = asyncio.ensure_future(client.get(f"/v1/erasures/{erasure.id}?wait=30", headers=OPERATOR))
        await desk.clock.asleep.wait()
        await desk.clock.advance(30)
        assert (await (await asked).json())["state"] == "settling"


async def test_events_and_audit_are_the_ledgers() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.SETTLED)
        events = await (await client.get(f"/v1/erasures/{erasure.id}/events", headers=OPERATOR)).json()
        assert [e["type"] for e in events["events"]] == ["requested", "accepted", "clean"]
        text = await (await client.get("/v1/audit?after=1", headers=OPERATOR)).text()
        assert [json.loads(line)["number"] for line in text.splitlines()] == [2, 3]
        page = await (await client.get(f"/v1/erasures/{erasure.id}/events?limit=2", headers=OPERATOR)).json()
        assert (len(page["events"]), page["next"]) == (2, "2")


async def test_acts_have_their_actor_from_the_token() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.VIOLATION)
        answer = await client.post(
            f"/v1/erasures/{erasure.id}:retry", json={"reason": "the store was mended"}, headers=OPERATOR
        )
        assert answer.status == 202
        assert (await answer.json())["state"] == "settling"
        last = (await desk.events(erasure.id))[-1]
        assert (last.actor, last.facts["reason"]) == ("operator@example", "the store was mended")
        again = await client.post(
            f"/v1/erasures/{erasure.id}:release", json={"reason": "r"}, headers=OPERATOR
        )
        assert again.status == 200
        wrong = await client.post(f"/v1/erasures/{erasure.id}:retry", json={"reason": "r"}, headers=OPERATOR)
        assert (wrong.status, (await wrong.json())["type"]) == (409, "urn:quietus:problem:wrong-state")


@pytest.mark.requirement("R187")
async def test_readmission_over_the_wire() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.SETTLED, subject="alice")
        body = {"subject": "alice", "reason": "asked to be back", "old_content": "allow_own"}
        answer = await client.post("/v1/subjects:readmit", json=body, headers=bearer(Role.PRIVACY))
        assert answer.status == 200
        text = await answer.text()
        assert "alice" not in text
        assert json.loads(text)["erasures"][0]["readmitted_at"] is not None
        found = desk.erasures.get(erasure.id)
        assert found is not None
        assert found.readmission_allows_old
        body["subject"] = "nobody"
        assert (await client.post("/v1/subjects:readmit", json=body, headers=OPERATOR)).status == 404


@pytest.mark.requirement("R31")
async def test_signals_over_the_wire() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure(State.SETTLING, epoch=7)
        for epoch, heard in ((6, []), (7, [erasure.id]), (7, [])):
            body = {"kind": "compaction_complete", "epoch": epoch}
            answer = await client.post("/v1/signals", json=body, headers=OPERATOR)
            assert (answer.status, await answer.json()) == (202, {"erasures": heard})


BAD: list[tuple[str, Any]] = [
    ("/v1/subjects:readmit", {}),
    ("/v1/subjects:readmit", {"subject": "alice"}),
    ("/v1/subjects:readmit", {"subject": ["alice"], "reason": "r"}),
    ("/v1/subjects:readmit", {"subject": "", "reason": "r"}),
    ("/v1/subjects:readmit", {"subject": "alice", "reason": "for alice"}),
    ("/v1/subjects:readmit", {"subject": "alice", "reason": "r", "old_content": "all"}),
    ("/v1/subjects:readmit", {"subject": "alice", "reason": "r", "more": 1}),
    ("/v1/subjects:readmit", ["alice"]),
    ("/v1/signals", {"kind": "moon", "epoch": 1}),
    ("/v1/signals", {"kind": "epoch", "epoch": True}),
    ("/v1/signals", {"kind": "epoch", "epoch": -1}),
    ("/v1/signals", {"kind": "epoch", "epoch": 1, "scope": {"moon": "x"}}),
    ("/v1/signals", {"kind": "epoch", "epoch": 1, "scope": {"subject": [1]}}),
    ("/v1/erasures/er_001:release", {}),
    ("/v1/erasures/er_001:release", {"reason": "  "}),
]


@pytest.mark.parametrize(("path", "body"), BAD)
async def test_bad_bodies_are_400_and_quote_nothing(path: str, body: Any) -> None:
    async with office() as (desk, client, _):
        await desk.erasure(State.SETTLED, subject="alice")
        answer = await client.post(path, json=body, headers=OPERATOR)
        assert answer.status == 400, await answer.text()
        assert "alice" not in await answer.text()


@pytest.mark.parametrize(
    ("raw", "status"),
    [(b"{", 400), (b'{"subject": "a", "subject": "b", "reason": "r"}', 400), (b"[" * 60_000, 400),
     (b"\xff", 400), (b"x" * 70_000, 413)],
)  # fmt: skip
async def test_broken_bodies(raw: bytes, status: int) -> None:
    async with office() as (_, client, _world):
        headers = {**OPERATOR, "Content-Type": "application/json"}
        answer = await client.post("/v1/subjects:readmit", data=raw, headers=headers)
        assert answer.status == status


@pytest.mark.parametrize(
    "path", ["/v1/erasures/er_none", "/v1/erasures/er_none/events", "/v1/x", "/elsewhere"]
)
async def test_what_is_not_there_is_404(path: str) -> None:
    async with office() as (_, client, _world):
        answer = await client.get(path, headers=OPERATOR)
        assert (answer.status, answer.content_type) == (404, "application/problem+json")
        assert (await client.delete("/v1/erasures", headers=OPERATOR)).status == 405


async def test_the_description_has_every_route() -> None:
    paths = described(ROUTES)["paths"]
    assert {(method.upper(), path) for path, item in paths.items() for method in item} == {
        (route.method, route.path) for route in ROUTES}  # fmt: skip
    assert {p for p, item in paths.items() if item.get("get", {}).get("security") == []} == OPEN
