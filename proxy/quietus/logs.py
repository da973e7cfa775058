"""Log lines: JSON on stderr, and nothing in them but words that are known to be harmless.

A line has an `event`, which the code writes as a constant, and keys of `KEYS`. A key that is not listed is
dropped (its absence is said), and so is a value that does not look like a word, a number or an id: memory
text, subjects, paths, header values and messages of foreign exceptions cannot pass. An exception is told by
its type and the places of our code it went through.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from types import TracebackType
from typing import Any, Final, TextIO

import structlog

KEYS: Final = frozenset({
    "event", "level", "timestamp", "actor", "attempt", "bytes", "cause", "clean_rounds", "closed", "count",
    "duration", "effect", "epoch", "erasure", "error", "exception", "failure", "faults", "gate_epoch",
    "head", "kind", "mode", "number", "operation", "outcome", "pending", "phase", "pid", "policy", "port",
    "principal_kind", "problem", "profile", "reason", "relation", "request_id", "role", "route", "rule",
    "seconds", "signal", "state", "status", "store", "surface", "surfaces", "vector", "verdict", "version",
    "wire", "work", "write",
})  # fmt: skip
"""The only keys that leave. `route` and `surface` are names in a profile, `rule` one in a policy."""

_WORD: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,79}")
_EVENT: Final = re.compile(r"[a-z][a-z0-9_.:,;' -]{0,119}", re.IGNORECASE)
_WITHHELD: Final = "withheld"

Event = MutableMapping[str, Any]


def redact(_logger: object, _method: str, event: Event) -> Mapping[str, Any]:
    """A structlog processor: keeps what is listed and harmless, and says how much it held back."""
    kept: dict[str, Any] = {}
    held = 0
    for key, value in event.items():
        if key == "event":
            kept[key] = value if isinstance(value, str) and _EVENT.fullmatch(value) else _WITHHELD
        elif key in KEYS and (safe := _safe(value)) is not None:
            kept[key] = safe
        elif value is not None:
            held += 1
    if held:
        kept["withheld"] = held
    return kept


def _safe(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value) if _WORD.fullmatch(value) else None
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, list | tuple | set | frozenset) and len(value) <= 50:
        parts = [_safe(part) for part in value]
        return parts if all(part is not None for part in parts) else None
    return None


def told(_logger: object, _method: str, event: Event) -> Event:
    """A structlog processor: an exception as its type and the lines of our code, without its message."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    if isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    if isinstance(given, tuple) and given[0] is not None:
        event["error"] = given[0].__name__
        event["exception"] = places(given[2])
    return event


def places(trace: TracebackType | None) -> list[str]:
    """`module:line` of the frames in this package, innermost last; at most ten."""
    found = []
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if name.startswith("quietus"):
            found.append(f"{name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return found[-10:]


def setup(now: Callable[[], float], *, stream: TextIO | None = None, level: str = "info") -> None:
    """Makes every structlog logger write redacted JSON lines. `now` is the clock's, in Unix seconds."""

    def stamp(_logger: object, _method: str, event: Event) -> Event:
        event["timestamp"] = round(now(), 3)
        return event

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            stamp,
            told,
            redact,
            structlog.processors.JSONRenderer(sort_keys=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=stream if stream is not None else sys.stderr),
        cache_logger_on_first_use=False,
    )
