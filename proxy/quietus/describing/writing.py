"""YAML that says beside each value where it comes from: what a person is to look at is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z_$/][A-Za-z0-9_$./-]*|[0-9]+(ms|s|m|h|d)")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"})
_SHORT: Final = 72


@dataclass(frozen=True, slots=True)
class Guess:
    """A value that was guessed, and from what."""

    value: Any
    why: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A value with a remark that is no guess."""

    value: Any
    note: str


def document(parts: Mapping[str, Any], head: list[str]) -> str:
    """A YAML document with comments; `head` is what stands above it."""
    lines = [f"# {line}".rstrip() for line in head]
    for name, value in parts.items():
        if isinstance(value, Mapping | list):
            lines.append("")
        lines += _member(name, value, 0)
    return "\n".join(lines) + "\n"


def _member(name: str, value: Any, indent: int) -> Iterator[str]:
    value, note = _bare(value)
    remark = f" # {note}" if note else ""
    head = f"{' ' * indent}{_scalar(name)}:"
    flow = _flow(value)
    if flow is not None and (not isinstance(value, Mapping | list) or len(flow) <= _SHORT):
        yield f"{head} {flow}{remark}"
        return
    yield head + remark
    yield from _block(value, indent + 2)


def _block(value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _member(str(name), each, indent)
        return
    for each in value:
        each, note = _bare(each)
        flow = _flow(each)
        if flow is not None and len(flow) <= _SHORT:
            yield f"{' ' * indent}- {flow}" + (f" # {note}" if note else "")
            continue
        if note:
            yield f"{' ' * indent}# {note}"
        lines = list(_block(each, indent + 2))
        yield f"{' ' * indent}- {lines[0].lstrip()}"
        yield from lines[1:]


def _flow(value: Any) -> str | None:
    """The value on one line; None where something in it has a remark of its own."""
    if isinstance(value, Guess | Noted):
        return None
    if isinstance(value, Mapping):
        parts = [(name, _flow(each)) for name, each in value.items()]
        if any(text is None for _, text in parts):
            return None
        return "{" + ", ".join(f"{_scalar(str(name))}: {text}" for name, text in parts) + "}"
    if isinstance(value, list):
        texts = [_flow(each) for each in value]
        return None if any(text is None for text in texts) else "[" + ", ".join(map(str, texts)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        safe = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if safe else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _bare(value: Any) -> tuple[Any, str]:
    if isinstance(value, Guess):
        return value.value, f"guess: {_line(value.why)}"
    if isinstance(value, Noted):
        return value.value, _line(value.note)
    return value, ""


def _line(text: str) -> str:
    return " ".join(text.split())[:160]
