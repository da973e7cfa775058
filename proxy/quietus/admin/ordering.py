"""Routes of standing orders: legal holds, break-glass overrides, and scopes quarantined by hand."""

from __future__ import annotations

from aiohttp import web

from quietus.admin.asked import EndBody, HoldBody, OverrideBody, QuarantineBody, ReasonBody
from quietus.admin.guard import IDENTITY
from quietus.admin.office import OFFICE
from quietus.admin.route import Created
from quietus.order_views import hold_view, override_view, quarantine_view
from quietus.shown import Holds, HoldView, Overrides, OverrideView, Quarantines, QuarantineView

# --- holds ---------------------------------------------------------------------------------------


async def holds(request: web.Request) -> Holds:
    """Lists holds that stand, oldest first."""
    orders = request.app[OFFICE].erasures.gate.orders
    views = []
    for hold in orders.holds.values():
        waiting = sum(hold in orders.holding(each.scope) for each in orders.deferred.values())
        views.append(hold_view(hold, waiting))
    return {"holds": views, "next": None}


async def hold(request: web.Request, body: HoldBody) -> Created[HoldView]:
    """Forbids to erase in a scope, on a ground, until a date."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    placed = await office.ordering.hold(body.scope(), body.exception, body.until, body.reason, actor)
    return Created(hold_view(placed, 0))


async def lift_by_body(request: web.Request, body: EndBody) -> None:
    """Lifts the hold that the body names."""
    await request.app[OFFICE].ordering.lift(body.id, body.reason, request[IDENTITY].actor)


async def lift(request: web.Request, body: ReasonBody) -> None:
    """Lifts a hold: forgets that waited behind it begin, with their original dates."""
    name = request.match_info["id"]
    await request.app[OFFICE].ordering.lift(name, body.reason, request[IDENTITY].actor)


# --- overrides -----------------------------------------------------------------------------------


async def overrides(request: web.Request) -> Overrides:
    """Lists overrides that are remembered, ended ones too."""
    office = request.app[OFFICE]
    now = office.clock.now()
    known = office.erasures.gate.orders.overrides.values()
    return {"overrides": [override_view(o, now) for o in known], "next": None}


async def override(request: web.Request, body: OverrideBody) -> Created[OverrideView]:
    """Break-glass: recalls that erasures would have blocked pass, marked, for a time."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    begun = await office.ordering.override(body.lasts, body.reason, actor, body.tenant)
    return Created(override_view(begun, office.clock.now()))


async def end_override_by_body(request: web.Request, body: EndBody) -> None:
    """Ends the override that the body names."""
    await request.app[OFFICE].ordering.end_override(body.id, body.reason, request[IDENTITY].actor)


async def end_override(request: web.Request, body: ReasonBody) -> None:
    """Ends an override before its time."""
    name = request.match_info["id"]
    await request.app[OFFICE].ordering.end_override(name, body.reason, request[IDENTITY].actor)


# --- quarantines ---------------------------------------------------------------------------------


async def quarantines(request: web.Request) -> Quarantines:
    """Lists scopes that people have shut; those of erasures are `GET /v1/erasures`."""
    known = request.app[OFFICE].erasures.quarantines()
    return {"quarantines": [quarantine_view(each) for each in known], "next": None}


async def quarantine(request: web.Request, body: QuarantineBody) -> Created[QuarantineView]:
    """Shuts a scope by hand."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    return Created(quarantine_view(await office.ordering.quarantine(body.scope(), body.reason, actor)))


async def lift_quarantine_by_body(request: web.Request, body: EndBody) -> None:
    """Opens the scope that the body names."""
    await request.app[OFFICE].ordering.lift_quarantine(body.id, body.reason, request[IDENTITY].actor)


async def lift_quarantine(request: web.Request, body: ReasonBody) -> None:
    """Opens a scope that people have shut."""
    name = request.match_info["id"]
    await request.app[OFFICE].ordering.lift_quarantine(name, body.reason, request[IDENTITY].actor)
