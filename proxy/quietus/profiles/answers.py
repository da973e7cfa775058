"""An answer as its profile reads it: its rows, all its scalars, and itself without some rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from quietus.core.exchange import Reply, header
from quietus.core.operations import Item
from quietus.profiles.codec import decode_exact, decode_json, encode_json, encode_text, inflate, scalar_text
from quietus.profiles.columns import Rows
from quietus.profiles.faults import MissingItems, NotJson, Unreadable
from quietus.profiles.rows import Anchors
from quietus.profiles.wire import is_json

BODY_MAX: Final = 8_388_608
_BODYLESS: Final = frozenset({204, 205, 304})
_VECTOR_FROM: Final = 16
_TEXT_KINDS: Final = ("text/", "application/x-ndjson", "application/jsonl", "application/x-jsonlines",
                      "application/yaml", "application/xml")  # fmt: skip

Captures = Mapping[str, str]


@dataclass(slots=True)
class Answered:
    """What an answer holds. `text` is the whole of an answer that is no JSON."""

    items: tuple[Item, ...] = ()
    epoch: int | None = None
    single: bool = False
    document: Any = None
    text: str | None = None
    plain: bytes = b""
    """The body without its content coding."""
    groups: Sequence[Rows] = ()
    captures: Captures = field(default_factory=dict)
    anchors: Anchors = field(default_factory=Anchors)

    def scalars(self) -> Iterable[tuple[int | None, str]]:
        """Every scalar and every key as text, with the position of its row, None outside of rows.

        Numbers come as JSON writes them; arrays of 16 floats or more are vectors and left out.
        """
        if self.text is not None:
            return [(None, self.text)] if self.text else []
        out: list[tuple[int | None, str]] = []
        collect_scalars(self.document, self.anchors, out)
        return out

    def without(self, positions: Set[int]) -> bytes | None:
        """The body without these rows, everything else as it was; None if that cannot be said.

        That is so for an answer which is one row, and for one that is no JSON.
        """
        if not positions:
            return self.plain
        if self.text is not None:
            return None
        document = decode_exact(self.plain)
        anchors = Anchors()
        read_rows(self.groups, {"body": document}, self.captures, anchors, required=False)
        if not anchors.drop(frozenset(positions)):
            return None
        if anchors.inner:
            inner = {text: encode_text(document) for text, document in anchors.inner.items()}
            document = _with_texts(document, inner)
        return encode_json(document)


def read_rows(
    groups: Sequence[Rows], document: Any, captures: Captures, anchors: Anchors, *, required: bool
) -> tuple[Item, ...]:
    """The rows of all groups, numbered through. Raises Unreadable.

    Of several groups one at least must be there: a store leaves empty ones out.
    """
    if len(groups) == 1 and not groups[0].optional:
        return tuple(groups[0].read(document, 0, captures, anchors, required))
    items: list[Item] = []
    missing: MissingItems | None = None
    found = False
    for group in groups:
        try:
            items.extend(group.read(document, len(items), captures, anchors, required and not group.optional))
            found = True
        except MissingItems as error:
            missing = error
    if missing is not None and not found:
        raise missing
    return tuple(items)


def open_body(reply: Reply, limit: int = BODY_MAX) -> bytes:
    """The body of an answer without its coding. Raises Unreadable."""
    try:
        return inflate(reply.body, header(reply.headers, "content-encoding"), limit)
    except NotJson as error:
        raise Unreadable(f"the answer cannot be unpacked: {error}") from None


def read_document(data: bytes) -> Any:
    """The JSON of an answer. Raises Unreadable."""
    try:
        return decode_json(data)
    except NotJson as error:
        raise Unreadable(f"the answer is not strict JSON: {error}") from None


def read_answer(
    reply: Reply, groups: Sequence[Rows], captures: Captures = {}, limit: int = BODY_MAX  # noqa: B006
) -> Answered:
    """The answer as these groups read it. Raises Unreadable."""
    plain = open_body(reply, limit)
    fine = 200 <= reply.status < 300
    if not plain:
        if groups and fine and reply.status not in _BODYLESS:
            raise Unreadable("the answer has no body where its items should be")
        return Answered(plain=plain, text="", groups=groups)
    kind = header(reply.headers, "content-type")
    json_said = kind is not None and is_json(kind)
    if json_said or (kind is None) or (groups and fine):
        try:
            document = read_document(plain)
        except Unreadable:
            if json_said or (groups and fine):
                raise
        else:
            found = answered(document, plain, groups, captures, required=fine)
            if fine or not all(item.key is item.subject is None and not item.texts for item in found.items):
                return found
            # An error's own members are nobody's record; its words are screened all the same.
            return answered(document, plain, (), captures, required=False)
    return Answered(plain=plain, text=_as_text(plain, kind), groups=groups)


def answered(
    document: Any, plain: bytes, groups: Sequence[Rows], captures: Captures, *, required: bool
) -> Answered:
    """A decoded answer with its rows. Raises Unreadable."""
    anchors = Anchors()
    items = read_rows(groups, {"body": document}, captures, anchors, required=required) if groups else ()
    return Answered(
        items=items,
        single=bool(anchors.whole),
        document=document,
        plain=plain,
        groups=groups,
        captures=captures,
        anchors=anchors,
    )


def _as_text(plain: bytes, kind: str | None) -> str:
    if kind is not None and not kind.strip().lower().startswith(_TEXT_KINDS) and not is_json(kind):
        raise Unreadable("the answer is neither JSON nor text")
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError:
        raise Unreadable("the answer is not UTF-8") from None


def collect_scalars(document: Any, anchors: Anchors, out: list[tuple[int | None, str]]) -> None:
    """Every scalar and key of a document into `out`, with the row it stands in."""
    put = out.append
    lists, whole, inner = anchors.lists, anchors.whole, anchors.inner
    pending: list[tuple[Any, int | None]] = [(document, None)]
    while pending:
        value, at = pending.pop()
        kind = type(value)
        if kind is str:
            if inner and value in inner:
                pending.append((inner[value], at))
            else:
                put((at, value))
        elif kind is dict:
            if whole and at is None:
                at = whole.get(id(value))
            for key, member in value.items():
                put((at, key))
                if type(member) is str and not inner:
                    put((at, member))
                elif member is not None:
                    pending.append((member, at))
        elif kind is list:
            start = lists.get(id(value))
            if start is not None:
                pending.extend((member, start + number) for number, member in enumerate(value))
            elif not (len(value) >= _VECTOR_FROM and set(map(type, value)) <= {float}):
                pending.extend((member, at) for member in value)
        else:
            text = scalar_text(value)
            if text is not None:
                put((at, text))


def _with_texts(document: Any, texts: Mapping[str, str]) -> Any:
    """The document with these strings replaced, wherever they stand as values."""
    if type(document) is str:
        return texts.get(document, document)
    if type(document) is dict:
        return {key: _with_texts(value, texts) for key, value in document.items()}
    if type(document) is list:
        return [_with_texts(value, texts) for value in document]
    return document


def scalars_of(document: Any) -> Iterator[str]:
    """Every scalar and key of any document, for what has no rows."""
    out: list[tuple[int | None, str]] = []
    collect_scalars(document, Anchors(), out)
    return (text for _, text in out)
