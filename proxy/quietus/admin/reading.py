"""Routes that only look: erasures, their events, the audit log, unmapped routes."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from aiohttp import web

from quietus.admin.asked import (
    EVENTS_MAX,
    PAGE_MAX,
    WAIT_MAX,
    AuditQuery,
    ErasuresQuery,
    PageQuery,
    WaitQuery,
)
from quietus.admin.guard import IDENTITY, Refused
from quietus.admin.office import OFFICE, Office
from quietus.admin.route import Lines
from quietus.core.erasure import Erasure
from quietus.core.policy import UNSETTLED_WORD
from quietus.core.scope import Scope, Wild
from quietus.core.states import UNSETTLED, State
from quietus.shown import ErasuresPage, ErasureView, EventsPage, EventView, Unmapped
from quietus.shown_decisions import DecisionsView
from quietus.views import event_view, stamp


def found(request: web.Request) -> Erasure:
    """The erasure that the path names. Raises Refused."""
    erasure = request.app[OFFICE].erasures.get(request.match_info["id"])
    if erasure is None or erasure.by_hand:
        raise Refused("not-found", "no erasure of that id is known here")
    return erasure


async def list_erasures(request: web.Request, query: ErasuresQuery) -> ErasuresPage:
    """Erasures, newest first, filtered and paged."""
    office = request.app[OFFICE]
    limit = max(1, min(query.limit, PAGE_MAX))
    below = 1 << 62 if query.cursor is None else int(query.cursor)
    states, subject = _states(query.state), _subject(query, office)
    matching = (
        erasure
        for erasure in office.erasures.shelf.newest_first()
        if erasure.epoch < below
        and not erasure.by_hand
        and (states is None or erasure.state in states)
        and (subject is None or _names(erasure, subject))
        and (query.verdict is None or office.verdict(erasure).word is query.verdict)
    )
    page = list(islice(matching, limit + 1))
    following = str(page[limit - 1].epoch) if len(page) > limit else None
    return {"erasures": [office.view(e) for e in page[:limit]], "next": following}


def _states(given: str | None) -> set[State] | None:
    if given is None:
        return None
    names = set(given.split(","))
    return {s for s in State if s in names or (UNSETTLED_WORD in names and s in UNSETTLED)}


def _subject(query: ErasuresQuery, office: Office) -> Scope | None:
    if query.subject is None and query.tenant is None:
        return None
    raw: dict[str, Any] = {}
    if query.subject:
        raw["subject"] = frozenset({query.subject})
    if query.tenant:
        raw["tenant"] = frozenset({query.tenant})
    return office.erasures.keyring.pseudonymise(Scope(**raw))


def _names(erasure: Erasure, wanted: Scope) -> bool:
    for asked, held in (
        (wanted.subject, erasure.predicate.subject),
        (wanted.tenant, erasure.predicate.tenant),
    ):
        if not isinstance(asked, Wild) and (isinstance(held, Wild) or held.isdisjoint(asked)):
            return False
    return True


async def show_erasure(request: web.Request, query: WaitQuery) -> ErasureView:
    """One erasure; with `wait` it is answered when it changes, or after so many seconds."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    erasure = found(request)
    if query.wait:
        if not office.paces.wait(actor):
            raise Refused("overloaded", "this actor waits for as many changes as it may at a time")
        try:
            await office.erasures.changed(erasure.id, float(min(query.wait, WAIT_MAX)))
        finally:
            office.paces.waited(actor)
    return office.view(found(request))


async def list_events(request: web.Request, query: PageQuery) -> EventsPage:
    """The events of one erasure, oldest first."""
    erasure = found(request)
    limit = max(1, min(query.limit, EVENTS_MAX))
    views: list[EventView] = []
    async for event in request.app[OFFICE].erasures.events(erasure.id, query.after):
        if len(views) == limit:
            return {"events": views, "next": str(views[-1]["number"])}
        views.append(event_view(event))
    return {"events": views, "next": None}


async def audit(request: web.Request, query: AuditQuery) -> Lines:
    """The ledger as JSON lines, from a number on; ask again after the last number to follow it."""
    limit = max(1, min(query.limit, EVENTS_MAX))
    lines: list[str] = []
    async for event in request.app[OFFICE].erasures.events(after=query.after):
        lines.append(json.dumps(event_view(event), separators=(",", ":")) + "\n")
        if len(lines) == limit:
            break
    return Lines("".join(lines))


async def decisions(request: web.Request) -> DecisionsView:
    """What was decided, counted by what policies can ask: no content, no subject."""
    office = request.app[OFFICE]
    return {
        "since": stamp(office.counting_since()), "policy": office.active.policy.name,
        **await office.figures.decisions(), "unmapped": await office.figures.unmapped(),
    }  # fmt: skip


async def unmapped(request: web.Request) -> Unmapped:
    """The shapes of requests that the profile does not describe, without ids."""
    return {"routes": await request.app[OFFICE].figures.unmapped()}
