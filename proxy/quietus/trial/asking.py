"""All that a trial says to the store: writes, looks, forgets, removals; paced, on fresh connections."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quietus.core.exchange import Reply, Request
from quietus.core.probing import wording
from quietus.core.trial import Acknowledged, Look
from quietus.permits import Granted, Purpose
from quietus.ports import Clock, Upstream, UpstreamError
from quietus.profiles.answers import open_body, read_document
from quietus.profiles.faults import CannotQuote, MissingValue, RequestFault, Unreadable
from quietus.profiles.profile import Profile
from quietus.profiles.surface import Surface, SurfaceAnswer
from quietus.trial.canary import Aviary, Canary, flat, row_with

PAGES_MAX: Final = 50
AGENT: Final = ("User-Agent", "quietus-trial")
"""What an agent's request carries and a sidecar's probe does not."""
_VARYING: Final = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a write."""

    outcome: str
    key: str | None
    answer: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Found:
    """What one surface told of one canary."""

    seen: bool = False
    foreign: bool = False
    rows: dict[str, str] = field(default_factory=dict)
    """Its own row as it was shown, by place."""
    texts: list[str] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    """Keys under which its text stands that no answer to a write has named."""


class Asking:
    """One store, one tenant. It judges nothing."""

    def __init__(
        self, profile: Profile, upstream: Upstream, clock: Clock, aviary: Aviary, values: Mapping[str, Any],
        rng: random.Random, rate: float, answer_bytes: int = 8 << 20,
    ) -> None:  # fmt: skip
        self.profile = profile
        self.clock = clock
        self.aviary = aviary
        self.sent = 0
        self._written = 0
        self.keeps: bool | None = None
        """Whether queries are kept, once that was measured; None: the profile's word is taken."""
        self.surfaces = tuple(surface for surface in profile.surfaces if surface.probeable)
        self.dull: set[str] = set()
        """Surfaces that did not tell the first canary: nobody waits for them again."""
        self._upstream = upstream
        self._values = dict(values)
        self._rng = rng
        self._spacing = 1.0 / rate
        self._next_at = 0.0
        self._limit = answer_bytes

    async def send(self, request: Request, *, client: bool = True) -> Reply:
        """One request, in its turn. Raises UpstreamError."""
        now = self.clock.monotonic()
        at = max(self._next_at, now)
        self._next_at = at + self._spacing
        if at > now:
            await self.clock.sleep(at - now)
        self.sent += 1
        if client:
            request = replace(request, headers=(AGENT, *request.headers))
        reply = await self._upstream.open(request, Granted(Purpose.PROBE), fresh=True)
        return await reply.read(self._limit)

    def values(self, canary: Canary, **more: Any) -> dict[str, Any]:
        """Every placeholder that is known for a canary."""
        return {**self._values, **canary.values(), **more}

    # --- writing -------------------------------------------------------------------------------

    async def write(self, canary: Canary, **more: Any) -> Written:
        """Writes a canary. Raises UpstreamError, MissingValue."""
        self._written += 1
        given = f"{self.aviary.prefix}-k{self._written:05d}"
        request = self.profile.canary_write({**self.values(canary), "key": given, **more})
        assert request is not None, "a trial needs a canary in its profile"
        reply = await self.send(request)
        outcome = self._ack(request, reply)[0]
        key = self.profile.canary_key(reply, given) if outcome in ("accepted", "queued") else None
        if key is not None:
            canary.keys.append(key)
        return Written(outcome, key, flat(self._document(request, reply)))

    def _ack(self, request: Request, reply: Reply) -> tuple[str, int | None, str | None, int | None]:
        try:
            ack = self.profile.ack(self.profile.read(request), reply)
        except RequestFault:
            return ("accepted" if 200 <= reply.status < 300 else "unclear"), None, None, None
        return ack.outcome, ack.count, ack.token, ack.epoch

    # --- looking -------------------------------------------------------------------------------

    async def ask(
        self, canary: Canary, surface: Surface, *, client: bool = True, extra: str = ""
    ) -> Found | None:
        """What one surface tells; None where it cannot be read. Raises MissingValue, CannotQuote."""
        text = wording(canary.text, self._kept(), self.profile.store.neutral_query)
        values = self.values(canary, text=f"{text} {extra}" if extra else text)
        found = Found()
        page: object | None = None
        try:
            for _ in range(PAGES_MAX):
                request = surface.request(values, page)
                answer = surface.read(await self.send(request, client=client), page)
                _note(found, canary, surface, answer)
                page = answer.next_page
                if page is None or answer.clean:
                    break
        except (UpstreamError, Unreadable):
            return None
        return found

    def _kept(self) -> bool | None:
        if self.keeps is not None:
            return self.keeps
        said = self.profile.store.keeps_queries
        return said if isinstance(said, bool) else None

    async def look(
        self, canary: Canary, surface: Surface, turn: int, *, client: bool = True, reworded: bool = False
    ) -> Look | None:
        """One look, noted in the canary's case; None where the surface asks what the canary lacks."""
        asked = self.clock.monotonic()
        extra = self.aviary.word() if reworded else ""
        try:
            found = await self.ask(canary, surface, client=client, extra=extra)
        except (MissingValue, CannotQuote):
            return None
        at = self.clock.monotonic()
        seen = None if found is None else found.seen
        look = Look(surface.name, asked, at, seen, turn, client, reworded, bool(found and found.foreign))
        canary.case.looks.append(look)
        if found is None:
            canary.case.unread |= {surface.name}
        return look

    async def walk(self, canary: Canary, *, both: bool = False, mixed: bool = True) -> None:
        """A look at every surface; with `both` also as a probe would ask, and in other words."""
        case = canary.case
        turn = max((look.turn for look in case.looks), default=0) + 1
        order = list(self.surfaces)
        if mixed:  # replicas take turns: no surface is to meet the same one each time
            self._rng.shuffle(order)
        for surface in order:
            look = await self.look(canary, surface, turn)
            if not both or look is None:
                continue
            await self.look(canary, surface, turn, client=False)
            if surface.each == "text" and look.seen and self._kept() is not True:
                await self.look(canary, surface, turn, reworded=True)

    # --- forgetting ----------------------------------------------------------------------------

    async def forget(self, canary: Canary, kind: str = "subject", **more: Any) -> Acknowledged:
        """Forgets a canary as its profile says, and notes the answer in its case."""
        values = self.values(canary, **more)
        request = self.profile.forget(kind, values)  # type: ignore[arg-type]
        if request is not None:
            ack = await self._acknowledged(request)
        else:
            ack = await self._each(values.get("keys") or ())
        canary.case.forgets.append(ack)
        return ack

    async def _each(self, keys: Any) -> Acknowledged:
        ack = None
        for key in keys:
            request = self.removal(key)
            if request is not None:
                ack = await self._acknowledged(request)
        return ack or Acknowledged(self.clock.monotonic(), self.clock.monotonic(), outcome="not_found")

    def removal(self, key: str) -> Request | None:
        """The removal of one record, or None where the profile has none."""
        name = self.profile.forget_each_record or "delete_record"
        return self.profile.remedy(name, {**self._values, "key": key})

    async def _acknowledged(self, request: Request) -> Acknowledged:
        sent = self.clock.monotonic()
        try:
            reply = await self.send(request)
        except UpstreamError:
            return Acknowledged(sent, self.clock.monotonic(), answered=False)
        outcome, count, token, epoch = self._ack(request, reply)
        at = self.clock.monotonic()
        shape = self._shape(request, reply)
        return Acknowledged(sent, at, True, reply.status, outcome, count, token, epoch, shape)

    def _document(self, request: Request, reply: Reply) -> Any:
        try:
            if reply.code is None:
                return read_document(open_body(reply))
            return self.profile.answer(self.profile.read(request), reply).document
        except (Unreadable, RequestFault):
            return None

    def _shape(self, request: Request, reply: Reply) -> str:
        """An answer without what differs between two calls that are answered alike: tokens, numbers."""
        texts = flat(self._document(request, reply)).items()
        parts = (f"{at}={'#' if _VARYING.search(text) else text}" for at, text in texts)
        return f"{reply.code or reply.status} " + " ".join(sorted(parts))


def _note(found: Found, canary: Canary, surface: Surface, answer: SurfaceAnswer) -> None:
    hits: set[int | None] = set()
    for position, text in answer.answered.scalars():
        found.texts.append(text)
        if canary.marker in text.casefold():
            hits.add(position)
    own = False
    for item in answer.items:
        mine = item.key in canary.keys or (item.key is None and surface.each == "key")
        if not mine and item.subject == canary.subject and item.position in hits:
            mine = True
            found.strays += [item.key] if item.key is not None else []
        if item.position in hits or (mine and not item.texts):
            found.seen = True
            own = own or mine
            found.foreign = found.foreign or not mine
    # Outside of rows a store may repeat what it was asked: only a text that was not asked for is a leak.
    if None in hits and surface.each != "text":
        found.seen = True
    found.foreign = found.foreign and not own
    for key in canary.keys:
        row = row_with(answer.answered.document, key)
        if row is not None:
            found.rows = flat(row, surface.name)
