"""`quietus profile record` over gRPC: calls are passed on, those of one message each way recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

import typer

from quietus.answers import Answer, problem
from quietus.answers import passed as passed_on
from quietus.conversation_ports import Client, OpenStream
from quietus.core.exchange import Request, Wire
from quietus.describing.pairs import Pair
from quietus.permits import Granted, Purpose
from quietus.ports import UpstreamError
from quietus.profiles.profile import Profile
from quietus.wires import StoreClient, bare_listener

MESSAGE_MAX: Final = 8 << 20
"""Bytes of one message, either way."""


class Keeps(Protocol):
    """What a recording does with a call."""

    left_out: int
    full: asyncio.Event

    def add(self, pair: Pair) -> None:
        """Masks a pair and writes it; one that is not recorded is counted."""


class Passing:
    """Passes calls on: `adapters.grpc.Handler` and `Talker`."""

    def __init__(self, client: StoreClient, recording: Keeps, body_max: int) -> None:
        """`body_max`: bytes of an answer; a longer one passes and is not recorded."""
        self._client = client
        self._recording = recording
        self._body_max = body_max
        self._permit = Granted(Purpose.CLIENT, "recording")

    async def handle(self, request: Request, principal: str) -> Answer:
        """One message to the store and one back; a copy of both is recorded."""
        try:
            reply = await self._client.open(request, self._permit)
            whole = await reply.read(MESSAGE_MAX)
        except UpstreamError as error:
            self._recording.left_out += 1
            return problem("upstream-unavailable", str(error))
        if len(whole.body) > self._body_max:
            self._recording.left_out += 1
        else:
            self._recording.add(Pair(request, whole))
        return passed_on(whole)

    def refuse(self, name: str, detail: str = "", wire: Wire = "http") -> Answer:
        """What the wire itself refuses."""
        return problem(name, detail)

    async def hold(self, request: Request, principal: str, client: Client) -> Answer:
        """A call of many messages, or of a method that nobody described: it passes, and is not recorded."""
        self._recording.left_out += 1
        sending: asyncio.Task[None] | None = None
        opened: OpenStream | None = None
        try:
            opened = await self._client.converse(request, self._permit)
            sending = asyncio.ensure_future(_sent(client, opened))
            await client.begin(await opened.head())
            async for message in opened.messages():
                await client.write(message)
            return passed_on(await opened.end())
        except UpstreamError as error:
            return problem("upstream-unavailable", str(error))
        finally:
            if sending is not None:
                sending.cancel()
            if opened is not None:
                opened.abort()


async def _sent(client: Client, opened: OpenStream) -> None:
    async for message in client.messages():
        if not await opened.send(message):
            return
    await opened.finish_sending()


def singles(profile: Profile) -> Callable[[str], bool]:
    """Says of a method whether the descriptor set has it, with one message each way."""

    def single(method: str) -> bool:
        rpc = profile.descriptors.rpc(method) if profile.descriptors is not None else None
        return rpc is not None and not rpc.client_streams and not rpc.server_streams

    return single


async def listened(
    client: StoreClient, profile: Profile, listen: str, recording: Keeps, body_max: int
) -> None:
    """Passes calls on until enough were recorded or somebody ends it. Raises ListenerRefused."""
    passing = Passing(client, recording, body_max)
    listener = bare_listener(passing, passing, singles(profile), MESSAGE_MAX)
    await listener.start(listen)
    try:
        host = listen.rpartition(":")[0]
        typer.echo(f"recording on grpc://{host}:{listener.port}, masked; end it with Ctrl-C", err=True)
        await recording.full.wait()
    finally:
        await listener.close(2.0)
