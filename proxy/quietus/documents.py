"""YAML and JSON documents against their models: faults that say where and what to do, and quote no value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from quietus.profiles.document import Document as Document
from quietus.profiles.document import DocumentError as NoDocument
from quietus.profiles.document import Place, parse_document
from quietus.profiles.faults import Fault

SIZE_MAX: Final = 1 << 20

_Model = TypeVar("_Model", bound=BaseModel)


class DocumentError(Exception):
    """A document that is refused, with everything that is wrong with it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = list(faults)


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
    try:
        return parse_document(file, text)
    except NoDocument as error:
        raise DocumentError([error.fault]) from None


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
