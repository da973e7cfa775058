"""Routes of the privacy office: demands to erase, their periods, and the receipts that an auditor gets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from aiohttp import web

from quietus.acts import BadAct
from quietus.admin.acting import fields
from quietus.admin.guard import IDENTITY, Refused, body_of, require
from quietus.admin.office import OFFICE, Office
from quietus.admin.reading import found
from quietus.admin.receipt_page import page
from quietus.admin.tokens import Role
from quietus.core.erasure import Erasure
from quietus.core.scope import overlaps
from quietus.demands import Demand
from quietus.order_views import override_view
from quietus.receipts import Circumstances, History, issue
from quietus.views import stamp

_TEXT_MAX: Final = 200


@require(Role.PRIVACY)
async def create(request: web.Request) -> web.StreamResponse:
    """`POST /v1/erasures`: an operator's demand. 201 with the erasure; 200 where one stands already."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    demand = demand_of(body, office.clock.now())
    erasure, new = await office.demands.create(demand, actor)
    salt = office.erasures.keyring.salt(erasure.id).hex()
    return web.json_response({**office.view(erasure), "receipt_salt": salt}, status=201 if new else 200)


def demand_of(body: Mapping[str, Any], now: float) -> Demand:
    """The demand in a body. Raises Refused, BadAct; their words quote nothing."""
    lists = ("subject", "keys", "purposes", "aliases")
    texts = ("path", "tenant", "basis", "reference", "received_at")
    fields(body, {}, {**dict.fromkeys(lists, object), **dict.fromkeys(texts, str), "capture": dict})
    capture = body.get("capture") or {}
    if not all(isinstance(value, str) and value for value in capture.values()):
        raise BadAct("capture: each value is a string")
    return Demand(
        subjects=_names(body, "subject"),
        keys=_names(body, "keys"),
        path=body.get("path") or "",
        tenant=body.get("tenant"),
        purposes=_names(body, "purposes"),
        aliases=_names(body, "aliases"),
        basis=_short(body, "basis"),
        reference=_short(body, "reference"),
        received_at=moment(body, "received_at", latest=now),
        capture=capture,
    )


def _names(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = body.get(name)
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
        raise BadAct(f"{name} is a string or a list of strings that is not empty")
    return tuple(dict.fromkeys(values))


def _short(body: Mapping[str, Any], name: str) -> str:
    text = " ".join((body.get(name) or "").split())
    if len(text) > _TEXT_MAX:
        raise BadAct(f"{name} is longer than {_TEXT_MAX} characters")
    return text


def moment(
    body: Mapping[str, Any], name: str, *, latest: float | None = None, needed: bool = False
) -> float | None:
    """A time of a body, RFC 3339 with its zone, as Unix seconds. Raises Refused."""
    text = body.get(name)
    if text is None and not needed:
        return None
    try:
        at = datetime.fromisoformat(str(text))
        if at.tzinfo is None:
            raise ValueError
        seconds = at.timestamp()
    except (ValueError, OverflowError):
        hint = "a date and time with its zone, such as 2027-03-01T00:00:00Z"
        raise Refused("malformed-request", f"{name} is {hint}") from None
    if latest is not None and seconds > latest:
        raise Refused("malformed-request", f"{name} lies ahead")
    return seconds


@require(Role.PRIVACY)
async def extend(request: web.Request) -> web.StreamResponse:
    """`POST /v1/erasures/{id}:extend`: the legal period, once, as the law of its basis allows."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"reason": str}, {})
    changed = await office.acts.extend(found(request).id, actor, body["reason"])
    return web.json_response(office.view(changed))


@require(Role.PRIVACY)
async def receipt(request: web.Request) -> web.StreamResponse:
    """`GET /v1/erasures/{id}/receipt`: signed JSON; with `Accept: text/html` the same for people to read."""
    office = request.app[OFFICE]
    erasure = found(request)
    if erasure.dossier.observed or office.observing():
        raise Refused("wrong-state", "observe mode withholds nothing, and so it gives no receipts")
    signed = await receipt_of(office, erasure)
    if "text/html" in request.headers.get("Accept", ""):
        answer = web.Response(text=page(signed), content_type="text/html", charset="utf-8")
        answer.headers["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'"
        return answer
    return web.json_response(signed)


@require(Role.PRIVACY)
async def salt(request: web.Request) -> web.StreamResponse:
    """`GET /v1/erasures/{id}/receipt/salt`: who has it and the name can prove whom the receipt is about."""
    keyring = request.app[OFFICE].erasures.keyring
    return web.json_response({"salt": keyring.salt(found(request).id).hex()})


async def receipt_of(office: Office, erasure: Erasure) -> dict[str, Any]:
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
        issued_at=stamp(now) or "",
        sequence=head.number,
        chain_head=head.hash,
        incarnation=head.incarnation,
        profile=(active.profile.name, active.profile.fingerprint),
        policy=(active.policy.name, active.policy.fingerprint),
        version=office.version,
        overrides=overrides,
        bypasses=office.metrics.bypasses(),
        running_since=stamp(office.started_at) or "",
    )
    view = office.view(office.erasures.gate.erasures[erasure.id])
    return issue(view, erasure.dossier.commitment, history, around, office.erasures.keyring)
