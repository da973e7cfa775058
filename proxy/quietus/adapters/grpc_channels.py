"""The connections of the gRPC side towards the store: one that is kept, others for one call alone.

When certificates are renewed, or a call got no answer at all, the kept one is replaced: calls that are under
way on the old one go on to their end, then it is closed; nothing is cut, and nothing new is sent on it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import grpc
from grpc import aio

from quietus.ports import UpstreamError

METHODS_MAX: Final = 1024
METADATA_BYTES_MAX: Final = 65536
"""Of the store's answers: trailers of more than 12 KB have been lost in proxies."""


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """How long and how much: seconds and bytes."""

    connect: float = 3.0
    upstream: float = 60.0
    """For the answer to one message. A stream has only the client's own deadline."""
    response_bytes: int = 8 * 1024 * 1024
    """Of one message, unpacked."""


class Channels:
    """The connections to one address."""

    def __init__(self, address: str, limits: GrpcLimits, credentials: grpc.ChannelCredentials | None) -> None:
        self._address = address
        self._limits = limits
        self._credentials = credentials
        self._channel: aio.Channel | None = None
        self._methods: dict[str, Any] = {}
        self._under_way: dict[aio.Channel, set[Any]] = {}
        """The calls on the kept connection, and on each that was replaced and still carries some."""
        self._closing: set[asyncio.Task[None]] = set()

    def kept(self) -> aio.Channel:
        """The connection for clients' calls."""
        if self._channel is None:
            self._channel = self._new(alone=False)
            self._under_way[self._channel] = set()
            self._methods.clear()
        return self._channel

    def alone(self) -> aio.Channel:
        """One that shares nothing with any other; whoever asked closes it."""
        return self._new(alone=True)

    def method(self, channel: aio.Channel, name: str) -> Any:
        """What sends one message to that method, and waits for one."""
        if channel is not self._channel:
            return channel.unary_unary(name)
        found = self._methods.get(name)
        if found is None:
            if len(self._methods) >= METHODS_MAX:
                self._methods.clear()
            found = self._methods[name] = channel.unary_unary(name)
        return found

    def carries(self, channel: aio.Channel, call: Any) -> None:
        """Notes a call until it has ended: so long the connection is needed."""
        calls = self._under_way.get(channel)
        if calls is not None:
            calls.add(call)
            call.add_done_callback(lambda _: self._ended(channel, call))

    def renew(self, credentials: grpc.ChannelCredentials) -> None:
        """Makes every new connection with these. Where none were wanted, none are."""
        if self._credentials is None:
            return
        self._credentials = credentials
        self._replace()

    async def close(self) -> None:
        """Closes every connection, and whatever is under way on them."""
        self._channel = None
        channels = list(self._under_way)
        self._under_way.clear()
        for channel in channels:
            await channel.close(None)
        await asyncio.gather(*self._closing)

    def doubt(self, channel: aio.Channel) -> None:
        """A call on the kept connection got no answer in all the time there was: the next goes on a new one.

        The store, or the way to it, may be gone without a word; then nothing else would end that connection.
        """
        if channel is self._channel:
            self._replace()

    async def standing(self) -> aio.Channel:
        """The kept connection when it stands. Raises UpstreamError; then nothing has been sent."""
        while True:
            channel = self.kept()
            waits = object()
            self._under_way[channel].add(waits)
            try:
                await self.ready(channel)
                if channel is self._channel:
                    return channel
            finally:
                self._ended(channel, waits)

    async def ready(self, channel: aio.Channel) -> None:
        """Returns when the connection stands: until then, and only until then, nothing can have been sent."""
        state = channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return
        tried = False
        try:
            async with asyncio.timeout(self._limits.connect):
                while state is not grpc.ChannelConnectivity.READY:
                    if tried and state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        break
                    tried = tried or state is grpc.ChannelConnectivity.CONNECTING
                    await channel.wait_for_state_change(state)
                    state = channel.get_state(try_to_connect=True)
                else:
                    return
        except TimeoutError:
            pass
        raise UpstreamError("the store cannot be reached", sent=False)

    def _replace(self) -> None:
        old, self._channel = self._channel, None
        if old is not None and not self._under_way[old]:
            self._let_go(old)

    def _ended(self, channel: aio.Channel, call: Any) -> None:
        calls = self._under_way.get(channel)
        if calls is None:
            return
        calls.discard(call)
        if not calls and channel is not self._channel:
            self._let_go(channel)

    def _let_go(self, channel: aio.Channel) -> None:
        del self._under_way[channel]
        task = asyncio.ensure_future(channel.close(None))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _new(self, *, alone: bool) -> aio.Channel:
        options = [
            ("grpc.enable_retries", 0),
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
            ("grpc.max_receive_message_length", self._limits.response_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", round(self._limits.connect * 1000)),
            ("grpc.max_reconnect_backoff_ms", 500),
            # Channels with the same options share a connection unless they are told not to.
            ("grpc.use_local_subchannel_pool", int(alone)),
        ]
        if self._credentials is None:
            return aio.insecure_channel(self._address, options=options)
        return aio.secure_channel(self._address, self._credentials, options=options)
