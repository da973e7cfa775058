"""Who may use the admin API, where Kubernetes decides: TokenReview says who, SubjectAccessReview what.

A role is a verb on a resource that exists for this only: group `quietus.io`, resource `erasures`, its name
the store's, verb `viewer`, `privacy` or `operator`. Whoever has several has the highest. While the API server
gives no answer nobody is let in; what it answered last holds for a few seconds, and not longer.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from typing import Any, Final, Literal, Protocol

import structlog

from quietus.adapters.api_server import ApiServer, ApiServerAway
from quietus.admin.tokens import Identity, Role
from quietus.ports import Clock
from quietus.settings import ReviewSettings

GROUP: Final = "quietus.io"
RESOURCE: Final = "erasures"
KEPT: Final = 1024
"""Answers that are kept; the oldest goes first."""
WAITING: Final = 64
"""Reviews under way or waiting; whoever comes beyond is told to come again."""
AT_ONCE: Final = 8
TOKEN_MAX: Final = 8 * 1024
"""Characters; the listener takes no longer header either."""
_TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_ACTOR: Final = re.compile(r"[\w.@:/-]{1,320}", re.ASCII)

Found = Identity | Literal["denied", "unauthenticated"]

_log = structlog.get_logger("quietus.admin")


class ReviewsAway(Exception):
    """Nobody can say who this is; nobody is let in."""


class NoRole(Exception):
    """Somebody who is known, and may do nothing here."""


class Counter(Protocol):
    """Where reviews are counted."""

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Adds to the series of these labels."""


class Reviews:
    """Asks the API server who a token is, and keeps its answers for a short time."""

    def __init__(
        self,
        api: ApiServer,
        wanted: ReviewSettings,
        namespace: str,
        store: str,
        clock: Clock,
        metrics: Counter,
    ) -> None:
        """`namespace` and `store` name the resource that is asked about."""
        self._api = api
        self._audiences = list(wanted.audiences)
        self._for = wanted.cache
        self._attributes = {"group": GROUP, "resource": RESOURCE, "name": store, "namespace": namespace}
        self._clock = clock
        self._metrics = metrics
        self._kept: OrderedDict[bytes, tuple[float, Found]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Found]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def identify(self, authorization: str | None) -> Identity | None:
        """Whose the `Authorization` header is; None when it is nobody's. Raises NoRole, ReviewsAway."""
        scheme, _, rest = (authorization or "").partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not token or len(token) > TOKEN_MAX or not token.isascii():
            return None
        name = hashlib.sha256(token.encode()).digest()
        kept = self._kept.get(name)
        if kept is not None and self._clock.monotonic() < kept[0]:
            return self._told(kept[1], kept=True)
        task = self._asking.get(name)
        if task is None:
            if len(self._asking) >= WAITING:
                self._metrics.count("admin_reviews", outcome="unavailable")
                raise ReviewsAway
            task = asyncio.ensure_future(self._ask(name, token))
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name, None))
        try:
            # Several may wait for one answer: that one of them goes away ends it for nobody.
            return self._told(await asyncio.shield(task), kept=False)
        except ApiServerAway as error:
            self._metrics.count("admin_reviews", outcome="unavailable")
            _log.error("reviews_unavailable", cause=error.cause)
            raise ReviewsAway from None

    async def close(self) -> None:
        """Lets go of the API server."""
        for task in list(self._asking.values()):
            task.cancel()
        await self._api.close()

    def _told(self, found: Found, *, kept: bool) -> Identity | None:
        outcome = found if isinstance(found, str) else "allowed"
        self._metrics.count("admin_reviews", outcome="kept" if kept else outcome)
        if found == "denied":
            raise NoRole
        return None if isinstance(found, str) else found

    async def _ask(self, name: bytes, token: str) -> Found:
        asked_at = self._clock.monotonic()
        async with self._slots:
            found = await self._review(token)
        self._kept.pop(name, None)
        # From when it was asked: an answer that was long on its way is that much older.
        self._kept[name] = (asked_at + self._for, found)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found

    async def _review(self, token: str) -> Found:
        spec = {"token": token, "audiences": self._audiences}
        status = await self._status(_TOKENS, "authentication.k8s.io/v1", "TokenReview", spec)
        if status.get("authenticated") is not True:
            return "unauthenticated"
        audiences = status.get("audiences")
        if not isinstance(audiences, list) or not any(each in self._audiences for each in audiences):
            # An authenticator that knows no audiences has not looked whether it is meant for us.
            return "unauthenticated"
        user = _user(status.get("user"))
        actor = user["user"]
        if not _ACTOR.fullmatch(actor):
            _log.error("reviews_actor_unfit", cause="name")
            return "unauthenticated"
        roles = sorted(Role, reverse=True)
        allowed = await asyncio.gather(*(self._may(user, role) for role in roles))
        highest = next((role for role, may in zip(roles, allowed, strict=True) if may), None)
        return "denied" if highest is None else Identity(actor, highest)

    async def _may(self, user: dict[str, Any], role: Role) -> bool:
        spec = {**user, "resourceAttributes": {**self._attributes, "verb": role.name.lower()}}
        status = await self._status(_ACCESS, "authorization.k8s.io/v1", "SubjectAccessReview", spec)
        return status.get("allowed") is True and status.get("denied") is not True

    async def _status(self, path: str, version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
        document = {"apiVersion": version, "kind": kind, "spec": spec}
        found = await self._api.create(path, document)
        status = found.get("status")
        if found.get("kind") != kind or not isinstance(status, dict):
            raise ApiServerAway("answer_unreadable")
        return status


def _user(given: Any) -> dict[str, Any]:
    """The user of a TokenReview as a SubjectAccessReview wants it. Raises ApiServerAway."""
    if not isinstance(given, dict) or not isinstance(given.get("username"), str) or not given["username"]:
        raise ApiServerAway("answer_unreadable")
    made: dict[str, Any] = {"user": given["username"]}
    for name, kind in (("groups", list), ("extra", dict), ("uid", str)):
        value = given.get(name)
        if value is not None:
            if not isinstance(value, kind):
                raise ApiServerAway("answer_unreadable")
            made[name] = value
    return made
