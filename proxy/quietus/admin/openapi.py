"""The OpenAPI description of the admin API, at `/openapi.json`."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from quietus.acts import REASON_MAX
from quietus.admin.acting import INCARNATION_MAX
from quietus.core.policy import UNSETTLED_WORD
from quietus.core.scope import DIMENSIONS
from quietus.core.states import State
from quietus.core.verdict import Word

_ANY: Final = {"type": "string"}
_STRING: Final = {"type": "string", "minLength": 1}
_WHOLE: Final = {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}
_NUMBER: Final = {"type": "string", "pattern": "^[0-9]{1,18}$"}


def _query(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    free = {name: {"anyOf": [schema, {"type": "null"}]} for name, schema in (optional or {}).items()}
    return {
        "type": "object",
        "properties": {**required, **free},
        "required": list(required),
        "additionalProperties": False,
    }


def _answers(
    status: str, text: str, schema: dict[str, Any], kind: str = "application/json"
) -> dict[str, Any]:
    problems = {"$ref": "#/components/responses/Problem"}
    return {status: {"description": text, "content": {kind: {"schema": schema}}}, "default": problems}


def _operation(
    summary: str,
    answers: dict[str, Any],
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
    role: str | None = "viewer",
) -> dict[str, Any]:
    made: dict[str, Any] = {"summary": summary, "responses": answers}
    if parameters:
        made["parameters"] = parameters
    if body is not None:
        content = {"application/json": {"schema": body}}
        made["requestBody"] = {"required": bool(body["required"]), "content": content}
    if role is None:
        made["security"] = []
    else:
        made["description"] = f"Needs the role {role}."
    return made


_ID: Final = {"name": "id", "in": "path", "required": True,
              "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}}  # fmt: skip
_ERASURE: Final = {"$ref": "#/components/schemas/Erasure"}
_NEXT: Final = {"type": ["string", "null"]}
_LIST: Final = _object({"erasures": {"type": "array", "items": _ERASURE}, "next": _NEXT})
_EVENTS: Final = _object({"events": {"type": "array", "items": {"type": "object"}}, "next": _NEXT})
_STATE: Final = {"type": "string", "enum": [s.value for s in State]}
_BECAUSE: Final = {"type": "string", "pattern": "\\S", "maxLength": REASON_MAX}
_REASON: Final = _object({"reason": _BECAUSE})


def _act(name: str, text: str, status: str) -> dict[str, Any]:
    body = _object({}, {"reason": _BECAUSE}) if name == "verify" else _REASON
    answers = _answers(status, "The erasure after it.", _ERASURE)
    return {"post": _operation(text, answers, [_ID], body, "operator")}


def _open(text: str, kind: str = "application/json") -> dict[str, Any]:
    schema = {"type": "object"} if kind == "application/json" else _ANY
    return {"get": _operation(text, _answers("200", "As it is.", schema, kind), role=None)}


_ONE: Final = "|".join([*(s.value for s in State), UNSETTLED_WORD])
_WANTED: Final = {"type": "string", "pattern": f"^({_ONE})(,({_ONE}))*$"}
_FILTERS: Final = [
    _query("state", _WANTED, "one state, several with commas, or unsettled"),
    _query("verdict", {"type": "string", "enum": [w.value for w in Word]}, "one verdict"),
    _query("subject", _ANY, "the raw subject; it is hashed and kept nowhere"),
    _query("tenant", _ANY, "the raw tenant"),
    _query("limit", _WHOLE, "of a page"),
    _query("cursor", _NUMBER, "`next` of the page before"),
]
_FROM: Final = _query("after", _WHOLE, "number of the last event that is known")
_READMISSION: Final = _object(
    {"subject": _STRING, "reason": _BECAUSE},
    {"tenant": _STRING, "old_content": {"type": "string", "enum": ["refuse", "allow_own"]}},
)
_NAMES: Final = {"oneOf": [_STRING, {"type": "array", "items": _STRING, "minItems": 1}]}
_EPOCH: Final = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
_SIGNAL: Final = _object(
    {"kind": {"type": "string", "enum": ["compaction_complete", "epoch"]}, "epoch": _EPOCH},
    {"incarnation": {**_BECAUSE, "maxLength": INCARNATION_MAX},
     "scope": _object({}, dict.fromkeys(DIMENSIONS, _NAMES))},
)  # fmt: skip
_SCOPE: Final = {"subject": _NAMES, "keys": _NAMES, "path": _NAMES, "tenant": _STRING, "purposes": _NAMES}
_DEMAND: Final = _object({}, {
    "subject": _NAMES, "keys": _NAMES, "path": _STRING, "tenant": _STRING, "purposes": _NAMES,
    "aliases": _NAMES, "basis": _STRING, "reference": _STRING,
    "received_at": {"type": "string", "format": "date-time"},
    "capture": {"type": "object", "additionalProperties": _STRING},
})  # fmt: skip
_NAMED: Final = [{"required": [name], "properties": {name: schema}} for name, schema in _SCOPE.items()]
"""A scope names something: nothing that is asked for may be null."""
_HOLD: Final = _object(
    {"exception": _STRING, "until": {"type": "string", "format": "date-time"}, "reason": _BECAUSE}, _SCOPE
)
_QUARANTINE: Final = {**_object({"reason": _BECAUSE}, _SCOPE), "anyOf": _NAMED}
_OVERRIDE: Final = _object(
    {"effect": {"type": "string", "enum": ["annotate"]}, "for": _STRING, "reason": _BECAUSE},
    {"tenant": _STRING},
)


def _orders(name: str, one: str, body: dict[str, Any], role: str) -> dict[str, Any]:
    """The routes of one kind of standing orders."""
    path = f"/v1/{name}"
    listed = _object({name: {"type": "array", "items": {"type": "object"}}, "next": _NEXT})
    gone = {"204": {"description": "It stands no more."},
            "default": {"$ref": "#/components/responses/Problem"}}
    return {
        path: {
            "get": _operation(f"List {name}", _answers("200", "Those that are known.", listed)),
            "post": _operation(f"Place a {one}", _answers("201", "It stands.", {"type": "object"}),
                               body=body, role=role),
            "delete": _operation(f"End a {one}", gone, body=_object({"id": _STRING, "reason": _BECAUSE}),
                                 role=role),
        },
        f"{path}/{{id}}": {"delete": _operation(f"End a {one}", gone, [_ID], _REASON, role)},
    }  # fmt: skip


def _receipts() -> dict[str, Any]:
    return {
        "/v1/erasures/{id}:extend": {"post": _operation(
            "Extend its legal period, once", _answers("200", "The erasure after it.", _ERASURE), [_ID],
            _REASON, "privacy")},
        "/v1/erasures/{id}/receipt": {"get": _operation(
            "Its signed receipt; with `Accept: text/html` a page",
            _answers("200", "The receipt.", {"type": "object"}), [_ID], role="privacy")},
        "/v1/erasures/{id}/receipt/salt": {"get": _operation(
            "What proves whom the receipt is about",
            _answers("200", "The salt.", _object({"salt": _STRING})), [_ID], role="privacy")},
    }  # fmt: skip


def _paths() -> dict[str, Any]:
    return {
        **_receipts(),
        **_orders("holds", "hold", {**_HOLD, "anyOf": _NAMED}, "privacy"),
        **_orders("overrides", "override", _OVERRIDE, "operator"),
        **_orders("quarantines", "quarantine", _QUARANTINE, "operator"),
        "/v1/erasures": {
            "get": _operation("List", _answers("200", "A page.", _LIST), _FILTERS),
            "post": _operation("Demand an erasure", {
                **_answers("200", "It stands already.", _ERASURE),
                **_answers("201", "The gate is shut.", _ERASURE)},
                               body=_DEMAND, role="privacy"),
        },
        "/v1/erasures/{id}": {"get": _operation(
            "Show", _answers("200", "The erasure.", _ERASURE),
            [_ID, _query("wait", _WHOLE, "seconds to wait for a change")])},
        "/v1/erasures/{id}/events": {"get": _operation(
            "Its events", _answers("200", "A page.", _EVENTS),
            [_ID, _FROM, _query("limit", _WHOLE, "of a page")])},
        "/v1/erasures/{id}:verify": _act("verify", "Probe now", "202"),
        "/v1/erasures/{id}:retry": _act("retry", "Wait anew, with a new bound", "202"),
        "/v1/erasures/{id}:release": _act("release", "Lift the restriction, unproven", "200"),
        "/v1/erasures/{id}:escalate": _act("escalate", "Say that people have taken it up", "200"),
        "/v1/subjects:readmit": {"post": _operation(
            "Let a subject write again", _answers("200", "What changed.", {"type": "object"}),
            body=_READMISSION, role="privacy")},
        "/v1/signals": {"post": _operation(
            "The store's background work is done", _answers("202", "What it spoke for.", {"type": "object"}),
            body=_SIGNAL, role="operator")},
        "/v1/unmapped": {"get": _operation(
            "Routes that nobody described", _answers("200", "Shapes.", {"type": "object"}))},
        "/v1/decisions": {"get": _operation(
            "What was decided, by what policies look at", _answers("200", "Counts.", {"type": "object"}),
            role="operator")},
        "/v1/audit": {"get": _operation(
            "The ledger", _answers("200", "JSON lines", _ANY, "application/x-ndjson"),
            [_FROM, _query("limit", _WHOLE, "lines")])},
        "/healthz": _open("The process answers"),
        "/readyz": _open("Calls are decided"),
        "/metrics": _open("Prometheus's text format", "text/plain"),
        "/version": _open("What runs"),
        "/openapi.json": _open("This document"),
    }  # fmt: skip


def described() -> dict[str, Any]:
    """The document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quietus admin API", "version": "1"},
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": {
                "description": "RFC 9457",
                "content": {"application/problem+json": {"schema": {"type": "object"}}},
            }},
            "schemas": {"Erasure": {
                "type": "object",
                "properties": {"id": _STRING, "state": _STATE, "why": _STRING},
                "required": ["id", "state", "verdict", "why"],
            }},
        },
    }  # fmt: skip


async def document(_request: web.Request) -> web.StreamResponse:
    """The document, as JSON."""
    return web.json_response(described())
