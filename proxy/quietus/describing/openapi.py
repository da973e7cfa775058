"""Endpoints out of an OpenAPI 3 document. References inside the document are followed; others are not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from quietus.describing.nodes import Endpoint, Node, Parameter

ENDPOINTS_MAX: Final = 2000
_NESTED_MAX: Final = 12
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_PARAMETER: Final = re.compile(r"\{([^{}]*)\}")


class NotDescribed(ValueError):
    """A document that is no OpenAPI 3; the message says what to give instead."""


def endpoints(document: Any) -> list[Endpoint]:
    """The calls that a document describes, in its order. Raises NotDescribed."""
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        raise NotDescribed("this is no OpenAPI document: it has no `paths`")
    version = str(document.get("openapi", ""))
    if not version.startswith("3."):
        raise NotDescribed(
            "only OpenAPI 3 is read; convert the document, for instance with swagger-converter"
        )
    found = [each for path, item in document["paths"].items() for each in _of(document, str(path), item)]
    if len(found) > ENDPOINTS_MAX:
        raise NotDescribed(
            f"the document has more than {ENDPOINTS_MAX} calls: keep those of the store's memory"
        )
    return found


def _of(document: Mapping[str, Any], path: str, item: Any) -> Iterator[Endpoint]:
    item = _resolved(document, item)
    prefix = _prefix(document)
    for method in _METHODS:
        operation = item.get(method)
        if not isinstance(operation, dict):
            continue
        given = [*(item.get("parameters") or ()), *(operation.get("parameters") or ())]
        known = {(each.get("in"), each.get("name")): each
                 for each in (_resolved(document, one) for one in given)}  # fmt: skip
        whole, names = _renamed(prefix + path)
        yield Endpoint(
            name=str(operation.get("operationId") or f"{method} {path}"),
            wire="http",
            method=method.upper(),
            path=whole,
            parameters=(*names, *_queries(document, known.values())),
            body=_content(document, _resolved(document, operation.get("requestBody") or {})),
            answer=_answer(document, operation.get("responses") or {}),
            statuses=tuple(str(status) for status in operation.get("responses") or {}),
        )


def _prefix(document: Mapping[str, Any]) -> str:
    """The path under which the first server has everything."""
    servers = document.get("servers") or [{}]
    url = str(servers[0].get("url", "")) if isinstance(servers, list) and isinstance(servers[0], dict) else ""
    return "" if "{" in url else urlsplit(url).path.rstrip("/")


def _renamed(path: str) -> tuple[str, list[Parameter]]:
    """The path with parameters' names as a profile takes them, and those parameters."""
    found: list[Parameter] = []

    def name(match: re.Match[str]) -> str:
        plain = re.sub(r"\W", "_", match[1].partition(":")[0]) or "part"
        before = [part for part in path[: match.start()].split("/") if part and "{" not in part]
        found.append(Parameter(plain, "path", required=True, before=before[-1] if before else ""))
        return f"{{{plain}}}"

    return _PARAMETER.sub(name, path), found


def _queries(document: Mapping[str, Any], given: Any) -> Iterator[Parameter]:
    for each in given:
        if each.get("in") == "query" and each.get("name"):
            node = node_of(document, each.get("schema") or {})
            yield Parameter(
                str(each["name"]), "query", many=node.of is not None, required=bool(each.get("required")),
                integer="integer" in node.kinds,
            )  # fmt: skip


def _answer(document: Mapping[str, Any], responses: Mapping[str, Any]) -> Node | None:
    """What a success answers with; several successes are alternatives."""
    found = [_content(document, _resolved(document, each)) for status, each in responses.items()
             if str(status).startswith("2") or str(status) == "default"]  # fmt: skip
    nodes = [node for node in found if node is not None]
    return merged(nodes) if nodes else None


def _content(document: Mapping[str, Any], body: Mapping[str, Any]) -> Node | None:
    content = body.get("content") or {}
    for kind, media in content.items():
        if "json" in str(kind) and isinstance(media, dict):
            return node_of(document, media.get("schema") or {})
    return None


def node_of(document: Mapping[str, Any], schema: Any, depth: int = 0) -> Node:
    """The node of a schema; alternatives and what is combined are laid together."""
    schema = _resolved(document, schema)
    if depth > _NESTED_MAX or not isinstance(schema, dict):
        return Node()
    kind = schema.get("type")
    kinds = frozenset(str(each) for each in (kind if isinstance(kind, list) else [kind] if kind else ()))
    members = {str(name): node_of(document, one, depth + 1)
               for name, one in (schema.get("properties") or {}).items()}  # fmt: skip
    of = node_of(document, schema["items"], depth + 1) if isinstance(schema.get("items"), dict) else None
    required = frozenset(str(name) for name in schema.get("required") or ())
    own = Node(kinds, members, of, required, schema.get("default"))
    more = [node_of(document, each, depth + 1)
            for word in ("allOf", "oneOf", "anyOf") for each in schema.get(word) or ()]  # fmt: skip
    return merged([own, *more]) if more else own


def merged(nodes: list[Node]) -> Node:
    """Several nodes as one that may be any of them."""
    members: dict[str, list[Node]] = {}
    for node in nodes:
        for name, member in node.members.items():
            members.setdefault(name, []).append(member)
    inner = [node.of for node in nodes if node.of is not None]
    return Node(
        frozenset().union(*(node.kinds for node in nodes)),
        {name: merged(each) if len(each) > 1 else each[0] for name, each in members.items()},
        merged(inner) if len(inner) > 1 else inner[0] if inner else None,
        frozenset().union(*(node.required for node in nodes)),
        next((node.default for node in nodes if node.default is not None), None),
    )


def _resolved(document: Mapping[str, Any], node: Any) -> Any:
    for _ in range(_NESTED_MAX):
        if not isinstance(node, dict):
            return {}
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return node
        if not ref.startswith("#/"):
            return {}
        target: Any = document
        for part in ref[2:].split("/"):
            target = (
                target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            )
        node = target
    return {}
