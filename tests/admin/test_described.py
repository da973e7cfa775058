"""The description against what is really answered: a field too many and a field too few are both failures.

Each route is called, and its answer held to the schema that the description has for it; then every field of
every answer is taken away once, and one that nobody described is put beside it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from typing_extensions import TypedDict

from quietus.admin.asked import Body
from quietus.admin.openapi import described
from quietus.admin.route import Created, Route, served
from quietus.admin.routes import ROUTES
from quietus.admin.tokens import Role
from quietus.core.events import EventType
from quietus.core.lineage import Coverage
from quietus.core.probing import Witness
from quietus.core.scope import DIMENSIONS
from quietus.core.states import State
from quietus.shown import PredicateView, shown
from quietus.snapshots import Descendant, facts_of
from tests.admin.desk import Desk, bearer, office
from tests.world import World

DOCUMENT = described(ROUTES)
WHY = {"reason": "case 12"}
AHEAD = "2027-06-01T00:00:00Z"
FREE = {"facts", "counts", "capture"}
"""What has no fields of its own: facts of events, counts by cause."""
MAY_LACK = {"predicate", "write"}
"""Only what an erasure names stands in its predicate."""


def schema_of(document: Any, method: str, path: str, status: int) -> Any:
    answer = document["paths"][path][method.lower()]["responses"][str(status)]
    schema = answer["content"]["application/json"]["schema"]
    return jsonschema_rs.validator_for({**schema, "components": document["components"]})


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every object in an answer that has fields of its own, the answer first; of a list its first."""
    if isinstance(value, dict) and not FREE & {way[-1] if way else ""}:
        yield way
        for name, each in value.items():
            yield from places(each, (*way, name))
    elif isinstance(value, list):
        for each in value[:1]:
            yield from places(each, (*way, 0))


def at(value: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        value = value[step]
    return value


def held(schema: Any, answer: Any) -> None:
    """The answer is as described; with a field more, or one less, it is not."""
    schema.validate(answer)
    for way in places(answer):
        more = copy.deepcopy(answer)
        at(more, way)["nobody_described_this"] = 1
        assert not schema.is_valid(more), f"{way}: a field that nobody described passes"
        for name in at(answer, way):
            less = copy.deepcopy(answer)
            del at(less, way)[name]
            assert (way and way[-1] in MAY_LACK) or not schema.is_valid(less), f"{way}: {name} may be missing"


CALLS: list[tuple[str, str, str, Any]] = [
    *(("GET", f"er_00{n}", "/v1/erasures/{id}", None) for n in range(1, 1 + len(State))),
    ("GET", "", "/v1/erasures", None),
    ("POST", "", "/v1/erasures", {"subject": "bob", "tenant": "acme", "basis": "gdpr_art17"}),
    ("GET", "er_001", "/v1/erasures/{id}/events", None),
    ("GET", "er_001", "/v1/erasures/{id}/receipt", None),
    ("GET", "er_001", "/v1/erasures/{id}/receipt/salt", None),
    *(("POST", "er_002", f"/v1/erasures/{{id}}:{act}", WHY)
      for act in ("verify", "retry", "escalate", "extend", "release")),
    ("POST", "", "/v1/subjects:readmit", {"subject": "alice", **WHY}),
    ("POST", "", "/v1/signals", {"kind": "epoch", "epoch": 7}),
    ("POST", "", "/v1/holds", {"path": "a/b", "exception": "gdpr_art17_3_e", "until": AHEAD, **WHY}),
    ("GET", "", "/v1/holds", None),
    ("POST", "", "/v1/overrides", {"effect": "annotate", "for": "60m", **WHY}),
    ("GET", "", "/v1/overrides", None),
    ("POST", "", "/v1/quarantines", {"path": "org/a", **WHY}),
    ("GET", "", "/v1/quarantines", None),
    ("GET", "", "/v1/unmapped", None), ("GET", "", "/v1/decisions", None),
    ("GET", "", "/healthz", None), ("GET", "", "/readyz", None), ("GET", "", "/version", None),
]  # fmt: skip
"""Each route that answers with a document, and what it is called with: method, id, path, body."""
WITHOUT = {"/metrics", "/v1/audit", "/openapi.json"}


def test_each_route_that_answers_with_a_document_is_called() -> None:
    listed = {(route.method, route.path) for route in ROUTES
              if route.method != "DELETE" and route.path not in WITHOUT}  # fmt: skip
    assert {(method, path) for method, _, path, _ in CALLS} == listed


async def lived(desk: Desk, world: World) -> None:
    """Erasures in every state, one of them with all that can be known of one; and calls of every kind."""
    for state in State:
        await desk.erasure(state, subject="alice", tenant="acme", path=("a",), purpose="p", key="k1")
    row = {"name": "record", "kind": "primary", "outcome": "LEAKING", "control": "live", "residual": 1,
           "probed_at": 5.0, "reason": "seen"}  # fmt: skip
    kin = Descendant(Witness(key="k2"), "ab" * 16, "cascade", "it quotes", "declared")
    facts = {"lineage": facts_of([kin], Coverage(1, 1, 0, None, ""), True), "residual_shared": 1}
    for name in ("er_001", "er_002"):
        await desk.event(name, EventType.SNAPSHOTTED, **facts)
        await desk.event(name, EventType.ROUND, surfaces=[row], outcome="leaking", counted=True)
    await world.write("k3", "carol likes tea", "carol")
    await world.recall("tea", subject="alice")
    await world.call("GET", "/nobody/described/this")
    await world.call("POST", "/v1/recall", {"query": "tea", "subject": 5})
    await world.call("POST", "/v1/recall", b"{")


async def test_what_is_answered_is_what_is_described_and_nothing_else() -> None:
    async with office() as (desk, client, world):
        await lived(desk, world)
        seen = {}
        for method, name, path, body in CALLS:
            answer = await client.request(
                method, path.replace("{id}", name), json=body, headers=bearer(Role.OPERATOR))  # fmt: skip
            assert answer.status < 300, (path, await answer.text())
            document = await answer.json()
            held(schema_of(DOCUMENT, method, path, answer.status), document)
            seen[method, path] = document
        problem = await (await client.get("/v1/nothing")).json()
        kind = DOCUMENT["components"]["schemas"]["Problem"]
        jsonschema_rs.validator_for(kind).validate(problem)
    assert all(seen["GET", "/v1/decisions"][name] for name in ("calls", "faulty", "unmapped"))
    assert seen["GET", "/v1/erasures/{id}/receipt"]["lineage"]["nodes"]


@shown
class Told(TypedDict):
    """An answer."""

    a: int


class Nothing(Body):
    """Nothing is asked."""


async def more(_request: web.Request, body: Nothing) -> Created[Told]:
    """Answers more than its type says."""
    return Created(Told(a=1, b=2))  # type: ignore[typeddict-unknown-key, typeddict-item]


async def less(_request: web.Request) -> Told:
    """Answers less than its type says."""
    return Told()  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("route", "status"), [
    (Route("POST", "/more", more), 201), (Route("GET", "/less", less), 200),
])  # fmt: skip
async def test_a_handler_that_answers_otherwise_than_its_type_is_found_out(route: Route, status: int) -> None:
    app = web.Application()
    app.router.add_route(route.method, route.pattern, served(route))
    async with TestClient(TestServer(app)) as client:
        answer = await client.request(route.method, route.path)
        assert answer.status == status
        document = await answer.json()
    assert not schema_of(described((route,)), route.method, route.path, status).is_valid(document)


def test_a_route_says_what_its_types_and_role_say() -> None:
    given = described((Route("POST", "/x/{id}", more, Role.PRIVACY, ("legal-hold",)),))["paths"]["/x/{id}"]
    assert sorted(given["post"]["responses"]) == ["201", *sorted(
        ["400", "401", "403", "404", "409", "413", "415", "421", "429", "500", "503"])]  # fmt: skip
    assert "legal-hold" in given["post"]["responses"]["409"]["description"]
    assert given["post"]["requestBody"]["required"] is False
    assert [one["name"] for one in given["post"]["parameters"]] == ["id"]
    open_ = described((Route("GET", "/y", less),))["paths"]["/y"]["get"]
    assert open_["security"] == [] and "401" not in open_["responses"]


def test_a_predicate_is_shown_with_every_dimension() -> None:
    assert set(PredicateView.__annotations__) == set(DIMENSIONS)
