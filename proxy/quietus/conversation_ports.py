"""What a conversation needs from outside: a client, the gateway, and a store that speaks in many messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from quietus.answers import Answer
from quietus.core.decision import Decision, Question
from quietus.core.exchange import Headers, Reply, Request, Wire
from quietus.core.operations import Call
from quietus.ports import Permit, UpstreamError
from quietus.profiles.faults import RequestFault
from quietus.profiles.profile import Reading


class OpenStream(Protocol):
    """A call of gRPC with messages in both directions, under way."""

    async def head(self) -> Headers:
        """The store's initial metadata, when it is there. Raises UpstreamError."""

    async def send(self, message: bytes) -> bool:
        """Sends one message, and returns when there is room for another. False: the call has ended."""

    async def finish_sending(self) -> None:
        """Says that no more messages come."""

    def messages(self) -> AsyncIterator[bytes]:
        """The store's messages, each read only when it is asked for; how they ended is told by `end`."""

    async def end(self) -> Reply:
        """How the call ended: a reply without a body. Raises UpstreamError where the store did not say."""

    def abort(self) -> None:
        """Cancels the call."""


class Streams(Protocol):
    """The store, behind a wire that has calls of many messages."""

    async def converse(self, request: Request, permit: Permit) -> OpenStream:
        """Begins a call with the head of `request`; its body is not sent. Raises UpstreamError."""


class Client(Protocol):
    """Whoever called, as far as a conversation needs it."""

    def messages(self) -> AsyncIterator[bytes]:
        """What the client sends, each message read only when it is asked for."""

    async def begin(self, headers: Headers) -> None:
        """Sends the head of the answer."""

    async def write(self, message: bytes) -> None:
        """Sends one message; returns when the connection has taken it."""


class Door(Protocol):
    """What of the gateway a conversation uses."""

    @property
    def observing(self) -> bool:
        """Whether the policy only observes."""

    def question(self, call: Call, principal: str) -> Question:
        """The question of a call."""

    async def enter(self, reading: Reading, principal: str) -> tuple[Question, Decision] | Answer:
        """A call counted and decided: where it may go on, its question and decision; else the refusal."""

    def unread(self, fault: RequestFault, wire: Wire) -> Answer:
        """The refusal of a request that cannot be read."""

    def broken(self, error: Exception, route: str, wire: Wire) -> Answer:
        """The refusal for a fault of our own."""


class NoStreams:
    """A store that is reached by no wire that has such calls."""

    async def converse(self, request: Request, permit: Permit) -> OpenStream:
        """Raises UpstreamError."""
        raise UpstreamError("the store is not reached by gRPC", sent=False)
