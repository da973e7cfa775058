"""What goes over a line between the supervisor and a worker, as JSON.

Both ends are of one installation, and the line is a socket that only the two hold; it is JSON all the same,
because nothing that is read back may be able to run.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from quietus.core.events import Draft, Event, EventType
from quietus.core.fingerprint import Mark
from quietus.ports import (
    Conflict,
    Entry,
    Head,
    LedgerBehind,
    LedgerError,
    LedgerFull,
    LedgerRefused,
    LedgerUnavailable,
    LedgerUncertain,
    Member,
    Muster,
    Unlisted,
)

_ERRORS: Final[dict[str, type[LedgerError]]] = {
    kind.__name__: kind
    for kind in (
        LedgerError, LedgerUnavailable, LedgerFull, LedgerUncertain, LedgerRefused, LedgerBehind, Conflict,
        Unlisted,
    )
}  # fmt: skip


def _text(value: bytes) -> str:
    return base64.b85encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b85decode(text)


def marked_of(raw: list[Any]) -> tuple[str, Mark]:
    """An erasure and its mark, out of the lists that tuples come as."""
    return raw[0], Mark(*raw[1])


def _event(raw: Mapping[str, Any]) -> Event:
    return Event(**{**raw, "type": EventType(raw["type"])})


def _draft(raw: Mapping[str, Any]) -> Draft:
    return Draft(**{**raw, "type": EventType(raw["type"])})


def _entry(raw: list[Any]) -> Entry:
    return Entry(_event(raw[0]), tuple(map(marked_of, raw[1])), tuple(raw[2]))


def _muster(raw: list[Any]) -> Muster:
    members = tuple(Member(**{**m, "undrained": tuple(m["undrained"])}) for m in raw[1])
    return Muster(Head(**raw[0]), members, raw[2], raw[3])


_OUT: Final[dict[type, tuple[str, Callable[[Any], Any]]]] = {
    bytes: ("bytes", _text),
    frozenset: ("set", sorted),
    Draft: ("draft", lambda d: {**_fields(d), "facts": dict(d.facts)}),
    Event: ("event", lambda e: {**_fields(e), "facts": dict(e.facts)}),
    Head: ("head", asdict),
    Muster: ("muster", lambda m: [asdict(m.head), [asdict(each) for each in m.members], m.life,
                                  m.settled_life]),
    Entry: ("entry", lambda e: [_OUT[Event][1](e.event), list(e.marks), list(e.unmark)]),
}  # fmt: skip
_IN: Final[dict[str, Callable[[Any], Any]]] = {
    "bytes": _bytes,
    "set": frozenset,
    "draft": _draft,
    "event": _event,
    "head": lambda raw: Head(**raw),
    "muster": _muster,
    "entry": _entry,
}
_KIND: Final = "\0"
"""The name of a member that no document of ours has."""


def _fields(value: Draft | Event) -> dict[str, Any]:
    found = {name: getattr(value, name) for name in type(value).__slots__ if name != "facts"}
    return found | {"type": value.type.value}


def plain(value: Any) -> Any:
    """What `json.dumps` asks for what it does not know."""
    if type(value) in _OUT:
        name, out = _OUT[type(value)]
        return {_KIND: name, "is": out(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} does not go over a line")


def whole(raw: dict[str, Any]) -> Any:
    """What `json.loads` makes of each object."""
    return _IN[raw[_KIND]](raw["is"]) if _KIND in raw else raw


def error_form(error: LedgerError) -> list[str]:
    """An error of the ledger, to be raised at the other end."""
    return [type(error).__name__, str(error)]


def error_of(raw: list[str]) -> LedgerError:
    """The inverse of `error_form`."""
    return _ERRORS[raw[0]](raw[1])
