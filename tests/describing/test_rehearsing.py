"""`quietus profile test`: what passes, what fails and what it says, in words and for machines."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quietus.cli import app

ROWS = [
    {"key": "v1", "subject": "v2", "value": "text 0", "n": 1.50},
    {"key": "v3", "subject": "v4", "value": "text 1"},
]


def line(method: str, target: str, body: Any, answer: Any, status: int = 200, **more: Any) -> str:
    kind = [["Content-Type", "application/json"]]
    text = "" if body is None else json.dumps(body)
    told = answer if isinstance(answer, str) else json.dumps(answer)
    return json.dumps({
        "request": {"method": method, "target": target, "headers": kind if text else [], "body": text},
        "response": {"status": status, "headers": kind, "body": told}, **more,
    })  # fmt: skip


RECALL = line("POST", "/v1/recall", {"subject": "v2", "query": "text 9"}, {"results": ROWS, "took": 1})


def test(folder: Path, *lines: str, profile: str = "memory-tool", more: tuple[str, ...] = ()) -> Result:
    file = folder / "calls.jsonl"
    if lines:
        file.write_text("\n".join(lines) + "\n")
    return CliRunner().invoke(app, ["profile", "test", profile, str(file), *more])


test.__test__ = False  # type: ignore[attr-defined]


def told(folder: Path, *lines: str, profile: str = "memory-tool") -> tuple[int, dict[str, Any]]:
    ran = test(folder, *lines, profile=profile, more=("--json",))
    return ran.exit_code, json.loads(ran.output)


def test_rows_are_found_and_taken_out_one_by_one(tmp_path: Path) -> None:
    code, found = told(tmp_path, RECALL, line("POST", "/v1/forget", {"subject": "v2"}, {"status": "v9"}))
    assert code == 0 and found["failed"] == 0
    recall, forget = found["found"]
    assert (recall["operation"], recall["items"], recall["rows_taken_out"]) == ("recall", 2, 2)
    assert recall["scope"]["subject"] == ["v2"] and recall["scope"]["tenant"] == "any"
    assert (forget["operation"], forget["ack"]) == ("forget", "accepted")
    assert "write" in found["routes_without_a_pair"]
    said = test(tmp_path)
    assert said.exit_code == 0 and "2 calls, 0 failed" in said.output


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (line("GET", "/v9/odd", None, {}), "no route takes it"),
        (line("POST", "/v1/recall", {"subject": "v1", "query": "x"}, {"results": []}), None),
        (line("POST", "/v1/recall", {"subject": {"a": 1}}, {"results": []}), "400 malformed-request"),
        (line("POST", "/v1/recall", {"subject": "v1"}, {"hits": ROWS}), "cannot be read"),
        (line("POST", "/v1/recall", {"subject": "v1"}, {"results": [{"id": "v1", "value": "t"}]}), "no key"),
        (line("POST", "/v1/recall", {"subject": "v1"}, {"results": [{"key": "v1"}]}), "no row has a content"),
        (line("POST", "/v1/forget", {}, {}), "422 unverifiable-forget"),
        (line("GET", "/v1/memories?subject=a&subject=b", None, {"results": []}), "400 ambiguous-request"),
        (
            line("POST", "/v1/recall", {"query": "x"}, {"results": ROWS}, expect={"items": 3}),
            "3 was expected",
        ),
        (
            line("POST", "/v1/recall", {"query": "x"}, {"results": ROWS}, expect={"route": "list"}),
            "was expected",
        ),
    ],
)
def test_what_fails_says_what_to_do(call: str, fault: str | None, tmp_path: Path) -> None:
    code, found = told(tmp_path, call)
    faults = " ".join(found["found"][0]["faults"])
    assert code == (1 if fault else 0), found
    assert fault is None or fault in faults


def test_what_stands_outside_of_its_row_too_is_noted(tmp_path: Path) -> None:
    # The profile names one of two lists: with a row taken out the other would still tell it.
    answer = {"results": ROWS, "again": ROWS[:1]}
    code, found = told(tmp_path, line("POST", "/v1/recall", {"query": "x"}, answer))
    assert code == 0 and found["found"][0]["rows_taken_out"] == 2
    assert any("outside" in note for note in found["found"][0]["notes"])
    code, found = told(tmp_path, RECALL)
    assert not any("outside" in note for note in found["found"][0]["notes"])


def test_white_space_of_the_store_is_noted(tmp_path: Path) -> None:
    spaced = (
        '{ "results" : [ {"key":"v1","value":"a","subject":"v2"}, {"key":"v3","value":"b"} ], "x": 1.50 }'
    )
    code, found = told(tmp_path, line("POST", "/v1/recall", {"query": "x"}, spaced))
    assert code == 0 and found["found"][0]["rows_taken_out"] == 2
    assert any("white space" in note for note in found["found"][0]["notes"])


def test_what_was_accepted_is_expected_from_then_on(tmp_path: Path) -> None:
    assert test(tmp_path, RECALL, more=("--accept",)).exit_code == 0
    file = tmp_path / "calls.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = json.loads(file.read_text())
    assert kept["expect"]["items"] == 2 and kept["expect"]["route"] == "recall"
    assert test(tmp_path).exit_code == 0
    kept["response"]["body"] = json.dumps({"results": ROWS[:1]})
    assert test(tmp_path, json.dumps(kept)).exit_code == 1
    assert test(tmp_path, json.dumps(kept), more=("--accept",)).exit_code == 1
    assert json.loads(file.read_text())["expect"]["items"] == 2, "what failed is not accepted"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"request": {}}', '{"request": 1, "response": 2}'])
def test_what_is_no_recording_is_a_usage_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "calls.jsonl").write_text(text + "\n")
    assert test(tmp_path).exit_code == 2
    assert CliRunner().invoke(app, ["profile", "test", "memory-tool", str(tmp_path / "none")]).exit_code == 2
    assert (
        CliRunner().invoke(app, ["profile", "test", "no-such", str(tmp_path / "calls.jsonl")]).exit_code == 2
    )


def archive(*entries: dict[str, Any]) -> str:
    return json.dumps({"log": {"entries": list(entries)}})


def test_saved_calls_are_masked_too(tmp_path: Path) -> None:
    har = tmp_path / "browser.har"
    row = {"key": "k", "value": "Alice", "subject": "alice"}
    har.write_text(archive({
        "request": {"method": "POST", "url": "http://store:8000/v1/recall?tenant=acme",
                    "headers": [{"name": "Content-Type", "value": "application/json"}],
                    "postData": {"text": '{"query": "where is alice"}'}},
        "response": {"status": 200, "headers": [{"name": "content-encoding", "value": "br"}],
                     "content": {"text": json.dumps({"results": [row]})}},
    }))  # fmt: skip
    out = tmp_path / "calls.jsonl"
    record = ["profile", "record", "memory-tool", "--from", str(har), "--out", str(out)]
    ran = CliRunner().invoke(app, [*record, "--json"])
    assert ran.exit_code == 0 and json.loads(ran.output)["calls"] == 1, ran.output
    assert "alice" not in out.read_text().lower() and stat.S_IMODE(out.stat().st_mode) == 0o600
    code, found = told(tmp_path)
    assert code == 0 and found["found"][0]["rows_taken_out"] == 1
    assert CliRunner().invoke(app, record).exit_code == 2, "it overwrites nothing"
    har.write_text("{}")
    assert CliRunner().invoke(app, [*record[:-1], str(tmp_path / "x")]).exit_code == 2


@pytest.mark.parametrize(
    "more",
    [(), ("--upstream", "http://127.0.0.1:1", "--from", "x.har"),
     ("--upstream", "http://127.0.0.1:1", "--listen", "0.0.0.0:0"), ("--from", "no-such.har")],
)  # fmt: skip
def test_a_recorder_that_cannot_begin_writes_nothing(more: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "calls.jsonl"
    ran = CliRunner().invoke(app, ["profile", "record", "memory-tool", "--out", str(out), *more])
    assert ran.exit_code == 2 and not out.exists()
