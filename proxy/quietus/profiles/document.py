"""YAML with the line of everything in it: strict where YAML is loose.

Duplicate keys, tags and non-text keys are refused; aliases are bounded by the number of values that
they stand for. What comes out is plain data and a map from places to lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from quietus.profiles.faults import Fault

BYTES_MAX: Final = 1_048_576
_NODES_MAX: Final = 50_000
_SCALARS: Final = frozenset({"str", "int", "float", "bool", "null", "timestamp"})
Place = tuple[str | int, ...]


@dataclass(slots=True)
class Document:
    """A document and where its parts stand."""

    file: str
    value: Any
    lines: dict[Place, int] = field(default_factory=dict)

    def line(self, place: Iterable[str | int]) -> int:
        """The line of a place, or of the nearest one around it. Unknown steps are passed over."""
        known: Place = ()
        for step in place:
            if (*known, step) in self.lines:
                known = (*known, step)
        return self.lines.get(known, 1)


class DocumentError(Exception):
    """A file that is no such document."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class _Loader(yaml.SafeLoader):
    """The safe loader; only its resolver and scalar constructors are used."""


def parse_document(file: str, text: str) -> Document:
    """The document in `text`. Raises DocumentError."""
    if len(text) > BYTES_MAX:
        raise DocumentError(Fault(file, 1, "the file is too large", "a profile has a few kilobytes"))
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise DocumentError(Fault(file, 1, "the file is empty"))
        document = Document(file, None)
        document.value = _build(loader, node, (), document, [0])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise DocumentError(Fault(file, line, f"not YAML: {error.problem or error.context}")) from None
    except yaml.YAMLError:
        raise DocumentError(Fault(file, 1, "not YAML: it holds characters that YAML refuses")) from None
    except RecursionError:
        raise DocumentError(Fault(file, 1, "the file is nested too deeply")) from None
    return document


def _build(loader: _Loader, node: yaml.Node, place: Place, document: Document, count: list[int]) -> Any:
    line = node.start_mark.line + 1
    document.lines.setdefault(place, line)
    count[0] += 1
    if count[0] > _NODES_MAX or len(place) > 64:
        raise DocumentError(Fault(document.file, line, "the file stands for too many values"))
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise DocumentError(Fault(document.file, at, "a key is a list or a mapping"))
            key = key_node.value
            if key == "<<" and key_node.style is None:
                raise DocumentError(Fault(document.file, at, "merge keys are not read here", "write it out"))
            if key in found:
                raise DocumentError(Fault(document.file, at, f"the key {key!r} stands here twice"))
            document.lines[(*place, key)] = at
            found[key] = _build(loader, value_node, (*place, key), document, count)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, one, (*place, at), document, count) for at, one in enumerate(node.value)]
    if node.tag.removeprefix("tag:yaml.org,2002:") not in _SCALARS:
        raise DocumentError(Fault(document.file, line, "tags are not read here"))
    try:
        return loader.construct_object(node)
    except ValueError:
        raise DocumentError(Fault(document.file, line, "a value cannot be read")) from None
