"""Routes of the privacy office: demands to erase, and the period that the law gives for them."""

from __future__ import annotations

from aiohttp import web

from quietus.acts import BadAct
from quietus.admin.asked import DemandBody, ReasonBody, atoms
from quietus.admin.guard import IDENTITY
from quietus.admin.office import OFFICE
from quietus.admin.reading import found
from quietus.admin.route import Answer, Created
from quietus.demands import Demand
from quietus.shown import ErasureCreated, ErasureView


async def create(request: web.Request, body: DemandBody) -> Created[ErasureCreated] | Answer[ErasureCreated]:
    """Demands an erasure: 201 once the gate is shut, 200 where one stands already."""
    office = request.app[OFFICE]
    demand = demand_of(body, office.clock.now())
    erasure, new = await office.demands.create(demand, request[IDENTITY].actor)
    salt = office.erasures.keyring.salt(erasure.id).hex()
    shown: ErasureCreated = {**office.view(erasure), "receipt_salt": salt}
    return Created(shown) if new else Answer(shown)


def demand_of(body: DemandBody, now: float) -> Demand:
    """The demand in a body. Raises BadAct."""
    if body.received_at is not None and body.received_at > now:
        raise BadAct("received_at lies ahead")
    return Demand(
        subjects=atoms(body.subject),
        keys=atoms(body.keys),
        path=body.path or "",
        tenant=body.tenant,
        purposes=atoms(body.purposes),
        aliases=atoms(body.aliases),
        basis=body.basis or "",
        reference=body.reference or "",
        received_at=body.received_at,
        capture=body.capture or {},
    )


async def extend(request: web.Request, body: ReasonBody) -> ErasureView:
    """Extends its legal period, once, as the law of its basis allows."""
    office = request.app[OFFICE]
    return office.view(await office.acts.extend(found(request).id, request[IDENTITY].actor, body.reason))
