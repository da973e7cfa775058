"""An answer over gRPC as its profile reads it: its rows, all its scalars, and itself without some rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from quietus.core.exchange import Reply, Request
from quietus.profiles.answers import Answered, Captures, open_body, read_document, read_rows
from quietus.profiles.columns import Rows
from quietus.profiles.descriptors import MessageType, Rpc
from quietus.profiles.faults import CannotQuote, RequestFault, Unreadable
from quietus.profiles.jsonpaths import MISSING
from quietus.profiles.message_scalars import beyond, guesses, of_metadata, scalars
from quietus.profiles.messages import rewrite
from quietus.profiles.protobuf import Message, NotMessage, decode
from quietus.profiles.rows import Anchors
from quietus.profiles.wire import header_fields

BODY_MAX: Final = 8_388_608


@dataclass(slots=True)
class MessageAnswered(Answered):
    """What one message of an answer holds. Without `message` nobody knows its type."""

    message: Message | None = None
    counts: str | None = None
    said: tuple[str, ...] = ()
    """What the status and the trailing metadata say beside it."""

    def scalars(self) -> Iterable[tuple[int | None, str]]:
        """Every scalar and every key of a map as text, with the position of its row. Raises Unreadable.

        Of a message of no known type, everything that its bytes may say.
        """
        out: list[tuple[int | None, str]] = [(None, text) for text in self.said if text]
        try:
            if self.message is not None:
                out += scalars(self.message, self.anchors)
            else:
                out += ((None, text) for text in guesses(self.plain) if text)
        except NotMessage as error:
            raise Unreadable(f"the message holds too much: {error}") from None
        return out

    def without(self, positions: Set[int]) -> bytes | None:
        """The message without these rows, every other byte as it was; None if that cannot be said."""
        if not positions:
            return self.plain
        if self.message is None:
            return None
        try:
            edits = self.anchors.cut(frozenset(positions))
            if edits is None:
                return None
            edits.counts = self.counts
            return rewrite(self.message, edits)
        except (Unreadable, CannotQuote):
            return None


def read_message(
    reply: Reply,
    groups: Sequence[Rows],
    kind: MessageType | None,
    captures: Captures = {},  # noqa: B006
    counts: str | None = None,
) -> MessageAnswered:
    """The answer as these groups read it; `kind` is None where nobody described the method.

    What is absent from a message is empty. Raises Unreadable for one that does not decode.
    """
    said = (reply.reason, *of_metadata(reply.trailers))
    if reply.code not in (None, "OK") or kind is None:
        return MessageAnswered(plain=reply.body, said=said)
    return read_one(reply.body, groups, kind, captures, counts, said)


def read_one(
    data: bytes,
    groups: Sequence[Rows],
    kind: MessageType,
    captures: Captures = {},  # noqa: B006
    counts: str | None = None,
    said: tuple[str, ...] = (),
) -> MessageAnswered:
    """One message of an answer. Raises Unreadable."""
    if len(data) > BODY_MAX:
        raise Unreadable("the message is larger than is read")
    try:
        message = decode(data, kind)
    except NotMessage as error:
        raise Unreadable(f"the message does not decode: {error}") from None
    anchors = Anchors()
    items = read_rows(groups, {"body": message.view}, captures, anchors, required=False) if groups else ()
    return MessageAnswered(
        items=items, single=bool(anchors.whole), document=message.view, plain=data, groups=groups,
        captures=captures, anchors=anchors, message=message, counts=counts, said=said,
    )  # fmt: skip


def request_view(request: Request, rpc: Rpc, *, writes: bool = False) -> dict[str, Any]:
    """What the selectors of a request see; beside it, of a write, all that its message may say.

    Raises RequestFault.
    """
    try:
        message = decode(request.body, rpc.takes)
        more = list(beyond(message)) if writes else []
        return {
            "headers": header_fields(request.headers),
            "body": message.view,
            "document": [message.view, *more] if more else message.view,
        }
    except NotMessage as error:
        problem = "too-large" if error.too_large else "malformed-request"
        raise RequestFault(problem, f"the message does not decode: {error}") from None


def reply_document(reply: Reply, rpc: Rpc | None) -> Any:
    """The body of an answer on either wire as selectors see it; MISSING where it cannot be read."""
    try:
        if reply.code is None:
            return read_document(open_body(reply))
        return MISSING if rpc is None or reply.code != "OK" else decode(reply.body, rpc.gives).view
    except (Unreadable, NotMessage):
        return MISSING
