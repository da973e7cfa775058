"""Calls of many messages: each message of the client is a request of its own, each of the store an answer.

A conversation may outlive every decision that was made at its beginning. Each message that goes in is read
and decided before it is forwarded; each that comes out is decided again, and screened, just before it leaves.
Between that decision and the hand-over to the wire nothing is waited for; while the wire takes a message, a
fence in its scope waits for that one message, and ends the call when it is not taken.

What may no longer leave ends the call, with a reason. It is never cut without a word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

from quietus.answers import Answer, problem
from quietus.arrivals import Arrivals
from quietus.conversation_ports import Client, Door, OpenStream, Streams
from quietus.core.decision import Question
from quietus.core.exchange import Request
from quietus.core.operations import Operation
from quietus.core.scope import Scope
from quietus.erasures import Erasures
from quietus.flights import Flight, Flights
from quietus.messages import Before, Ended, Messages
from quietus.outgoing import outgoing
from quietus.permits import Granted, Purpose
from quietus.ports import ReplyTooLarge, UpstreamError
from quietus.profiles.faults import RequestFault
from quietus.profiles.profile import Profile, Reading

SCOPES_MAX: Final = 1000
"""Scopes that one call may touch; a call that touches more is one that nobody can follow."""


class Conversations:
    """Holds them."""

    def __init__(
        self,
        erasures: Erasures,
        profile: Callable[[], Profile],
        door: Door,
        upstream: Streams,
        flights: Flights,
        arrivals: Arrivals,
        messages: Messages,
    ) -> None:
        self._erasures = erasures
        self.profile = profile
        self.door = door
        self.upstream = upstream
        self.flights = flights
        self.arrivals = arrivals
        self.screens = messages

    async def hold(self, request: Request, principal: str, client: Client) -> Answer:
        """A whole call. What comes back says how it ended. Raises nothing but CancelledError."""
        talk = _Talk(self, request, principal, client)
        try:
            return await talk.run()
        except Ended as ended:
            return ended.answer
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return self.door.broken(error, "stream", "grpc")
        finally:
            talk.close()

    def concerned(self, question: Question) -> bool:
        """Whether an erasure or tombstone stands in the tenant of a call."""
        return self._erasures.gate.concerns(question.scope)


class _Talk:
    """One conversation."""

    def __init__(self, house: Conversations, request: Request, principal: str, client: Client) -> None:
        self._house = house
        self._head = request
        self._principal = principal
        self._client = client
        self._opened: OpenStream | None = None
        self._flights: dict[tuple[Operation, Scope], tuple[Flight, Reading]] = {}
        self._overtaken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._writing = False
        self._ended: Answer | None = None
        self._main: asyncio.Task[object] | None = None
        self._whole = False
        self._described = True
        self._before = Before()

    async def run(self) -> Answer:
        """From the first message to the end."""
        self._main = asyncio.current_task()
        incoming = self._client.messages()
        first = await self._first(incoming)
        self._opened = opened = await self._open()
        self._begin(self._pump(incoming, first, opened))
        self._begin(self._watch())
        try:
            return await self._relay(opened)
        except asyncio.CancelledError:
            if self._ended is None:
                raise
            if self._main is not None:
                self._main.uncancel()
            raise Ended(self._ended) from None
        except ReplyTooLarge:
            raise Ended(problem("unscreenable", "a message is larger than response_bytes_max")) from None
        except UpstreamError as error:
            raise Ended(self._unanswered(error.sent)) from None

    def close(self) -> None:
        """Lets go of everything. A write whose call did not end well may still land."""
        self._main = None
        for task in self._tasks:
            task.cancel()
        if self._opened is not None:
            self._opened.abort()
        for flight, _ in self._flights.values():
            if flight.sent and not self._whole and flight.question.call.operation is Operation.WRITE:
                self._house.arrivals.may_land(flight)
            self._house.flights.close(flight)

    # --- client to store -----------------------------------------------------------------------

    async def _first(self, incoming: AsyncIterator[bytes]) -> bytes | None:
        """The first message, admitted. A method that nobody described is decided before one is there.

        Of such a method nobody knows who speaks first; of others the first message says what it is about.
        """
        probe = self._reading(b"")
        if isinstance(probe, Reading) and not probe.mapped:
            self._described = False
            await self._admit(probe)
            return None
        message = await anext(incoming, None)
        if message is not None:
            await self._admit(self._read(message))
        return message

    async def _open(self) -> OpenStream:
        head = self._head if self._house.door.observing else outgoing(self._head)
        try:
            return await self._house.upstream.converse(head, Granted(Purpose.CLIENT))
        except UpstreamError as error:
            raise Ended(self._unanswered(error.sent)) from None

    async def _pump(self, incoming: AsyncIterator[bytes], first: bytes | None, opened: OpenStream) -> None:
        try:
            if first is not None and not await self._send(opened, first):
                return
            async for message in incoming:
                if self._described:
                    await self._admit(self._read(message))
                else:
                    self._check()
                if not await self._send(opened, message):
                    return
            await opened.finish_sending()
        except Ended as ended:
            self._stop(ended.answer)
        except Exception as error:
            self._stop(self._house.door.broken(error, "stream", "grpc"))

    async def _send(self, opened: OpenStream, message: bytes) -> bool:
        for flight, _ in self._flights.values():
            flight.sent = True
        return await opened.send(message)

    def _reading(self, message: bytes) -> Reading | RequestFault:
        head = self._head
        request = Request(head.method, head.target, head.headers, message, head.wire)
        try:
            return self._house.profile().read(request)
        except RequestFault as fault:
            return fault

    def _read(self, message: bytes) -> Reading | None:
        found = self._reading(message)
        if isinstance(found, Reading):
            return found
        if self._house.door.observing:
            return None
        raise Ended(self._house.door.unread(found, self._head.wire))

    async def _admit(self, reading: Reading | None) -> None:
        """Decides one message. Raises Ended."""
        if reading is None:
            return
        if reading.call.operation is Operation.FORGET and not self._house.door.observing:
            # A forget has a life of its own and an answer of its own; in a stream it could have neither.
            raise Ended(problem("unverifiable-forget", "send a forget as a call of its own"))
        entered = await self._house.door.enter(reading, self._principal)
        if isinstance(entered, Answer):
            raise Ended(entered)
        question, decision = entered
        key = (reading.call.operation, question.scope)
        known = self._flights.get(key)
        if known is not None:
            known[0].hold(decision)
            self._flights[key] = (known[0], reading)
            return
        if len(self._flights) >= SCOPES_MAX:
            raise Ended(problem("overloaded", "the call touches too many scopes", retry_after=1.0))
        flight = self._house.flights.open(question, decision, self._house.concerned(question))
        flight.overtaken = self._overtaken
        # A write that has been sent must come back, or be given up, before a forget of what it writes.
        flight.releasing = reading.call.operation is Operation.WRITE
        self._flights[key] = (flight, reading)

    # --- store to client -----------------------------------------------------------------------

    async def _relay(self, opened: OpenStream) -> Answer:
        headers = await opened.head()
        self._check()
        await self._client.begin(headers)
        async for message in opened.messages():
            passed = self._house.screens.passed(message, self._flights.values(), self._before)
            if passed is not None:
                await self._write(passed)
        reply = await opened.end()
        self._check()
        self._whole = reply.code == "OK"
        return self._house.screens.ending(reply, self._flights.values())

    async def _write(self, message: bytes) -> None:
        flights = [flight for flight, _ in self._flights.values() if not flight.releasing]
        self._writing = True
        for flight in flights:
            flight.releasing = True
        try:
            await self._client.write(message)
        finally:
            self._writing = False
            for flight in flights:
                flight.releasing = False
        if self._overtaken.is_set() and not self._uploads():
            self._overtaken.clear()  # it has left; the next one is decided anew

    def _check(self) -> None:
        """Raises Ended where a decision refuses by now."""
        for flight, _ in self._flights.values():
            if self._house.arrivals.blocked(flight):
                raise Ended(self._house.arrivals.refused_late(flight))

    async def _watch(self) -> None:
        """Ends the call when a fence has to wait for it."""
        while True:
            await self._overtaken.wait()
            if self._writing or self._uploads():
                flight = next((f for f, _ in self._flights.values() if f.met), None)
                assert flight is not None
                self._stop(self._house.arrivals.refused_late(flight))
                return
            self._overtaken.clear()

    def _uploads(self) -> bool:
        return any(operation is Operation.WRITE for operation, _ in self._flights)

    # --- the end -------------------------------------------------------------------------------

    def _stop(self, answer: Answer) -> None:
        """Ends the call from beside it."""
        if self._ended is None and self._main is not None:
            self._ended = answer
            self._main.cancel()

    def _unanswered(self, sent: bool) -> Answer:
        writes = any(f.question.call.operation is Operation.WRITE for f, _ in self._flights.values())
        mapped = all(reading.mapped for _, reading in self._flights.values())
        if sent and (writes or not mapped):
            return problem("outcome-unknown", retry_after=1.0)
        return problem("upstream-unavailable", retry_after=1.0)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))
