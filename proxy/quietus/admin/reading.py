"""Routes that only look: erasures, their events, the audit log, unmapped routes."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, Final

from aiohttp import web

from quietus.admin.guard import Refused, require
from quietus.admin.office import OFFICE, Office
from quietus.admin.tokens import Role
from quietus.core.erasure import Erasure
from quietus.core.policy import UNSETTLED_WORD
from quietus.core.scope import Scope, Wild
from quietus.core.states import State
from quietus.core.verdict import Word
from quietus.views import event_view, stamp

PAGE: Final = 50
PAGE_MAX: Final = 500
WAIT_MAX: Final = 60.0
EVENTS_MAX: Final = 10_000


def known(request: web.Request, *names: str) -> None:
    """Refuses what the query says beside these, or says twice. Raises Refused."""
    if set(request.query) - set(names) or len(request.query) != len(set(request.query)):
        raise Refused("malformed-request", f"known here, once each: {', '.join(sorted(names)) or 'nothing'}")


def numbered(request: web.Request, name: str, default: int, most: int) -> int:
    """A whole number of the query, between nothing and `most`. Raises Refused."""
    text = request.query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise Refused("malformed-request", f"{name} is not a whole number")
    return min(int(text), most)


def found(request: web.Request) -> Erasure:
    """The erasure that the path names. Raises Refused."""
    erasure = request.app[OFFICE].erasures.get(request.match_info["id"])
    if erasure is None or erasure.by_hand:
        raise Refused("not-found", "no erasure of that id is known here")
    return erasure


@require(Role.VIEWER)
async def list_erasures(request: web.Request) -> web.StreamResponse:
    """Erasures, newest first, filtered and paged."""
    office = request.app[OFFICE]
    known(request, "state", "verdict", "subject", "tenant", "limit", "cursor")
    limit = max(1, numbered(request, "limit", PAGE, PAGE_MAX))
    below = numbered(request, "cursor", 1 << 62, 1 << 62)
    states, word, subject = _states(request), _word(request), _subject(request, office)
    matching = (
        erasure
        for erasure in reversed(list(office.erasures.all()))
        if erasure.epoch < below
        and (states is None or erasure.state in states)
        and (subject is None or _names(erasure, subject))
        and (word is None or office.verdict(erasure).word is word)
    )
    page = list(islice(matching, limit + 1))
    following = str(page[limit - 1].epoch) if len(page) > limit else None
    return web.json_response({"erasures": [office.view(e) for e in page[:limit]], "next": following})


def _states(request: web.Request) -> set[State] | None:
    given = request.query.get("state")
    if given is None:
        return None
    wanted: set[State] = set()
    for name in given.split(","):
        if name == UNSETTLED_WORD:
            wanted |= {s for s in State if s not in (State.SETTLED, State.REFUSED, State.RELEASED)}
        elif name in set(State):
            wanted.add(State(name))
        else:
            raise Refused("malformed-request", f"state is one of: unsettled, {', '.join(State)}")
    return wanted


def _word(request: web.Request) -> Word | None:
    given = request.query.get("verdict")
    if given is None:
        return None
    if given not in set(Word):
        raise Refused("malformed-request", f"verdict is one of: {', '.join(Word)}")
    return Word(given)


def _subject(request: web.Request, office: Office) -> Scope | None:
    given, tenant = request.query.get("subject"), request.query.get("tenant")
    if given is None and tenant is None:
        return None
    raw: dict[str, Any] = {}
    if given:
        raw["subject"] = frozenset({given})
    if tenant:
        raw["tenant"] = frozenset({tenant})
    return office.erasures.keyring.pseudonymise(Scope(**raw))


def _names(erasure: Erasure, wanted: Scope) -> bool:
    for asked, held in (
        (wanted.subject, erasure.predicate.subject),
        (wanted.tenant, erasure.predicate.tenant),
    ):
        if not isinstance(asked, Wild) and (isinstance(held, Wild) or held.isdisjoint(asked)):
            return False
    return True


@require(Role.VIEWER)
async def show_erasure(request: web.Request) -> web.StreamResponse:
    """One erasure; `?wait=N` answers when it changes, or after so many seconds."""
    office = request.app[OFFICE]
    erasure = found(request)
    known(request, "wait")
    wait = numbered(request, "wait", 0, int(WAIT_MAX))
    if wait:
        await office.erasures.changed(erasure.id, float(wait))
    return web.json_response(office.view(found(request)))


@require(Role.VIEWER)
async def list_events(request: web.Request) -> web.StreamResponse:
    """The events of one erasure, oldest first."""
    office = request.app[OFFICE]
    erasure = found(request)
    known(request, "after", "limit")
    after = numbered(request, "after", 0, 1 << 62)
    limit = max(1, numbered(request, "limit", PAGE_MAX, EVENTS_MAX))
    views: list[dict[str, Any]] = []
    async for event in office.erasures.events(erasure.id, after):
        if len(views) == limit:
            return web.json_response({"events": views, "next": str(views[-1]["number"])})
        views.append(event_view(event))
    return web.json_response({"events": views, "next": None})


@require(Role.VIEWER)
async def audit(request: web.Request) -> web.StreamResponse:
    """The ledger as JSON lines, from a number on; ask again after the last number to follow it."""
    office = request.app[OFFICE]
    known(request, "after", "limit")
    after = numbered(request, "after", 0, 1 << 62)
    limit = max(1, numbered(request, "limit", EVENTS_MAX, EVENTS_MAX))
    lines: list[str] = []
    async for event in office.erasures.events(after=after):
        lines.append(json.dumps(event_view(event), separators=(",", ":")) + "\n")
        if len(lines) == limit:
            break
    return web.Response(text="".join(lines), content_type="application/x-ndjson")


@require(Role.OPERATOR)
async def decisions(request: web.Request) -> web.StreamResponse:
    """What was decided since the process began, by what policies can ask: no content, no subject."""
    office = request.app[OFFICE]
    counted = office.decided
    unmapped = [{"shape": each["shape"], "count": each["count"]} for each in office.unmapped()]
    told = {"since": stamp(counted.since), "policy": office.active.policy.name, **counted.listed()}
    return web.json_response({**told, "unmapped": unmapped})


@require(Role.VIEWER)
async def unmapped(request: web.Request) -> web.StreamResponse:
    """The shapes of requests that the profile does not describe, without ids."""
    return web.json_response({"routes": request.app[OFFICE].unmapped()})
