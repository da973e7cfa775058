"""Routes of receipts: signed for an auditor, as JSON or a page; and the salt that proves whom it is about."""

from __future__ import annotations

from aiohttp import web
from typing_extensions import TypedDict

from quietus.admin.guard import Refused
from quietus.admin.office import OFFICE, Office
from quietus.admin.reading import found
from quietus.admin.receipt_page import page
from quietus.admin.route import Page
from quietus.core.erasure import Erasure
from quietus.core.scope import overlaps
from quietus.order_views import override_view
from quietus.receipts import Circumstances, History, issue
from quietus.shown import shown
from quietus.shown_receipts import ReceiptView
from quietus.views import stamp


@shown
class SaltView(TypedDict):
    """What proves, together with the name, whom the receipts of an erasure are about."""

    salt: str


async def receipt(request: web.Request) -> ReceiptView | Page:
    """Its signed receipt; with `Accept: text/html` the same for people to read."""
    office = request.app[OFFICE]
    erasure = found(request)
    if erasure.dossier.observed or office.observing():
        raise Refused("wrong-state", "observe mode withholds nothing, and so it gives no receipts")
    signed = await receipt_of(office, erasure)
    return Page(page(signed)) if "text/html" in request.headers.get("Accept", "") else signed


async def salt(request: web.Request) -> SaltView:
    """What proves whom the receipt is about, to whoever has the name."""
    keyring = request.app[OFFICE].erasures.keyring
    return {"salt": keyring.salt(found(request).id).hex()}


async def receipt_of(office: Office, erasure: Erasure) -> ReceiptView:
    """The receipt of an erasure as it stands now."""
    now = office.clock.now()
    history = History(stamp)
    async for event in office.erasures.events(erasure.id):
        history.add(event)
    head = await office.erasures.ledger.head()
    active = office.active
    overrides = [
        override_view(override, now)
        for override in office.erasures.gate.orders.overrides.values()
        if override.during(erasure.requested_at, now) and overlaps(override.tenant, erasure.predicate)
    ]
    around = Circumstances(
        issued_at=stamp(now),
        sequence=head.number,
        chain_head=head.hash,
        incarnation=head.incarnation,
        profile=(active.profile.name, active.profile.fingerprint),
        policy=(active.policy.name, active.policy.fingerprint),
        version=office.version,
        overrides=overrides,
        bypasses=await office.figures.bypasses(),
        running_since=stamp(office.started_at),
    )
    view = office.view(office.erasures.gate.erasures[erasure.id])
    return issue(view, erasure.dossier.commitment, history, around, office.erasures.keyring)
