"""Routes that do something: each act has its actor from the token, and stands in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from quietus.acts import BadAct, Signal, scope_of
from quietus.admin.guard import IDENTITY, Refused, body_of, require
from quietus.admin.office import OFFICE
from quietus.admin.reading import found
from quietus.admin.tokens import Role
from quietus.core.scope import DIMENSIONS

INCARNATION_MAX: Final = 128


def fields(body: Mapping[str, Any], required: Mapping[str, type], optional: Mapping[str, type]) -> None:
    """Checks names and types of a body's fields. Raises Refused; its words name fields, never values."""
    unknown = set(body) - required.keys() - optional.keys()
    if unknown:
        names = ", ".join([*required, *optional])
        raise Refused("malformed-request", f"an unknown field; known here: {names}")
    for name, kind in required.items():
        if name not in body:
            raise Refused("malformed-request", f"{name} is missing")
        _typed(body, name, kind)
    for name, kind in optional.items():
        if body.get(name) is not None:
            _typed(body, name, kind)


def _typed(body: Mapping[str, Any], name: str, kind: type) -> None:
    value = body[name]
    if kind is int and isinstance(value, float) and value.is_integer():
        return  # JSON has one kind of number
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refused("malformed-request", f"{name} is not of the type {_WORDS[kind]}")


_WORDS: Final[dict[type, str]] = {str: "string", int: "whole number", dict: "object"}


@require(Role.OPERATOR)
async def act(request: web.Request) -> web.StreamResponse:
    """`POST /v1/erasures/{id}:verify`, `:retry`, `:release`, `:escalate`."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    erasure, name = found(request).id, request.match_info["act"]
    body = await body_of(request)
    if name == "verify":
        fields(body, {}, {"reason": str})
        changed = await office.acts.verify(erasure, actor)
    else:
        fields(body, {"reason": str}, {})
        does = {"retry": office.acts.retry, "release": office.acts.release, "escalate": office.acts.escalate}
        changed = await does[name](erasure, actor, body["reason"])
    return web.json_response(office.view(changed), status=202 if name in ("verify", "retry") else 200)


@require(Role.PRIVACY)
async def readmit(request: web.Request) -> web.StreamResponse:
    """`POST /v1/subjects:readmit`: the audited exit from a tombstone."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"subject": str, "reason": str}, {"tenant": str, "old_content": str})
    old = body.get("old_content") or "refuse"
    if old not in ("refuse", "allow_own"):
        raise Refused("malformed-request", "old_content is refuse or allow_own")
    changed = await office.acts.readmit(
        body["subject"], body.get("tenant"), body["reason"], actor, allow_old=old == "allow_own"
    )
    return web.json_response({"erasures": [office.view(erasure) for erasure in changed]})


@require(Role.OPERATOR)
async def signal(request: web.Request) -> web.StreamResponse:
    """`POST /v1/signals`: the store says that its background work has reached an epoch. Idempotent."""
    office, actor = request.app[OFFICE], request[IDENTITY].actor
    body = await body_of(request)
    fields(body, {"kind": str, "epoch": int}, {"incarnation": str, "scope": dict})
    if body["kind"] not in ("compaction_complete", "epoch"):
        raise Refused("malformed-request", "kind is compaction_complete or epoch")
    if not 0 <= body["epoch"] < 1 << 63:
        raise Refused("malformed-request", "epoch is out of range")
    if len(body.get("incarnation") or "") > INCARNATION_MAX:
        raise Refused("malformed-request", "incarnation is too long")
    scope = _scope(body["scope"]) if body.get("scope") else None
    told = Signal(body["kind"], int(body["epoch"]), body.get("incarnation"), scope)
    changed = await office.acts.signal(told, actor)
    return web.json_response({"erasures": [erasure.id for erasure in changed]}, status=202)


def _scope(given: Mapping[str, Any]) -> Any:
    fields(given, {}, dict.fromkeys(DIMENSIONS, object))
    given = {name: value for name, value in given.items() if value is not None}
    for value in given.values():
        atoms = value if isinstance(value, list) else [value]
        if not atoms or not all(isinstance(atom, str) and atom for atom in atoms):
            raise BadAct("scope: each dimension is a string or a list of strings")
    return scope_of(given)
