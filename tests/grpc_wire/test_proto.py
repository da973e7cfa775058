"""The `.proto` files: their style, what they promised before, and the Python that is made from them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.proto import PROTO, main, sources

BUF = Path(sys.executable).parent / "buf"
PROMISED = PROTO / "promised.binpb"
"""What clients may rely on: made by `make proto`, so that a change of it is seen in a review."""


def buf(*words: str) -> str:
    told = subprocess.run([BUF, *words], cwd=PROTO, capture_output=True, text=True, timeout=60, check=False)
    return told.stdout + told.stderr if told.returncode else ""


def test_style_and_comments() -> None:
    assert buf("lint") == ""


def test_nothing_that_was_promised_is_broken() -> None:
    assert buf("breaking", "--against", str(PROMISED)) == ""


def test_a_broken_promise_would_be_seen(tmp_path: Path) -> None:
    """The control: a field that changes its type."""
    for path in (*sources(), Path("buf.yaml")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        text = (PROTO / path).read_text()
        (tmp_path / path).write_text(text.replace("string value = 2;", "bytes value = 2;"))
    told = subprocess.run(
        [BUF, "breaking", str(tmp_path), "--against", str(PROMISED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 100 and "value" in told.stdout


@pytest.mark.requirement("R13")
def test_the_python_is_current() -> None:
    assert main(["--check"]) == 0
