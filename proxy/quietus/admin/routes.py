"""Every route of the admin API: which handler serves it, and who may call it."""

from __future__ import annotations

from typing import Final

from quietus.admin import acting, demanding, health, ordering, reading, receipts
from quietus.admin.route import Route
from quietus.admin.tokens import Role

_ONE: Final = "/v1/erasures/{id}"

ROUTES: Final = (
    Route("GET", "/v1/erasures", reading.list_erasures, Role.VIEWER),
    Route("POST", "/v1/erasures", demanding.create, Role.PRIVACY, ("legal-hold",)),
    Route("GET", _ONE, reading.show_erasure, Role.VIEWER),
    Route("GET", f"{_ONE}/events", reading.list_events, Role.VIEWER),
    Route("POST", f"{_ONE}:verify", acting.verify, Role.OPERATOR, ("wrong-state",)),
    Route("POST", f"{_ONE}:retry", acting.retry, Role.OPERATOR, ("wrong-state",)),
    Route("POST", f"{_ONE}:release", acting.release, Role.OPERATOR, ("wrong-state",)),
    Route("POST", f"{_ONE}:escalate", acting.escalate, Role.OPERATOR, ("wrong-state",)),
    Route("POST", f"{_ONE}:extend", demanding.extend, Role.PRIVACY, ("wrong-state",)),
    Route("GET", f"{_ONE}/receipt", receipts.receipt, Role.PRIVACY, ("wrong-state",)),
    Route("GET", f"{_ONE}/receipt/salt", receipts.salt, Role.PRIVACY),
    Route("POST", "/v1/subjects:readmit", acting.readmit, Role.PRIVACY, ("not-found", "wrong-state")),
    Route("POST", "/v1/signals", acting.signal, Role.OPERATOR, ("wrong-state",)),
    Route("GET", "/v1/holds", ordering.holds, Role.VIEWER),
    Route("POST", "/v1/holds", ordering.hold, Role.PRIVACY, ("wrong-state", "barrier-unreachable")),
    Route("DELETE", "/v1/holds", ordering.lift_by_body, Role.PRIVACY, ("not-found", "wrong-state")),
    Route("DELETE", "/v1/holds/{id}", ordering.lift, Role.PRIVACY, ("wrong-state",)),
    Route("GET", "/v1/overrides", ordering.overrides, Role.VIEWER),
    Route("POST", "/v1/overrides", ordering.override, Role.OPERATOR, ("wrong-state",)),
    Route(
        "DELETE", "/v1/overrides", ordering.end_override_by_body, Role.OPERATOR,
        ("not-found", "wrong-state", "barrier-unreachable"),
    ),
    Route(
        "DELETE", "/v1/overrides/{id}", ordering.end_override, Role.OPERATOR,
        ("wrong-state", "barrier-unreachable"),
    ),
    Route("GET", "/v1/quarantines", ordering.quarantines, Role.VIEWER),
    Route(
        "POST", "/v1/quarantines", ordering.quarantine, Role.OPERATOR, ("wrong-state", "barrier-unreachable")
    ),
    Route(
        "DELETE", "/v1/quarantines", ordering.lift_quarantine_by_body, Role.OPERATOR,
        ("not-found", "wrong-state"),
    ),
    Route("DELETE", "/v1/quarantines/{id}", ordering.lift_quarantine, Role.OPERATOR, ("wrong-state",)),
    Route("GET", "/v1/unmapped", reading.unmapped, Role.VIEWER),
    Route("GET", "/v1/decisions", reading.decisions, Role.OPERATOR),
    Route("GET", "/v1/audit", reading.audit, Role.VIEWER),
    Route("GET", "/healthz", health.healthz),
    Route("GET", "/readyz", health.readyz),
    Route("GET", "/metrics", health.metrics),
    Route("GET", "/version", health.version),
    Route("GET", "/openapi.json", health.document),
)  # fmt: skip
