"""Keeps the certificate that the webhook shows: in files that somebody renews, or in a Secret of our own."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from quietus.inject.certificates import CertificateRefused, Pair, make
from quietus.inject.cluster import Cluster, ClusterRefused, Outrun
from quietus.ports import Clock

EVERY: Final = 60.0
"""Seconds between two looks at files or Secret."""
_TRIES: Final = 5


class Log(Protocol):
    """Where events are told."""

    def info(self, event: str, **fields: object) -> object:
        """Tells one."""

    def warning(self, event: str, **fields: object) -> object:
        """Tells one that somebody should see."""


class Source(Protocol):
    """Where the pair comes from."""

    async def current(self, now: float) -> Pair:
        """The pair that holds now. Raises CertificateRefused, ClusterRefused."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files that cert-manager, or a person, renews."""

    certificate: Path
    key: Path

    async def current(self, now: float) -> Pair:
        """What the files hold. Raises CertificateRefused."""
        try:
            return Pair(self.certificate.read_bytes(), self.key.read_bytes(), b"")
        except OSError as error:
            raise CertificateRefused(
                f"{error.filename} cannot be read ({error.strerror}): check the path and its mode"
            ) from None


@dataclass(frozen=True, slots=True)
class Kept:
    """A Secret that all replicas share, and the webhook whose CA it is."""

    cluster: Cluster
    namespace: str
    secret: str
    webhook: str
    names: tuple[str, ...]
    days: int

    async def current(self, now: float) -> Pair:
        """What the Secret holds, made anew when it is time. Raises CertificateRefused, ClusterRefused."""
        for _ in range(_TRIES):
            kept = await self.cluster.secret(self.namespace, self.secret)
            try:
                if kept.pair is not None and not kept.pair.due(now):
                    await self._accepted(kept.pair, None)
                    return kept.pair
            except CertificateRefused:
                pass  # damaged: it is made anew
            pair = make(self.names, now, self.days)
            try:
                # First the API server accepts the new CA beside the old one, then it is shown.
                await self._accepted(pair, kept.pair)
                await self.cluster.keep(self.namespace, self.secret, kept, pair)
            except Outrun:
                continue
            return pair
        raise ClusterRefused("other replicas kept changing the certificate's Secret; it is tried again later")

    async def _accepted(self, pair: Pair, before: Pair | None) -> None:
        there = await self.cluster.authorities(self.webhook)
        if pair.ca in there:
            return
        kept = before.ca if before is not None and before.ca != pair.ca else b""
        await self.cluster.accept(self.webhook, pair.ca + kept)


class Renewal:
    """Puts the current pair into a TLS context, now and whenever it changes."""

    def __init__(
        self, source: Source, clock: Clock, log: Log, tell: Callable[[float], None] = lambda _ends: None
    ) -> None:
        """`tell` is called with the end of the pair that is shown, in Unix seconds."""
        self._source = source
        self._clock = clock
        self._log = log
        self._tell = tell
        self._shown: Pair | None = None
        self.context: ssl.SSLContext | None = None

    async def begin(self) -> ssl.SSLContext:
        """The context, with a pair in it. Raises CertificateRefused, ClusterRefused."""
        pair = await self._source.current(self._clock.now())
        self.context = pair.context()
        self._show(pair)
        return self.context

    async def look(self) -> bool:
        """Looks once; True when another pair is shown from now on. What holds stays after a fault."""
        assert self.context is not None
        try:
            pair = await self._source.current(self._clock.now())
            if pair == self._shown:
                return False
            pair.spans()
            pair.context()  # a pair that does not fit must not spoil the context in use
            pair.put_into(self.context)
        except (CertificateRefused, ClusterRefused) as error:
            self._log.warning("certificate_refused", error=type(error).__name__)
            return False
        self._show(pair)
        self._log.info("certificate_renewed")
        return True

    async def run(self) -> None:
        """Looks again and again until cancelled."""
        while True:
            await self._clock.sleep(EVERY)
            await self.look()

    def _show(self, pair: Pair) -> None:
        self._shown = pair
        self._tell(pair.spans()[1])


async def cancelled(task: asyncio.Task[None]) -> None:
    """Ends a task and waits for its end."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
