"""Routes of standing orders: legal holds, break-glass overrides, and scopes quarantined by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from quietus.acts import BadAct, scope_of
from quietus.admin.acting import fields
from quietus.admin.demanding import moment
from quietus.admin.guard import IDENTITY, Refused, body_of, require
from quietus.admin.office import OFFICE
from quietus.admin.tokens import Role
from quietus.core.policy import seconds
from quietus.core.scope import Scope
from quietus.order_views import hold_view, override_view, quarantine_view

_SCOPE = {"subject": object, "keys": object, "path": object, "tenant": str, "purposes": object}


def _scope(body: Mapping[str, Any]) -> Scope:
    """The raw scope that a body names; a tenant alone is a scope, too. Raises BadAct."""
    words = {"subject": "subject", "keys": "key", "path": "path", "tenant": "tenant", "purposes": "purpose"}
    named = {words[name]: body[name] for name in words if body.get(name) is not None}
    if not named:
        raise BadAct("give at least one of subject, keys, path, tenant, purposes")
    for value in named.values():
        atoms = value if isinstance(value, list) else [value]
        if not atoms or not all(isinstance(atom, str) and atom for atom in atoms):
            raise BadAct("each of subject, keys, path and purposes is a string or a list of strings")
    return scope_of(named)


async def _ending(request: web.Request) -> tuple[str, str]:
    """What a DELETE names, in its path or its body, and why."""
    body = await body_of(request)
    given = request.match_info.get("id")
    fields(body, {"reason": str} if given else {"id": str, "reason": str}, {})
    return given or body["id"], body["reason"]


# --- holds ---------------------------------------------------------------------------------------


@require(Role.VIEWER)
async def holds(request: web.Request) -> web.StreamResponse:
    """`GET /v1/holds`: those that stand, oldest first."""
    orders = request.app[OFFICE].erasures.gate.orders
    views = []
    for hold in orders.holds.values():
        waiting = sum(hold in orders.holding(each.scope) for each in orders.deferred.values())
        views.append(hold_view(hold, waiting))
    return web.json_response({"holds": views, "next": None})


@require(Role.PRIVACY)
async def hold(request: web.Request) -> web.StreamResponse:
    """`POST /v1/holds`: forbids to erase in a scope, on a ground, until a date."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"exception": str, "until": str, "reason": str}, _SCOPE)
    until = moment(body, "until", needed=True)
    assert until is not None
    placed = await office.ordering.hold(_scope(body), body["exception"], until, body["reason"], actor)
    return web.json_response(hold_view(placed, 0), status=201)


@require(Role.PRIVACY)
async def lift(request: web.Request) -> web.StreamResponse:
    """`DELETE /v1/holds/{id}`: forgets that waited behind it begin, with their original dates."""
    name, reason = await _ending(request)
    await request.app[OFFICE].ordering.lift(name, reason, request[IDENTITY].actor)
    return web.Response(status=204)


# --- overrides -----------------------------------------------------------------------------------


@require(Role.VIEWER)
async def overrides(request: web.Request) -> web.StreamResponse:
    """`GET /v1/overrides`: those that are remembered, ended ones too."""
    office = request.app[OFFICE]
    now = office.clock.now()
    known = office.erasures.gate.orders.overrides.values()
    return web.json_response({"overrides": [override_view(o, now) for o in known], "next": None})


@require(Role.OPERATOR)
async def override(request: web.Request) -> web.StreamResponse:
    """`POST /v1/overrides`: break-glass; recalls that erasures would have blocked pass, marked."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"effect": str, "for": str, "reason": str}, {"tenant": str})
    if body["effect"] != "annotate":
        raise Refused("malformed-request", "effect is annotate: nothing passes without a mark")
    try:
        length = seconds(body["for"])
    except ValueError as error:
        raise Refused("malformed-request", f"for: {error}") from None
    begun = await office.ordering.override(length, body["reason"], actor, body.get("tenant"))
    return web.json_response(override_view(begun, office.clock.now()), status=201)


@require(Role.OPERATOR)
async def end_override(request: web.Request) -> web.StreamResponse:
    """`DELETE /v1/overrides/{id}`: before its time."""
    name, reason = await _ending(request)
    await request.app[OFFICE].ordering.end_override(name, reason, request[IDENTITY].actor)
    return web.Response(status=204)


# --- quarantines ---------------------------------------------------------------------------------


@require(Role.VIEWER)
async def quarantines(request: web.Request) -> web.StreamResponse:
    """`GET /v1/quarantines`: scopes that people have shut; those of erasures are `GET /v1/erasures`."""
    known = request.app[OFFICE].erasures.quarantines()
    return web.json_response({"quarantines": [quarantine_view(each) for each in known], "next": None})


@require(Role.OPERATOR)
async def quarantine(request: web.Request) -> web.StreamResponse:
    """`POST /v1/quarantines`: shuts a scope by hand."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"reason": str}, _SCOPE)
    placed = await office.ordering.quarantine(_scope(body), body["reason"], actor)
    return web.json_response(quarantine_view(placed), status=201)


@require(Role.OPERATOR)
async def lift_quarantine(request: web.Request) -> web.StreamResponse:
    """`DELETE /v1/quarantines/{id}`."""
    name, reason = await _ending(request)
    await request.app[OFFICE].ordering.lift_quarantine(name, reason, request[IDENTITY].actor)
    return web.Response(status=204)
