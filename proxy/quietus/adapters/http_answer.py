"""Writing one answer. Nothing of it leaves once a fence has fallen into its scope."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Final, Protocol

from quietus.adapters.http_wire import BODILESS_STATUSES, Head, answer_head, declared_length

if TYPE_CHECKING:
    from quietus.adapters.http import Answer, ListenerLimits

SLOWEST: Final = 16 * 1024
"""Bytes a second that a client must take at least, over the time it is given anyway."""


class Sink(Protocol):
    """The connection, as far as writing goes."""

    transport: asyncio.Transport | None

    @property
    def writing_paused(self) -> bool:
        """Not all that was written has left."""

    async def drained(self, seconds: float) -> None:
        """Returns when it has; raises ConnectionError when it does not in time."""

    def abort(self) -> None:
        """Drops the connection at once."""


class _Cut(Exception):
    """The rest of the answer will not be written."""


async def write_answer(
    sink: Sink, limits: ListenerLimits, answer: Answer, head: Head | None, method: str, close: bool
) -> bool:
    """Writes it and says whether all of it left; if not, the connection has been dropped."""
    try:
        body, headers = answer.body, answer.headers
        declare = method == "HEAD" or answer.status in BODILESS_STATUSES
        request_id = None if head is None else head.request_id
        if isinstance(body, bytes):
            whole = body
        elif declare:
            await _end(body)
            whole = b""
        else:
            old = head is not None and head.old
            return await _stream(sink, limits, answer, body, old=old, close=close, request_id=request_id)
        if declare:
            # The length that an answer to GET would have had, unless the headers tell it.
            if whole and method == "HEAD" and declared_length(headers) is None:
                headers = (*headers, ("Content-Length", str(len(whole))))
            whole = b""
        start = answer_head(answer.status, headers, length=len(whole), declare=declare, close=close,
                            request_id=request_id)  # fmt: skip
        transport = sink.transport
        if answer.overtaken.is_set() or transport is None or transport.is_closing():
            sink.abort()
            return False
        transport.write(start + whole)
        if sink.writing_paused:
            await _flushed(sink, answer.overtaken, limits.write + len(whole) / SLOWEST)
        return True
    except (ConnectionError, _Cut):
        sink.abort()
        return False
    finally:
        answer.done()


async def _stream(
    sink: Sink, limits: ListenerLimits, answer: Answer, body: AsyncIterator[bytes], *,
    old: bool, close: bool, request_id: str | None,
) -> bool:  # fmt: skip
    declared = declared_length(answer.headers)
    if old and declared is None:
        # Without chunks only its length tells an HTTP/1.0 client that the answer was whole.
        body = await _held(body, limits.held_bytes_max)
        declared = body.size
    start = answer_head(answer.status, answer.headers, length=declared, close=close, request_id=request_id)
    watch = asyncio.get_running_loop().create_task(_abort_when(sink, answer.overtaken))
    left = declared
    try:
        _put(sink, answer, start)
        async for piece in body:
            if not piece:
                continue
            if left is None:
                _put(sink, answer, b"%x\r\n%b\r\n" % (len(piece), piece))
            else:
                left -= len(piece)
                if left < 0:
                    raise _Cut
                _put(sink, answer, piece)
            if sink.writing_paused:
                await sink.drained(limits.write)
        if left:
            raise _Cut
        if left is None:
            _put(sink, answer, b"0\r\n\r\n")
        if sink.writing_paused:
            await sink.drained(limits.write)
        return True
    except Exception:  # whatever the stream raises, there is no second answer after the first one's head
        sink.abort()
        return False
    finally:
        watch.cancel()
        await _end(body)


def _put(sink: Sink, answer: Answer, data: bytes) -> None:
    if answer.overtaken.is_set() or sink.transport is None or sink.transport.is_closing():
        raise _Cut
    sink.transport.write(data)


async def _flushed(sink: Sink, overtaken: asyncio.Event, seconds: float) -> None:
    watch = asyncio.get_running_loop().create_task(_abort_when(sink, overtaken))
    try:
        await sink.drained(seconds)
    finally:
        watch.cancel()


async def _abort_when(sink: Sink, overtaken: asyncio.Event) -> None:
    await overtaken.wait()
    sink.abort()


class _Held:
    """A stream that was short enough to be held."""

    def __init__(self, whole: bytes) -> None:
        self._pieces = [whole]
        self.size = len(whole)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop()


async def _held(body: AsyncIterator[bytes], limit: int) -> _Held:
    buffer = bytearray()
    try:
        async for piece in body:
            buffer += piece
            if len(buffer) > limit:
                raise _Cut
    except _Cut:
        raise
    except Exception as error:  # nothing has been written: all there is to do is to drop the connection
        raise _Cut from error
    finally:
        await _end(body)
    return _Held(bytes(buffer))


async def _end(body: AsyncIterator[bytes]) -> None:
    if isinstance(body, AsyncGenerator):
        await body.aclose()
