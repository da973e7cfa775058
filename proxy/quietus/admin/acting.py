"""Routes that do something: each act has its actor from the token, and stands in the ledger."""

from __future__ import annotations

from aiohttp import web

from quietus.acts import Signal
from quietus.admin.asked import ReadmitBody, ReasonBody, SignalBody, VerifyBody
from quietus.admin.guard import IDENTITY
from quietus.admin.office import OFFICE
from quietus.admin.reading import found
from quietus.admin.route import Accepted
from quietus.shown import ErasureView, Readmitted, Signalled


async def verify(request: web.Request, body: VerifyBody) -> Accepted[ErasureView]:
    """Has a probe round begun now."""
    office = request.app[OFFICE]
    changed = await office.acts.verify(found(request).id, request[IDENTITY].actor)
    return Accepted(office.view(changed))


async def retry(request: web.Request, body: ReasonBody) -> Accepted[ErasureView]:
    """Starts the wait anew, with a new bound."""
    office = request.app[OFFICE]
    changed = await office.acts.retry(found(request).id, request[IDENTITY].actor, body.reason)
    return Accepted(office.view(changed))


async def release(request: web.Request, body: ReasonBody) -> ErasureView:
    """Lifts the restriction although nothing was shown."""
    office = request.app[OFFICE]
    return office.view(await office.acts.release(found(request).id, request[IDENTITY].actor, body.reason))


async def escalate(request: web.Request, body: ReasonBody) -> ErasureView:
    """Says that people have taken it up."""
    office = request.app[OFFICE]
    return office.view(await office.acts.escalate(found(request).id, request[IDENTITY].actor, body.reason))


async def readmit(request: web.Request, body: ReadmitBody) -> Readmitted:
    """Lets an erased subject write again: the audited exit from a tombstone."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    changed = await office.acts.readmit(
        body.subject, body.tenant, body.reason, actor, allow_old=body.old_content == "allow_own"
    )
    return {"erasures": [office.view(erasure) for erasure in changed]}


async def signal(request: web.Request, body: SignalBody) -> Accepted[Signalled]:
    """The store says that its background work has reached an epoch. Idempotent."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    scope = body.scope.scope() if body.scope is not None else None
    changed = await office.acts.signal(Signal(body.kind, body.epoch, body.incarnation, scope), actor)
    return Accepted({"erasures": [erasure.id for erasure in changed]})
