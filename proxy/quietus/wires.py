"""The wires of a sidecar, made from its settings: clients towards the store, listeners for agents."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import grpc

from quietus.adapters import reflection
from quietus.adapters.grpc import GrpcListener, GrpcListenerLimits, Handler, Talker
from quietus.adapters.grpc_client import GrpcLimits, GrpcStream, GrpcUpstream
from quietus.adapters.http import HttpListener, ListenerLimits
from quietus.adapters.http_client import HttpUpstream, UpstreamLimits
from quietus.adapters.sharing import Sharing
from quietus.assembly import Parts
from quietus.core.exchange import Request
from quietus.ports import OpenReply, Permit, UpstreamError
from quietus.profiles.profile import Profile
from quietus.settings import (
    FileValue,
    GrpcSettings,
    HttpSettings,
    ListenerTls,
    Settings,
    StoreSettings,
    Timeouts,
    UpstreamTls,
    address,
)

T = TypeVar("T")
_MESSAGE_MAX: Final = 8 * 1024 * 1024


def store_client(http: HttpSettings, timeouts: Timeouts) -> HttpUpstream:
    """The client towards a store's HTTP API. Raises OSError where a file of credentials cannot be read."""
    tls = http.upstream_tls
    client = HttpUpstream(
        http.upstream,
        limits=UpstreamLimits(connect=timeouts.connect, upstream=timeouts.upstream),
        tls=tls.context() if tls else None,
        own_headers=_values(http.headers),
        inject_headers=_values(http.inject_headers),
    )
    if tls is not None:
        tls.listen(lambda: client.renew(tls.context()))
    return client


def grpc_client(
    settings: GrpcSettings, timeouts: Timeouts, response_bytes: int = _MESSAGE_MAX
) -> GrpcUpstream:
    """The client towards a store's gRPC API. Raises OSError like the other one."""
    tls = settings.upstream_tls
    client = GrpcUpstream(
        settings.upstream,
        limits=GrpcLimits(timeouts.connect, timeouts.upstream, response_bytes),
        credentials=_client_credentials(tls) if tls else None,
        own_headers=_values(settings.headers),
        inject_headers=_values(settings.inject_headers),
    )
    if tls is not None:
        tls.listen(lambda: client.renew(_client_credentials(tls)))
    return client


def told_by(settings: GrpcSettings | None, timeouts: Timeouts) -> Callable[[frozenset[str]], bytes] | None:
    """Asks the store for the descriptors of its services by reflection; None where it speaks no gRPC."""
    if settings is None:
        return None

    def tell(services: frozenset[str]) -> bytes:
        return reflection.told(
            settings.upstream, services, deadline=timeouts.connect,
            credentials=_client_credentials(settings.upstream_tls) if settings.upstream_tls else None,
            headers=(*_values(settings.headers), *_values(settings.inject_headers)),
        )  # fmt: skip

    return tell


def bare_listener(
    door: Handler, talks: Talker, single: Callable[[str], bool], message_bytes: int
) -> GrpcListener:
    """A listener for gRPC that knows no principals: for what passes calls on and decides nothing."""
    limits = GrpcListenerLimits(request_bytes_max=message_bytes)
    return GrpcListener(door, talks, lambda credential: "", single, lambda: None, limits=limits)


class StoreClient:
    """The store, whichever wire a request is of: `ports.Upstream` and `conversation_ports.Streams`."""

    def __init__(
        self, store: StoreSettings, timeouts: Timeouts, response_bytes: int = _MESSAGE_MAX
    ) -> None:
        self.http = store_client(store.http, timeouts) if store.http is not None else None
        self.grpc = grpc_client(store.grpc, timeouts, response_bytes) if store.grpc is not None else None

    async def open(self, request: Request, permit: Permit, *, fresh: bool = False) -> OpenReply:
        """Sends the request once, on its own wire. Raises UpstreamError."""
        if request.wire == "grpc":
            return await self._spoken(self.grpc).open(request, permit, fresh=fresh)
        return await self._spoken(self.http).open(request, permit, fresh=fresh)

    async def converse(self, request: Request, permit: Permit) -> GrpcStream:
        """Begins a call of many messages. Raises UpstreamError."""
        return await self._spoken(self.grpc).converse(request, permit)

    async def close(self) -> None:
        """Closes what is open to the store."""
        for client in (self.http, self.grpc):
            if client is not None:
                await client.close()

    @staticmethod
    def _spoken(client: T | None) -> T:
        if client is None:
            raise UpstreamError("the store is not reached by this wire: set it under store", sent=False)
        return client


class Listeners:
    """Where agents connect: over HTTP, over gRPC, or both on one port."""

    def __init__(
        self,
        settings: Settings,
        parts: Parts,
        principal: Callable[[str], str],
        door: Handler,
        talks: Talker,
        *,
        reuse_port: bool = False,
    ) -> None:
        """`door` and `talks` are the gateway and the conversations of `parts`, or what stands around them."""
        self._reuse_port = reuse_port
        store, limits, timeouts = settings.store, settings.limits, settings.timeouts
        self._store = store
        self._drain = timeouts.drain
        self._folder: Path | None = None
        self._sharing: Sharing | None = None
        if store.http is not None and store.grpc is not None and store.http.listen == store.grpc.listen:
            self._folder = Path(tempfile.mkdtemp(prefix="quietus-"))
            self._sharing = Sharing(str(self._folder / "grpc"), patience=timeouts.header)
        self.http: HttpListener | None = None
        self.grpc: GrpcListener | None = None
        if store.http is not None:
            self.http = HttpListener(
                door,
                principal,
                limits=ListenerLimits(
                    request_bytes_max=limits.request_bytes_max, header=timeouts.header, body=timeouts.body
                ),
                tls=_server_context(store.http.tls, self._sharing is not None),
                sharing=self._sharing,
            )
        if store.grpc is not None:
            self.grpc = GrpcListener(
                door,
                talks,
                principal,
                _Singles(lambda: parts.active.profile),
                lambda: parts.active.profile.store.refusals.get("grpc"),
                limits=GrpcListenerLimits(request_bytes_max=limits.request_bytes_max),
                # On a shared port the HTTP listener has already taken the encryption away.
                credentials=None if self._sharing is not None else _server_credentials(store.grpc.tls),
            )

    async def start(self) -> None:
        """Listens. Raises ListenerRefused."""
        if self.grpc is not None and self._store.grpc is not None:
            inside = self._sharing
            place = self._store.grpc.listen if inside is None else f"unix:{inside.inside}"
            await self.grpc.start(place, reuse_port=self._reuse_port and inside is None)
        if self.http is not None and self._store.http is not None:
            await self.http.start(*address(self._store.http.listen), reuse_port=self._reuse_port)

    @property
    def http_url(self) -> str:
        """Where agents that speak HTTP connect; empty where none can."""
        if self.http is None or self._store.http is None:
            return ""
        return f"http://{self._store.http.listen.rpartition(':')[0]}:{self.http.port}"

    @property
    def grpc_address(self) -> str:
        """HOST:PORT for agents that speak gRPC; empty where none can."""
        if self.grpc is None or self._store.grpc is None:
            return ""
        shared = self._sharing is not None and self.http is not None
        port = self.http.port if shared and self.http is not None else self.grpc.port
        return f"{self._store.grpc.listen.rpartition(':')[0]}:{port}"

    async def close(self) -> None:
        """Takes no more calls, and lets those under way finish within the drain time."""
        closing = [each.close(self._drain) for each in (self.http, self.grpc) if each is not None]
        await asyncio.gather(*closing)
        if self._sharing is not None:
            self._sharing.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class _Singles:
    """Says of a method whether the profile in force knows that it takes one message and gives one."""

    def __init__(self, profile: Callable[[], Profile]) -> None:
        self._profile = profile
        self._of: Profile | None = None
        self._names: frozenset[str] = frozenset()

    def __call__(self, method: str) -> bool:
        profile = self._profile()
        if profile is not self._of:
            rpcs = [route.rpc for route in profile.routes if route.rpc is not None]
            singles = (rpc.path for rpc in rpcs if not rpc.client_streams and not rpc.server_streams)
            self._of, self._names = profile, frozenset(singles)
        return method in self._names


def _values(files: dict[str, FileValue]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value.read()) for name, value in files.items())


def _client_credentials(tls: UpstreamTls) -> grpc.ChannelCredentials:
    held, _ = tls.held()
    return grpc.ssl_channel_credentials(
        root_certificates=held.authority, private_key=held.key or held.cert, certificate_chain=held.cert
    )


def _server_context(tls: ListenerTls | None, shared: bool) -> ssl.SSLContext | None:
    return None if tls is None else tls.context(("h2", "http/1.1") if shared else ())


def _server_credentials(tls: ListenerTls | None) -> grpc.ServerCredentials | None:
    if tls is None:
        return None

    def now() -> grpc.ServerCertificateConfiguration:
        """Asked at each handshake."""
        held, _ = tls.held()
        assert held.key is not None and held.cert is not None
        return grpc.ssl_server_certificate_configuration(
            [(held.key, held.cert)], root_certificates=held.authority
        )

    return grpc.dynamic_ssl_server_credentials(now(), now, tls.client_ca is not None)
