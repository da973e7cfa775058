"""Log lines: what may not be in them is not in them, whatever the code hands over."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from quietus import logs
from tests import house

SECRETS = [
    "alice@example.org",
    "Alice lives in Lyon",
    "/v1/memories/alice",
    "Bearer eyJhbGciOi",
    "subject=alice",
]


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    kept = io.StringIO()
    logs.setup(lambda: 1794268800.5, stream=kept)
    yield kept
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_level_and_time(stream: io.StringIO) -> None:
    structlog.get_logger().info(
        "decision", effect="block", rule="recall-in-erased-scope", count=2, mode="enforce"
    )
    assert lines(stream) == [{
        "event": "decision", "level": "info", "timestamp": 1794268800.5, "effect": "block",
        "rule": "recall-in-erased-scope", "count": 2, "mode": "enforce",
    }]  # fmt: skip


@pytest.mark.requirement("R205")
@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_passes_under_any_key(stream: io.StringIO, secret: str) -> None:
    log = structlog.get_logger()
    log.info("seen", subject=secret, path=secret, text=secret, headers={"Authorization": secret})
    for key in sorted(logs.KEYS - {"event", "level", "timestamp"}):
        log.info("seen", **{key: secret})
        log.info("seen", **{key: [secret]})
        log.info("seen", **{key: {secret: secret}})
    log.bind(subject=secret).error("seen")
    assert secret not in stream.getvalue()
    assert "alice" not in stream.getvalue().lower()
    assert lines(stream)[0]["withheld"] == 4


def test_an_event_that_is_no_plain_words_is_withheld(stream: io.StringIO) -> None:
    structlog.get_logger().info('{"subject": "alice"}')
    assert lines(stream)[0]["event"] == "withheld"


def test_an_exception_is_told_by_type_and_place_alone(stream: io.StringIO) -> None:
    try:
        raise ValueError("alice@example.org lives in Lyon")
    except ValueError as error:
        structlog.get_logger().error("internal_error", exc_info=error)
        structlog.get_logger().exception("internal_error")
    assert "alice" not in stream.getvalue()
    assert [line["error"] for line in lines(stream)] == ["ValueError", "ValueError"]


def test_every_event_in_the_code_is_a_constant_with_listed_keys() -> None:
    faults = []
    for module in house.modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = ast.unparse(node.func.value).rpartition(".")[2]
            if owner not in ("_log", "log") or node.func.attr not in (
                "debug",
                "info",
                "warning",
                "error",
                "exception",
            ):
                continue
            first = node.args[0] if node.args else None
            if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                faults.append(f"{module.name}:{node.lineno}: the event is not a constant")
            faults += [
                f"{module.name}:{node.lineno}: the key {keyword.arg!r} is not in logs.KEYS"
                for keyword in node.keywords
                if keyword.arg is not None and keyword.arg not in logs.KEYS | {"exc_info"}
            ]
    assert not faults, "\n".join(faults)
