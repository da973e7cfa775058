"""What stands before every route of the admin API: host, origin, token, role, and problems as answers."""

from __future__ import annotations

import ipaddress
import json
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NotRequired
from urllib.parse import urlsplit

import structlog
from aiohttp import web
from typing_extensions import TypedDict

from quietus.acts import BadAct, NoSuchErasure
from quietus.admin.office import OFFICE, Office
from quietus.admin.reviews import GROUP, RESOURCE, NoRole, ReviewsAway
from quietus.admin.tokens import Identity
from quietus.barrier import BarrierUnreached
from quietus.core.events import Draft, EventType
from quietus.core.problems import PROBLEMS
from quietus.core.states import WrongState
from quietus.forgets import HeldBack
from quietus.ordering import NoSuchOrder
from quietus.ports import Conflict, LedgerError
from quietus.shown import shown

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
IDENTITY: Final = web.RequestKey("identity", Identity)
REFUSALS_A_MINUTE: Final = 30
"""Refused acts that are written to the ledger; the rest is only logged, so that nobody can fill it."""

_log = structlog.get_logger("quietus.admin")


@shown
class Problem(TypedDict):
    """Why a request was refused (RFC 9457). It quotes nothing of the request."""

    type: str
    """`urn:quietus:problem:` and the problem's name."""
    title: str
    status: int
    detail: NotRequired[str]
    """What to do about it, where more is to be said than the title does."""
    reason: NotRequired[str]
    """The machine-readable reason, where one is known."""


class Refused(Exception):
    """A request that is answered with a problem. `detail` quotes nothing."""

    def __init__(self, name: str, detail: str = "", status: int | None = None) -> None:
        super().__init__(name)
        self.name = name
        self.detail = detail
        self.status = status


def problem(name: str, detail: str = "", status: int | None = None) -> web.Response:
    """A problem as an answer."""
    kind = PROBLEMS[name]
    body: Problem = {"type": kind.type, "title": kind.title, "status": status or kind.status}
    if detail:
        body["detail"] = detail
    if kind.reason.value:
        body["reason"] = kind.reason.value
    answer = web.Response(
        status=status or kind.status, text=json.dumps(body), content_type="application/problem+json"
    )
    if kind.status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="quietus"'
    if kind.retry.value == "yes":
        answer.headers["Retry-After"] = "1"
    return answer


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Checks where a request came from and who sends it; turns what goes wrong into problems."""
    office = request.app[OFFICE]
    try:
        _check_host(request, office)
        if request.path.startswith("/v1/"):
            identity = await office.identify(request.headers.get("Authorization"))
            if identity is None:
                raise Refused("unauthenticated")
            request[IDENTITY] = identity
            if not office.paces.allows(identity.actor, office.clock.monotonic()):
                raise Refused("overloaded", "this actor asks faster than it may")
        answer = await handler(request)
    except Refused as refused:
        if refused.name in ("unauthenticated", "forbidden"):
            await _record(request, office, refused.name)
        answer = problem(refused.name, refused.detail, refused.status)
    except NoRole:
        await _record(request, office, "forbidden")
        answer = problem("forbidden", f"Kubernetes knows this user, and allows no role on {RESOURCE}.{GROUP}")
    except ReviewsAway:
        answer = problem("reviews-unavailable")
    except (NoSuchErasure, NoSuchOrder) as error:
        answer = problem("not-found", str(error))
    except HeldBack as error:
        answer = problem("legal-hold", str(error))
    except WrongState as error:
        answer = problem("wrong-state", str(error))
    except BadAct as error:
        answer = problem("malformed-request", str(error))
    except Conflict:
        answer = problem("wrong-state", "the erasure moved on meanwhile; look at it again")
    except BarrierUnreached as error:
        answer = problem("barrier-unreachable", str(error))
    except LedgerError:
        answer = problem("ledger-unavailable")
    except web.HTTPException as error:
        answer = _plain(error)
    except Exception as error:
        # Its words may quote the request: only its type and where it was are told.
        _log.error("internal_error", exc_info=error)
        answer = problem("internal")
    return _closed(answer)


async def body_of(request: web.Request) -> dict[str, Any]:
    """The JSON object in a request. Raises Refused."""
    if request.content_type not in ("application/json", "application/octet-stream"):
        raise Refused("malformed-request", "send application/json", 415)
    raw = await request.read()
    if not raw:
        return {}
    try:
        found = json.loads(raw, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise Refused("malformed-request", "the body is not one JSON object without duplicate keys") from None
    if not isinstance(found, dict):
        raise Refused("malformed-request", "the body is not a JSON object")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _check_host(request: web.Request, office: Office) -> None:
    # A page in somebody's browser can reach a local port under a name that it makes resolve to us.
    host = request.headers.get("Host", "")
    if not _known_host(host, office):
        raise Refused("forbidden", "this host is not known here; see admin.hosts", 421)
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        raise Refused("forbidden", "requests of other sites' pages are refused")


def _known_host(host: str, office: Office) -> bool:
    try:
        name = (urlsplit(f"//{host}").hostname or "").lower()
        ipaddress.ip_address(name)
        return True
    except ValueError:
        return bool(host) and urlsplit(f"//{host}").hostname in office.hosts


async def _record(request: web.Request, office: Office, what: str) -> None:
    identity = request.get(IDENTITY)
    route = request.match_info.route.resource
    facts = {"refused": what, "method": request.method[:8], "route": route.canonical if route else "none"}
    _log.info("admin_refused", problem=what)
    if not office.refusals.allows(office.clock.monotonic()):
        return
    actor = identity.actor if identity else "unknown"
    try:
        draft = Draft(EventType.ACCESSED, "", office.clock.now(), actor, facts)
        await office.erasures.append([draft])
    except LedgerError:
        _log.error("admin_refusal_not_recorded", problem=what)


class Budget:
    """So many of something in any minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._times: deque[float] = deque()

    def allows(self, now: float) -> bool:
        """Whether one more fits in; counts it if so."""
        while self._times and self._times[0] <= now - 60:
            self._times.popleft()
        if len(self._times) >= self._most:
            return False
        self._times.append(now)
        return True


def _plain(error: web.HTTPException) -> web.Response:
    if error.status == 404:
        return problem("not-found")
    if error.status == 405:
        answer = problem("not-found", "the route has no such method", 405)
        answer.headers["Allow"] = error.headers.get("Allow", "")
        return answer
    if error.status == 413:
        return problem("too-large")
    return problem("malformed-request", status=error.status if 400 <= error.status < 500 else 400)


def _closed(answer: web.StreamResponse) -> web.StreamResponse:
    if not answer.prepared:
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Server"] = "quietus"
    return answer
