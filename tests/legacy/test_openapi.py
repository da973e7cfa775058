"""docs/memory-tool.openapi.yaml says what the store does: structure, words, and real answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from quietus.core.exchange import Reply, header
from quietus.legacy.embedding import DIMENSIONS
from quietus.legacy.faults import Faults, parse_faults
from tests.legacy.conversation import ALICE, Talk

DOCUMENT: Any = yaml.safe_load(
    (Path(__file__).parents[2] / "docs" / "memory-tool.openapi.yaml").read_text(encoding="utf-8")
)
METHODS = {"get", "post", "delete"}


def resolved(node: Any) -> Any:
    """The node with every reference replaced by what it points at."""
    if isinstance(node, dict):
        if "$ref" in node:
            target = DOCUMENT
            for part in node["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            return resolved(target)
        return {name: resolved(value) for name, value in node.items()}
    return [resolved(value) for value in node] if isinstance(node, list) else node


OPERATIONS = {
    (method.upper(), path): operation
    for path, item in resolved(DOCUMENT["paths"]).items()
    for method, operation in item.items()
    if method in METHODS
}


def schemas(node: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of a property, an item or a parameter, with where it stands."""
    for name, prop in node.get("properties", {}).items():
        yield f"{where}.{name}", prop
        yield from schemas(prop, f"{where}.{name}")
    if isinstance(node.get("items"), dict):
        yield f"{where}[]", node["items"]
        yield from schemas(node["items"], f"{where}[]")


def conforms(reply: Reply, method: str, path: str) -> None:
    """Whether an answer is one that the document describes."""
    described = OPERATIONS[method, path]["responses"].get(str(reply.status))
    assert described, f"{method} {path} answers {reply.status}, which is not described"
    kind = header(reply.headers, "content-type")
    assert kind in described["content"], f"{kind} is not described for {method} {path} {reply.status}"
    schema = described["content"][kind]["schema"]
    if kind == "application/json":
        Draft202012Validator(schema).validate(json.loads(reply.body))


def test_every_field_is_described() -> None:
    silent = [
        where
        for name, schema in resolved(DOCUMENT["components"]["schemas"]).items()
        for where, prop in [(name, schema), *schemas(schema, name)]
        if not prop.get("description")
    ]
    assert not silent


def test_every_operation_parameter_and_answer_is_described() -> None:
    for (method, path), operation in OPERATIONS.items():
        assert operation["summary"] and operation["operationId"], (method, path)
        assert all(answer["description"] for answer in operation["responses"].values()), (method, path)
        assert operation.get("requestBody", {"description": "-"})["description"]
    parameters = DOCUMENT["components"]["parameters"].values()
    assert all(parameter["description"] for parameter in parameters)


def test_schemas_are_schemas() -> None:
    for schema in resolved(DOCUMENT["components"]["schemas"]).values():
        Draft202012Validator.check_schema(schema)


def test_examples_are_valid() -> None:
    seen = 0
    for operation in OPERATIONS.values():
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for media in (media for body in bodies for media in body.get("content", {}).values()):
            examples = [example["value"] for example in media.get("examples", {}).values()]
            examples += [media["example"]] if "example" in media else []
            for example in examples:
                Draft202012Validator(media["schema"]).validate(example)
                seen += 1
    assert seen > 20


def test_every_route_of_the_store_is_described_and_the_reverse() -> None:
    talk = Talk()
    talk.write(ALICE, key="key")
    for method, path in OPERATIONS:
        reply = talk.send(method, path.replace("{key}", "key"), {} if method == "POST" else None)
        assert b"no_such_route" not in reply.body, (method, path)
        assert b"method_not_allowed" not in reply.body, (method, path)
    assert "unknown" not in talk.store.calls
    assert set(talk.store.calls) == {operation["operationId"] for operation in OPERATIONS.values()}


@pytest.mark.parametrize(
    "faults",
    [
        [],
        ["lazy_index", "chunk_cache", "service_digest"],
        ["ack=accepted", "epochs"],
        ["ack=ok", "failures=2"],
        ["negative_ack"],
        ["queued_ingest"],
        ["dedup_merge"],
        ["columnar"],
        ["sse"],
        ["query_writeback", "dangling_provenance=null"],
        ["stale_dedup", "stale_salience", "history"],
    ],
    ids=" ".join,
)
def test_real_answers_are_as_described(faults: list[str]) -> None:
    talk = Talk(parse_faults(faults) if faults else Faults())
    retention = {"subject": "alice", "purpose": "assistance", "ttl": 60}
    one = {"tenant": "acme", "key": "a1", "value": ALICE, "retention": retention, "salience": 0.5}
    two = {"tenant": "acme", "key": "a2", "value": f"Summary. {ALICE}", "derived_from": ["a1"]}
    steps: list[tuple[str, str, str, Any]] = [
        ("POST", "/v1/memories", "", one),
        ("POST", "/v1/memories", "", {"memories": [two, {"value": "no key", "scope": "a/b"}]}),
        ("POST", "/v1/memories", "", {"value": 3}),
        ("GET", "/v1/memories", "?tenant=acme&limit=1", None),
        ("GET", "/v1/memories", "?limit=0", None),
        ("GET", "/v1/memories/{key}", "a1", None),
        ("GET", "/v1/memories/{key}", "none", None),
        ("GET", "/v1/memories/{key}/history", "a1", None),
        ("POST", "/v1/recall", "", {"query": "alice", "include": ["vector"]}),
        ("POST", "/v1/recall", "", {"vector": [0.5] * DIMENSIONS, "top_k": 2}),
        ("POST", "/v1/recall", "", {}),
        ("POST", "/v1/forget", "", {"tenant": "acme", "subject": "alice"}),
        ("POST", "/v1/forget", "", {"keys": []}),
        ("POST", "/v1/recall", "", {"query": "alice"}),
        ("POST", "/v1/memories", "", {**one, "key": "t1"}),
        ("GET", "/v1/memories/{key}", "a2", None),
        ("DELETE", "/v1/memories/{key}", "a2", None),
        ("DELETE", "/v1/memories/{key}", "none", None),
        ("POST", "/v1/reset", "", {"tenant": "acme"}),
        ("POST", "/v1/reset", "", {}),
        ("GET", "/v1/epoch", "", None),
        ("GET", "/v1/export", "", None),
        ("GET", "/healthz", "", None),
    ]
    for method, path, more, body in steps:
        target = path.replace("{key}", more) if "{key}" in path else path + more
        conforms(talk.send(method, target, body), method, path)


def test_requests_as_described_are_taken() -> None:
    talk = Talk()
    for (method, path), operation in OPERATIONS.items():
        for media in operation.get("requestBody", {}).get("content", {}).values():
            for example in media.get("examples", {}).values():
                reply = talk.send(method, path, example["value"])
                assert reply.status in (200, 201, 404), (path, reply.body)
