"""What every command has in common: how it is asked for JSON, and how a shell completes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from quietus.cli import app
from tests.house import ROOT

RUN = CliRunner()


@pytest.mark.parametrize("words", [
    ("profile", "list", "--output", "json"), ("--output=json", "profile", "list"),
    ("profile", "--output", "json", "list"),
])  # fmt: skip
def test_output_json_is_the_same_as_json(words: tuple[str, ...]) -> None:
    ran = RUN.invoke(app, list(words))
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.output) == json.loads(RUN.invoke(app, ["profile", "list", "--json"]).output)


def test_output_table_is_how_it_is_else_and_nothing_else_is_known() -> None:
    plain = RUN.invoke(app, ["profile", "list"]).output
    assert RUN.invoke(app, ["profile", "list", "--output", "table"]).output == plain
    for words in (["profile", "list", "--output", "xml"], ["profile", "list", "--output"]):
        assert RUN.invoke(app, words).exit_code == 2


@pytest.mark.parametrize(("line", "at", "found"), [
    ("quietus er", 1, "erasures"), ("quietus erasures re", 2, "release"),
    ("quietus policy ob", 2, "observed"),
])  # fmt: skip
def test_a_shell_completes_commands(line: str, at: int, found: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "proxy"), "_QUIETUS_COMPLETE": "complete_bash",
           "COMP_WORDS": line, "COMP_CWORD": str(at)}  # fmt: skip
    code = "import sys; sys.argv[0] = 'quietus'; from quietus.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert found in ran.stdout.split(), ran
