"""docs/requirements.md says which tests carry which requirement, and is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.requirements import PAGE, SIGHT, MarkerError, Row, collect, load, page, render

SAMPLE = '''
import pytest
pytestmark = pytest.mark.requirement("R1")

@pytest.mark.requirement("R2", "R3")
def test_function(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("R4"))])
async def test_parameters(x): ...

@pytest.mark.requirement("R5")
class TestThings:
    def test_method(self): ...

def helper(): ...
'''


def collected(tmp_path: Path, text: str) -> dict[str, list[str]]:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_sample.py").write_text(text)
    return collect(folder)


def test_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_rows_are_complete_and_unique() -> None:
    rows = load()
    assert [row.id for row in rows] == [f"R{number}" for number in range(1, len(rows) + 1)]
    assert all(row.text and row.sight in SIGHT for row in rows)


def test_markers_are_found_wherever_pytest_takes_them(tmp_path: Path) -> None:
    function = "tests/test_sample.py::test_function"
    parameters = "tests/test_sample.py::test_parameters"
    method = "tests/test_sample.py::TestThings::test_method"
    assert collected(tmp_path, SAMPLE) == {
        "R1": [method, function, parameters],
        "R2": [function],
        "R3": [function],
        "R4": [parameters],
        "R5": [method],
    }


def test_id_that_is_not_written_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MarkerError, match="write the ids"):
        collected(tmp_path, "import pytest\n@pytest.mark.requirement(*IDS)\ndef test_x(): ...\n")


def test_unknown_id_is_refused() -> None:
    rows = [Row("R1", "part", "V", "text", "")]
    with pytest.raises(MarkerError, match="R9"):
        render(rows, {"R9": ["tests/test_x.py::test_y"]})


def test_row_without_a_test_says_so_and_bars_are_escaped() -> None:
    text = render([Row("R1", "part", "V", "a|b", "")], {})
    assert "| R1 | a\\|b | V |  | none |" in text
    assert "0 of 1 rows" in text
