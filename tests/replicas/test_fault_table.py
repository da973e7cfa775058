"""docs/ledger-faults.md: every fault of the ledger that must be played is there, with tests that exist."""

from __future__ import annotations

import re

from tests.e2e.process import ROOT

ROW = re.compile(r"^\| (?!fault |---)(.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
OPERATIONS = ("recall, read", "write", "forget", "probe", "admin", "health")
FAULTS = {
    "down", "still", "slow", "full", "evict", "rolled back", "stale replica", "partition", "fsync", "killed",
    "frozen", "race", "clocks", "keys",
}  # fmt: skip
"""Those of the threat model's matrix that concern the ledger, by a word of each."""


def rows() -> dict[str, list[str]]:
    page = (ROOT / "docs" / "ledger-faults.md").read_text()
    found = [match[1].split(" | ") for match in ROW.finditer(page) if not match[1].startswith("---")]
    return {cells[0]: cells[1:] for cells in found}


def test_every_fault_has_its_row_and_every_cell_says_something() -> None:
    found = rows()
    assert {word for word in FAULTS if not any(word in fault for fault in found)} == set()
    for fault, cells in found.items():
        assert len(cells) == len(OPERATIONS) + 1, fault
        assert all(cell.strip() for cell in cells), fault


def test_every_row_is_played_by_tests_that_exist() -> None:
    for fault, cells in rows().items():
        named = TEST.findall(cells[-1])
        assert named and len(named) == cells[-1].count("`") // 2, fault
        for path, function in named:
            assert f"def {function}(" in (ROOT / path).read_text(), (fault, path, function)
