"""Demands, holds, overrides and quarantines over the admin API: what is taken, refused, and shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from quietus.admin.tokens import Role
from quietus.core.events import EventType
from tests.admin.desk import bearer, office

AHEAD = "2027-06-01T00:00:00Z"
HOLD = {"subject": "alice", "exception": "gdpr_art17_3_e", "until": AHEAD, "reason": "case 12"}
OVERRIDE = {"effect": "annotate", "for": "60m", "reason": "incident 12"}
QUARANTINE = {"path": "org/a", "reason": "under review"}


async def sent(client: Any, method: str, path: str, body: Any = None, role: Role = Role.OPERATOR) -> Any:
    return await client.request(method, path, json=body, headers=bearer(role))


@pytest.mark.requirement("R107")
async def test_a_demand_is_created_with_its_dates_and_shown_without_its_names() -> None:
    async with office() as (desk, client, _):
        body = {"subject": ["alice", "a.moreau@example.org"], "tenant": "acme", "aliases": ["Moreau"],
                "basis": "ccpa_1798_105", "reference": "ticket 4711",
                "received_at": "2026-11-01T09:00:00+01:00"}  # fmt: skip
        answer = await sent(client, "POST", "/v1/erasures", body, Role.PRIVACY)
        assert answer.status == 201, await answer.text()
        text = await answer.text()
        found = await answer.json()
        assert found["state"] == "requested" and found["basis"] == "ccpa_1798_105"
        assert found["received_at"] == "2026-11-01T08:00:00.000Z"
        due = datetime.fromisoformat(found["due_at"]) - datetime.fromisoformat(found["received_at"])
        assert due.days == 45
        assert len(found["predicate"]["subject"]) == 2 and "alice" not in text and "oreau" not in text
        again = await sent(client, "POST", "/v1/erasures", body, Role.PRIVACY)
        assert again.status == 200 and (await again.json())["id"] == found["id"]
        longer = await sent(client, "POST", f"/v1/erasures/{found['id']}:extend", {"reason": "complex"})
        due = datetime.fromisoformat((await longer.json())["due_at"]) - datetime.fromisoformat(
            found["received_at"])  # fmt: skip
        assert longer.status == 200 and due.days == 90
        twice = await sent(client, "POST", f"/v1/erasures/{found['id']}:extend", {"reason": "complex"})
        assert twice.status == 409
        events = await desk.events(found["id"])
        assert [e.actor for e in events if e.type is EventType.EXTENDED] == ["operator@example"]


@pytest.mark.parametrize(
    "body",
    [
        {}, {"subject": []}, {"subject": 5}, {"subject": {"a": 1}}, {"subject": "alice", "keys": ["k"]},
        {"subject": ["alice", 5]}, {"subject": ""}, {"path": "//"}, {"subject": "alice", "unknown": 1},
        {"subject": "alice", "received_at": "yesterday"}, {"subject": "alice", "received_at": "2026-11-01"},
        {"subject": "alice", "received_at": "2126-11-01T00:00:00Z"}, {"subject": "alice", "basis": "x" * 201},
        {"subject": "alice", "reference": "for alice"}, {"subject": "alice", "tenant": ["a"]},
        {"subject": "alice", "capture": {"a": 1}}, {"keys": ["k"] * 3, "purposes": "x" * 9, "aliases": [""]},
    ],
)  # fmt: skip
async def test_a_bad_demand_is_refused_and_nothing_is_written(body: Any) -> None:
    async with office() as (desk, client, _):
        answer = await sent(client, "POST", "/v1/erasures", body)
        assert answer.status == 400, await answer.text()
        assert "alice" not in await answer.text()
        assert not [e for e in await desk.events() if e.type is EventType.REQUESTED]


@pytest.mark.requirement("R207")
async def test_a_hold_is_placed_shown_meant_and_lifted() -> None:
    async with office() as (desk, client, _):
        placed = await sent(client, "POST", "/v1/holds", HOLD, Role.PRIVACY)
        assert placed.status == 201, await placed.text()
        name = (await placed.json())["id"]
        refused = await sent(client, "POST", "/v1/erasures", {"subject": "alice"}, Role.PRIVACY)
        assert refused.status == 409 and (await refused.json())["reason"] == "LEGAL_HOLD"
        listed = await sent(client, "GET", "/v1/holds", role=Role.VIEWER)
        (one,) = (await listed.json())["holds"]
        assert (one["waiting"], one["actor"], one["exception"]) == (1, "privacy@example", "gdpr_art17_3_e")
        assert "alice" not in await listed.text() and one["until"] == "2027-06-01T00:00:00.000Z"
        assert (await sent(client, "DELETE", f"/v1/holds/{name}", {}, Role.PRIVACY)).status == 400
        lifted = await sent(client, "DELETE", f"/v1/holds/{name}", {"reason": "over"}, Role.PRIVACY)
        assert lifted.status == 204
        assert [e.state.value for e in desk.erasures.all()] == ["requested"]
        gone = await sent(client, "DELETE", "/v1/holds", {"id": name, "reason": "over"}, Role.PRIVACY)
        assert gone.status == 404
        ends = [e.facts["reason"] for e in await desk.events() if e.type is EventType.HOLD_LIFTED]
        assert ends == ["over"]


@pytest.mark.requirement("R195")
async def test_a_quarantine_is_listed_added_and_lifted_with_actor_and_reason() -> None:
    async with office() as (desk, client, _):
        placed = await sent(client, "POST", "/v1/quarantines", QUARANTINE)
        assert placed.status == 201, await placed.text()
        name = (await placed.json())["id"]
        (one,) = (await (await sent(client, "GET", "/v1/quarantines")).json())["quarantines"]
        assert (one["id"], one["actor"], one["reason"]) == (name, "operator@example", "under review")
        assert (await (await sent(client, "GET", "/v1/erasures")).json())["erasures"] == []
        assert (await sent(client, "GET", f"/v1/erasures/{name}")).status == 404
        assert (await sent(client, "POST", f"/v1/erasures/{name}:release", {"reason": "x"})).status == 404
        lifted = await sent(client, "DELETE", f"/v1/quarantines/{name}", {"reason": "reviewed"})
        assert lifted.status == 204
        assert (await (await sent(client, "GET", "/v1/quarantines")).json())["quarantines"] == []
        assert (await sent(client, "DELETE", f"/v1/quarantines/{name}", {"reason": "again"})).status == 404
        acts = [(e.type.value, e.actor) for e in await desk.events() if e.erasure == name]
        assert acts == [("quarantined", "operator@example"), ("quarantine_lifted", "operator@example")]


async def test_an_override_is_begun_and_ended_and_stands_in_receipts() -> None:
    async with office() as (desk, client, _):
        erasure = await desk.erasure()
        begun = await sent(client, "POST", "/v1/overrides", OVERRIDE)
        assert begun.status == 201, await begun.text()
        one = await begun.json()
        assert one["active"] and one["until"] > one["begun_at"]
        await desk.clock.advance(60.0)
        ended = await sent(client, "DELETE", f"/v1/overrides/{one['id']}", {"reason": "over"})
        assert ended.status == 204
        (known,) = (await (await sent(client, "GET", "/v1/overrides")).json())["overrides"]
        assert not known["active"] and known["reason"] == "incident 12"
        receipt = await (await sent(client, "GET", f"/v1/erasures/{erasure.id}/receipt")).json()
        assert [each["id"] for each in receipt["overrides"]] == [one["id"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/holds", {**HOLD, "until": "2020-01-01T00:00:00Z"}), ("/v1/holds", {**HOLD, "until": "soon"}),
        ("/v1/holds", {**HOLD, "reason": " "}), ("/v1/holds", {**HOLD, "reason": "Alice again"}),
        ("/v1/holds", {n: v for n, v in HOLD.items() if n != "exception"}),
        ("/v1/holds", {n: v for n, v in HOLD.items() if n != "subject"}),
        ("/v1/overrides", {**OVERRIDE, "for": "25h"}), ("/v1/overrides", {**OVERRIDE, "for": "soon"}),
        ("/v1/overrides", {**OVERRIDE, "effect": "allow"}), ("/v1/overrides", {**OVERRIDE, "reason": ""}),
        ("/v1/quarantines", {"reason": "everything"}), ("/v1/quarantines", {"path": [], "reason": "x"}),
        ("/v1/quarantines", {"path": 5, "reason": "x"}),
        ("/v1/quarantines", {**QUARANTINE, "reason": "x" * 501}),
    ],
)  # fmt: skip
async def test_a_bad_order_is_refused_and_nothing_is_written(path: str, body: Any) -> None:
    async with office() as (desk, client, _):
        answer = await sent(client, "POST", path, body)
        assert answer.status == 400, await answer.text()
        assert not await desk.events()


@pytest.mark.parametrize(
    ("method", "path", "body", "role"),
    [
        ("POST", "/v1/erasures", {"subject": "a"}, Role.VIEWER),
        ("POST", "/v1/holds", HOLD, Role.VIEWER),
        ("POST", "/v1/overrides", OVERRIDE, Role.PRIVACY),
        ("DELETE", "/v1/overrides/ov_1", {"reason": "x"}, Role.PRIVACY),
        ("POST", "/v1/quarantines", QUARANTINE, Role.PRIVACY),
        ("DELETE", "/v1/quarantines/qu_1", {"reason": "x"}, Role.PRIVACY),
        ("DELETE", "/v1/holds/ho_1", {"reason": "x"}, Role.VIEWER),
    ],
)
async def test_each_act_needs_its_role(method: str, path: str, body: Any, role: Role) -> None:
    async with office() as (desk, client, _):
        assert (await sent(client, method, path, body, role)).status == 403
        assert (await client.request(method, path, json=body)).status == 401
        assert {e.type for e in await desk.events()} == {EventType.ACCESSED}


@pytest.mark.requirement("R157")
async def test_nothing_is_changed_while_the_gate_is_shut_for_everything() -> None:
    """A hold that was written to a ledger which may lose it must not be acknowledged."""
    async with office() as (desk, client, _):
        desk.erasures.closed_cause = "ledger"
        for path, body in (("/v1/holds", HOLD), ("/v1/overrides", OVERRIDE), ("/v1/quarantines", QUARANTINE),
                           ("/v1/erasures", {"subject": "alice"})):  # fmt: skip
            answer = await sent(client, "POST", path, body)
            assert answer.status == 503 and (await answer.json())["type"].endswith("ledger-unavailable")
        assert not await desk.events()
        assert (await sent(client, "GET", "/v1/holds")).status == 200
