"""YAML and JSON documents with the line of every value, and faults that say where and what to do.

Strict: no duplicate keys, no aliases, no tags; only true, false, null and numbers are anything but
text, so that `on`, `1:30` and dates stay what was written. A message never quotes a value.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from quietus.profiles.faults import Fault

SIZE_MAX: Final = 1 << 20
DEPTH_MAX: Final = 32

Place = tuple[str | int, ...]
_Model = TypeVar("_Model", bound=BaseModel)


class DocumentError(Exception):
    """A document that is refused, with everything that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as plain values, with the line on which each stands."""

    file: str
    value: Any
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line(self, place: Iterable[str | int]) -> int:
        """The line of a value, or of the nearest one around it that is in the document."""
        spot = tuple(place)
        while spot and spot not in self.lines:
            spot = spot[:-1]
        return self.lines.get(spot, 1)


class _Loader(yaml.SafeLoader):
    """Only the scalars of JSON; everything else is text."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", list("tf")),
    ("int", r"-?(0|[1-9][0-9]*)", list("-0123456789")),
    ("float", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)


def read(path: Path, name: str | None = None) -> Document:
    """The document in a file. Raises DocumentError."""
    file = name or str(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DocumentError([Fault(file, 1, f"cannot be read: {error.strerror}", "check the path")]) from None
    if len(raw) > SIZE_MAX:
        raise DocumentError([Fault(file, 1, "is larger than 1 MiB", "split it, or give another file")])
    try:
        return parse(raw.decode("utf-8"), file)
    except UnicodeDecodeError:
        raise DocumentError([Fault(file, 1, "is not UTF-8", "save it as UTF-8")]) from None


def parse(text: str, file: str) -> Document:
    """The document in a text. Raises DocumentError."""
    loader: yaml.SafeLoader | None = None
    try:
        _refuse_aliases(text, file)
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        value = None if node is None else _Walk(loader, file, lines).value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise DocumentError([Fault(file, line, f"is not YAML: {_plain(error.problem)}")]) from None
    except yaml.YAMLError:
        raise DocumentError([Fault(file, 1, "is not YAML: a character that may not stand there")]) from None
    except RecursionError:
        raise DocumentError([Fault(file, 1, "is nested too deeply")]) from None
    finally:
        if loader is not None:
            loader.dispose()
    return Document(file, value, lines)


def _plain(problem: str | None) -> str:
    # PyYAML quotes the offending character; a document may hold what nobody should read in a log.
    return re.sub(r"'[^']*'", "what stands there", problem or "syntax")


def _refuse_aliases(text: str, file: str) -> None:
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise DocumentError([Fault(file, line, "uses an anchor or alias", "write the value out")])


@dataclass(slots=True)
class _Walk:
    loader: yaml.SafeLoader
    file: str
    lines: dict[Place, int]

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if len(place) > DEPTH_MAX:
            raise self._fault(node, "is nested too deeply")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*place, number)) for number, child in enumerate(node.value)]
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._fault(node, "uses a tag", "write the plain value")
        try:
            return self.loader.construct_object(node, deep=True)
        except (ValueError, yaml.YAMLError):
            raise self._fault(node, "is a value that cannot be read", "put it in quotes") from None

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, child in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._fault(key_node, "a key is not a word")
            key = key_node.value
            if key in found:
                raise self._fault(key_node, f"the key {key!r} stands here twice", "keep one of them")
            self.lines[(*place, key)] = key_node.start_mark.line + 1
            found[key] = self.value(child, (*place, key))
        return found

    def _fault(self, node: yaml.Node, message: str, hint: str = "") -> DocumentError:
        return DocumentError([Fault(self.file, node.start_mark.line + 1, message, hint)])


def validate(document: Document, model: type[_Model]) -> _Model:
    """The document as the model has it. Raises DocumentError with a line and a hint for each fault."""
    try:
        return model.model_validate(document.value)
    except ValidationError as error:
        raise DocumentError(faults_of(document, error, model)) from None


def faults_of(
    document: Document,
    error: ValidationError,
    model: type[BaseModel],
    source: Callable[[Place], str] = lambda _: "",
) -> list[Fault]:
    """Pydantic's errors as faults, each once, in the order of their lines.

    `source` names what a value came from where that is not the document.
    """
    faults: dict[tuple[str, int, str], Fault] = {}
    for detail in error.errors(include_url=False, include_input=False):
        place = detail["loc"]
        message, hint = _worded(detail["type"], place, detail["msg"], model)
        elsewhere = source(place)
        line = 1 if elsewhere else document.line(place[:-1] if detail["type"] == "missing" else place)
        fault = Fault(elsewhere or document.file, line, message, hint)
        faults.setdefault((fault.file, line, message), fault)
    return [faults[key] for key in sorted(faults)]


def _worded(kind: str, place: Place, message: str, model: type[BaseModel]) -> tuple[str, str]:
    name = dotted(place)
    if kind == "extra_forbidden":
        known = _keys(model, place[:-1])
        near = difflib.get_close_matches(str(place[-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}" if known else ""
        return f"unknown key {name!r}", hint or "remove it"
    if kind == "missing":
        return f"{name!r} is missing", "add it"
    if kind == "value_error":
        head, _, hint = message.removeprefix("Value error, ").partition("; ")
        return (f"{name}: {head}" if name else head), hint
    return (f"{name}: {message}" if name else message), ""


def dotted(place: Place) -> str:
    """A place as people write it: `rules[2].when.operation`."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() or re.fullmatch(r"[\w$*.-]+", part):
            text += f".{part}" if text else part
    return text


def _keys(model: type[BaseModel], place: Place) -> list[str]:
    current: type[BaseModel] | None = model
    for part in place:
        if isinstance(part, int) or current is None:
            continue
        field_ = next((f for n, f in current.model_fields.items() if part in (n, f.alias)), None)
        current = _model_in(field_.annotation) if field_ else None
    return [f.alias or n for n, f in current.model_fields.items()] if current else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        if (found := _model_in(part)) is not None:
            return found
    return None
