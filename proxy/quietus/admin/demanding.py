"""Routes of the privacy office: demands to erase, and the period that the law gives for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from aiohttp import web

from quietus.acts import BadAct
from quietus.admin.acting import fields
from quietus.admin.guard import IDENTITY, Refused, body_of, require
from quietus.admin.office import OFFICE
from quietus.admin.reading import found
from quietus.admin.tokens import Role
from quietus.demands import Demand

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
