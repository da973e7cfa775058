"""`quietus profile init`: what is guessed from a description loads, says so, and reads calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from quietus.cli import app
from quietus.core.exchange import Reply, Request
from quietus.core.operations import Operation
from quietus.profiles.descriptors import of_module
from quietus.profiles.loader import load_profile

ROOT = Path(__file__).resolve().parents[2]
TEXT = {"type": "string"}
NUMBERS = {"type": "array", "items": {"type": "number"}}
NOTE = {"type": "object", "properties": {"id": TEXT, "userId": TEXT, "note": TEXT, "embedding": NUMBERS}}
REF = {"$ref": "#/components/schemas/Note"}
TREE = {"$ref": "#/components/schemas/Tree"}
HITS = {"type": "object", "properties": {"hits": {"type": "array", "items": REF}}}


def says(schema: Any) -> dict[str, Any]:
    return {"description": "fine", "content": {"application/json": {"schema": schema}}}


def takes(**members: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": {"type": "object", "properties": members}}}}


ADDED = {"responses": {"201": says(NOTE)}}
FOUND = {"responses": {"200": says(HITS)}}
GONE = {"responses": {"204": {"description": "gone"}}}
HOUSE: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://notes.internal/api/v2"}],
    "components": {"schemas": {"Note": NOTE, "Tree": {"properties": {"of": TREE}}}},
    "paths": {
        "/users/{id}/notes": {
            "get": {"operationId": "getNotes", "responses": {"200": says({"type": "array", "items": REF})}},
            "post": {"operationId": "addNote", "requestBody": takes(note=TEXT), **ADDED},
            "delete": {"operationId": "dropUser", **GONE},
        },
        "/notes/{noteId}": {
            "get": {"operationId": "getNote", "responses": {"200": says(NOTE)}},
            "delete": {"operationId": "dropNote", **GONE},
        },
        "/find": {
            "post": {"operationId": "find", "requestBody": takes(q=TEXT, userId=TEXT), **FOUND}
        },
        "/wipe": {"post": {"operationId": "wipe", "requestBody": takes(sure={"type": "boolean"})}},
        "/trees": {"post": {"operationId": "plant", "requestBody": takes(tree=TREE), "responses": {}}},
        "/ping": {"get": {"responses": {}}},
    },
}


def init(folder: Path, source: Any, *more: str) -> tuple[int, Path, str]:
    file, out = folder / "api.yaml", folder / "mine.yaml"
    file.write_text(source if isinstance(source, str) else yaml.safe_dump(source))
    ran = CliRunner().invoke(app, ["profile", "init", str(file), "--out", str(out), *more])
    return ran.exit_code, out, ran.output


def test_an_api_in_other_words_is_understood(tmp_path: Path) -> None:
    code, out, _ = init(tmp_path, HOUSE)
    assert code == 0
    profile = load_profile(out)
    ask = Request("POST", "/api/v2/find", (("Content-Type", "application/json"),), b'{"q":"x","userId":"u1"}')
    reading = profile.read(ask)
    assert reading.call.operation is Operation.RECALL and reading.call.scope.subject == {"u1"}
    hits = {
        "hits": [{"id": "n1", "userId": "u1", "note": "tea"}, {"id": "n2", "userId": "u2", "note": "rye"}]
    }
    reply = Reply(200, (("Content-Type", "application/json"),), json.dumps(hits).encode())
    items = profile.answer(reading, reply).items
    assert [(item.key, item.subject, item.texts) for item in items] == [
        ("n1", "u1", ("tea",)), ("n2", "u2", ("rye",))]  # fmt: skip
    forget = profile.read(Request("DELETE", "/api/v2/users/u1/notes"))
    assert forget.call.operation is Operation.FORGET and forget.call.scope.subject == {"u1"}
    one = profile.read(Request("DELETE", "/api/v2/notes/n1"))
    assert one.call.scope.key == {"n1"} and one.call.operation is Operation.FORGET
    assert profile.read(Request("GET", "/api/v2/notes/n1")).call.operation is Operation.READ
    assert {"primary", "index", "unprobeable"} <= {surface.kind for surface in profile.surfaces}
    assert profile.forget_kinds == {"subject"} and profile.canary_values == {"subject", "text"}


def test_every_guess_is_marked_and_what_is_not_known_is_named(tmp_path: Path) -> None:
    code, out, said = init(tmp_path, HOUSE)
    assert code == 0 and "no route" in said
    text = out.read_text()
    for call in ("POST /api/v2/wipe", "POST /api/v2/trees"):
        assert f"#   {call}: " in text, text[:800]
    guessed = [line for line in text.splitlines() if "$." in line or "operation: " in line]
    unmarked = [line for line in guessed if "# guess: " not in line and not line.startswith("# ")]
    assert len(guessed) > 30 and not unmarked


def test_a_draft_overwrites_nothing_and_says_what_it_cannot_read(tmp_path: Path) -> None:
    code, out, _ = init(tmp_path, HOUSE)
    before = out.read_text()
    again, _, said = init(tmp_path, HOUSE)
    assert again == 2 and "overwrites nothing" in said and out.read_text() == before
    out.unlink()
    for source, hint in (
        ({"swagger": "2.0", "paths": {}}, "OpenAPI 3"), ("a: 1", "paths"), ("a: [", "not YAML"),
    ):  # fmt: skip
        code, out, said = init(tmp_path, source)
        assert code == 2 and hint in said, said
    nothing: dict[str, Any] = {"openapi": "3.1.0", "paths": {"/sum": {"post": {"responses": {}}}}}
    assert init(tmp_path, nothing)[0] == 1
    assert not out.exists()


def test_a_descriptor_set(tmp_path: Path) -> None:
    (tmp_path / "mem.pb").write_bytes(of_module("quietus.stubs.memory_v1_pb2"))
    out = tmp_path / "mine.yaml"
    ran = CliRunner().invoke(app, ["profile", "init", str(tmp_path / "mem.pb"), "--out", str(out), "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.output)
    does = {each["name"]: each["operation"] for each in told["routes"]}
    assert (does["write"], does["read"], does["recall"], does["forget"]) == (
        "write",
        "read",
        "recall",
        "forget",
    )
    assert [each["call"] for each in told["left_out"]] == ["/quietus.memory.v1.MemoryService/GetEpoch"]
    profile = load_profile(out)
    assert profile.forget_kinds == {"subject", "keys", "path"} and profile.controls is not None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    where = ["--out", str(elsewhere / "x.yaml")]
    assert CliRunner().invoke(app, ["profile", "init", str(tmp_path / "mem.pb"), *where]).exit_code == 2
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff")
    assert CliRunner().invoke(app, ["profile", "init", str(tmp_path / "bad.pb"), *where]).exit_code == 2


@pytest.mark.parametrize("path", ["docs/memory-tool.openapi.yaml"])
def test_the_draft_of_the_memory_tool_reads_as_the_profile_that_ships(path: str, tmp_path: Path) -> None:
    code, out, _ = init(tmp_path, (ROOT / path).read_text())
    assert code == 0
    drafted, shipped = load_profile(out), load_profile("memory-tool", frozenset({"http"}))
    body = b'{"tenant":"acme","subject":"alice","query":"x"}'
    for method, target, sent in (
        ("POST", "/v1/recall", body), ("GET", "/v1/memories?tenant=acme&subject=alice&scope=a/b", b""),
        ("GET", "/v1/memories/k1?tenant=acme", b""), ("DELETE", "/v1/memories/k1?tenant=acme", b""),
        ("POST", "/v1/forget", b'{"subject":"alice","keys":["k1","k2"]}'),
        ("POST", "/v1/memories", b'{"value":"x","retention":{"subject":"alice"},"derived_from":["p"]}'),
    ):  # fmt: skip
        kind = (("Content-Type", "application/json"),) if sent else ()
        request = Request(method, target, kind, sent)
        ours, theirs = drafted.read(request).call, shipped.read(request).call
        assert (ours.operation, ours.scope, ours.derived_from) == (
            theirs.operation, theirs.scope, theirs.derived_from), target  # fmt: skip
