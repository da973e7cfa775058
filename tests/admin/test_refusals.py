"""Every route of the admin API against whoever may not: refused, and the refusal is in the chain."""

from __future__ import annotations

from typing import Any

import pytest

from quietus.admin.openapi import described
from quietus.admin.routes import ROUTES
from quietus.admin.tokens import Role
from quietus.core.events import EventType
from tests.admin.desk import bearer, office

CALLS = [(route.method, route.path.replace("{id}", "er_001")) for route in ROUTES]
GUARDED = [(method, path) for method, path in CALLS if path.startswith("/v1/")]


def least(method: str, path: str) -> Role:
    """The role that the description asks for."""
    paths: dict[str, Any] = described(ROUTES)["paths"]
    known = paths.get(path.replace("er_001", "{id}")) or paths[path]
    return Role[known[method.lower()]["description"].split()[-1].rstrip(".").upper()]


def test_every_route_is_here() -> None:
    assert len(GUARDED) > 25 and len(CALLS) - len(GUARDED) == 5


@pytest.mark.parametrize(("method", "path"), CALLS)
async def test_whoever_may_not_is_refused_and_it_is_in_the_chain(method: str, path: str) -> None:
    good = bearer(Role.OPERATOR)
    tried: list[tuple[str, dict[str, str], int, str]] = [
        ("a foreign host", {**good, "Host": "evil.example"}, 421, "unknown"),
        ("a foreign origin", {**good, "Origin": "http://evil.example"}, 403, "unknown"),
    ]
    if (method, path) in GUARDED:
        wrong = {"Authorization": "Bearer no"}
        tried += [("no token", {}, 401, "unknown"), ("a wrong one", wrong, 401, "unknown")]
        lower = [role for role in Role if role < least(method, path)]
        tried += [(role.name, bearer(role), 403, f"{role.name.lower()}@example") for role in lower]
    async with office() as (desk, client, _):
        await desk.erasure()
        before = desk.erasures.get("er_001")
        for what, headers, status, actor in tried:
            count = len(await desk.events())
            answer = await client.request(method, path, headers=headers)
            assert answer.status == status, (what, answer.status)
            assert answer.content_type == "application/problem+json"
            (event,) = (await desk.events())[count:]
            assert (event.type, event.actor) == (EventType.ACCESSED, actor), what
            assert event.facts["refused"] == ("unauthenticated" if status == 401 else "forbidden")
            assert event.facts["method"] == method
            assert "er_001" not in str(event.facts)
        assert desk.erasures.get("er_001") == before, "nothing was done"
